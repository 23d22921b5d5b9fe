//! The thread of one device. It draws fresh start points, keeps launches in flight and passes
//! collected ones to the verifier. A device that fails is taken out of use and tried again later.
//!
//! Estimates for askers need the rates of a device. Open jobs are searched at once, and their
//! launches measure it. While there are none, it measures itself, if its rates are not kept from an
//! earlier start ([`FirstRates`]).

use super::device_threads::DeviceOpener;
use super::health::{Health, LastLaunch, Record};
use super::pool::{NextStep, Pool, PoolDevice};
use super::verify::{CollectedLaunch, Delivered, reach};
use super::watch::Watch;
use crate::backoff::Backoff;
use crate::fault;
use crate::key::StartPoint;
use crate::pattern::Rate;
use crate::roster::Roster;
use crate::scheduler::plan::device_plan::PlannedLaunch;
use crate::scheduler::plan::pass::Pass;
use crate::scheduler::plan::profile::{DeviceRates, KeyPart, Lane};
use crate::scheduler::plan::rest::Duty;
use crate::search::{Calibrations, DeviceId, Launch, SearchError, SearchOptions, Searcher};
use crate::vault::{StartId, Vault};
use anyhow::bail;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Pause before a failed device is tried again. Doubles with each failure.
const FIRST_RETRY_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause before a retry.
const LAST_RETRY_PAUSE: Duration = Duration::from_secs(300);
/// A device that has worked this long pauses only [`FIRST_RETRY_PAUSE`] after its next failure.
const RECOVERED_AFTER: Duration = Duration::from_secs(60);
/// Time between two questions to the [`Watch`].
const WATCH_EVERY: Duration = Duration::from_millis(500);
/// The longest sleep of an idle thread before it checks for new work, or for the end.
const IDLE_CHECK_EVERY: Duration = Duration::from_millis(500);

/// A launch submitted and not yet collected.
struct InFlight {
    planned: PlannedLaunch,
    starts: Vec<(StartId, StartPoint)>,
}

/// One device and its thread.
pub struct DeviceThread {
    /// The device.
    pub id: DeviceId,
    /// The patterns that the device searches.
    pub lane: Lane,
    /// The GPUs that this device replaces while none of them works.
    pub stands_in_for: Vec<Arc<Record>>,
    /// The health and counters of the device.
    pub record: Arc<Record>,
    /// Decides when the device rests; `None` if nothing makes it rest.
    pub watch: Option<Watch>,
    /// The pool of open jobs.
    pub pool: Arc<Pool>,
    /// The vault, which draws start points.
    pub vault: Vault,
    /// The channel for collected launches.
    pub launches: SyncSender<Delivered>,
    /// The options for opening the device again.
    pub options: SearchOptions,
    /// Opens the device again after a failure; `None` for a device that comes back by itself.
    pub opener: Option<DeviceOpener>,
    /// The list of this machine's threads, if this is one of them.
    pub roster: Option<Roster>,
}

impl DeviceThread {
    /// Starts the thread. `first` is the open device, or why it did not open.
    pub fn spawn(self, first: Result<Box<dyn Searcher>, SearchError>) -> JoinHandle<()> {
        let (name, mut first) = (self.id.to_string(), Some(first));
        let run = move || match &self.roster {
            Some(roster) => {
                roster.keep_thread(&self.id.to_string(), || self.pool.is_closed(), || self.run(first.take()))
            }
            None => self.run(first.take()),
        };
        std::thread::Builder::new().name(name).spawn(run).expect("the system starts threads")
    }

