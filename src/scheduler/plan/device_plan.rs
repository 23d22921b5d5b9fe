//! The plan of one device: decides the pass of each launch.
//!
//! Shares of a device's time.
//!
//! ```text
//! device ─┬─ pool ─┬─ top words                           1/2 · 1/2
//!         │        └─ whole keys                          1/2 · 1/2
//!         └─ split jobs ─┬─ seated ── askers ── jobs      1/2 · 3/4
//!                        └─ waiting askers, in rotation   1/2 · 1/4
//! ```
//!
//! If a member has no work, the others beside it get its share. [`Turns`] gives each member its
//! share at any time, not only on average. So the pool has every other launch, however many split
//! jobs there are.

use super::jobs::{OpenJobs, Selection, split_pass};
use super::pass::{CanarySeed, Pass};
use super::profile::{DeviceProfile, DeviceRates, HitBudget, KeyPart, Lane, hits_worth_verifying};
use super::split_line::Seats;
use crate::job::{JobId, JobSpec};
use crate::pattern::Pattern;
use crate::search::LaunchReport;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// A planned launch.
#[derive(Clone, Debug)]
pub struct PlannedLaunch {
    /// The patterns to search.
    pub pass: Arc<Pass>,
    /// The turn that the launch is for; `None` for a warm-up.
    turn: Option<ShareMember>,
    /// Seconds charged to that turn in advance.
    charged: f64,
}

impl PlannedLaunch {
    /// A launch with the canary only.
    pub fn warm_up(pass: Arc<Pass>) -> PlannedLaunch {
        PlannedLaunch { pass, turn: None, charged: 0.0 }
    }
}

/// The passes and accounts of one device.
#[derive(Debug)]
pub struct DevicePlan {
    lane: Lane,
    early_stop: bool,
    /// Whether every pass has every pattern, as a measurement requires.
    exhaustive: bool,
    /// The value of [`OpenJobs::changes`] when the passes were made.
    made_for: Option<u64>,
    turns: Turns,
    /// The pool's passes for each kind of launches ([`KeyPart`]).
    pool: [Option<PoolPasses>; 2],
    seats: Seats,
    seat_passes: BTreeMap<JobId, Arc<Pass>>,
    budget: HitBudget,
    /// The rates of this device, as of the last launch.
    rates: DeviceRates,
}

