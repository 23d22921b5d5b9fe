//! The health of a device: its rate, and whether its claims can be believed.

use crate::pattern::Rate;
use crate::scheduler::plan::profile::{DeviceRates, KeyPart};
use crate::scheduler::plan::rest::Rest;
use crate::search::{DeviceId, DeviceInfo, Searcher, Sensors};
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Number of wrong hits at which a device is taken out of use.
const WRONG_HITS_ALLOWED: u64 = 3;

/// The time over which a rate is averaged, in seconds. Launches may come back in bursts, so each
/// counts by its wall time.
const AVERAGED_OVER: f64 = 1.0;

/// The record of a device, written by its thread and by the verifier.
#[derive(Debug)]
pub struct Record {
    inner: Mutex<DeviceRecord>,
    energy: Mutex<EnergyMeter>,
}

/// The energy that a device has used.
#[derive(Debug, Default)]
struct EnergyMeter {
    /// Joules since the first reading.
    joules: f64,
    /// The last value of the device's counter; `None` before the first reading.
    counter: Option<f64>,
}

/// What is recorded of a device.
#[derive(Debug)]
pub struct DeviceRecord {
    /// The state of the device, as displays have it.
    pub view: DeviceStatus,
    /// The sensors of the device, without values before it is open.
    pub sensors: Sensors,
    canaries: Canaries,
    /// Candidates and their wall time in seconds, averaged: for top words, for whole keys.
    averages: [(f64, f64); 2],
    /// The rate where whole keys are compared.
    whole_keys_rate: Option<Rate>,
    /// The last launch.
    pub last: Option<LastLaunch>,
    /// Whether the device has waited for work, which it does once it is measured.
    pub has_waited: bool,
    /// The share of its time in which the operator lets it search.
    pub share: f64,
}

impl Record {
    /// The record of a device that works and has not searched yet.
    pub fn new(info: &DeviceInfo) -> Record {
        let inner = Mutex::new(DeviceRecord {
            view: DeviceStatus::new(info.id, info.name.clone(), info.kernel.clone(), info.threads),
            sensors: Sensors::unknown(),
            canaries: Canaries::default(),
            averages: [(0.0, 0.0); 2],
            whole_keys_rate: None,
            last: None,
            has_waited: false,
            share: 1.0,
        });
        Record { inner, energy: Mutex::default() }
    }

    /// The current state of the device.
    pub fn view(&self) -> DeviceStatus {
        self.lock().view.clone()
    }

    /// The rate; `None` before the first measurement.
    pub fn rate(&self) -> Option<Rate> {
        self.lock().view.rate
    }

    /// The rate of launches of this kind. Estimated from that of the other kind before the first
    /// measurement; `None` if neither was measured.
    pub fn rate_of(&self, compared: KeyPart) -> Option<Rate> {
        self.rates().of(compared)
    }

    /// The measured rates.
    pub fn rates(&self) -> DeviceRates {
        let inner = self.lock();
        DeviceRates { top_words: inner.view.rate, whole_keys: inner.whole_keys_rate }
    }

    /// Takes over the rates saved at an earlier start, unless measured ones are known.
    pub fn begin_with(&self, kept: DeviceRates) {
        let mut inner = self.lock();
        inner.view.rate = inner.view.rate.or(kept.top_words);
        inner.whole_keys_rate = inner.whole_keys_rate.or(kept.whole_keys);
    }

    /// Counts `candidates` tested in `wall` time, and adapts the rate of launches of this kind.
    pub fn add_measurement(&self, compared: KeyPart, candidates: u64, wall: Duration) {
        let mut inner = self.lock();
        inner.view.candidates += candidates;
        let wall = wall.as_secs_f64().max(1e-9);
        let average = &mut inner.averages[usize::from(compared == KeyPart::Whole)];
        let kept = (-wall / AVERAGED_OVER).exp();
        *average = (average.0 * kept + candidates as f64, average.1 * kept + wall);
        let rate = Some(Rate(average.0 / average.1));
        match compared {
            KeyPart::Top32 => inner.view.rate = rate,
            KeyPart::Whole => inner.whole_keys_rate = rate,
        }
    }

    /// Counts the wrong hits and canary hits of a launch. Takes the device out of use if its claims
    /// cannot be believed.
    pub fn judge(&self, hits_wrong: u64, canary_expected: f64, canary_found: u64) {
        let mut inner = self.lock();
        inner.view.hits_wrong += hits_wrong;
        let disproved = inner.canaries.note(canary_expected, canary_found);
        if let Some(reason) = disproved.as_ref().filter(|_| inner.view.health == Health::Working) {
            inner.tell_of_verdict(reason);
        }
        let wrong = (inner.view.hits_wrong >= WRONG_HITS_ALLOWED)
            .then(|| format!("{} of its hits were wrong", inner.view.hits_wrong));
        if let Some(reason) = wrong.or(disproved) {
            inner.view.health = Health::Out(reason);
        }
    }

