//! The plan of one device: the pass of each launch.

use super::canary;
use super::fair_share::{FairShare, Turn};
use super::hit_budget::HitBudget;
use super::jobs::OpenJobs;
use super::lane::Lane;
use super::pass::Pass;
use super::profile::{DeviceProfile, hits_worth_verifying};
use super::select::{Selection, split_pass};
use super::split_line::Seats;
use crate::job::JobId;
use crate::pattern::Rate;
use crate::search::LaunchReport;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The devices of a lane together.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Fleet {
    /// Start points that may be in flight at once, on devices of every lane.
    pub in_flight: usize,
    /// Candidates a second; `None` while no device is measured.
    pub rate: Option<f64>,
}

/// A launch as planned.
#[derive(Clone, Debug)]
pub struct PlannedLaunch {
    /// The patterns to search.
    pub pass: Arc<Pass>,
    /// The receiver of the launch; `None` for a warm-up.
    turn: Option<Turn>,
    /// Candidates the receiver was charged.
    charged: f64,
}

impl PlannedLaunch {
    /// A launch for nobody but the canary.
    pub fn warm_up(pass: Arc<Pass>) -> PlannedLaunch {
        PlannedLaunch { pass, turn: None, charged: 0.0 }
    }
}

/// The passes and accounts of one device. Passes are kept until a change of the jobs requires
/// others, and with them the device's filters.
#[derive(Debug)]
pub struct DevicePlan {
    lane: Lane,
    early_stop: bool,
    /// Whether every pattern is in every pass, as a measurement requires.
    exhaustive: bool,
    /// [`OpenJobs::changes`] for which the passes were made.
    made_for: Option<u64>,
    share: FairShare,
    pool_pass: Option<PoolPass>,
    seats: Seats,
    seat_passes: BTreeMap<JobId, Arc<Pass>>,
    budget: HitBudget,
}

/// The pool's passes, and what they were made for.
#[derive(Debug)]
struct PoolPass {
    selection: Selection,
    whole: Arc<Pass>,
    /// Without the plentiful patterns, where these are rationed.
    rare_alone: Option<Arc<Pass>>,
}

impl PoolPass {
    fn new(selection: Selection, jobs: &OpenJobs, rate: Option<Rate>) -> PoolPass {
        let canary = canary::choose(rate);
        let rationed = selection.is_rationed();
        let rare_alone = rationed.then(|| Arc::new(selection.pass(jobs.all(), canary.clone(), true)));
        PoolPass { whole: Arc::new(selection.pass(jobs.all(), canary, false)), rare_alone, selection }
    }
}

impl DevicePlan {
    /// The plan of a device that searches this lane.
    pub fn new(lane: Lane, exhaustive: bool) -> DevicePlan {
        DevicePlan {
            lane,
            early_stop: false,
            exhaustive,
            made_for: None,
            share: FairShare::default(),
            pool_pass: None,
            seats: Seats::default(),
            seat_passes: BTreeMap::new(),
            budget: HitBudget::default(),
        }
    }

    /// The patterns the device searches.
    pub fn lane(&self) -> Lane {
        self.lane
    }

    /// Changes the lane.
    pub fn set_lane(&mut self, lane: Lane) {
        if self.lane != lane {
            self.lane = lane;
            self.made_for = None;
            self.seat_passes.clear();
        }
    }

    /// Sets [`crate::search::Searcher::early_stop`] of the device.
    pub fn set_early_stop(&mut self, early_stop: bool) {
        self.early_stop = early_stop;
    }

    /// Whether the passes were made for the jobs as they are.
    pub fn is_current(&self, jobs: &OpenJobs) -> bool {
        self.made_for == Some(jobs.changes())
    }

    /// Candidates a start point of this device is searched over.
    pub fn stretch(&self) -> Option<f64> {
        self.budget.stretch()
    }

    /// The next launch; `None` if no job has a pattern for this lane. `rate` is the device's own,
    /// for its canaries.
    pub fn next(&mut self, jobs: &mut OpenJobs, fleet: Fleet, rate: Option<Rate>) -> Option<PlannedLaunch> {
        if !self.is_current(jobs) {
            self.renew(jobs, fleet, rate);
            self.made_for = Some(jobs.changes());
        }
        let (turn, charged) = self.share.next()?;
        let pass = match turn {
            Turn::Pool => self.pool_pass.as_ref().map(|held| match &held.rare_alone {
                Some(rare_alone) if self.budget.is_overdrawn() => Arc::clone(rare_alone),
                _ => Arc::clone(&held.whole),
            }),
            Turn::Seated(_, job) => self.seat_passes.get(&job).map(Arc::clone),
            Turn::Waiting => {
                let waiting = jobs.take_turn(self.lane, &self.seats);
                waiting.map(|(job, spec)| Arc::new(split_pass(job, spec, self.lane, canary::choose(rate))))
            }
        };
        pass.map(|pass| PlannedLaunch { pass, turn: Some(turn), charged })
    }

    /// Records a collected launch over `starts` start points: corrects its charge, notes how far
    /// the start points were searched and how many hits there were.
    pub fn settle(&mut self, launch: &PlannedLaunch, report: &LaunchReport, starts: usize, fleet: Fleet) {
        if let Some(turn) = launch.turn {
            self.share.settle(turn, launch.charged, report.candidates);
        }
        // Without rare patterns nobody is slowed down, and nothing is owed.
        let is_rationed = self.pool_pass.as_ref().is_some_and(|held| held.rare_alone.is_some());
        let part = if is_rationed { launch.pass.plentiful_part() } else { 0.0 };
        let budget = hits_worth_verifying(fleet.in_flight, is_rationed, self.budget.part());
        if self.budget.record(report, starts, part, budget) {
            // Another stretch makes other patterns rare.
            self.made_for = None;
        }
    }

    /// Adapts passes and shares to the jobs as they are. A pass that still serves is kept.
    fn renew(&mut self, jobs: &OpenJobs, fleet: Fleet, rate: Option<Rate>) {
        // Without a stretch every pattern is rare, and rare ones are all in the pass.
        let stretch = self.budget.stretch().filter(|_| !self.exhaustive);
        let device = DeviceProfile { lane: self.lane, stretch, part: self.budget.part(), early_stop: self.early_stop };
        if jobs.pool_index().has_work_for(self.lane) {
            let newest = Selection::new(jobs.pool_index(), jobs.all(), device, fleet.in_flight);
            let keeps = |held: &PoolPass| held.selection.still_serves(&newest, jobs.all(), fleet.in_flight);
            if !self.pool_pass.as_ref().is_some_and(keeps) {
                self.pool_pass = Some(PoolPass::new(newest, jobs, rate));
            }
        } else {
            self.pool_pass = None;
        }
        self.seats = jobs.split_line().seats(self.lane, fleet.rate);
        let mut before = std::mem::take(&mut self.seat_passes);
        for &job in self.seats.askers.values().flatten() {
            let make = || Arc::new(split_pass(job, &jobs.all()[&job], self.lane, canary::choose(rate)));
            self.seat_passes.insert(job, before.remove(&job).unwrap_or_else(make));
        }
        self.share.renew(self.pool_pass.is_some(), &self.seats);
    }
}
