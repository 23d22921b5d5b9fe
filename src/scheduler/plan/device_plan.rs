//! The plan of one device: decides the pass of each launch.

use super::canary::CanarySeed;
use super::fair_share::{FairShare, Turn};
use super::jobs::OpenJobs;
use super::pass::Pass;
use super::profile::{Compared, DeviceProfile, HitBudget, Lane, Rates, hits_worth_verifying};
use super::select::{Selection, split_pass};
use super::split_line::Seats;
use crate::job::{JobId, JobSpec};
use crate::pattern::Pattern;
use crate::search::LaunchReport;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

/// All devices of one lane, taken together.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct LaneTotals {
    /// Start points that may be in flight at once, on the devices of all lanes.
    pub in_flight: usize,
    /// Candidates per second; `None` while no device of the lane has been measured.
    pub rate: Option<f64>,
}

/// A planned launch.
#[derive(Clone, Debug)]
pub struct PlannedLaunch {
    /// The patterns to search.
    pub pass: Arc<Pass>,
    /// The turn that the launch is for; `None` for a warm-up.
    turn: Option<Turn>,
    /// Candidates charged to that turn in advance.
    charged: f64,
}

impl PlannedLaunch {
    /// A launch with the canary only.
    pub fn warm_up(pass: Arc<Pass>) -> PlannedLaunch {
        PlannedLaunch { pass, turn: None, charged: 0.0 }
    }
}

/// The passes and accounts of one device. A pass is reused until the jobs change so much that it no
/// longer serves them, because each new pass makes the device build a new filter.
#[derive(Debug)]
pub struct DevicePlan {
    lane: Lane,
    early_stop: bool,
    /// Whether every pass has every pattern, as a measurement requires.
    exhaustive: bool,
    /// The value of [`OpenJobs::changes`] when the passes were made.
    made_for: Option<u64>,
    share: FairShare,
    pool_pass: Option<PoolPass>,
    /// The pool's pass of the patterns that need whole keys compared.
    whole_pass: Option<PoolPass>,
    seats: Seats,
    seat_passes: BTreeMap<JobId, Arc<Pass>>,
    budget: HitBudget,
    /// Rate of the last launch by top words, in candidates per second of busy time.
    speed: Option<f64>,
    /// The rates of this device, as of the last launch.
    rates: Rates,
}

/// The pool's passes, and the selection they were made from.
#[derive(Debug)]
struct PoolPass {
    selection: Selection,
    /// The value of [`OpenJobs::raises`] when the pass was made.
    raises: u64,
    /// The pass with all selected patterns.
    whole: Arc<Pass>,
    /// The pass without plentiful patterns, if these are rationed.
    rare_alone: Option<Arc<Pass>>,
}

