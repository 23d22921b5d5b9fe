//! The jobs that share a pass.

use super::canary;
use super::fair_share::{self, FairShare, Shares, Side};
use super::hit_budget::Pace;
use super::pass::{Lane, Pass};
use super::select::{self, Device, PatternIndex, Selection};
use super::wait_estimate::{Queue, Serving};
use crate::job::{Asker, JobId, JobSpec};
use crate::pattern::Rate;
use crate::search::LaunchReport;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

fn is_for(spec: &JobSpec, lane: Lane) -> bool {
    spec.patterns.iter().any(|pattern| lane.takes(pattern.bits()))
}

/// The open jobs. Shared by whoever adds jobs and the devices that search them.
#[derive(Debug, Default)]
pub struct Pool {
    inner: Mutex<Inner>,
    changed: Condvar,
    /// Start points that may be in flight at once, over all devices.
    starts: Arc<AtomicUsize>,
    /// Whether every candidate is tested against everything, whatever a start point can serve.
    exhaustive: bool,
}

#[derive(Debug, Default)]
struct Inner {
    jobs: BTreeMap<JobId, JobSpec>,
    /// Those that are no split jobs.
    crowd: PatternIndex,
    split: BTreeSet<JobId>,
    /// Counts changes, so that a worker knows when its pass may be out of date.
    generation: u64,
    closed: bool,
}

impl Inner {
    fn insert(&mut self, job: JobId, wanted: JobSpec) {
        self.remove(job);
        if wanted.half.is_some() {
            self.split.insert(job);
        } else {
            self.crowd.insert(job, &wanted);
        }
        self.jobs.insert(job, wanted);
    }

    fn remove(&mut self, job: JobId) {
        if let Some(wanted) = self.jobs.remove(&job) {
            self.split.remove(&job);
            self.crowd.remove(job, &wanted);
        }
    }
}

/// The passes a worker holds, remade when the pool has changed and they would not do any more.
#[derive(Debug)]
pub struct Subscription {
    lane: Lane,
    /// The lane its passes were made for.
    made_for: Option<Lane>,
    generation: Option<u64>,
    turns: FairShare,
    pool_pass: Option<PoolPass>,
    pace: Pace,
    /// Of all devices.
    starts: Arc<AtomicUsize>,
    /// Of this device.
    own_starts: usize,
    /// [`crate::search::Searcher::early_stop`]
    early_stop: bool,
    /// As its pool.
    exhaustive: bool,
}

/// The pool's pass, and what it was made for.
#[derive(Debug)]
struct PoolPass {
    choice: Selection,
    whole: Arc<Pass>,
    /// Without the plentiful patterns, where they are rationed.
    rare: Option<Arc<Pass>>,
}

impl PoolPass {
    fn of(choice: Selection, jobs: &BTreeMap<JobId, JobSpec>, rate: Option<Rate>) -> PoolPass {
        let canary = canary::choose(rate);
        let rare = choice.rations().then(|| Arc::new(choice.pass(jobs, canary.clone(), true)));
        PoolPass { whole: Arc::new(choice.pass(jobs, canary, false)), rare, choice }
    }
}

impl Subscription {
    /// What kind of device this is: so many start points may be in flight at once, and [`Searcher::early_stop`].
    ///
    /// [`Searcher::early_stop`]: crate::search::Searcher::early_stop
    pub(in crate::scheduler) fn note_device(&mut self, starts: usize, early_stop: bool) {
        self.early_stop = early_stop;
        self.starts.fetch_add(starts, Ordering::Relaxed);
        self.starts.fetch_sub(std::mem::replace(&mut self.own_starts, starts), Ordering::Relaxed);
    }

    /// Takes account of a launch: puts right what it was charged, now that its candidates are known, and notes how far
    /// its start points were searched and what they brought.
    pub(in crate::scheduler) fn settle(
        &mut self,
        pass: &Arc<Pass>,
        charged: f64,
        report: &LaunchReport,
        starts: usize,
    ) {
        let held = self.pool_pass.as_ref();
        let rests = held.filter(|held| held.rare.as_ref().is_some_and(|rare| Arc::ptr_eq(rare, pass)));
        self.turns.settle(rests.map_or(pass, |held| &held.whole), charged, report.candidates);
        // Where nobody is slowed down, nothing is owed.
        let is_rationed = held.is_some_and(|held| held.rare.is_some());
        let part = if is_rationed { pass.plentiful_part() } else { 0.0 };
        let worth = select::hits_worth_verifying(self.starts.load(Ordering::Relaxed), is_rationed, self.pace.part());
        if self.pace.note(report, starts, part, worth) {
            // What is rare has changed.
            self.generation = None;
        }
    }

    /// Candidates a start point of this device is searched over.
    pub(in crate::scheduler) fn stretch(&self) -> Option<f64> {
        self.pace.stretch()
    }