    /// Puts the device back in use with a clean record. Its candidates stay counted.
    pub fn put_back(&self, searcher: &dyn Searcher) {
        let info = searcher.info();
        if let Some(warning) = info.warning.as_ref().filter(|warning| !self.view().warnings.contains(warning)) {
            self.warn(warning.clone());
        }
        let mut inner = self.lock();
        inner.sensors = searcher.sensors();
        inner.view.name = info.name.clone();
        inner.view.kernel = info.kernel.clone();
        inner.view.health = Health::Working;
        inner.view.hits_wrong = 0;
        inner.canaries = Canaries::default();
    }

    /// Reads the device's counter of energy. Returns the joules used since it was first read; `None`
    /// if it cannot be read. Takes some milliseconds, and longer the first time.
    pub fn read_energy(&self) -> Option<f64> {
        let mut meter = self.energy.lock().unwrap_or_else(PoisonError::into_inner);
        let sensors = self.lock().sensors.clone();
        let counter = sensors.joules()?;
        let before = meter.counter.replace(counter).unwrap_or(counter);
        // A device that is opened again has a counter that begins again.
        meter.joules += if counter < before { counter } else { counter - before };
        Some(meter.joules)
    }

    /// Sets the share of its time in which the device searches.
    pub fn set_share(&self, share: f64) {
        let mut inner = self.lock();
        (inner.share, inner.view.part) = (share, share);
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

    /// Whether the device was taken out.
    pub fn is_out(&self) -> bool {
        self.lock().view.health != Health::Working
    }

    /// The record. It must be locked for a moment only.
    pub fn lock(&self) -> MutexGuard<'_, DeviceRecord> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeviceRecord {
    /// Warns the operator, who may not notice: the device is soon tried again and then seems to
    /// work. Replaces the warning about an earlier verdict.
    fn tell_of_verdict(&mut self, reason: &str) {
        const TAKEN_OUT: &str = "it was taken out of use and tried again: ";
        self.view.warnings.retain(|warning| !warning.starts_with(TAKEN_OUT));
        self.view.warnings.push(format!("{TAKEN_OUT}{reason}"));
    }
}

/// Whether a device is in use.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Health {
    /// The device is in use.
    #[default]
    Working,
    /// The device was taken out of use for this reason. It is tried again later.
    Out(String),
}

/// The state of a device, as status displays and JSON have it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DeviceStatus {
    /// The name npubbot uses.
    pub id: DeviceId,
    /// The maker's name.
    pub name: String,
    /// The kernel that the device runs.
    pub kernel: String,
    /// Threads that search.
    pub threads: usize,
    /// Whether the device is in use.
    #[serde(skip)]
    pub health: Health,
    /// `working`, `paused` by the operator, `rests ` and until when or why, or `out: ` and the
    /// reason.
    pub state: String,
    /// Candidates per second by wall time, host included. `None` before the first measurement, and
    /// while the device is out of use.
    pub rate: Option<Rate>,
    /// Candidates tested since the start.
    pub candidates: u64,
    /// Hits that verified, since the start, including those of canaries.
    pub hits: u64,
    /// Wrong hits since the device was opened.
    pub hits_wrong: u64,
    /// Why the working device rests; `None` if it does not rest.
    #[serde(skip)]
    pub rest: Option<Rest>,
    /// The share of its time in which the device can search: the configured share, reduced by
    /// pauses for heat.
    #[serde(rename = "time_ratio")]
    pub part: f64,
    /// Texts for the operator: settings that cannot be applied, and why the device was last
    /// distrusted.
    pub warnings: Vec<String>,
}

impl DeviceStatus {
    /// A device that works and has not searched yet.
    pub(crate) fn new(id: DeviceId, name: String, kernel: String, threads: usize) -> DeviceStatus {
        DeviceStatus {
            id,
            name,
            kernel,
            threads,
            health: Health::Working,
            state: String::new(),
            rate: None,
            candidates: 0,
            hits: 0,
            hits_wrong: 0,
            rest: None,
            part: 1.0,
            warnings: Vec::new(),
        }
    }

