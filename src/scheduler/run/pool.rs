//! The pool: the open jobs, shared by the threads that add jobs and those that search them.

use crate::job::{Asker, BestSearch, JobId, JobSpec, Priority};
use crate::pattern::{Pattern, Rate};
use crate::scheduler::plan::device_plan::{DevicePlan, LaneTotals, PlannedLaunch, SharedPasses};
use crate::scheduler::plan::jobs::OpenJobs;
use crate::scheduler::plan::pass::Pass;
use crate::scheduler::plan::profile::{Compared, DeviceRates, Lane};
use crate::scheduler::plan::prospects::{Serving, Shares, WaitEstimate};
use crate::scheduler::plan::split_line::Seats;
use crate::search::LaunchReport;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The open jobs, shared by the threads that add jobs and those that search them.
#[derive(Debug, Default)]
pub struct Pool {
    state: Mutex<PoolState>,
    changed: Condvar,
    devices: Arc<PoolDevices>,
    /// Whether every candidate is tested against every pattern, regardless of how many keys a start
    /// point can yield.
    exhaustive: bool,
}

#[derive(Debug, Default)]
struct PoolState {
    jobs: OpenJobs,
    shared: SharedPasses,
    closed: bool,
    /// Whether the operator has paused the search.
    paused: bool,
}

/// The next step of a device.
#[derive(Debug)]
pub enum NextStep {
    /// Submit this launch.
    Search(PlannedLaunch),
    /// Wait: no open job has a pattern for this lane, or the search is paused.
    Wait,
    /// End after the launches in flight.
    End,
}

impl Pool {
    /// A pool whose devices test every candidate against all patterns, for measurements.
    pub fn exhaustive() -> Pool {
        Pool { exhaustive: true, ..Pool::default() }
    }

    /// Whether the pool is for a measurement.
    pub fn is_exhaustive(&self) -> bool {
        self.exhaustive
    }

    /// Adds a job. Replaces a job of the same number.
    pub fn insert(&self, job: JobId, mut spec: JobSpec) {
        spec.begin(self.devices.totals(Lane::All).rate.map(Rate));
        self.change(|state| state.jobs.insert(job, spec));
    }

    /// Raises a job without a target, whose best key so far meets this pattern. From now on only
    /// rarer keys are searched for.
    pub fn raise(&self, job: JobId, kept: &Pattern) {
        self.change(|state| state.jobs.raise(job, kept));
    }

    /// Adds the time of a collected launch to the jobs without a target in its pass, as if all
    /// devices together had searched it. Returns the jobs whose search is over
    /// ([`BestSearch::is_over`]).
    pub fn count(&self, pass: &Pass, candidates: u64) -> Vec<JobId> {
        let rate = self.devices.totals(Lane::All).rate;
        let mut state = self.lock();
        if !state.jobs.has_best() {
            return Vec::new();
        }
        let time = rate.and_then(|rate| Duration::try_from_secs_f64(candidates as f64 / rate).ok());
        let searched: Vec<JobId> =
            state.jobs.best().map(|(job, _)| job).filter(|&job| pass.searches_for(job)).collect();
        searched.into_iter().filter(|&job| state.jobs.count(job, time.unwrap_or_default())).collect()
    }

    /// The open jobs without a target, with their best keys so far.
    pub fn best(&self) -> Vec<(JobId, BestSearch)> {
        self.lock().jobs.best().map(|(job, search)| (job, search.clone())).collect()
    }

    /// The search without a target of an open job. `None` if the job is not open, `Some(None)` if
    /// it has a target.
    pub fn best_of(&self, job: JobId) -> Option<Option<BestSearch>> {
        self.lock().jobs.all().get(&job).map(|spec| spec.best.as_deref().cloned())
    }

    /// Removes a job.
    pub fn remove(&self, job: JobId) {
        self.change(|state| state.jobs.remove(job));
    }

    /// Whether a job is open.
    #[cfg(test)]
    pub fn contains(&self, job: JobId) -> bool {
        self.best_of(job).is_some()
    }

    /// Number of open jobs.
    pub fn len(&self) -> usize {
        self.lock().jobs.len()
    }

    /// Whether no job is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells every device to end after the launches in flight.
    pub fn close(&self) {
        self.change(|state| state.closed = true);
    }

    /// Pauses the search, or resumes it. During a pause devices get no launches.
    pub fn pause(&self, paused: bool) {
        self.change(|state| state.paused = paused);
    }

