//! The pool: the open jobs, shared by the threads that add jobs and those that search them.

use crate::job::{Asker, BestSearch, JobId, JobSpec, Priority};
use crate::pattern::{Pattern, Rate};
use crate::scheduler::plan::device_plan::{DevicePlan, PlannedLaunch, PoolPlans};
use crate::scheduler::plan::jobs::OpenJobs;
use crate::scheduler::plan::pass::Pass;
use crate::scheduler::plan::profile::{DeviceRates, KeyPart, Lane};
use crate::scheduler::plan::prospects::{Serving, Shares, WaitEstimate};
use crate::search::LaunchReport;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The open jobs, shared by the threads that add jobs and those that search them.
#[derive(Debug, Default)]
pub struct Pool {
    state: Mutex<PoolState>,
    changed: Condvar,
    devices: SubscribedDevices,
    /// Whether every candidate is tested against every pattern, regardless of how many keys a start
    /// point can yield.
    exhaustive: bool,
}

#[derive(Debug, Default)]
struct PoolState {
    jobs: OpenJobs,
    plans: PoolPlans,
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
        spec.begin(total_rate(&self.devices));
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
        if pass.timed.is_empty() {
            return Vec::new();
        }
        let time =
            total_rate(&self.devices).and_then(|Rate(rate)| Duration::try_from_secs_f64(candidates as f64 / rate).ok());
        let mut state = self.lock();
        pass.timed.keys().copied().filter(|&job| state.jobs.count(job, time.unwrap_or_default())).collect()
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
        let mut devices = lock(&self.devices);
        let number = devices.last_key_value().map_or(0, |(last, _)| last + 1);
        devices.insert(number, SubscribedDevice::default());
        let plan = DevicePlan::new(lane, self.exhaustive);
        PoolDevice { plan, devices: Arc::clone(&self.devices), number, part: 1.0 }
    }

    /// The next step of the device with these rates.
    pub fn next(&self, subscription: &mut PoolDevice, rates: impl Into<DeviceRates>) -> NextStep {
        let rates = rates.into();
        subscription.note_rate(rates);
        let in_flight = in_flight(&self.devices);
        let mut state = self.lock();
        if state.closed {
            return NextStep::End;
        }
        if state.paused {
            return NextStep::Wait;
        }
        let PoolState { jobs, plans, .. } = &mut *state;
        subscription.plan.next(jobs, plans, in_flight, rates).map_or(NextStep::Wait, NextStep::Search)
    }

    /// The open jobs and their shares of the devices, from the view of this asker.
    pub fn shares(&self, asker: Asker) -> Shares {
        Shares::new(&self.lock().jobs, asker)
    }

    /// Number of askers of split jobs who have had no turn while waiting.
    #[cfg(test)]
    pub fn new_split_askers(&self) -> usize {
        self.lock().jobs.split_line().new_askers()
    }

    /// Estimates how long a new job of the pool waits.
    pub fn wait_estimate(&self, serving: Serving, priority: Priority) -> WaitEstimate {
        WaitEstimate::new(self.lock().jobs.pool_index(KeyPart::Top32), serving, priority)
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

    /// Sleeps until the pool closes, or for `limit`.
    pub fn wait_for_end(&self, limit: Duration) {
        drop(self.changed.wait_timeout_while(self.lock(), limit, |state| !state.closed));
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

/// The subscribed devices, by subscription number.
type SubscribedDevices = Arc<Mutex<BTreeMap<usize, SubscribedDevice>>>;

/// The figures of a device that the plans of other devices and the shares told to askers need.
#[derive(Debug, Default)]
struct SubscribedDevice {
    /// Candidates per second; `None` before the first measurement.
    rate: Option<f64>,
    /// Start points that may be in flight at once.
    in_flight: usize,
}

fn lock(devices: &SubscribedDevices) -> MutexGuard<'_, BTreeMap<usize, SubscribedDevice>> {
    devices.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The rate of all devices; `None` while no device has been measured.
fn total_rate(devices: &SubscribedDevices) -> Option<Rate> {
    let rate: f64 = lock(devices).values().filter_map(|device| device.rate).sum();
    (rate > 0.0).then_some(Rate(rate))
}

/// Start points that may be in flight at once, on all devices.
fn in_flight(devices: &SubscribedDevices) -> usize {
    lock(devices).values().map(|device| device.in_flight).sum()
}

/// The plan of one device, kept up to date with the pool.
#[derive(Debug)]
pub struct PoolDevice {
    /// The plan.
    pub plan: DevicePlan,
    devices: SubscribedDevices,
    /// The number of this subscription.
    number: usize,
    /// The share of its time that the device can search.
    pub part: f64,
}

impl PoolDevice {
    /// Notes the rate of the device, for the plans of other devices and for the shares told to
    /// askers.
    pub fn note_rate(&self, rates: DeviceRates) {
        if let (Some(Rate(rate)), Some(device)) = (rates.top_words, lock(&self.devices).get_mut(&self.number)) {
            device.rate = Some(rate * self.part);
        }
    }

    /// Sets how many start points the device may have in flight, and whether it has an early stop
    /// ([`crate::search::Searcher::early_stop`]).
    pub fn set_device(&mut self, in_flight: usize, early_stop: bool) {
        self.plan.set_early_stop(early_stop);
        if let Some(device) = lock(&self.devices).get_mut(&self.number) {
            device.in_flight = in_flight;
        }
    }

    /// Records a collected launch over `starts` start points.
    pub fn settle(&mut self, launch: &PlannedLaunch, report: &LaunchReport, starts: usize) {
        self.plan.settle(launch, report, starts, in_flight(&self.devices));
    }
}

impl Drop for PoolDevice {
    fn drop(&mut self) {
        lock(&self.devices).remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::PatternId;
    use crate::scheduler::tests::{pass, planned};

    fn patterns(texts: &[&str]) -> JobSpec {
        JobSpec::for_tests(texts, None)
    }

    fn jobs(pool: &Pool, lane: Lane) -> Vec<JobId> {
        match pool.next(&mut pool.add_device(lane), None) {
            NextStep::Search(launch) => launch.pass.jobs(),
            NextStep::Wait | NextStep::End => Vec::new(),
        }
    }

    #[test]
    fn each_lane_gets_the_patterns_that_suit_its_device() {
        let pool = Pool::default();
        let (easy, hard) = (JobId(1), JobId(2));
        pool.insert(easy, patterns(&["qqq"]));
        assert!(jobs(&pool, Lane::Hard).is_empty(), "an easy job alone leaves a GPU idle");
        pool.insert(hard, patterns(&["qqqq", "pp"]));
        assert_eq!(jobs(&pool, Lane::Hard), [hard]);
        let both = [easy, hard, hard];
        assert_eq!(jobs(&pool, Lane::Easy), both, "four characters are for both");
        pool.insert(hard, patterns(&["qqqqq", "pp"]));
        assert_eq!(jobs(&pool, Lane::Easy), both[..2]);
        assert_eq!(jobs(&pool, Lane::All).len(), 3);
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
        let own = planned(&pool, &mut faster, Some(Rate(1e12)));
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
        pool.wait_for_end(limit);
        assert!(began.elapsed() >= 2 * limit);
        pool.close();
        pool.wait_for_end(Duration::from_secs(3600));
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