    /// The status for the operator, who may have paused the search.
    pub(in crate::scheduler) fn with_state(self, is_paused: bool) -> DeviceStatus {
        let state = match (&self.health, &self.rest) {
            (Health::Out(reason), _) => format!("out: {reason}"),
            (Health::Working, _) if is_paused => "paused".to_owned(),
            (Health::Working, Some(rest)) => format!("rests {rest}"),
            (Health::Working, None) => "working".to_owned(),
        };
        let rate = self.rate.filter(|_| self.health == Health::Working);
        DeviceStatus { state, rate, ..self }
    }
}

/// The last collected launch of a device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LastLaunch {
    /// Number of start points.
    pub starts: usize,
    /// Number of candidates tested.
    pub candidates: u64,
    /// Candidates that the device usually tests per start point.
    pub stretch: f64,
    /// Whether the device has an early stop ([`crate::search::Searcher::early_stop`]).
    pub early_stop: bool,
}

/// The share of its hits that a bad device is assumed to report. A device that drops a tenth is
/// noticed as soon as possible, and one that drops more sooner still.
const REPORTED_BY_A_BAD_DEVICE: f64 = 0.9;
/// The score at which hits are missing.
const MISSING_SCORE: f64 = 30.0;

/// The canary hits of one device: a test for missing ones that adds up a little evidence from every
/// launch (CUSUM; Page 1954).
///
/// After every launch it compares two hypotheses: the device reports all its hits, or only
/// [`REPORTED_BY_A_BAD_DEVICE`] of them. The score is the logarithm of the likelihood ratio of the
/// second to the first, and never below zero. At [`MISSING_SCORE`] the test says that hits are
/// missing.
///
/// An honest device reaches that score once in `e^30 = 10^13` launches or more rarely, on average
/// (Lorden 1971). In fact it takes `200 · e^30 = 2·10^15` expected hits, because one launch is
/// little evidence (simulated by the tests below).
#[derive(Debug, Default)]
struct Canaries {
    score: f64,
    /// Hits expected and found since the score was last zero.
    expected: f64,
    found: u64,
}