impl DevicePlan {
    /// The plan of a device that searches this lane.
    pub fn new(lane: Lane, exhaustive: bool) -> DevicePlan {
        DevicePlan {
            lane,
            early_stop: false,
            exhaustive,
            made_for: None,
            turns: Turns::default(),
            pool: [None, None],
            seats: Seats::default(),
            seat_passes: BTreeMap::new(),
            budget: HitBudget::default(),
            rates: DeviceRates::default(),
        }
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

    /// Plans the next launch; `None` if no job has a pattern for this lane. `rates` are the rates
    /// of this device. They decide its canaries. `in_flight` is the number of start points in flight
    /// on all devices.
    pub fn next(
        &mut self,
        jobs: &mut OpenJobs,
        plans: &mut PoolPlans,
        in_flight: usize,
        rates: DeviceRates,
    ) -> Option<PlannedLaunch> {
        self.rates = rates;
        if !self.is_current(jobs) {
            self.renew(jobs, plans, in_flight);
            self.made_for = Some(jobs.changes());
        }
        let (turn, charged) = self.turns.next()?;
        let pass = match turn {
            ShareMember::Pool(compared) => self.pool[compared as usize].as_ref().map(|passes| {
                let is_rationed = compared == KeyPart::Top32 && self.budget.is_overdrawn();
                let rare_alone = passes.rare_alone.as_ref().filter(|_| is_rationed);
                Arc::clone(rare_alone.unwrap_or(&passes.whole))
            }),
            ShareMember::Seated(job) => self.seat_passes.get(&job).map(Arc::clone),
            ShareMember::Waiting => {
                let waiting = jobs.take_turn(self.lane, &self.seats);
                waiting.map(|(job, spec)| Arc::new(split_pass(job, spec, self.lane, self.canary(spec))))
            }
        };
        pass.map(|pass| PlannedLaunch { pass, turn: Some(turn), charged })
    }

    /// Records a collected launch over `starts` start points: corrects its charge, and
    /// updates the stretch and the hit budget.
    pub fn settle(&mut self, launch: &PlannedLaunch, report: &LaunchReport, starts: usize, in_flight: usize) {
        if let Some(turn) = launch.turn {
            self.turns.settle(turn, launch.charged, report.busy);
        }
        // The stretch counts launches by top words only: a figure for both kinds would change with
        // every turn.
        if launch.pass.compared() == KeyPart::Whole {
            return;
        }
        // Without rare patterns, plentiful ones slow nobody down, so their hits need no budget.
        let passes = self.pool[KeyPart::Top32 as usize].as_ref();
        let is_rationed = passes.is_some_and(|passes| passes.rare_alone.is_some());
        let part = if is_rationed { launch.pass.plentiful_part() } else { 0.0 };
        let budget = hits_worth_verifying(in_flight, is_rationed);
        if self.budget.record(report, starts, part, budget) {
            // The stretch decides which patterns are rare, so the passes must be made again.
            self.made_for = None;
        }
    }

    /// The properties that decide the passes of launches of this kind.
    fn profile(&self, compared: KeyPart) -> DeviceProfile {
        // Without a stretch every pattern counts as rare, and a pass has all rare patterns.
        let stretch_bits = self.budget.stretch_bits.filter(|_| !self.exhaustive);
        let slower = self.rates.cost(compared).log2().round().max(0.0) as u32;
        DeviceProfile {
            lane: self.lane,
            compared,
            stretch_bits: stretch_bits.map(|bits| bits.saturating_sub(slower)),
            early_stop: self.early_stop,
        }
    }

    /// The canary of a split job's launches.
    fn canary(&self, spec: &JobSpec) -> CanarySeed {
        CanarySeed::new(self.rates.of(compared_by(&spec.patterns)), self.lane)
    }

    /// Adapts passes and shares to the current jobs.
    fn renew(&mut self, jobs: &OpenJobs, plans: &mut PoolPlans, in_flight: usize) {
        let has_work = |compared: &KeyPart| jobs.pool_index(*compared).has_work_for(self.lane);
        let kinds: Vec<KeyPart> = KeyPart::ALL.into_iter().filter(has_work).collect();
        for compared in KeyPart::ALL {
            let passes = || {
                let canary = CanarySeed::new(self.rates.of(compared), self.lane);
                plans.passes(jobs, self.profile(compared), &canary, in_flight)
            };
            self.pool[compared as usize] = kinds.contains(&compared).then(passes);
        }
        self.seats = jobs.split_line().seats(self.lane);
        let mut before = std::mem::take(&mut self.seat_passes);
        for &job in self.seats.askers.values().flatten() {
            let spec = &jobs.all()[&job];
            let make = || Arc::new(split_pass(job, spec, self.lane, self.canary(spec)));
            let held = before.remove(&job).filter(|pass| spec.best.is_none() || is_of(pass, spec, self.lane));
            self.seat_passes.insert(job, held.unwrap_or_else(make));
        }
        self.turns.renew(&parts(&kinds, &self.seats));
    }
}

/// The kind of launches that search for all of these patterns in one pass.
fn compared_by(patterns: &[Pattern]) -> KeyPart {
    let needs_whole = patterns.iter().any(|pattern| KeyPart::Whole.takes(pattern));
    if needs_whole { KeyPart::Whole } else { KeyPart::Top32 }
}

/// Whether the pass of a split job has the job's current patterns.
fn is_of(pass: &Pass, spec: &JobSpec, lane: Lane) -> bool {
    let now = spec.patterns.iter().filter(|pattern| lane.takes(pattern.bits()));
    pass.patterns.iter().skip(1).map(|(_, pattern)| pattern).eq(now)
}

/// The pool's passes for one kind of launches.
#[derive(Clone, Debug)]
struct PoolPasses {
    /// The pass with all selected patterns.
    whole: Arc<Pass>,
    /// The pass without plentiful patterns, if these are rationed.
    rare_alone: Option<Arc<Pass>>,
}

/// The pool's passes, and the selection they were made from.
#[derive(Debug)]
struct PoolPlan {
    /// The value of [`OpenJobs::changes`] when the selection was last compared with the jobs.
    checked_for: u64,
    /// The value of [`OpenJobs::raises`] when the passes were made.
    raises: u64,
    selection: Selection,
    passes: PoolPasses,
}

impl PoolPlan {
    fn new(selection: Selection, jobs: &OpenJobs, canary: &CanarySeed) -> PoolPlan {
        let pass = |rare_alone: bool| Arc::new(selection.pass(jobs.all(), canary.clone(), rare_alone));
        let passes = PoolPasses { whole: pass(false), rare_alone: selection.is_rationed().then(|| pass(true)) };
        PoolPlan { checked_for: jobs.changes(), raises: jobs.raises, passes, selection }
    }
}

/// The pool's passes in use, by the properties of devices, the bits of their canaries, and whether
/// these are for a GPU. Devices that have all of this in common share them. They stay in use until
/// the jobs change so much that they no longer serve them, because each new pass makes a device
/// build a new filter.
#[derive(Debug, Default)]
pub struct PoolPlans(BTreeMap<(DeviceProfile, u32, bool), PoolPlan>);

impl PoolPlans {
    /// The passes for a device with these properties. `in_flight` is the number of start points in
    /// flight on all devices.
    fn passes(&mut self, jobs: &OpenJobs, device: DeviceProfile, canary: &CanarySeed, in_flight: usize) -> PoolPasses {
        // Those that no device has in use.
        self.0.retain(|_, plan| Arc::strong_count(&plan.passes.whole) > 1);
        let newest = || Selection::new(jobs.pool_index(device.compared), jobs.all(), device, in_flight);
        let key = (device, canary.pattern.bits(), canary.for_gpu);
        let plan = self.0.entry(key).or_insert_with(|| PoolPlan::new(newest(), jobs, canary));
        if plan.checked_for != jobs.changes() {
            let newest = newest();
            let serves = plan.raises == jobs.raises && plan.selection.still_serves(&newest, jobs.all(), in_flight);
            match serves {
                true => plan.checked_for = jobs.changes(),
                false => *plan = PoolPlan::new(newest, jobs, canary),
            }
        }
        plan.passes.clone()
    }
}

/// The pool's share of a device while there are split jobs, 0 to 1.
pub const POOL_PART: f64 = 0.5;
/// The waiting askers' share of the split jobs' launches, 0 to 1.
const WAITING_PART: f64 = 0.25;

/// The share of a device, 0 to 1, of each of an asker's `own` jobs at a seat.
pub fn seated_part(has_pool: bool, has_waiting: bool, askers: usize, own: usize) -> f64 {
    let split_part = if has_pool { 1.0 - POOL_PART } else { 1.0 };
    let seated_part = if has_waiting { 1.0 - WAITING_PART } else { 1.0 };
    split_part * seated_part / askers.max(1) as f64 / own.max(1) as f64
}

/// The members that have work, and their shares of a device. `kinds`: the kinds of launches that the
/// pool has work for.
fn parts(kinds: &[KeyPart], seats: &Seats) -> BTreeMap<ShareMember, f64> {
    let has_pool = !kinds.is_empty();
    let pool_part = if seats.askers.is_empty() { 1.0 } else { POOL_PART };
    let of_kind = |&kind| (ShareMember::Pool(kind), pool_part / kinds.len() as f64);
    let mut parts: BTreeMap<_, _> = kinds.iter().map(of_kind).collect();
    for jobs in seats.askers.values() {
        let part = seated_part(has_pool, seats.has_waiting, seats.askers.len(), jobs.len());
        parts.extend(jobs.iter().map(|&job| (ShareMember::Seated(job), part)));
    }
    if seats.has_waiting {
        parts.insert(ShareMember::Waiting, seated_part(has_pool, false, 1, 1) * WAITING_PART);
    }
    parts
}

/// The member whose turn a launch is.
// The pool is listed first, so that it wins a tie.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ShareMember {
    /// All jobs of the pool with patterns for launches of this kind.
    Pool(KeyPart),
    /// A split job that has a seat.
    Seated(JobId),
    /// The waiting asker who is next in the rotation.
    Waiting,
}

