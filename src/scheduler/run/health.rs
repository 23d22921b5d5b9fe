//! The health of a device: its rate, and whether its claims can be believed.

use super::canaries::Canaries;
use crate::pattern::Rate;
use crate::scheduler::plan::profile::{Compared, Rates};
use crate::scheduler::plan::rest::Rest;
use crate::search::{DeviceId, DeviceInfo};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Number of wrong hits at which a device is taken out of use.
const WRONG_HITS_ALLOWED: u64 = 3;

/// The time over which a rate is averaged, in seconds. Launches may come back in bursts, so each
/// counts by its wall time.
const AVERAGED_OVER: f64 = 1.0;

/// The record of a device, written by its thread and by the verifier.
#[derive(Debug)]
pub(in crate::scheduler) struct Record {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    view: DeviceView,
    canaries: Canaries,
    /// Why the device's claims are no longer believed.
    verdict: Option<String>,
    /// Candidates and their wall time in seconds, averaged: for top words, for whole keys.
    averages: [(f64, f64); 2],
    /// The rate where whole keys are compared.
    whole_keys_rate: Option<Rate>,
    last: Option<LastLaunch>,
    idle: bool,
    /// The share of the device's time in which the operator lets it search.
    share: f64,
}

impl Record {
    /// The record of a device that works and has not searched yet.
    pub fn new(info: &DeviceInfo) -> Record {
        let view = DeviceView {
            id: info.id,
            name: info.name.clone(),
            kernel: info.kernel.clone(),
            threads: info.threads,
            health: Health::Working,
            rate: None,
            candidates: 0,
            hits: 0,
            hits_wrong: 0,
            rest: None,
            part: 1.0,
            warnings: Vec::new(),
        };
        Record {
            inner: Mutex::new(Inner {
                view,
                canaries: Canaries::default(),
                verdict: None,
                averages: [(0.0, 0.0); 2],
                whole_keys_rate: None,
                last: None,
                idle: false,
                share: 1.0,
            }),
        }
    }

    /// The current state of the device.
    pub fn view(&self) -> DeviceView {
        self.lock().view.clone()
    }

    /// The rate; `None` before the first measurement.
    pub fn rate(&self) -> Option<Rate> {
        self.lock().view.rate
    }

    /// The rate of launches of this kind. Estimated from that of the other kind before the first
    /// measurement; `None` if neither was measured.
    pub fn rate_of(&self, compared: Compared) -> Option<Rate> {
        self.rates().of(compared)
    }

    /// The measured rates.
    pub fn rates(&self) -> Rates {
        let inner = self.lock();
        Rates { top_words: inner.view.rate, whole_keys: inner.whole_keys_rate }
    }

    /// Takes over the rates saved at an earlier start, unless measured ones are known.
    pub fn begin_with(&self, kept: Rates) {
        let mut inner = self.lock();
        inner.view.rate = inner.view.rate.or(kept.top_words);
        inner.whole_keys_rate = inner.whole_keys_rate.or(kept.whole_keys);
    }

    /// Remembers the last launch.
    pub fn note_launch(&self, last: LastLaunch) {
        self.lock().last = Some(last);
    }

    /// The last launch.
    pub fn last_launch(&self) -> Option<LastLaunch> {
        self.lock().last
    }

    /// Counts `candidates` of the warm-up. They do not affect the rate.
    pub fn add_warm_up(&self, candidates: u64) {
        self.lock().view.candidates += candidates;
    }

    /// Counts `candidates` tested in `wall` time, and adapts the rate of launches of this kind.
    pub fn add_measurement(&self, compared: Compared, candidates: u64, wall: Duration) {
        let mut inner = self.lock();
        inner.view.candidates += candidates;
        let wall = wall.as_secs_f64().max(1e-9);
        let average = &mut inner.averages[usize::from(compared == Compared::WholeKeys)];
        let kept = (-wall / AVERAGED_OVER).exp();
        *average = (average.0 * kept + candidates as f64, average.1 * kept + wall);
        let rate = Some(Rate(average.0 / average.1));
        match compared {
            Compared::TopWords => inner.view.rate = rate,
            Compared::WholeKeys => inner.whole_keys_rate = rate,
        }
    }

