//! The thread of one device. It draws fresh start points, keeps launches in flight and passes
//! collected ones to the verifier. A device that fails is taken out of use and tried again later.
//!
//! The first rates of a device. Estimates for askers need them.
//!
//! | the device | before its first job | while it has none |
//! | --- | --- | --- |
//! | has rates of an earlier start | nothing | nothing |
//! | has none | one short launch, if it does not say how long its launches are | measures itself |
//! | is measured by `bench`, or its rates are not kept | measures itself | measures itself |
//!
//! Open jobs are searched at once, and their launches measure the device. If these launches only
//! compare whole keys, the device measures itself between them after [`WARM_UP`] and [`MEASURE`].

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
use crate::scheduler::plan::profile::{Compared, DeviceRates, Lane};
use crate::scheduler::plan::rest::Duty;
use crate::search::{Calibrations, DeviceId, Expected, Launch, SearchError, SearchOptions, Searcher};
use crate::vault::{StartId, Vault};
use anyhow::bail;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

/// The time that an idle device compares whole keys before that rate is measured.
const WARM_UP_WHOLE: Duration = Duration::from_millis(100);
/// The time that an idle device compares whole keys while that rate is measured.
const MEASURE_WHOLE: Duration = Duration::from_millis(100);
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
/// The longest sleep of a thread before it checks for the end, while its device pauses or rests.
const END_CHECK_EVERY: Duration = Duration::from_millis(50);

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
    /// The list of this machine's threads and the name of this one, if it is one of them.
    pub roster: Option<(Roster, String)>,
}

