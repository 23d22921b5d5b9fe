//! The devices that search for a pool, each with its plan.

use crate::pattern::Rate;
use crate::scheduler::plan::compared::Rates;
use crate::scheduler::plan::device_plan::{DevicePlan, LaneTotals, PlannedLaunch};
use crate::scheduler::plan::lane::Lane;
use crate::search::LaunchReport;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The subscribed devices.
#[derive(Debug, Default)]
pub(super) struct Devices {
    /// Start points that may be in flight at once, on all devices.
    in_flight: AtomicUsize,
    subscribed: AtomicUsize,
    rates: Mutex<MeasuredRates>,
}

/// The rates of the measured devices, with sums by lane. The sums are kept, because every launch
/// asks for one, and a thousand devices make thousands of launches a second.
#[derive(Debug, Default)]
struct MeasuredRates {
    /// Lane and rate of each device, in candidates per 1000 seconds, by subscription number.
    of_devices: BTreeMap<usize, (Lane, u64)>,
    /// Sums of the rates by lane, in the order of [`Lane::EVERY`]. Integers, so that rounding
    /// errors do not add up.
    of_lanes: [u128; Lane::EVERY.len()],
}

/// Rates are rounded to this fraction of a candidate per second: a thousandth.
const ROUNDED_TO: f64 = 1e3;

impl MeasuredRates {
    /// Sets the rate of a device, or forgets it.
    fn set(&mut self, number: usize, measured: Option<(Lane, f64)>) {
        let measured = measured.map(|(lane, rate)| (lane, (rate * ROUNDED_TO) as u64));
        let before = match measured {
            Some(measured) => self.of_devices.insert(number, measured),
            None => self.of_devices.remove(&number),
        };
        if let Some((lane, rate)) = before {
            self.of_lanes[lane as usize] -= u128::from(rate);
        }
        if let Some((lane, rate)) = measured {
            self.of_lanes[lane as usize] += u128::from(rate);
        }
    }

    /// The sum of a lane's rates, in candidates per second. [`Lane::All`] means all devices.
    fn sum(&self, lane: Lane) -> f64 {
        let sum = if lane == Lane::All { self.of_lanes.iter().sum() } else { self.of_lanes[lane as usize] };
        sum as f64 / ROUNDED_TO
    }
}

impl Devices {
    /// The devices of one lane. [`Lane::All`] means those of every lane.
    pub fn totals(&self, lane: Lane) -> LaneTotals {
        let rate = self.rates.lock().unwrap_or_else(PoisonError::into_inner).sum(lane);
        LaneTotals { in_flight: self.in_flight.load(Ordering::Relaxed), rate: (rate > 0.0).then_some(rate) }
    }

    /// Notes the rate of a device, if it was measured.
    fn note_rate(&self, number: usize, lane: Lane, rate: Option<Rate>) {
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Rate(rate)) = rate {
            rates.set(number, Some((lane, rate)));
        }
    }
}

/// The plan of one device, kept up to date with the pool.
#[derive(Debug)]
pub struct Subscription {
    /// The plan.
    pub(super) plan: DevicePlan,
    devices: Arc<Devices>,
    /// The number of this subscription.
    number: usize,
    /// Start points that this device may have in flight.
    in_flight: usize,
    /// The share of its time that the device can search.
    part: f64,
}

impl Subscription {
    /// The subscription of a further device.
    pub(super) fn new(plan: DevicePlan, devices: Arc<Devices>) -> Subscription {
        let number = devices.subscribed.fetch_add(1, Ordering::Relaxed);
        Subscription { plan, devices, number, in_flight: 0, part: 1.0 }
    }

    /// Notes the rate of the device, for the plans of other devices and for the shares told to
    /// askers.
    pub(in crate::scheduler) fn note_rate(&self, rates: Rates) {
        let rate = rates.top_words.map(|Rate(rate)| Rate(rate * self.part));
        self.devices.note_rate(self.number, self.plan.lane(), rate);
    }

    /// Sets how many start points the device may have in flight, and whether it has an early stop
    /// ([`crate::search::Searcher::early_stop`]).
    pub(in crate::scheduler) fn set_device(&mut self, in_flight: usize, early_stop: bool) {
        self.plan.set_early_stop(early_stop);
        self.devices.in_flight.fetch_add(in_flight, Ordering::Relaxed);
        self.devices.in_flight.fetch_sub(std::mem::replace(&mut self.in_flight, in_flight), Ordering::Relaxed);
    }

    /// Records a collected launch over `starts` start points.
    pub(in crate::scheduler) fn settle(&mut self, launch: &PlannedLaunch, report: &LaunchReport, starts: usize) {
        let totals = self.devices.totals(self.plan.lane());
        self.plan.settle(launch, report, starts, totals);
    }

    /// Candidates that this device tests per start point.
    pub(in crate::scheduler) fn stretch(&self) -> Option<f64> {
        self.plan.stretch()
    }

    /// Sets the stretch that is expected before the first launch.
    pub(in crate::scheduler) fn expect_stretch(&mut self, stretch: f64) {
        self.plan.expect_stretch(stretch);
    }

    /// Sets the share of its time that the device can search.
    pub(in crate::scheduler) fn set_part(&mut self, part: f64) {
        self.part = part;
    }

    /// Sets the lane.
    pub(in crate::scheduler) fn set_lane(&mut self, lane: Lane) {
        self.plan.set_lane(lane);
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.devices.in_flight.fetch_sub(self.in_flight, Ordering::Relaxed);
        self.devices.rates.lock().unwrap_or_else(PoisonError::into_inner).set(self.number, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rates_of_a_lane_are_those_of_its_devices_however_often_they_change() {
        let mut rates = MeasuredRates::default();
        for round in 0..1000 {
            for number in 0..30 {
                let lane = Lane::EVERY[(number + round) % 3];
                rates.set(number, Some((lane, 1e10 / (number + 1) as f64 * (round + 1) as f64)));
            }
        }
        let measured = rates.of_devices.clone();
        for lane in Lane::EVERY {
            let of_lane = measured.values().filter(|(other, _)| lane == Lane::All || lane == *other);
            assert_eq!(rates.sum(lane), of_lane.map(|&(_, rate)| u128::from(rate)).sum::<u128>() as f64 / ROUNDED_TO);
        }
        rates.set(7, Some((Lane::All, 0.25)));
        for number in (0..30).filter(|&number| number != 7) {
            rates.set(number, None);
        }
        assert_eq!(Lane::EVERY.map(|lane| rates.sum(lane)), [0.25, 0.0, 0.0], "nothing is left of the others");
        rates.set(7, None);
        rates.set(7, None);
        assert_eq!(Lane::EVERY.map(|lane| rates.sum(lane)), [0.0; 3]);
    }
}