    /// Whether the search is paused.
    pub fn is_paused(&self) -> bool {
        self.lock().paused
    }

    /// Whether the pool was closed.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Creates the plan of a device of this lane.
    pub fn add_device(&self, lane: Lane) -> PoolDevice {
        PoolDevice::new(DevicePlan::new(lane, self.exhaustive), Arc::clone(&self.devices))
    }

    /// The next step of the device with these rates.
    pub fn next(&self, subscription: &mut PoolDevice, rates: impl Into<DeviceRates>) -> NextStep {
        let (lane, rates) = (subscription.plan.lane(), rates.into());
        subscription.note_rate(rates);
        let totals = self.devices.totals(lane);
        let mut state = self.lock();
        if state.closed {
            return NextStep::End;
        }
        if state.paused {
            return NextStep::Wait;
        }
        let PoolState { jobs, shared, .. } = &mut *state;
        subscription.plan.next(jobs, shared, totals, rates).map_or(NextStep::Wait, NextStep::Search)
    }

    /// The open jobs and their shares of the devices, from the view of this asker.
    pub fn shares(&self, asker: Asker) -> Shares {
        let totals = self.devices.totals(Lane::All);
        let state = self.lock();
        Shares::new(&state.jobs, &seats(&state, totals), asker)
    }

    /// Number of askers of split jobs who have had no turn while waiting.
    #[cfg(test)]
    pub fn new_split_askers(&self) -> usize {
        self.lock().jobs.split_line().new_askers()
    }

    /// Estimates how long a new job of the pool waits.
    pub fn wait_estimate(&self, serving: Serving, priority: Priority) -> WaitEstimate {
        WaitEstimate::new(self.lock().jobs.pool_index(Compared::TopWords), serving, priority)
    }

    /// Sleeps until the jobs change, or for `limit`. While the search is paused, changes of jobs do
    /// not end the sleep.
    pub fn wait(&self, subscription: &PoolDevice, limit: Duration) {
        let state = self.lock();
        let was_paused = state.paused;
        let is_same = |state: &mut PoolState| {
            !state.closed && state.paused == was_paused && (was_paused || subscription.plan.is_current(&state.jobs))
        };
        drop(self.changed.wait_timeout_while(state, limit, is_same));
    }