impl DeviceThread {
    /// Searches until the pool closes. Opens the device again after every failure, and at the
    /// beginning if `first` is not an open one.
    pub fn run(&self, mut first: Option<Result<Box<dyn Searcher>, SearchError>>) {
        let mut backoff = Backoff::new(FIRST_RETRY_PAUSE, LAST_RETRY_PAUSE);
        while !self.pool.is_closed() {
            let began = Instant::now();
            let ended = match first.take() {
                Some(Err(error)) => Err(error.into()),
                Some(Ok(searcher)) => self.work(Some(searcher)),
                None => self.work(None),
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
            self.sleep(pause);
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
        for launch in in_flight {
            self.discard(&launch.starts);
        }
        result
    }

    fn search(&self, searcher: &mut dyn Searcher, in_flight: &mut VecDeque<InFlight>) -> anyhow::Result<()> {
        let trial = Arc::new(Pass::canary_alone(None));
        let mut held = self.pool.add_device(self.lane);
        // A device whose rates are not kept is measured before it gets jobs.
        let holds_jobs = searcher.calibration_key().is_none() || self.pool.is_exhaustive();
        let calibrations = &self.options.calibrations;
        let mut first = FirstRates::new(searcher, &self.record, &mut held, calibrations, holds_jobs);
        let warm_up = || PlannedLaunch::warm_up(Arc::clone(&trial));
        let (now, duty) = (Instant::now(), Duty::new(self.record.lock().share));
        let mut timing =
            Timing { busy_since: now, watched: now, measure_from: first.measure_from(), whole: None, duty };
        loop {
            if self.roster.as_ref().is_some_and(|(roster, name)| roster.is_condemned(name)) {
                return Ok(());
            }
            if let Some(watch) = self.watch.as_ref().filter(|_| timing.watched.elapsed() >= WATCH_EVERY) {
                watch.look(&self.record);
                timing.watched = Instant::now();
            }
            // A device may change the number of its launches in flight.
            held.set_device(searcher.starts() * searcher.in_flight().max(1), searcher.early_stop());
            let (knows_launch_size, is_closed) = (held.plan.candidates_per_start().is_some(), self.pool.is_closed());
            let next = if !is_closed && first.is_next(&self.record, knows_launch_size, self.must_rest(&timing)) {
                NextStep::Search(warm_up())
            } else if self.must_rest(&timing) {
                held.part = self.record.part();
                held.note_rate(self.record.rates());
                NextStep::Wait
            } else {
                held.plan.set_lane(self.lane_now());
                held.part = self.record.part();
                self.pool.next(&mut held, first.rates(&self.record))
            };
            let next = match next {
                NextStep::Wait if !first.is_over(&self.record) => NextStep::Search(warm_up()),
                NextStep::Wait if in_flight.is_empty() => {
                    self.whole_keys_trial(&mut timing).map_or(NextStep::Wait, NextStep::Search)
                }
                next => next,
            };
            match next {
                NextStep::Search(planned) => {
                    self.submit(searcher, in_flight, planned)?;
                    if in_flight.len() >= searcher.in_flight().max(1) {
                        self.collect(searcher, in_flight, &mut held, &mut timing)?;
                        first.keep(&self.record, false);
                    }
                }
                NextStep::Wait | NextStep::End if !in_flight.is_empty() => {
                    self.collect(searcher, in_flight, &mut held, &mut timing)?;
                }
                NextStep::Wait => {
                    searcher.check()?;
                    match timing.duty.is_over() {
                        true => self.sleep(timing.duty.rest()),
                        false if self.record.is_resting() => {
                            self.pool.wait_for_end(END_CHECK_EVERY);
                        }
                        false => self.idle(&held),
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

    fn collect(
        &self,
        searcher: &mut dyn Searcher,
        in_flight: &mut VecDeque<InFlight>,
        held: &mut PoolDevice,
        timing: &mut Timing,
    ) -> anyhow::Result<()> {
        let pass = &in_flight.front().expect("a launch was submitted").planned.pass;
        reach(fault::before, pass, "collect");
        let report = searcher.collect()?;
        reach(fault::after, pass, "collect");
        let InFlight { planned, starts } = in_flight.pop_front().expect("a launch was submitted");
        held.settle(&planned, &report, starts.len());
        let compared = planned.pass.compared();
        let of_top_words = compared == Compared::TopWords;
        let stretch = held.plan.candidates_per_start().filter(|_| of_top_words);
        let now = Instant::now();
        let is_measured = timing.busy_since >= timing.measure_from;
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
        self.believed()
    }

    /// Fails if the verifier has found that the device's claims cannot be believed.
    fn believed(&self) -> anyhow::Result<()> {
        match self.record.view().health {
            Health::Working => Ok(()),
            Health::Out(reason) => bail!(reason),
        }
    }

    /// A launch that measures the rate at which whole keys are compared. Estimates for askers need
    /// this rate. An idle device makes some such launches before it waits. If there are jobs from
    /// the beginning, the first launch for a job that compares whole keys measures the rate.
    fn whole_keys_trial(&self, timing: &mut Timing) -> Option<PlannedLaunch> {
        let now = Instant::now();
        let is_measuring = timing.whole.is_some() && now < timing.measure_from + MEASURE_WHOLE;
        let is_wanted = is_measuring || self.record.rates().whole_keys.is_none();
        if !is_wanted || self.pool.is_exhaustive() || self.pool.is_paused() || self.must_rest(timing) {
            return None;
        }
        let pass = timing.whole.get_or_insert_with(|| {
            timing.measure_from = now + WARM_UP_WHOLE;
            Arc::new(Pass::canary_alone_of_whole_keys(self.record.rate_of(Compared::WholeKeys)))
        });
        Some(PlannedLaunch::warm_up(Arc::clone(pass)))
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

    fn idle(&self, held: &PoolDevice) {
        self.record.lock().idle = true;
        self.pool.wait(held, IDLE_CHECK_EVERY);
        self.record.lock().idle = false;
    }

    /// Sleeps until the pause is over or the pool closes.
    fn sleep(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while Instant::now() < until && !self.pool.is_closed() {
            std::thread::sleep(END_CHECK_EVERY.min(until.saturating_duration_since(Instant::now())));
        }
    }

    fn discard(&self, starts: &[(StartId, StartPoint)]) {
        let ids: Vec<StartId> = starts.iter().map(|&(id, _)| id).collect();
        self.vault.discard(&ids);
    }
}

#[cfg(test)]
mod tests;

/// The time that a device runs before it is measured.
pub(super) const WARM_UP: Duration = Duration::from_millis(150);
/// The time for which the device is then measured.
pub(super) const MEASURE: Duration = Duration::from_millis(200);
/// The least relative change of a rate that makes the device save its rates again at the end.
const WORTH_KEEPING: f64 = 0.02;

/// The state of a device's first measurement.
pub(super) struct FirstRates {
    /// Whether jobs wait until the device has a rate.
    holds_jobs: bool,
    /// The measurement ends at this time, if there is a rate by then.
    until: Instant,
    expected: Option<Expected>,
    calibrations: Calibrations,
    /// The key of the device; `None` if its rates are not kept.
    key: Option<String>,
    /// The saved rates.
    kept: DeviceRates,
}

impl FirstRates {
    /// Begins the measurement of a device, or takes the rates of an earlier start. `holds_jobs`
    /// says whether jobs must wait for the measurement.
    pub fn new(
        searcher: &dyn Searcher,
        record: &Record,
        held: &mut PoolDevice,
        calibrations: &Calibrations,
        holds_jobs: bool,
    ) -> FirstRates {
        let now = Instant::now();
        let key = searcher.calibration_key().filter(|_| !holds_jobs).map(str::to_owned);
        let kept = key.as_deref().and_then(|key| calibrations.get(key)).unwrap_or_default();
        let kept = DeviceRates { top_words: kept.top_words.map(Rate), whole_keys: kept.whole_keys.map(Rate) };
        let expected = searcher.expected().filter(|_| !holds_jobs);
        if let Some(Expected { stretch, .. }) = expected {
            held.plan.expect_candidates_per_start(stretch);
        }
        record.begin_with(kept);
        let until = if kept.top_words.is_some() { now } else { now + WARM_UP + MEASURE };
        FirstRates { holds_jobs, until, expected, calibrations: calibrations.clone(), key, kept }
    }

    /// When launches begin to count.
    pub fn measure_from(&self) -> Instant {
        if self.kept.top_words.is_some() { self.until + WARM_UP } else { self.until - MEASURE }
    }

    /// Whether the first measurement is over: its time has passed, and there is a rate. The time
    /// alone is not enough, because on an overloaded machine one launch may outlast warm-up and
    /// measurement.
    pub fn is_over(&self, record: &Record) -> bool {
        Instant::now() >= self.until && record.rate().is_some()
    }

    /// Whether the next launch must measure, even if there are jobs. A device that must rest takes
    /// no jobs, so it measures itself first.
    pub fn is_next(&self, record: &Record, knows_launch_size: bool, must_rest: bool) -> bool {
        let is_late = Instant::now() >= self.until;
        match self.is_over(record) {
            true => !knows_launch_size && !must_rest && !self.holds_jobs,
            false => self.holds_jobs || is_late || must_rest || !knows_launch_size,
        }
    }

    /// The rates for planning launches: expected ones until they are measured.
    pub fn rates(&self, record: &Record) -> DeviceRates {
        let rates = record.rates();
        DeviceRates { top_words: rates.top_words.or(self.expected.map(|expected| Rate(expected.rate))), ..rates }
    }

    /// Saves the rates for the next start: the first ones, and at the end those that have changed.
    pub fn keep(&mut self, record: &Record, is_end: bool) {
        let Some(key) = self.key.as_deref().filter(|_| self.is_over(record)) else { return };
        let now = record.rates();
        let is_worth = |kept: Option<Rate>, now: Option<Rate>| match (kept, now) {
            (Some(Rate(kept)), Some(Rate(now))) => is_end && (now / kept - 1.0).abs() > WORTH_KEEPING,
            (None, now) => now.is_some(),
            (Some(_), None) => false,
        };
        if is_worth(self.kept.top_words, now.top_words) || is_worth(self.kept.whole_keys, now.whole_keys) {
            self.kept = now;
            self.calibrations.change(key, |calibration| {
                calibration.top_words = now.top_words.map(|Rate(rate)| rate);
                calibration.whole_keys = now.whole_keys.map(|Rate(rate)| rate);
            });
        }
    }
}

/// The times for measuring rates.
pub(super) struct Timing {
    /// When the device began to work after a break, or ended the previous launch. The time since
    /// then is the wall time of the next launch.
    pub busy_since: Instant,
    /// When the [`Watch`] was last asked.
    pub watched: Instant,
    /// When the last warm-up ends.
    pub measure_from: Instant,
    /// The pass for measuring whole keys, once that began.
    pub whole: Option<Arc<Pass>>,
    /// The device's alternation of work and rest.
    pub duty: Duty,
}