    /// Counts hits that verified.
    pub fn add_hits(&self, hits: u64) {
        self.lock().view.hits += hits;
    }

    /// Counts the wrong hits and canary hits of a launch. Takes the device out of use if its claims
    /// cannot be believed.
    pub fn judge(&self, hits_wrong: u64, canary_expected: f64, canary_found: u64) {
        let mut inner = self.lock();
        inner.view.hits_wrong += hits_wrong;
        let disproved = inner.canaries.note(canary_expected, canary_found);
        if inner.view.hits_wrong >= WRONG_HITS_ALLOWED {
            inner.verdict = Some(format!("{} of its hits were wrong", inner.view.hits_wrong));
        } else if let Some(reason) = disproved {
            if inner.verdict.is_none() {
                inner.tell_of_verdict(&reason);
            }
            inner.verdict = Some(reason);
        }
        if let Some(reason) = inner.verdict.clone() {
            inner.view.health = Health::Out(reason);
        }
    }

    /// Takes the device out of use for this reason.
    pub fn take_out(&self, reason: String) {
        self.lock().view.health = Health::Out(reason);
    }

    /// Puts the device back in use with a clean record. Its candidates stay counted.
    pub fn put_back(&self, info: &DeviceInfo) {
        let mut inner = self.lock();
        inner.view.name = info.name.clone();
        inner.view.kernel = info.kernel.clone();
        inner.view.health = Health::Working;
        inner.view.hits_wrong = 0;
        inner.verdict = None;
        inner.canaries = Canaries::default();
    }

    /// Sets the share of its time in which the device searches.
    pub fn set_share(&self, share: f64) {
        let mut inner = self.lock();
        (inner.share, inner.view.part) = (share, share);
    }

    /// The share of its time in which the device searches.
    pub fn share(&self) -> f64 {
        self.lock().share
    }

    /// Sets why the device rests, and the share of its time that heat leaves. Returns the previous
    /// reason.
    pub fn set_rest(&self, rest: Option<Rest>, part: f64) -> Option<Rest> {
        let mut inner = self.lock();
        inner.view.part = inner.share * part;
        std::mem::replace(&mut inner.view.rest, rest)
    }

    /// Whether the device must rest.
    pub fn is_resting(&self) -> bool {
        self.lock().view.rest.is_some()
    }

    /// The share of its time in which the device can search.
    pub fn part(&self) -> f64 {
        self.lock().view.part
    }

    /// Tells the operator that a setting cannot be applied.
    pub fn warn(&self, warning: String) {
        let mut inner = self.lock();
        tracing::warn!(device = %inner.view.id, warning, "a device is not restrained as it should be");
        inner.view.warnings.push(warning);
    }

    /// Sets whether the device waits for work.
    pub fn set_idle(&self, idle: bool) {
        self.lock().idle = idle;
    }

    /// Whether the device waits for work.
    pub fn is_idle(&self) -> bool {
        self.lock().idle
    }

    /// Whether the device was taken out.
    pub fn is_out(&self) -> bool {
        self.lock().view.health != Health::Working
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Warns the operator, who may not notice: the device is soon tried again and then seems to
    /// work. Replaces the warning about an earlier verdict.
    fn tell_of_verdict(&mut self, reason: &str) {
        const TAKEN_OUT: &str = "it was taken out of use and tried again: ";
        self.view.warnings.retain(|warning| !warning.starts_with(TAKEN_OUT));
        self.view.warnings.push(format!("{TAKEN_OUT}{reason}"));
    }
}

/// Whether a device is in use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Health {
    /// The device is in use.
    Working,
    /// The device was taken out of use for this reason. It is tried again later.
    Out(String),
}