    /// Searches until the pool closes. Opens the device again after every failure, and at the
    /// beginning if `first` is not an open one.
    fn run(&self, mut first: Option<Result<Box<dyn Searcher>, SearchError>>) {
        let mut backoff = Backoff::new(FIRST_RETRY_PAUSE, LAST_RETRY_PAUSE);
        while !self.pool.is_closed() {
            let began = Instant::now();
            let ended = match first.take() {
                Some(Err(error)) => Err(error.into()),
                first => self.work(first.and_then(Result::ok)),
            };
            let Err(failure) = ended else { return };
            self.record.lock().view.health = Health::Out(failure.to_string());
            if self.pool.is_closed() {
                // At the end of the process, the driver may shut down before this thread ends.
                tracing::debug!(device = %self.id, %failure, "a device failed at the end");
                return;
            }
            if self.opener.is_none() {
                tracing::warn!(device = %self.id, %failure, "a device gets no more launches until it comes back");
                return;
            }
            if began.elapsed() > RECOVERED_AFTER {
                backoff.reset();
            }
            let pause = backoff.next_pause();
            tracing::warn!(device = %self.record.view().id, %failure, retry_in = ?pause, "a device failed and is taken out of use");
            self.pool.wait_for_end(pause);
        }
    }

    /// Searches until the pool closes or the device fails.
    fn work(&self, open: Option<Box<dyn Searcher>>) -> anyhow::Result<()> {
        let mut in_flight = VecDeque::new();
        let search = || {
            let mut searcher = match (open, &self.opener) {
                (Some(searcher), _) => searcher,
                (None, Some(opener)) => opener.open(self.id, &self.options)?,
                (None, None) => return Ok(()),
            };
            self.record.put_back(&*searcher);
            self.search(searcher.as_mut(), &mut in_flight)
        };
        let result = catch_unwind(AssertUnwindSafe(search)).unwrap_or_else(|_| {
            bail!("its thread panicked, as the log says; it is tried again, and a newer version or driver may help")
        });
        // Launches in flight are dropped with their start points. Nothing is lost: the search has
        // no memory.
        let starts: Vec<StartId> = in_flight.iter().flat_map(|launch| &launch.starts).map(|&(id, _)| id).collect();
        self.vault.discard(&starts);
        result
    }

    fn search(&self, searcher: &mut dyn Searcher, in_flight: &mut VecDeque<InFlight>) -> anyhow::Result<()> {
        let mut held = self.pool.add_device(self.lane);
        let key = searcher.calibration_key().filter(|_| !self.pool.is_exhaustive());
        let mut first = FirstRates::new(key, &self.record, &self.options.calibrations);
        let (now, duty) = (Instant::now(), Duty::new(self.record.lock().share));
        let mut timing = Timing { busy_since: now, watched: now, duty };
        loop {
            if self.roster.as_ref().is_some_and(|roster| roster.is_condemned(&self.id.to_string())) {
                return Ok(());
            }
            if let Some(watch) = self.watch.as_ref().filter(|_| timing.watched.elapsed() >= WATCH_EVERY) {
                watch.look(&self.record);
                timing.watched = Instant::now();
            }
            // A device may change the number of its launches in flight.
            held.set_device(searcher.starts() * searcher.in_flight().max(1), searcher.early_stop());
            held.part = self.record.part();
            let must_rest = self.must_rest(&timing);
            // How long its launches are decides what it searches for.
            let is_unknown = held.plan.candidates_per_start().is_none() && !must_rest;
            let next = if !self.pool.is_closed() && (is_unknown || first.is_late(&self.record)) {
                NextStep::Search(first.trial())
            } else if must_rest {
                held.note_rate(self.record.rates());
                NextStep::Wait
            } else {
                held.plan.set_lane(self.lane_now());
                self.pool.next(&mut held, self.record.rates())
            };
            let next = match next {
                NextStep::Wait => {
                    let is_free = in_flight.is_empty() && !must_rest && !self.pool.is_paused();
                    if is_free && !self.pool.is_exhaustive() {
                        first.measure_whole_keys(&self.record);
                    }
                    if first.is_over(&self.record) { NextStep::Wait } else { NextStep::Search(first.trial()) }
                }
                next => next,
            };
            match next {
                NextStep::Search(planned) => {
                    self.submit(searcher, in_flight, planned)?;
                    if in_flight.len() >= searcher.in_flight().max(1) {
                        self.collect(searcher, in_flight, &mut held, &mut timing, first.counts_from)?;
                        first.keep(&self.record, false);
                    }
                }
                NextStep::Wait | NextStep::End if !in_flight.is_empty() => {
                    self.collect(searcher, in_flight, &mut held, &mut timing, first.counts_from)?;
                }
                NextStep::Wait => {
                    searcher.check()?;
                    match timing.duty.is_over() {
                        true => self.pool.wait_for_end(timing.duty.rest()),
                        false if self.record.is_resting() => self.pool.wait_for_end(WATCH_EVERY),
                        false => {
                            self.record.lock().has_waited = true;
                            self.pool.wait(&held, IDLE_CHECK_EVERY);
                        }
                    }
                    timing.busy_since = Instant::now();
                }
                NextStep::End => {
                    first.keep(&self.record, true);
                    return Ok(());
                }
            }
        }
    }