impl PoolPass {
    fn new(selection: Selection, jobs: &OpenJobs, canary: &CanarySeed, shared: &mut SharedPasses) -> PoolPass {
        let mut pass = |rare_alone: bool| {
            let make = || selection.pass(jobs.all(), canary.clone(), rare_alone);
            shared.pass(&selection, jobs.raises(), canary, rare_alone, make)
        };
        PoolPass {
            whole: pass(false),
            rare_alone: selection.is_rationed().then(|| pass(true)),
            selection,
            raises: jobs.raises(),
        }
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
            whole_pass: None,
            seats: Seats::default(),
            seat_passes: BTreeMap::new(),
            budget: HitBudget::default(),
            speed: None,
            rates: Rates::default(),
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

    /// Whether the passes were made for the current jobs.
    pub fn is_current(&self, jobs: &OpenJobs) -> bool {
        self.made_for == Some(jobs.changes())
    }

    /// Candidates that this device tests per start point; `None` before the first launch.
    pub fn candidates_per_start(&self) -> Option<f64> {
        self.budget.candidates_per_start()
    }

    /// Sets the stretch that is expected before the first launch.
    pub fn expect_candidates_per_start(&mut self, stretch: f64) {
        self.budget.begin(stretch);
    }

    /// Plans the next launch; `None` if no job has a pattern for this lane. `rates` are the rates
    /// of this device. They decide its canaries.
    pub fn next(
        &mut self,
        jobs: &mut OpenJobs,
        shared: &mut SharedPasses,
        totals: LaneTotals,
        rates: Rates,
    ) -> Option<PlannedLaunch> {
        self.rates = rates;
        if !self.is_current(jobs) {
            self.renew(jobs, shared, totals);
            self.made_for = Some(jobs.changes());
        }
        let (turn, charged) = self.share.next()?;
        let pass = match turn {
            Turn::Pool(Compared::WholeKeys) => self.whole_pass.as_ref().map(|held| Arc::clone(&held.whole)),
            Turn::Pool(Compared::TopWords) => self.pool_pass.as_ref().map(|held| match &held.rare_alone {
                Some(rare_alone) if self.budget.is_overdrawn() => Arc::clone(rare_alone),
                _ => Arc::clone(&held.whole),
            }),
            Turn::Seated(_, job) => self.seat_passes.get(&job).map(Arc::clone),
            Turn::Waiting => {
                let waiting = jobs.take_turn(self.lane, &self.seats);
                waiting.map(|(job, spec)| Arc::new(split_pass(job, spec, self.lane, self.canary(spec))))
            }
        };
        pass.map(|pass| PlannedLaunch { pass, turn: Some(turn), charged })
    }

    /// Records a collected launch over `starts` start points: corrects its charge, and
    /// updates the stretch and the hit budget.
    pub fn settle(&mut self, launch: &PlannedLaunch, report: &LaunchReport, starts: usize, totals: LaneTotals) {
        if let Some(turn) = launch.turn {
            self.share.settle(turn, launch.charged, self.charge_for(launch.pass.compared(), report));
        }
        // The stretch counts launches by top words only: a figure for both kinds would change with
        // every turn.
        if launch.pass.compared() == Compared::WholeKeys {
            return;
        }
        if !report.busy.is_zero() {
            self.speed = Some(report.candidates as f64 / report.busy.as_secs_f64());
        }
        // Without rare patterns, plentiful ones slow nobody down, so their hits need no budget.
        let is_rationed = self.pool_pass.as_ref().is_some_and(|held| held.rare_alone.is_some());
        let part = if is_rationed { launch.pass.plentiful_part() } else { 0.0 };
        let budget = hits_worth_verifying(totals.in_flight, is_rationed, self.budget.part());
        if self.budget.record(report, starts, part, budget) {
            // The stretch decides which patterns are rare, so the passes must be made again.
            self.made_for = None;
        }
    }

    /// The canary of a split job's launches.
    fn canary(&self, spec: &JobSpec) -> CanarySeed {
        CanarySeed::new(self.rates.of(compared_by(&spec.patterns)), self.lane)
    }

    /// The charge of a launch: the number of candidates that a launch by top words tests in the
    /// same time.
    fn charge_for(&self, compared: Compared, report: &LaunchReport) -> f64 {
        let busy = report.busy.as_secs_f64();
        match (compared, self.speed) {
            (Compared::WholeKeys, Some(speed)) if busy > 0.0 => busy * speed,
            _ => report.candidates as f64 * self.rates.cost(compared),
        }
    }

    /// Adapts passes and shares to the current jobs. Keeps a pass that still serves them.
    fn renew(&mut self, jobs: &OpenJobs, shared: &mut SharedPasses, totals: LaneTotals) {
        // Without a stretch every pattern counts as rare, and a pass has all rare patterns.
        let stretch = self.budget.candidates_per_start().filter(|_| !self.exhaustive);
        let (part, early_stop) = (self.budget.part(), self.early_stop);
        let mut kinds = Vec::new();
        for compared in Compared::ALL {
            let held = match compared {
                Compared::TopWords => &mut self.pool_pass,
                Compared::WholeKeys => &mut self.whole_pass,
            };
            let index = jobs.pool_index(compared);
            if !index.has_work_for(self.lane) {
                *held = None;
                continue;
            }
            kinds.push(compared);
            let stretch = stretch.map(|stretch| stretch / self.rates.cost(compared));
            let device = DeviceProfile { lane: self.lane, compared, stretch, part, early_stop };
            let newest = Selection::new(index, jobs.all(), device, totals.in_flight);
            let keeps = |held: &PoolPass| {
                held.raises == jobs.raises() && held.selection.still_serves(&newest, jobs.all(), totals.in_flight)
            };
            if !held.as_ref().is_some_and(keeps) {
                let canary = CanarySeed::new(self.rates.of(compared), self.lane);
                *held = Some(PoolPass::new(newest, jobs, &canary, shared));
            }
        }
        self.seats = jobs.split_line().seats(self.lane, totals.rate);
        let mut before = std::mem::take(&mut self.seat_passes);
        for &job in self.seats.askers.values().flatten() {
            let spec = &jobs.all()[&job];
            let make = || Arc::new(split_pass(job, spec, self.lane, self.canary(spec)));
            let held = before.remove(&job).filter(|pass| spec.best.is_none() || is_of(pass, spec, self.lane));
            self.seat_passes.insert(job, held.unwrap_or_else(make));
        }
        self.share.renew(&kinds, &self.seats);
    }
}

/// The kind of launches that search for all of these patterns in one pass.
fn compared_by(patterns: &[Pattern]) -> Compared {
    let needs_whole = patterns.iter().any(|pattern| Compared::WholeKeys.takes(pattern));
    if needs_whole { Compared::WholeKeys } else { Compared::TopWords }
}

/// Whether the pass of a split job has the job's current patterns.
fn is_of(pass: &Pass, spec: &JobSpec, lane: Lane) -> bool {
    let now = spec.patterns.iter().filter(|pattern| lane.takes(pattern.bits()));
    pass.patterns.iter().skip(1).map(|(_, pattern)| pattern).eq(now)
}

/// The passes in use, which devices with canaries of the same kind share.
#[derive(Debug, Default)]
pub struct SharedPasses(Vec<SharedPass>);

#[derive(Debug)]
struct SharedPass {
    selection: Selection,
    /// The value of [`super::jobs::OpenJobs::raises`] when the pass was made.
    raises: u64,
    /// The bits of the canary's seed, and whether it is for a GPU.
    canary: (u32, bool),
    /// Whether the pass has only rare patterns.
    rare_alone: bool,
    pass: Weak<Pass>,
}

impl SharedPasses {
    /// Returns the pass of this selection, without plentiful patterns if `rare_alone`. Makes it
    /// only if no device with such a canary has it in use.
    pub fn pass(
        &mut self,
        selection: &Selection,
        raises: u64,
        canary: &CanarySeed,
        rare_alone: bool,
        make: impl FnOnce() -> Pass,
    ) -> Arc<Pass> {
        let canary = (canary.pattern.bits(), canary.for_gpu);
        let is_it = |one: &&SharedPass| {
            (one.raises, one.canary, one.rare_alone) == (raises, canary, rare_alone)
                && one.selection.has_pass_of(selection)
        };
        if let Some(pass) = self.0.iter().filter(is_it).find_map(|one| one.pass.upgrade()) {
            return pass;
        }
        self.0.retain(|one| one.pass.strong_count() > 0);
        let pass = Arc::new(make());
        let (selection, weak) = (selection.clone(), Arc::downgrade(&pass));
        self.0.push(SharedPass { selection, raises, canary, rare_alone, pass: weak });
        pass
    }
}
