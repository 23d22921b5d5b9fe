//! The plan of one device: decides the pass of each launch.
//!
//! Fair shares of a device, in levels.
//!
//! ```text
//! device ─┬─ pool ─┬─ top words                           1/2 · 1/2
//!         │        └─ whole keys                          1/2 · 1/2
//!         └─ split jobs ─┬─ seated ── askers ── jobs      1/2 · 3/4
//!                        └─ waiting askers, in rotation   1/2 · 1/4
//! ```
//!
//! Each level is divided among its members by candidates. Candidates of launches that compare whole
//! keys count by the time they take ([`super::profile::DeviceRates::cost`]). If a member has no
//! work, the others on its level get its share. The pool is one of only two members on its level,
//! so it has every other launch, however many split jobs there are. It has its half at any time,
//! not only on average.

use super::jobs::{OpenJobs, Selection, split_pass};
use super::pass::{CanarySeed, Pass};
use super::profile::{Compared, DeviceProfile, DeviceRates, HitBudget, Lane, hits_worth_verifying, stretch_bits};
use super::split_line::Seats;
use crate::job::{Asker, JobId, JobSpec};
use crate::pattern::Pattern;
use crate::search::LaunchReport;
use std::collections::BTreeMap;
use std::sync::Arc;

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
    turn: Option<ShareMember>,
    /// Candidates charged to that turn in advance.
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
    share: FairShare,
    /// The pool's passes for each kind of launches ([`Compared`]).
    pool: [Option<PoolPasses>; 2],
    seats: Seats,
    seat_passes: BTreeMap<JobId, Arc<Pass>>,
    budget: HitBudget,
    /// Rate of the last launch by top words, in candidates per second of busy time.
    speed: Option<f64>,
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
            share: FairShare::default(),
            pool: [None, None],
            seats: Seats::default(),
            seat_passes: BTreeMap::new(),
            budget: HitBudget::default(),
            speed: None,
            rates: DeviceRates::default(),
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
        self.budget.stretch_bits = Some(stretch_bits(stretch));
    }

    /// Plans the next launch; `None` if no job has a pattern for this lane. `rates` are the rates
    /// of this device. They decide its canaries.
    pub fn next(
        &mut self,
        jobs: &mut OpenJobs,
        plans: &mut PoolPlans,
        totals: LaneTotals,
        rates: DeviceRates,
    ) -> Option<PlannedLaunch> {
        self.rates = rates;
        if !self.is_current(jobs) {
            self.renew(jobs, plans, totals);
            self.made_for = Some(jobs.changes());
        }
        let (turn, charged) = self.share.next()?;
        let pass = match turn {
            ShareMember::Pool(compared) => self.pool[compared as usize].as_ref().map(|passes| {
                let is_rationed = compared == Compared::TopWords && self.budget.is_overdrawn();
                let rare_alone = passes.rare_alone.as_ref().filter(|_| is_rationed);
                Arc::clone(rare_alone.unwrap_or(&passes.whole))
            }),
            ShareMember::Seated(_, job) => self.seat_passes.get(&job).map(Arc::clone),
            ShareMember::Waiting => {
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
        let passes = self.pool[Compared::TopWords as usize].as_ref();
        let is_rationed = passes.is_some_and(|passes| passes.rare_alone.is_some());
        let part = if is_rationed { launch.pass.plentiful_part() } else { 0.0 };
        let budget = hits_worth_verifying(totals.in_flight, is_rationed);
        if self.budget.record(report, starts, part, budget) {
            // The stretch decides which patterns are rare, so the passes must be made again.
            self.made_for = None;
        }
    }

    /// The properties that decide the passes of launches of this kind.
    fn profile(&self, compared: Compared) -> DeviceProfile {
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

    /// The charge of a launch: the number of candidates that a launch by top words tests in the
    /// same time.
    fn charge_for(&self, compared: Compared, report: &LaunchReport) -> f64 {
        let busy = report.busy.as_secs_f64();
        match (compared, self.speed) {
            (Compared::WholeKeys, Some(speed)) if busy > 0.0 => busy * speed,
            _ => report.candidates as f64 * self.rates.cost(compared),
        }
    }

    /// Adapts passes and shares to the current jobs.
    fn renew(&mut self, jobs: &OpenJobs, plans: &mut PoolPlans, totals: LaneTotals) {
        let has_work = |compared: &Compared| jobs.pool_index(*compared).has_work_for(self.lane);
        let kinds: Vec<Compared> = Compared::ALL.into_iter().filter(has_work).collect();
        for compared in Compared::ALL {
            let passes = || {
                let canary = CanarySeed::new(self.rates.of(compared), self.lane);
                plans.passes(jobs, self.profile(compared), &canary, totals.in_flight)
            };
            self.pool[compared as usize] = kinds.contains(&compared).then(passes);
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
pub const WAITING_PART: f64 = 0.25;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Side {
    // Listed first, so that the pool wins a tie.
    Pool,
    Split,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Group {
    Seated,
    Waiting,
}

/// The member whose turn a launch is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ShareMember {
    /// All jobs of the pool with patterns for launches of this kind.
    Pool(Compared),
    /// A split job that has a seat.
    Seated(Asker, JobId),
    /// The waiting asker who is next in the rotation.
    Waiting,
}

/// The accounts of one device. They count candidates, not launches, because launches on a busy
/// processor differ in length.
#[derive(Debug, Default)]
pub struct FairShare {
    sides: FairQueue<Side>,
    kinds: FairQueue<Compared>,
    groups: FairQueue<Group>,
    askers: FairQueue<Asker>,
    jobs: BTreeMap<Asker, FairQueue<JobId>>,
    /// Candidates of the last launch. The next launch is charged this many until its own number is
    /// known.
    last_launch: f64,
}

impl FairShare {
    /// Sets the members that have work. `pool` lists the kinds of launches that the pool has work
    /// for. Members that already had work keep their accounts.
    pub fn renew(&mut self, pool: &[Compared], seats: &Seats) {
        self.kinds.renew(pool.iter().map(|&compared| (compared, 1.0)));
        let sides = [(Side::Pool, POOL_PART, !pool.is_empty()), (Side::Split, 1.0 - POOL_PART, !seats.is_empty())];
        self.sides.renew(sides.into_iter().filter(|side| side.2).map(|(side, part, _)| (side, part)));
        let waiting = seats.has_waiting.then_some((Group::Waiting, WAITING_PART));
        self.groups.renew([(Group::Seated, 1.0 - WAITING_PART)].into_iter().chain(waiting));
        self.askers.renew(seats.askers.keys().map(|&asker| (asker, 1.0)));
        self.jobs.retain(|asker, _| seats.askers.contains_key(asker));
        for (&asker, jobs) in &seats.askers {
            self.jobs.entry(asker).or_default().renew(jobs.iter().map(|&job| (job, 1.0)));
        }
    }

    /// Chooses the next turn and charges it. Returns the turn and the charge in candidates; `None`
    /// if nobody has work.
    pub fn next(&mut self) -> Option<(ShareMember, f64)> {
        let turn = match (self.sides.next()?, self.groups.next()) {
            (Side::Pool, _) => ShareMember::Pool(self.kinds.next()?),
            (Side::Split, Some(Group::Waiting)) => ShareMember::Waiting,
            (Side::Split, _) => {
                let asker = self.askers.next()?;
                ShareMember::Seated(asker, self.jobs.get(&asker)?.next()?)
            }
        };
        let charged = self.last_launch.max(1.0);
        self.charge(turn, charged);
        Some((turn, charged))
    }

    /// Corrects the charge of a launch once its candidates are known.
    pub fn settle(&mut self, turn: ShareMember, charged: f64, candidates: f64) {
        self.last_launch = candidates;
        self.charge(turn, candidates - charged);
    }

    fn charge(&mut self, turn: ShareMember, candidates: f64) {
        let group = match turn {
            ShareMember::Pool(compared) => {
                self.kinds.charge(compared, candidates);
                return self.sides.charge(Side::Pool, candidates);
            }
            ShareMember::Waiting => Group::Waiting,
            ShareMember::Seated(asker, job) => {
                self.askers.charge(asker, candidates);
                if let Some(jobs) = self.jobs.get_mut(&asker) {
                    jobs.charge(job, candidates);
                }
                Group::Seated
            }
        };
        self.groups.charge(group, candidates);
        self.sides.charge(Side::Split, candidates);
    }
}

/// One level of a weighted fair queue. The key that was served least, relative to its part, is
/// next. A level has few keys (seats are bounded), so a linear scan is fastest.
#[derive(Debug)]
pub struct FairQueue<K> {
    entries: BTreeMap<K, Account>,
    /// The largest `served` of any key so far.
    most_served: f64,
}

#[derive(Clone, Copy, Debug)]
struct Account {
    /// The key's weight, above 0.
    part: f64,
    /// Candidates so far, divided by `part`.
    served: f64,
}

impl<K> Default for FairQueue<K> {
    fn default() -> FairQueue<K> {
        FairQueue { entries: BTreeMap::new(), most_served: 0.0 }
    }
}

impl<K: Ord + Copy> FairQueue<K> {
    /// Replaces the keys and their parts. Old keys keep their accounts. The account of a new key
    /// starts at `most_served`, so old keys need not wait until it has caught up. A new key waits
    /// for at most one launch of each old key. However many new keys come, none overtakes an old
    /// one twice.
    pub fn renew(&mut self, parts: impl IntoIterator<Item = (K, f64)>) {
        let start = self.most_served;
        let before = std::mem::take(&mut self.entries);
        let entry = |(key, part)| {
            let served = before.get(&key).map_or(start, |entry: &Account| entry.served);
            (key, Account { part, served })
        };
        self.entries = parts.into_iter().map(entry).collect();
    }

    /// The key whose turn it is; the smallest in a tie.
    pub fn next(&self) -> Option<K> {
        let least = self.entries.iter().min_by(|(_, a), (_, b)| a.served.total_cmp(&b.served));
        least.map(|(&key, _)| key)
    }

    /// Adds candidates to a key's account, or subtracts them. An unknown key is ignored.
    pub fn charge(&mut self, key: K, candidates: f64) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.served += candidates / entry.part;
            self.most_served = self.most_served.max(entry.served);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: ShareMember = ShareMember::Pool(Compared::TopWords);

    fn seats(askers: &[(u8, &[i64])], has_waiting: bool) -> Seats {
        let jobs = |jobs: &[i64]| jobs.iter().copied().map(JobId).collect();
        let askers = askers.iter().map(|&(asker, own)| (Asker([asker; 32]), jobs(own))).collect();
        Seats { askers, has_waiting, is_full: false }
    }

    fn seated(asker: u8, job: i64) -> ShareMember {
        ShareMember::Seated(Asker([asker; 32]), JobId(job))
    }

    /// Simulates `launches` launches of very different lengths. Returns the share of each of
    /// `turns`.
    fn parts(share: &mut FairShare, turns: &[ShareMember], launches: usize) -> Vec<f64> {
        let mut had = vec![0.0; turns.len()];
        for number in 0..launches {
            let (turn, charged) = share.next().unwrap();
            let at = turns.iter().position(|&one| one == turn).unwrap();
            // Launches of the first turn are always long.
            let candidates = if at == 0 { 900 } else { 100 + number as u32 % 7 * 50 };
            share.settle(turn, charged, f64::from(candidates));
            had[at] += f64::from(candidates);
        }
        let all: f64 = had.iter().sum();
        had.into_iter().map(|one| one / all).collect()
    }

    fn assert_near(found: &[f64], expected: &[f64]) {
        let off = found.iter().zip(expected).map(|(a, b)| (a - b).abs() / b).fold(0.0, f64::max);
        assert!(found.len() == expected.len() && off < 0.05, "{found:?}, expected {expected:?}");
    }

    #[test]
    fn each_has_its_part_and_newcomers_get_no_launches_for_the_time_before_they_came() {
        let mut share = FairShare::default();
        share.renew(&[Compared::TopWords], &seats(&[(1, &[1])], false));
        assert_near(&parts(&mut share, &[POOL, seated(1, 1)], 1000), &[0.5, 0.5]);
        share.renew(&[Compared::TopWords], &seats(&[(1, &[1]), (2, &[2])], false));
        assert_near(&parts(&mut share, &[POOL, seated(1, 1), seated(2, 2)], 1000), &[0.5, 0.25, 0.25]);
        share.renew(&[], &seats(&[(1, &[1])], false));
        assert_near(&parts(&mut share, &[seated(1, 1)], 100), &[1.0]);
        share.renew(&[Compared::TopWords], &seats(&[(1, &[1])], false));
        assert_near(&parts(&mut share, &[POOL, seated(1, 1)], 1000), &[0.5, 0.5]);
        share.renew(&[], &seats(&[], false));
        assert!(share.next().is_none());
    }

    #[test]
    fn parts_go_by_side_then_group_then_asker_then_job() {
        let mut share = FairShare::default();
        share.renew(&[Compared::TopWords], &seats(&[(1, &[1, 2, 3]), (2, &[4])], true));
        let turns = [POOL, seated(1, 1), seated(1, 2), seated(1, 3), seated(2, 4), ShareMember::Waiting];
        let third = 0.5 * 0.75 / 6.0;
        assert_near(&parts(&mut share, &turns, 20_000), &[0.5, third, third, third, 3.0 * third, 0.125]);
    }

    #[test]
    fn the_kinds_of_launches_share_the_pools_part_by_time() {
        let mut share = FairShare::default();
        share.renew(&Compared::ALL, &seats(&[(1, &[1])], false));
        let whole = ShareMember::Pool(Compared::WholeKeys);
        assert_near(&parts(&mut share, &[POOL, whole, seated(1, 1)], 10_000), &[0.25, 0.25, 0.5]);
        share.renew(&Compared::ALL, &seats(&[], false));
        assert_near(&parts(&mut share, &[POOL, whole], 10_000), &[0.5, 0.5]);
        share.renew(&[Compared::WholeKeys], &seats(&[], false));
        assert_near(&parts(&mut share, &[whole], 100), &[1.0]);
    }
}
