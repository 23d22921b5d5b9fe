//! The health of a device: its rate, and whether its claims can be believed.

use super::canaries::Canaries;
use super::device_view::{DeviceView, Health};
use super::last_launch::LastLaunch;
use super::withheld::Withheld;
use crate::pattern::Rate;
use crate::scheduler::plan::compared::{Compared, Rates};
use crate::scheduler::plan::rest::Rest;
use crate::search::{DeviceId, DeviceInfo};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Number of wrong hits at which a device is taken out of use.
const WRONG_HITS_ALLOWED: u64 = 3;

/// The least time over which a worker's answers are measured. Shorter times would give wrong rates,
/// because the network delivers answers in bursts.
const MEASURED_TOGETHER: Duration = Duration::from_millis(500);

/// Weight of the newest measurement in the running mean of the rate.
const NEWEST: f64 = 0.2;

/// The record of a device, written by its worker and by the verifier.
#[derive(Debug)]
pub(in crate::scheduler) struct Record {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    view: DeviceView,
    canaries: Canaries,
    /// Hits of decoys, expected and reported.
    withheld: Withheld,
    /// Why the device's claims are no longer believed.
    verdict: Option<String>,
    /// Proven candidates, and their wall time, that are not in the rates yet: for top words, for
    /// whole keys.
    waiting: [(u64, Duration); 2],
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
                canaries: Canaries::new(is_workers(info)),
                withheld: Withheld::default(),
                verdict: None,
                waiting: [(0, Duration::ZERO); 2],
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
        let newest = candidates as f64 / wall.as_secs_f64().max(1e-9);
        let rate = match compared {
            Compared::TopWords => &mut inner.view.rate,
            Compared::WholeKeys => &mut inner.whole_keys_rate,
        };
        *rate = Some(Rate(rate.map_or(newest, |Rate(old)| old + NEWEST * (newest - old))));
    }

    /// [`Record::add_measurement`] for answers that come in bursts.
    pub fn add_proven(&self, compared: Compared, candidates: u64, wall: Duration) {
        let waiting = {
            let mut inner = self.lock();
            let waiting = &mut inner.waiting[usize::from(compared == Compared::WholeKeys)];
            *waiting = (waiting.0 + candidates, waiting.1 + wall);
            if waiting.1 < MEASURED_TOGETHER {
                return;
            }
            std::mem::take(waiting)
        };
        self.add_measurement(compared, waiting.0, waiting.1);
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

    /// Counts the hits of decoys in a launch. Takes the device out of use if it keeps hits back.
    pub fn judge_decoys(&self, expected: f64, found: u64) {
        let mut inner = self.lock();
        if let Some(reason) = inner.withheld.note(expected, found) {
            inner.verdict = Some(reason.clone());
            inner.view.health = Health::Out(reason);
        }
    }

    /// Whether the device's claims are no longer believed.
    pub fn is_disbelieved(&self) -> bool {
        self.lock().verdict.is_some()
    }

    /// The share of the device's claimed candidates that its canary hits prove, 0 to 1.
    pub fn proven_share(&self) -> f64 {
        self.lock().canaries.proven_share()
    }

    /// Takes the device out of use for this reason.
    pub fn take_out(&self, reason: String) {
        self.lock().view.health = Health::Out(reason);
    }

    /// Puts the device back in use with a clean record. Its candidates stay counted. A worker's
    /// device keeps its record, because the worker chooses when it comes back.
    pub fn put_back(&self, info: &DeviceInfo) {
        let mut inner = self.lock();
        inner.view.name = info.name.clone();
        inner.view.kernel = info.kernel.clone();
        inner.waiting = [(0, Duration::ZERO); 2];
        if is_workers(info) {
            inner.view.health = inner.verdict.clone().map_or(Health::Working, Health::Out);
            return;
        }
        inner.view.health = Health::Working;
        inner.view.hits_wrong = 0;
        inner.verdict = None;
        inner.canaries = Canaries::new(false);
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

/// Whether the device is a worker's on another machine.
fn is_workers(info: &DeviceInfo) -> bool {
    matches!(info.id, DeviceId::Remote(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::RemoteId;

    fn info(id: DeviceId) -> DeviceInfo {
        DeviceInfo { id, name: "test".to_owned(), kernel: "test".to_owned(), threads: 1 }
    }

    fn record() -> Record {
        Record::new(&info(DeviceId::Cpu))
    }

    fn workers() -> DeviceInfo {
        info(DeviceId::Remote(RemoteId { worker: "liar".parse().unwrap(), device: 0 }))
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
    fn claims_count_as_far_as_canaries_prove_them() {
        let (honest, boaster, liar) = (record(), Record::new(&workers()), record());
        for _ in 0..1000 {
            honest.judge(0, 10.0, 10);
            boaster.judge(0, 10.0, 6);
        }
        assert_eq!(honest.proven_share(), 1.0);
        assert!((boaster.proven_share() - 0.6).abs() < 0.01 && !boaster.is_out(), "{}", boaster.proven_share());
        // A single huge claim without canary hits proves almost nothing.
        liar.judge(0, 1e12, 0);
        assert!(liar.proven_share() < 1e-9 && liar.is_out());
        liar.put_back(&info(DeviceId::Cpu));
        assert_eq!(liar.proven_share(), 1.0, "a device of this machine begins anew");
        // A worker that becomes honest is believed again after two thousand canaries.
        for _ in 0..2000 {
            boaster.judge(0, 10.0, 10);
        }
        assert!(boaster.proven_share() > 0.99);
    }

    #[test]
    fn a_worker_that_comes_again_is_judged_by_all_that_it_has_done() {
        let info = workers();
        let (wrong, idle) = (Record::new(&info), Record::new(&info));
        for _ in 0..3 {
            assert!(!wrong.is_disbelieved() && !idle.is_disbelieved());
            wrong.judge(1, 0.0, 0);
            idle.judge(0, 70.0, 1);
            wrong.put_back(&info);
            idle.put_back(&info);
        }
        for record in [wrong, idle] {
            assert!(record.is_disbelieved() && matches!(record.view().health, Health::Out(_)), "{record:?}");
        }
    }

    #[test]
    fn answers_that_come_at_once_do_not_make_a_rate() {
        let record = record();
        for _ in 0..9 {
            record.add_proven(Compared::TopWords, 1000, Duration::from_nanos(1));
        }
        assert!(record.rate().is_none());
        record.add_proven(Compared::TopWords, 1000, Duration::from_secs(1) - Duration::from_nanos(9));
        assert_eq!(record.rate().map(|Rate(rate)| rate.round()), Some(10_000.0));
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
            assert!(!record.is_out() && record.proven_share() == 1.0);
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