    fn submit(
        &self,
        searcher: &mut dyn Searcher,
        in_flight: &mut VecDeque<InFlight>,
        planned: PlannedLaunch,
    ) -> anyhow::Result<()> {
        let pass = Arc::clone(&planned.pass);
        reach(fault::before, &pass, "draw");
        let starts = self.vault.open_starts(searcher.starts(), pass.half.as_ref())?;
        reach(fault::after, &pass, "draw");
        let points = starts.iter().map(|&(_, point)| point).collect();
        let remaining = if searcher.early_stop() { pass.remaining() } else { None };
        let launch = Launch { starts: points, patterns: Arc::clone(&pass.patterns), remaining };
        in_flight.push_back(InFlight { planned, starts });
        reach(fault::before, &pass, "launch");
        searcher.submit(launch)?;
        reach(fault::after, &pass, "launch");
        Ok(())
    }

    /// Collects the oldest launch. It counts as a measurement if it began after `counts_from`.
    fn collect(
        &self,
        searcher: &mut dyn Searcher,
        in_flight: &mut VecDeque<InFlight>,
        held: &mut PoolDevice,
        timing: &mut Timing,
        counts_from: Instant,
    ) -> anyhow::Result<()> {
        let pass = &in_flight.front().expect("a launch was submitted").planned.pass;
        reach(fault::before, pass, "collect");
        let report = searcher.collect()?;
        reach(fault::after, pass, "collect");
        let InFlight { planned, starts } = in_flight.pop_front().expect("a launch was submitted");
        held.settle(&planned, &report, starts.len());
        let compared = planned.pass.compared();
        let of_top_words = compared == KeyPart::Top32;
        let stretch = held.plan.candidates_per_start().filter(|_| of_top_words);
        let now = Instant::now();
        let is_measured = timing.busy_since >= counts_from;
        let wall = is_measured.then(|| now - timing.busy_since);
        timing.duty.work(now - timing.busy_since);
        timing.busy_since = now;
        if let Some(stretch) = stretch {
            let (starts, candidates) = (starts.len(), report.candidates);
            let last = LastLaunch { starts, candidates, stretch, early_stop: searcher.early_stop() };
            self.record.lock().last = Some(last);
        }
        match wall.filter(|_| !report.is_cut_short) {
            Some(wall) => self.record.add_measurement(compared, report.candidates, wall),
            // They do not affect the rate.
            None => self.record.lock().view.candidates += report.candidates,
        }
        let launch = CollectedLaunch { pass: planned.pass, starts, report };
        // Sending cannot fail: the verifier ends after all devices.
        let _ = self.launches.send(Delivered { launch, record: Arc::clone(&self.record), collected: now });
        // The verifier may have found that the device's claims cannot be believed.
        match self.record.view().health {
            Health::Working => Ok(()),
            Health::Out(reason) => bail!(reason),
        }
    }

    /// Whether the operator's hours or limits (battery, heat, share of time) forbid the device to
    /// search now.
    fn must_rest(&self, timing: &Timing) -> bool {
        (self.record.is_resting() || timing.duty.is_over()) && !self.pool.is_closed()
    }

    /// The current lane: all patterns while every GPU is out of use. A slow search is better than
    /// none.
    fn lane_now(&self) -> Lane {
        let gpus_are_out = !self.stands_in_for.is_empty() && self.stands_in_for.iter().all(|gpu| gpu.is_out());
        if gpus_are_out { Lane::All } else { self.lane }
    }
}