/// The shortest time that a launch is charged, seconds.
const SHORTEST_LAUNCH: f64 = 1e-6;

/// The accounts of one device: worst-case fair weighted fair queueing (WF2Q; Bennett and Zhang 1996).
/// They count time, because launches differ in length.
///
/// A member's account is the time it has had, divided by its part. All accounts grow with `now`,
/// the time of the whole device. The next launch is for a member that is not ahead of `now`: the
/// one whose account would be least after it. So however many small members wait, a large one has
/// its share in any span of a few launches.
#[derive(Debug, Default)]
struct Turns {
    accounts: BTreeMap<ShareMember, Account>,
    now: f64,
    /// Seconds of the last launch. The next launch is charged this many until its own are known.
    last_launch: f64,
}

#[derive(Debug)]
struct Account {
    /// The member's share, above 0, up to 1.
    part: f64,
    /// Seconds so far, divided by `part`.
    served: f64,
}

impl Turns {
    /// Sets the members and their shares. Former members keep their accounts. A new one begins at
    /// `now`, so that others need not wait until it has caught up.
    fn renew(&mut self, parts: &BTreeMap<ShareMember, f64>) {
        let before = std::mem::take(&mut self.accounts);
        let account = |(member, &part): (&ShareMember, &f64)| {
            let served = before.get(member).map_or(self.now, |account| account.served);
            (*member, Account { part, served })
        };
        self.accounts = parts.iter().map(account).collect();
    }