    /// Another lane from now on.
    pub(in crate::scheduler) fn set_lane(&mut self, lane: Lane) {
        if self.lane != lane {
            self.lane = lane;
            self.generation = None;
        }
    }

    /// Takes over a change of the pool. A pass that still does is kept, and with it the device's filter.
    fn renew(&mut self, inner: &Inner, rate: Option<Rate>) {
        let in_flight = self.starts.load(Ordering::Relaxed);
        let (stretch, part) = (self.pace.stretch(), self.pace.part());
        // Without a stretch everything is rare.
        let stretch = stretch.filter(|_| !self.exhaustive);
        let device = Device { lane: self.lane, stretch, part, early_stop: self.early_stop };
        let same_lane = self.made_for.replace(self.lane) == Some(self.lane);
        if inner.crowd.has_work_for(self.lane) {
            let newest = Selection::new(&inner.crowd, &inner.jobs, device, in_flight);
            let keeps = |held: &PoolPass| held.choice.still_serves(&newest, &inner.jobs, in_flight);
            if !self.pool_pass.as_ref().is_some_and(keeps) {
                self.pool_pass = Some(PoolPass::of(newest, &inner.jobs, rate));
            }
        } else {
            self.pool_pass = None;
        }
        let split: BTreeMap<JobId, &JobSpec> = inner.split.iter().map(|&id| (id, &inner.jobs[&id])).collect();
        let split = split.into_iter().filter(|(_, wanted)| is_for(wanted, self.lane)).collect();
        let parts = fair_share::parts(&split, self.pool_pass.is_some());
        let mut claims = Vec::new();
        if let Some(held) = &self.pool_pass {
            claims.push((Side::Pool, Arc::clone(&held.whole), 1.0 - parts.values().sum::<f64>()));
        }
        for (&id, wanted) in &split {
            let held = self.turns.pass_of(Side::Split(id)).filter(|_| same_lane);
            let pass =
                held.unwrap_or_else(|| Arc::new(select::pass_of_split(id, wanted, self.lane, canary::choose(rate))));
            claims.push((Side::Split(id), pass, parts[&id]));
        }
        self.turns.renew(claims);
    }

    /// What is searched in a turn: of the pool's pass the rare patterns alone, while the others have had too much.
    fn in_turn(&mut self, pass: Arc<Pass>) -> Arc<Pass> {
        let held = self.pool_pass.as_ref().filter(|held| Arc::ptr_eq(&held.whole, &pass));
        match held.and_then(|held| held.rare.as_ref()) {
            Some(rare) if self.pace.rests() => Arc::clone(rare),
            _ => pass,
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.starts.fetch_sub(self.own_starts, Ordering::Relaxed);
    }
}

/// What a worker is to do next.
#[derive(Debug)]
pub enum Next {
    /// A pass, and the candidates it was charged for this launch ([`Subscription::settle`]).
    Search(Arc<Pass>, f64),
    /// No open job has a pattern for this lane.
    Wait,
    End,
}

impl Pool {
    /// A pool whose devices test every candidate against all its patterns: what a measurement means by so many patterns.
    pub fn exhaustive() -> Pool {
        Pool { exhaustive: true, ..Pool::default() }
    }

    pub fn insert(&self, job: JobId, wanted: JobSpec) {
        self.change(|inner| inner.insert(job, wanted));
    }

    pub fn remove(&self, job: JobId) {
        self.change(|inner| inner.remove(job));
    }

    pub fn contains(&self, job: JobId) -> bool {
        self.lock().jobs.contains_key(&job)
    }