/// The time that a device runs before it is measured.
const WARM_UP: Duration = Duration::from_millis(150);
/// The time for which the device is then measured.
const MEASURE: Duration = Duration::from_millis(200);

/// The measurement of a device without rates: first where top words are compared, then whole keys.
struct FirstRates {
    /// The kind of launches that is measured now, or was last.
    compared: KeyPart,
    /// The pass that measures it.
    pass: Arc<Pass>,
    /// Launches that begin earlier are a warm-up.
    counts_from: Instant,
    /// The measurement ends at this time, if there is a rate by then. On an overloaded machine one
    /// launch may outlast it.
    until: Instant,
    calibrations: Calibrations,
    /// The key of the device; `None` if its rates are not kept.
    key: Option<String>,
    /// The kept rates.
    kept: DeviceRates,
}

impl FirstRates {
    /// Begins the measurement of a device with this key, or takes the rates of an earlier start.
    fn new(key: Option<&str>, record: &Record, calibrations: &Calibrations) -> FirstRates {
        let kept = key.and_then(|key| calibrations.get(key)).unwrap_or_default();
        let kept = DeviceRates { top_words: kept.top_words.map(Rate), whole_keys: kept.whole_keys.map(Rate) };
        record.begin_with(kept);
        let counts_from = Instant::now() + WARM_UP;
        FirstRates {
            compared: KeyPart::Top32,
            pass: Arc::new(Pass::canary_alone(KeyPart::Top32, None)),
            counts_from,
            until: if kept.top_words.is_some() { Instant::now() } else { counts_from + MEASURE },
            calibrations: calibrations.clone(),
            key: key.map(str::to_owned),
            kept,
        }
    }

    /// Begins to measure where whole keys are compared, if only that rate is unknown.
    fn measure_whole_keys(&mut self, record: &Record) {
        if self.is_over(record) && record.rates().whole_keys.is_none() {
            self.compared = KeyPart::Whole;
            self.pass = Arc::new(Pass::canary_alone(self.compared, record.rate_of(self.compared)));
            self.counts_from = Instant::now() + WARM_UP;
            self.until = self.counts_from + MEASURE;
        }
    }

    /// A launch that measures.
    fn trial(&self) -> PlannedLaunch {
        PlannedLaunch::warm_up(Arc::clone(&self.pass))
    }

    /// Whether the measurement is over.
    fn is_over(&self, record: &Record) -> bool {
        let rates = record.rates();
        let rate = if self.compared == KeyPart::Top32 { rates.top_words } else { rates.whole_keys };
        Instant::now() >= self.until && rate.is_some()
    }

    /// Whether the launches for jobs have not measured the device, because they compare whole keys.
    fn is_late(&self, record: &Record) -> bool {
        Instant::now() >= self.until && record.rate().is_none()
    }

    /// Saves the rates for the next start: the first ones, and the last ones at the end.
    fn keep(&mut self, record: &Record, is_end: bool) {
        let Some(key) = self.key.as_deref().filter(|_| self.is_over(record)) else { return };
        let now = record.rates();
        let is_new = |kept: Option<Rate>, now: Option<Rate>| now.is_some() && (is_end || kept.is_none());
        if is_new(self.kept.top_words, now.top_words) || is_new(self.kept.whole_keys, now.whole_keys) {
            self.kept = now;
            self.calibrations.change(key, |calibration| {
                calibration.top_words = now.top_words.map(|Rate(rate)| rate);
                calibration.whole_keys = now.whole_keys.map(|Rate(rate)| rate);
            });
        }
    }
}

/// The times of a device.
struct Timing {
    /// When the device began to work after a break, or ended the previous launch. The time since
    /// then is the wall time of the next launch.
    busy_since: Instant,
    /// When the [`Watch`] was last asked.
    watched: Instant,
    /// The alternation of work and rest.
    duty: Duty,
}

#[cfg(test)]
mod tests;
