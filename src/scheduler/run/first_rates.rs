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

use super::health::Record;
use super::pool::Subscription;
use crate::pattern::Rate;
use crate::scheduler::plan::pass::Pass;
use crate::scheduler::plan::profile::Rates;
use crate::scheduler::plan::rest::Duty;
use crate::search::{Calibrations, Expected, Searcher};
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    kept: Rates,
}

impl FirstRates {
    /// Begins the measurement of a device, or takes the rates of an earlier start. `holds_jobs`
    /// says whether jobs must wait for the measurement.
    pub fn new(
        searcher: &dyn Searcher,
        record: &Record,
        subscription: &mut Subscription,
        calibrations: &Calibrations,
        holds_jobs: bool,
    ) -> FirstRates {
        let now = Instant::now();
        let key = searcher.calibration_key().filter(|_| !holds_jobs).map(str::to_owned);
        let kept = key.as_deref().and_then(|key| calibrations.get(key)).unwrap_or_default();
        let kept = Rates { top_words: kept.top_words.map(Rate), whole_keys: kept.whole_keys.map(Rate) };
        let expected = searcher.expected().filter(|_| !holds_jobs);
        if let Some(Expected { stretch, .. }) = expected {
            subscription.expect_candidates_per_start(stretch);
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
    pub fn rates(&self, record: &Record) -> Rates {
        let rates = record.rates();
        Rates { top_words: rates.top_words.or(self.expected.map(|expected| Rate(expected.rate))), ..rates }
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
    /// When the warm-up ends.
    pub measure_from: Instant,
    /// The measurement of whole keys, once it began.
    pub whole: Option<WholeKeysTrial>,
    /// The device's alternation of work and rest.
    pub duty: Duty,
}

/// The measurement of the rate at which whole keys are compared.
pub(super) struct WholeKeysTrial {
    /// The pass of the canary.
    pub pass: Arc<Pass>,
    /// When the warm-up ends.
    pub measure_from: Instant,
}

impl Timing {
    /// The time from which launches of this pass count in the rate.
    pub fn measure_from(&self, pass: &Arc<Pass>) -> Instant {
        let trial = self.whole.as_ref().filter(|trial| Arc::ptr_eq(&trial.pass, pass));
        trial.map_or(self.measure_from, |trial| trial.measure_from)
    }
}