/// The state of a device, for status displays.
#[derive(Clone, Debug)]
pub struct DeviceView {
    /// The name npubbot uses.
    pub id: DeviceId,
    /// The maker's name.
    pub name: String,
    /// The kernel that the device runs.
    pub kernel: String,
    /// Threads that search.
    pub threads: usize,
    /// Whether the device is in use.
    pub health: Health,
    /// Candidates per second by wall time, host included. `None` before the first measurement.
    pub rate: Option<Rate>,
    /// Candidates tested since the start.
    pub candidates: u64,
    /// Hits that verified, since the start, including those of canaries.
    pub hits: u64,
    /// Wrong hits since the device was opened.
    pub hits_wrong: u64,
    /// Why the working device rests; `None` if it does not rest.
    pub rest: Option<Rest>,
    /// The share of its time in which the device can search: the configured share, reduced by
    /// pauses for heat.
    pub part: f64,
    /// Texts for the operator: settings that cannot be applied, and why the device was last
    /// distrusted.
    pub warnings: Vec<String>,
}

/// The last collected launch of a device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::scheduler) struct LastLaunch {
    /// Number of start points.
    pub starts: usize,
    /// Number of candidates tested.
    pub candidates: u64,
    /// Candidates that the device usually tests per start point.
    pub stretch: f64,
    /// Whether the device has an early stop ([`crate::search::Searcher::early_stop`]).
    pub early_stop: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::DeviceId;

    fn info(id: DeviceId) -> DeviceInfo {
        DeviceInfo { id, name: "test".to_owned(), kernel: "test".to_owned(), threads: 1 }
    }

    fn record() -> Record {
        Record::new(&info(DeviceId::Cpu))
    }

    #[test]
    fn a_device_with_wrong_hits_is_taken_out_and_comes_back_clean() {
        let record = record();
        record.judge(2, 0.0, 0);
        assert!(!record.is_out());
        record.judge(1, 0.0, 0);
        assert_eq!(record.view().health, Health::Out("3 of its hits were wrong".to_owned()));
        record.put_back(&info(DeviceId::Cpu));
        assert!(!record.is_out());
    }

    #[test]
    fn launches_that_come_at_once_count_by_their_time() {
        let record = record();
        let measure = |seconds| record.add_measurement(Compared::TopWords, 1000, Duration::from_secs_f64(seconds));
        (0..1000).for_each(|_| [0.199, 1e-9, 1e-9, 1e-9].into_iter().for_each(measure));
        let Rate(rate) = record.rate().unwrap();
        assert!((rate / (4000.0 / 0.199) - 1.0).abs() < 0.2, "{rate}");
        (0..50).for_each(|_| measure(0.1));
        let Rate(rate) = record.rate().unwrap();
        assert!((rate / 10_000.0 - 1.0).abs() < 0.05, "after some seconds the newer launches count: {rate}");
    }

    #[test]
    fn a_device_that_does_not_search_is_found_out() {
        let (honest, idle) = (record(), record());
        for _ in 0..50 {
            honest.judge(0, 4.0, 4);
            idle.judge(0, 4.0, 1);
        }
        assert!(!honest.is_out());
        assert!(idle.is_out());
    }

    #[test]
    fn a_device_that_drops_hits_is_out_begins_anew_and_stays_known_to_the_operator() {
        let (record, half) = (record(), Record::new(&info(DeviceId::Cpu)));
        for _ in 0..3 {
            // Launches with ten expected hits, of which nine are found.
            assert_eq!((1..1000).find(|_| judged_out(&record, 10.0, 9)), Some(580));
            record.put_back(&info(DeviceId::Cpu));
            assert!(!record.is_out());
        }
        let warnings = record.view().warnings;
        assert!(matches!(&warnings[..], [one] if one.contains("5220 of 5800")), "{warnings:?}");
        assert_eq!((1..1000).find(|_| judged_out(&half, 10.0, 4)), Some(20));
    }

    /// Whether a launch with these canary hits takes the device out.
    fn judged_out(record: &Record, expected: f64, found: u64) -> bool {
        record.judge(0, expected, found);
        record.is_out()
    }
}
