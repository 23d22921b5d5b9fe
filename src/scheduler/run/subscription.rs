//! The devices that search for a pool, each with its plan.

use crate::pattern::Rate;
use crate::scheduler::plan::compared::Rates;
use crate::scheduler::plan::device_plan::{DevicePlan, Fleet, PlannedLaunch};
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
    /// Lane and rate of each measured device, by subscription number.
    rates: Mutex<BTreeMap<usize, (Lane, f64)>>,
}

impl Devices {
    /// The devices of one lane. [`Lane::All`] means those of every lane.
    pub fn fleet(&self, lane: Lane) -> Fleet {
        let rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = rates.values().filter(|(other, _)| lane == Lane::All || lane == *other);
        let rate: f64 = counted.map(|(_, rate)| rate).sum();
        Fleet { in_flight: self.in_flight.load(Ordering::Relaxed), rate: (rate > 0.0).then_some(rate) }
    }

    /// Notes the rate of a device that is measured.
    fn note_rate(&self, number: usize, lane: Lane, rate: Option<Rate>) {
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Rate(rate)) = rate {
            rates.insert(number, (lane, rate));
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
    /// The part of its time that the device has.
    part: f64,
}

impl Subscription {
    /// The subscription of a further device.
    pub(super) fn new(plan: DevicePlan, devices: Arc<Devices>) -> Subscription {
        let number = devices.subscribed.fetch_add(1, Ordering::Relaxed);
        Subscription { plan, devices, number, in_flight: 0, part: 1.0 }
    }

    /// Notes the rate of the device, by which the others and askers' shares are planned.
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
        let fleet = self.devices.fleet(self.plan.lane());
        self.plan.settle(launch, report, starts, fleet);
    }

    /// Candidates that this device tests per start point.
    pub(in crate::scheduler) fn stretch(&self) -> Option<f64> {
        self.plan.stretch()
    }

    /// Sets the part of its time that the device has.
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
        self.devices.rates.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}