    pub fn len(&self) -> usize {
        self.lock().jobs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells every worker to end after the launches in flight.
    pub fn close(&self) {
        self.change(|inner| inner.closed = true);
    }

    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    pub(in crate::scheduler) fn subscribe(&self, lane: Lane) -> Subscription {
        Subscription {
            lane,
            made_for: None,
            generation: None,
            turns: FairShare::default(),
            pool_pass: None,
            pace: Pace::default(),
            starts: Arc::clone(&self.starts),
            own_starts: 0,
            early_stop: false,
            exhaustive: self.exhaustive,
        }
    }

    /// The pass to search now. `rate` is the device's, for a canary that is neither rare nor a nuisance.
    pub(in crate::scheduler) fn next(&self, held: &mut Subscription, rate: Option<Rate>) -> Next {
        let inner = self.lock();
        if inner.closed {
            return Next::End;
        }
        if held.generation != Some(inner.generation) {
            held.generation = Some(inner.generation);
            held.renew(&inner, rate);
        }
        held.turns.next().map_or(Next::Wait, |(pass, charged)| Next::Search(held.in_turn(pass), charged))
    }

    /// The jobs and their parts of a device as this asker sees them.
    pub fn shares(&self, asker: Asker) -> Shares {
        fair_share::shares(&self.lock().jobs, asker)
    }

    pub(in crate::scheduler) fn queue(&self, serving: Serving) -> Queue {
        Queue::of(&self.lock().crowd, serving)
    }

    /// Sleeps until the pool changes, at most `limit`.
    pub(in crate::scheduler) fn wait(&self, held: &Subscription, limit: Duration) {
        let inner = self.lock();
        let same = |inner: &mut Inner| !inner.closed && held.generation == Some(inner.generation);
        drop(self.changed.wait_timeout_while(inner, limit, same));
    }

    fn change(&self, change: impl FnOnce(&mut Inner)) {
        let mut inner = self.lock();
        change(&mut inner);
        inner.generation += 1;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change is one step, so a panic elsewhere leaves nothing half done.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::plan::pass::Owner;

    fn patterns(texts: &[&str]) -> JobSpec {
        JobSpec::for_tests(texts, None)
    }

    fn owners(pool: &Pool, lane: Lane) -> Vec<Owner> {
        match pool.next(&mut pool.subscribe(lane), None) {
            Next::Search(pass, _) => pass.owners().to_vec(),
            Next::Wait | Next::End => Vec::new(),
        }
    }

    #[test]
    fn each_lane_gets_what_is_worth_its_device() {
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
        let mut held = pool.subscribe(Lane::Easy);
        let patterns = |held: &mut Subscription| match pool.next(held, None) {
            Next::Search(pass, _) => pass.patterns.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!(patterns(&mut held), 3);
        held.set_lane(Lane::All);
        assert_eq!(patterns(&mut held), 4, "who stands in for a GPU takes its work from the next launch on");
    }

    #[test]
    fn a_worker_keeps_its_pass_until_the_pool_changes() {
        let pool = Pool::default();
        pool.insert(JobId(1), patterns(&["qqqqqq"]));
        let mut held = pool.subscribe(Lane::All);
        let pass = |held: &mut Subscription| match pool.next(held, None) {
            Next::Search(pass, _) => pass,
            other => panic!("{other:?}"),
        };
        let first = pass(&mut held);
        assert!(Arc::ptr_eq(&first, &pass(&mut held)));
        pool.insert(JobId(2), patterns(&["pppppp"]));
        assert!(!Arc::ptr_eq(&first, &pass(&mut held)));
        pool.remove(JobId(1));
        pool.remove(JobId(2));
        assert!(matches!(pool.next(&mut held, None), Next::Wait));
        pool.close();
        assert!(matches!(pool.next(&mut held, None), Next::End));
    }

    #[test]
    fn a_split_job_has_a_pass_of_its_own() {
        let pool = Pool::default();
        let asker = Asker([1; 32]);
        pool.insert(JobId(1), patterns(&["qqqqq"]));
        pool.insert(JobId(2), JobSpec::for_tests(&["ppppp"], Some(asker)));
        pool.insert(JobId(3), JobSpec::for_tests(&["qq"], Some(asker)));
        let mut held = pool.subscribe(Lane::Hard);
        let mut turns = Vec::new();
        for _ in 0..4 {
            let Next::Search(pass, _) = pool.next(&mut held, None) else { panic!("there is work") };
            turns.push((pass.half.is_some(), pass.owners()[1..].to_vec()));
        }
        let of = |job| turns.iter().filter(|(_, owners)| *owners == [Owner::Job(JobId(job))]).count();
        assert_eq!((of(1), of(2), of(3)), (2, 2, 0), "{turns:?}");
        assert!(turns.iter().all(|(split, owners)| *split == (*owners == [Owner::Job(JobId(2))])));
        pool.remove(JobId(1));
        let Next::Search(pass, _) = pool.next(&mut held, None) else { panic!("there is work") };
        assert!(pass.half.is_some());
        assert!(pool.shares(asker).part_of_one_more < pool.shares(Asker([2; 32])).part_of_one_more);
    }

    #[test]
    fn who_stands_in_for_a_gpu_takes_all_of_a_split_job() {
        let pool = Pool::default();
        pool.insert(JobId(1), JobSpec::for_tests(&["qq", "pppppp"], Some(Asker([1; 32]))));
        let mut held = pool.subscribe(Lane::Easy);
        let patterns = |held: &mut Subscription| match pool.next(held, None) {
            Next::Search(pass, _) => pass.patterns.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!(patterns(&mut held), 2);
        held.set_lane(Lane::All);
        assert_eq!(patterns(&mut held), 3);
    }

    #[test]
    fn waiting_ends_when_a_job_comes() {
        let pool = Arc::new(Pool::default());
        let mut held = pool.subscribe(Lane::All);
        assert!(matches!(pool.next(&mut held, None), Next::Wait));
        let other = Arc::clone(&pool);
        let adder = std::thread::spawn(move || other.insert(JobId(1), patterns(&["q"])));
        pool.wait(&held, Duration::from_secs(60));
        assert!(matches!(pool.next(&mut held, None), Next::Search(..)));
        adder.join().unwrap();
    }
}