    /// Chooses the next turn and charges it. Returns the turn and the charge in seconds; `None` if
    /// nobody has work.
    fn next(&mut self) -> Option<(ShareMember, f64)> {
        let charged = self.last_launch.max(SHORTEST_LAUNCH);
        let least = self.accounts.values().map(|account| account.served).min_by(f64::total_cmp)?;
        self.now = self.now.max(least);
        let has_turn = self.accounts.iter().filter(|(_, account)| account.served <= self.now);
        let after = |account: &Account| account.served + charged / account.part;
        let (&turn, _) = has_turn.min_by(|(_, one), (_, other)| after(one).total_cmp(&after(other)))?;
        self.charge(turn, charged);
        Some((turn, charged))
    }

    /// Corrects the charge of a launch once its time is known.
    fn settle(&mut self, turn: ShareMember, charged: f64, busy: Duration) {
        self.last_launch = busy.as_secs_f64().max(SHORTEST_LAUNCH);
        self.charge(turn, self.last_launch - charged);
    }

    fn charge(&mut self, turn: ShareMember, seconds: f64) {
        self.now += seconds;
        if let Some(account) = self.accounts.get_mut(&turn) {
            account.served += seconds / account.part;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Asker;

    const POOL: ShareMember = ShareMember::Pool(KeyPart::Top32);
    const WHOLE: ShareMember = ShareMember::Pool(KeyPart::Whole);

    fn seats(askers: &[(u8, &[i64])], has_waiting: bool) -> Seats {
        let jobs = |jobs: &[i64]| jobs.iter().copied().map(JobId).collect();
        let askers = askers.iter().map(|&(asker, own)| (Asker([asker; 32]), jobs(own))).collect();
        Seats { askers, has_waiting }
    }

    fn seated(job: i64) -> ShareMember {
        ShareMember::Seated(JobId(job))
    }

    /// Each has its part in any hundred launches of very different lengths, also when others come
    /// and go: newcomers get no launches for the time before they came.
    #[test]
    fn each_has_its_part_at_any_time_by_side_then_group_then_asker_then_job() {
        use KeyPart::{Top32, Whole};
        let (both, top, none) = (&[Top32, Whole][..], &[Top32][..], &[][..]);
        let waiting = ShareMember::Waiting;
        let third = 0.5 * 0.75 / 6.0;
        let mut turns = Turns::default();
        for (kinds, askers, has_waiting, expected) in [
            (top, &[(1, &[1][..])][..], false, &[(POOL, 0.5), (seated(1), 0.5)][..]),
            (top, &[(1, &[1]), (2, &[2])], false, &[(POOL, 0.5), (seated(1), 0.25), (seated(2), 0.25)]),
            (none, &[(1, &[1])], false, &[(seated(1), 1.0)]),
            (both, &[(1, &[1])], false, &[(POOL, 0.25), (WHOLE, 0.25), (seated(1), 0.5)]),
            (both, &[], false, &[(POOL, 0.5), (WHOLE, 0.5)]),
            (
                top,
                &[(1, &[1, 2, 3]), (2, &[4])],
                true,
                &[
                    (POOL, 0.5),
                    (seated(1), third),
                    (seated(2), third),
                    (seated(3), third),
                    (seated(4), 3.0 * third),
                    (waiting, 0.125),
                ],
            ),
        ] {
            turns.renew(&parts(kinds, &seats(askers, has_waiting)));
            for span in [100, 5000] {
                let mut had = BTreeMap::new();
                for number in 0..span {
                    let (turn, charged) = turns.next().unwrap();
                    // Launches of the first are always long.
                    let millis = if turn == expected[0].0 { 90 } else { 10 + number % 7 * 5 };
                    turns.settle(turn, charged, Duration::from_millis(millis));
                    *had.entry(turn).or_insert(0.0) += millis as f64;
                }
                let all: f64 = had.values().sum();
                for (member, part) in expected {
                    let found = had[member] / all;
                    let tolerance = if span == 100 { 0.5 } else { 0.02 };
                    assert!((found / part - 1.0).abs() < tolerance, "{member:?}: {found} for {part} of {span}");
                }
                assert_eq!(had.len(), expected.len());
            }
        }
        turns.renew(&parts(none, &seats(&[], false)));
        assert!(turns.next().is_none());
    }

    #[test]
    fn the_pool_has_half_in_any_span_however_many_askers_have_seats() {
        let askers = (1..=16).map(|number| (Asker([number; 32]), vec![JobId(number.into())])).collect();
        let mut turns = Turns::default();
        turns.renew(&parts(&[KeyPart::Top32], &Seats { askers, has_waiting: true }));
        let mut of_pool = 0.0_f64;
        for launches in 1..=1000 {
            let (turn, charged) = turns.next().unwrap();
            turns.settle(turn, charged, Duration::from_millis(50));
            of_pool += f64::from(u8::from(turn == POOL));
            assert!((of_pool - f64::from(launches) / 2.0).abs() < 2.0, "{of_pool} of {launches} launches");
        }
    }
}