    /// Sleeps until the pool closes, or for `limit`; returns whether it is closed.
    pub fn wait_for_end(&self, limit: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), limit, |state| !state.closed);
        waited.unwrap_or_else(PoisonError::into_inner).0.closed
    }

    fn change(&self, change: impl FnOnce(&mut PoolState)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        // Every change is a single step, so a panic elsewhere cannot leave a half-made one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The seats from which askers are answered: those on a device that searches all patterns.
fn seats(state: &PoolState, totals: LaneTotals) -> Seats {
    state.jobs.split_line().seats(Lane::All, totals.rate)
}

/// The subscribed devices.
#[derive(Debug, Default)]
pub(super) struct PoolDevices {
    /// Start points that may be in flight at once, on all devices.
    in_flight: AtomicUsize,
    subscribed: AtomicUsize,
    /// Lane and rate of each measured device, in candidates per second, by subscription number.
    rates: Mutex<BTreeMap<usize, (Lane, f64)>>,
}

impl PoolDevices {
    /// The devices of one lane. [`Lane::All`] means those of every lane.
    pub fn totals(&self, lane: Lane) -> LaneTotals {
        let rates = self.rates();
        let of_lane = rates.values().filter(|(other, _)| lane == Lane::All || lane == *other);
        let rate: f64 = of_lane.map(|(_, rate)| rate).sum();
        LaneTotals { in_flight: self.in_flight.load(Ordering::Relaxed), rate: (rate > 0.0).then_some(rate) }
    }

    fn rates(&self) -> MutexGuard<'_, BTreeMap<usize, (Lane, f64)>> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The plan of one device, kept up to date with the pool.
#[derive(Debug)]
pub struct PoolDevice {
    /// The plan.
    pub plan: DevicePlan,
    devices: Arc<PoolDevices>,
    /// The number of this subscription.
    number: usize,
    /// Start points that this device may have in flight.
    in_flight: usize,
    /// The share of its time that the device can search.
    pub part: f64,
}

impl PoolDevice {
    /// The subscription of a further device.
    pub(super) fn new(plan: DevicePlan, devices: Arc<PoolDevices>) -> PoolDevice {
        let number = devices.subscribed.fetch_add(1, Ordering::Relaxed);
        PoolDevice { plan, devices, number, in_flight: 0, part: 1.0 }
    }

    /// Notes the rate of the device, for the plans of other devices and for the shares told to
    /// askers.
    pub fn note_rate(&self, rates: DeviceRates) {
        if let Some(Rate(rate)) = rates.top_words {
            self.devices.rates().insert(self.number, (self.plan.lane(), rate * self.part));
        }
    }

    /// Sets how many start points the device may have in flight, and whether it has an early stop
    /// ([`crate::search::Searcher::early_stop`]).
    pub fn set_device(&mut self, in_flight: usize, early_stop: bool) {
        self.plan.set_early_stop(early_stop);
        self.devices.in_flight.fetch_add(in_flight, Ordering::Relaxed);
        self.devices.in_flight.fetch_sub(std::mem::replace(&mut self.in_flight, in_flight), Ordering::Relaxed);
    }

    /// Records a collected launch over `starts` start points.
    pub fn settle(&mut self, launch: &PlannedLaunch, report: &LaunchReport, starts: usize) {
        let totals = self.devices.totals(self.plan.lane());
        self.plan.settle(launch, report, starts, totals);
    }
}

impl Drop for PoolDevice {
    fn drop(&mut self) {
        self.devices.in_flight.fetch_sub(self.in_flight, Ordering::Relaxed);
        self.devices.rates().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::PatternId;
    use crate::scheduler::plan::pass::{Owner, Pass};

    fn patterns(texts: &[&str]) -> JobSpec {
        JobSpec::for_tests(texts, None)
    }

    fn owners(pool: &Pool, lane: Lane) -> Vec<Owner> {
        match pool.next(&mut pool.add_device(lane), None) {
            NextStep::Search(launch) => launch.pass.owners().to_vec(),
            NextStep::Wait | NextStep::End => Vec::new(),
        }
    }

    fn pass(pool: &Pool, subscription: &mut PoolDevice) -> Arc<Pass> {
        match pool.next(subscription, None) {
            NextStep::Search(launch) => launch.pass,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_lane_gets_the_patterns_that_suit_its_device() {
        let pool = Pool::default();
        let (easy, hard) = (JobId(1), JobId(2));
        pool.insert(easy, patterns(&["qqq"]));
        assert!(owners(&pool, Lane::Hard).is_empty(), "an easy job alone leaves a GPU idle");
        pool.insert(hard, patterns(&["qqqq", "pp"]));
        assert_eq!(owners(&pool, Lane::Hard), [Owner::Canary, Owner::Job(hard)]);
        let both = [Owner::Canary, Owner::Job(easy), Owner::Job(hard), Owner::Job(hard)];
        assert_eq!(owners(&pool, Lane::Easy), both, "four characters are for both");
        pool.insert(hard, patterns(&["qqqqq", "pp"]));
        assert_eq!(owners(&pool, Lane::Easy), both[..3]);
        assert_eq!(owners(&pool, Lane::All).len(), 4);
        let mut held = pool.add_device(Lane::Easy);
        let patterns = |held: &mut PoolDevice| pass(&pool, held).patterns.len();
        assert_eq!(patterns(&mut held), 3);
        held.plan.set_lane(Lane::All);
        assert_eq!(patterns(&mut held), 4, "a device that replaces a GPU takes its work from the next launch on");
    }

    #[test]
    fn a_device_keeps_its_pass_until_the_pool_changes() {
        let pool = Pool::default();
        pool.insert(JobId(1), patterns(&["qqqqqq"]));
        let mut held = pool.add_device(Lane::All);
        let first = pass(&pool, &mut held);
        assert!(Arc::ptr_eq(&first, &pass(&pool, &mut held)));
        pool.insert(JobId(2), patterns(&["pppppp"]));
        assert!(!Arc::ptr_eq(&first, &pass(&pool, &mut held)));
        pool.remove(JobId(1));
        pool.remove(JobId(2));
        assert!(matches!(pool.next(&mut held, None), NextStep::Wait));
        pool.close();
        assert!(matches!(pool.next(&mut held, None), NextStep::End));
    }

    #[test]
    fn devices_that_share_passes_have_one_until_their_patterns_differ() {
        let pool = Pool::default();
        pool.insert(JobId(1), patterns(&["qqqqqq"]));
        let (mut one, mut other, mut faster) =
            (pool.add_device(Lane::Hard), pool.add_device(Lane::Hard), pool.add_device(Lane::Hard));
        let first = pass(&pool, &mut one);
        assert!(Arc::ptr_eq(&first, &pass(&pool, &mut other)));
        let NextStep::Search(own) = pool.next(&mut faster, Some(Rate(1e12))) else { panic!("no launch") };
        assert!(!Arc::ptr_eq(&first, &own.pass), "a faster device has a rarer canary");
        pool.remove(JobId(1));
        pool.insert(JobId(3), patterns(&["pppppp"]));
        let second = pass(&pool, &mut one);
        assert_eq!(second.patterns.get(PatternId(1)).as_str(), "pppppp");
        assert!(Arc::ptr_eq(&second, &pass(&pool, &mut other)));
        other.plan.set_lane(Lane::Easy);
        pool.insert(JobId(2), patterns(&["ppp"]));
        assert_eq!((pass(&pool, &mut one).patterns.len(), pass(&pool, &mut other).patterns.len()), (2, 2));
        other.plan.set_lane(Lane::All);
        let all = pass(&pool, &mut other);
        assert_eq!(all.patterns.len(), 3);
        pool.remove(JobId(2));
        assert_eq!(pass(&pool, &mut other).patterns.len(), 2);
    }

    #[test]
    fn a_split_job_has_a_pass_of_its_own() {
        let pool = Pool::default();
        let asker = Asker([1; 32]);
        pool.insert(JobId(1), patterns(&["qqqqq"]));
        pool.insert(JobId(2), JobSpec::for_tests(&["ppppp"], Some(asker)));
        pool.insert(JobId(3), JobSpec::for_tests(&["qq"], Some(asker)));
        let mut held = pool.add_device(Lane::Hard);
        let mut turns = Vec::new();
        for _ in 0..4 {
            let pass = pass(&pool, &mut held);
            turns.push((pass.half.is_some(), pass.owners()[1..].to_vec()));
        }
        let count = |job| turns.iter().filter(|(_, owners)| *owners == [Owner::Job(JobId(job))]).count();
        assert_eq!((count(1), count(2), count(3)), (2, 2, 0), "{turns:?}");
        assert!(turns.iter().all(|(split, owners)| *split == (*owners == [Owner::Job(JobId(2))])));
        pool.remove(JobId(1));
        assert!(pass(&pool, &mut held).half.is_some());
        assert!(pool.shares(asker).part_of_one_more < pool.shares(Asker([2; 32])).part_of_one_more);
    }

    #[test]
    fn a_device_that_replaces_a_gpu_searches_all_patterns_of_a_split_job() {
        let pool = Pool::default();
        pool.insert(JobId(1), JobSpec::for_tests(&["qq", "pppppp"], Some(Asker([1; 32]))));
        let mut held = pool.add_device(Lane::Easy);
        let patterns = |held: &mut PoolDevice| pass(&pool, held).patterns.len();
        assert_eq!(patterns(&mut held), 2);
        held.plan.set_lane(Lane::All);
        assert_eq!(patterns(&mut held), 3);
    }

    /// A job that comes during a pause must not wake every device again and again.
    #[test]
    fn a_paused_pool_lets_devices_sleep_whatever_jobs_come() {
        let pool = Pool::default();
        let mut held = pool.add_device(Lane::All);
        pool.pause(true);
        pool.insert(JobId(1), patterns(&["q"]));
        assert!(matches!(pool.next(&mut held, None), NextStep::Wait));
        let (began, limit) = (std::time::Instant::now(), Duration::from_millis(50));
        pool.wait(&held, limit);
        assert!(began.elapsed() >= limit, "the device sleeps");
        assert!(!pool.wait_for_end(Duration::from_millis(1)));
        pool.close();
        assert!(pool.wait_for_end(Duration::from_secs(60)));
    }

    #[test]
    fn waiting_ends_when_a_job_comes() {
        let pool = Arc::new(Pool::default());
        let mut held = pool.add_device(Lane::All);
        assert!(matches!(pool.next(&mut held, None), NextStep::Wait));
        let other = Arc::clone(&pool);
        let adder = std::thread::spawn(move || other.insert(JobId(1), patterns(&["q"])));
        pool.wait(&held, Duration::from_secs(60));
        assert!(matches!(pool.next(&mut held, None), NextStep::Search(_)));
        adder.join().unwrap();
    }
}