impl Canaries {
    /// Counts the canary hits of a launch. If the device cannot be believed, returns the reason.
    fn note(&mut self, expected: f64, found: u64) -> Option<String> {
        self.expected += expected;
        self.found += found;
        // Found hits are Poisson with the mean `expected`, or that share of it.
        let missing = expected * (1.0 - REPORTED_BY_A_BAD_DEVICE);
        self.score += missing + found as f64 * REPORTED_BY_A_BAD_DEVICE.ln();
        if self.score <= 0.0 {
            *self = Canaries::default();
        }
        let Canaries { score, expected, found } = *self;
        let does_search = found as f64 > 0.6 * expected;
        let what = if does_search { "drops some of its hits" } else { "does not really search" };
        let reason = || format!("it found {found} of {expected:.0} test patterns, so it {what}");
        (score >= MISSING_SCORE).then(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::tests::{FakeDevice, device, poisson};
    use crate::search::{DeviceId, SensorValues};
    use rand::rngs::StdRng;

    fn record() -> Record {
        Record::new(&device(DeviceId::Cpu))
    }

    #[test]
    fn a_device_with_a_counter_tells_its_energy_also_when_it_is_opened_again() {
        let (record, sensors) = (record(), Sensors::unknown());
        record.lock().sensors = sensors.clone();
        let read = |joules| {
            sensors.tell(SensorValues::default(), joules);
            record.read_energy()
        };
        let counters = [None, Some(100.0), None, Some(400.0), Some(0.0), Some(50.0)];
        assert_eq!(counters.map(read), [None, Some(0.0), None, Some(300.0), Some(300.0), Some(350.0)]);
    }

    #[test]
    fn a_device_with_wrong_hits_is_taken_out_and_comes_back_clean() {
        let record = record();
        record.judge(2, 0.0, 0);
        assert!(!record.is_out());
        record.judge(1, 0.0, 0);
        assert_eq!(record.view().health, Health::Out("3 of its hits were wrong".to_owned()));
        record.put_back(&FakeDevice::new(DeviceId::Cpu));
        assert!(!record.is_out());
    }

    #[test]
    fn launches_that_come_at_once_count_by_their_time() {
        let record = record();
        let measure = |seconds| record.add_measurement(KeyPart::Top32, 1000, Duration::from_secs_f64(seconds));
        (0..1000).for_each(|_| [0.199, 1e-9, 1e-9, 1e-9].into_iter().for_each(measure));
        let Rate(rate) = record.rate().unwrap();
        assert!((rate / (4000.0 / 0.199) - 1.0).abs() < 0.2, "{rate}");
        (0..50).for_each(|_| measure(0.1));
        let Rate(rate) = record.rate().unwrap();
        assert!((rate / 10_000.0 - 1.0).abs() < 0.05, "after some seconds the newer launches count: {rate}");
    }

    #[test]
    fn a_device_that_drops_hits_is_out_begins_anew_and_stays_known_to_the_operator() {
        let (record, half) = (record(), Record::new(&device(DeviceId::Cpu)));
        for _ in 0..3 {
            // Launches with ten expected hits, of which nine are found.
            assert_eq!((1..1000).find(|_| judged_out(&record, 10.0, 9)), Some(580));
            record.put_back(&FakeDevice::new(DeviceId::Cpu));
            assert!(!record.is_out());
        }
        let warnings = record.view().warnings;
        assert!(matches!(&warnings[..], [one] if one.contains("5220 of 5800")), "{warnings:?}");
        assert_eq!((1..1000).find(|_| judged_out(&half, 10.0, 4)), Some(52));
    }

    /// Whether a launch with these canary hits takes the device out.
    fn judged_out(record: &Record, expected: f64, found: u64) -> bool {
        record.judge(0, expected, found);
        record.is_out()
    }

    /// Launches of a device of this machine, with 12 expected hits each as on a fast GPU. It finds
    /// the share `part` of them. Returns the number of expected hits until the device is taken out,
    /// and the reason; `None` if it never is.
    fn until_out(part: f64, launches: u32, random: &mut StdRng) -> Option<(f64, String)> {
        let mut canaries = Canaries::default();
        let mut one = |number| Some((12.0 * f64::from(number), canaries.note(12.0, poisson(12.0 * part, random))?));
        (1..=launches).find_map(&mut one)
    }

    #[test]
    fn a_device_that_finds_half_is_out_at_once_and_one_that_finds_nine_tenths_soon() {
        let mut random = crate::scheduler::tests::seeded();
        for (part, soonest, mean, latest, said) in
            [(0.5, 300.0, 640.0, 1_500.0, "does not really search"), (0.9, 1_000.0, 5_600.0, 25_000.0, "drops some")]
        {
            let outs: Vec<(f64, String)> =
                (0..200).map(|_| until_out(part, 10_000, &mut random).expect("it is noticed")).collect();
            let found = outs.iter().map(|(expected, _)| expected).sum::<f64>() / 200.0;
            println!("finds {part}: out after {found:.0} expected hits");
            assert!((found / mean - 1.0).abs() < 0.2, "{part}: {found}");
            assert!(outs.iter().all(|(expected, _)| (soonest..latest).contains(expected)), "{part}: {outs:?}");
            assert!(outs.iter().filter(|(_, reason)| reason.contains(said)).count() > 150, "{part}: {outs:?}");
        }
    }

    #[test]
    fn an_honest_device_stays_in_use_for_millions_of_hits() {
        let mut random = crate::scheduler::tests::seeded();
        assert_eq!(until_out(1.0, 250_000, &mut random), None);
    }

    /// The score of an honest device reaches a height `h` once in `e^h` launches or more rarely, so
    /// it reaches [`MISSING_SCORE`] once in `e^30` or more rarely. The test checks this at lower scores,
    /// which are reached quickly: each further one takes `e` times as long.
    #[test]
    fn an_honest_device_has_a_false_alarm_once_in_the_stated_time() {
        let mut random = crate::scheduler::tests::seeded();
        for expected in [2.0, 12.0] {
            let mut waits = Vec::new();
            for height in [3.0, 4.0, 5.0, 6.0] {
                let (mut test, mut launches, mut alarms) = (Canaries::default(), 0u64, 0u32);
                while alarms < 100 {
                    launches += 1;
                    test.note(expected, poisson(expected, &mut random));
                    if test.score >= height {
                        (test, alarms) = (Canaries::default(), alarms + 1);
                    }
                }
                let wait = launches as f64 / f64::from(alarms);
                println!("{expected} hits a launch: {height} once in {wait:.0} launches");
                assert!(wait > f64::exp(height), "{height}: {wait}");
                waits.push(wait);
            }
            // Three heights more: e^3, with 15 % of random error.
            assert!(waits[3] / waits[0] > 0.5 * f64::exp(3.0), "{waits:?}");
        }
    }

    #[test]
    fn years_of_honesty_buy_nothing() {
        let mut test = Canaries::default();
        assert!((0..100_000).all(|_| test.note(1.0, 1).is_none()));
        let noticed = (1..).find_map(|number| test.note(1.0, 0).map(|reason| (number, reason)));
        let reason = "it found 0 of 300 test patterns, so it does not really search";
        assert_eq!(noticed, Some((300, reason.to_owned())));
    }
}
