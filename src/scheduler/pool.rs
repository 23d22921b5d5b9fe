//! The jobs that share a pass.

use super::canary;
use super::turns::{self, Shares, Side, Turns};
use crate::ids::{Asker, JobId};
use crate::key::HalfPoint;
use crate::pattern::{Pattern, PatternId, PatternSet, Rate};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Patterns of fewer bits are left to the CPU: a GPU would drown in their hits.
const EASY_BITS: u32 = 20;

/// Which of the pool's patterns a device searches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// Everything: the CPU when it is the only kind of device.
    All,
    /// What is worth a GPU.
    Hard,
    /// What is not: a CPU thread beside the GPUs.
    Easy,
}

impl Lane {
    fn takes(self, pattern: &Pattern) -> bool {
        match self {
            Lane::All => true,
            Lane::Hard => pattern.bits() >= EASY_BITS,
            Lane::Easy => pattern.bits() < EASY_BITS,
        }
    }
}

/// What a job wants, and from whose point.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub patterns: Vec<Pattern>,
    /// The point of an asker who keeps half of the key, and the asker; `None` for a job of the pool.
    pub split: Option<(HalfPoint, Asker)>,
}

impl Wanted {
    /// A job of the pool.
    pub fn in_pool(patterns: Vec<Pattern>) -> Wanted {
        Wanted { patterns, split: None }
    }

    pub(super) fn asker_of_split(&self) -> Option<Asker> {
        self.split.map(|(_, asker)| asker)
    }

    fn is_for(&self, lane: Lane) -> bool {
        self.patterns.iter().any(|pattern| lane.takes(pattern))
    }
}

/// Who wants what a pattern finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    Job(JobId),
    /// Nobody: its hits are counted against what was to be expected, to tell whether a device really searches.
    Canary,
}

/// What every candidate of a launch is tested against, and for whom.
#[derive(Debug)]
pub struct Pass {
    pub patterns: Arc<PatternSet>,
    /// The asker's point to search at; `None` for bases of our own.
    pub half: Option<HalfPoint>,
    /// The owner of each pattern of the set.
    owners: Vec<Owner>,
    /// The chance that one candidate matches the canary.
    pub canary_chance: f64,
}

impl Pass {
    fn new<'a>(
        jobs: impl Iterator<Item = (JobId, &'a Wanted)>,
        half: Option<HalfPoint>,
        lane: Lane,
        canary: Pattern,
    ) -> Pass {
        let canary_chance = 1.0 / canary.difficulty().candidates();
        let (mut owners, mut patterns) = (vec![Owner::Canary], vec![canary]);
        for (job, wanted) in jobs {
            for pattern in wanted.patterns.iter().filter(|pattern| lane.takes(pattern)) {
                owners.push(Owner::Job(job));
                patterns.push(pattern.clone());
            }
        }
        Pass { patterns: Arc::new(PatternSet::new(patterns)), half, owners, canary_chance }
    }

    /// A pass for nobody but the canary: to measure a device.
    pub fn of_canary_alone(rate: Option<Rate>) -> Pass {
        Pass::new(std::iter::empty(), None, Lane::All, canary::choose(rate))
    }

    /// Whether some job waits for it: the launches of a warm-up are for the canary alone.
    pub(super) fn is_for_a_job(&self) -> bool {
        self.owners.len() > 1
    }

    pub fn owner(&self, pattern: PatternId) -> Owner {
        self.owners[pattern.0]
    }
}

/// The open jobs. Shared by whoever adds jobs and the devices that search them.
#[derive(Debug, Default)]
pub struct Pool {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    jobs: BTreeMap<JobId, Wanted>,
    /// Counts changes, so that a worker knows when its pass is out of date.
    generation: u64,
    closed: bool,
}

/// The passes a worker holds, remade when the pool has changed.
#[derive(Debug)]
pub struct Subscription {
    lane: Lane,
    generation: Option<u64>,
    turns: Turns,
}

impl Inner {
    /// Who has work for a device of this lane, and what part of it.
    fn claims(&self, lane: Lane, rate: Option<Rate>) -> Vec<(Side, Arc<Pass>, f64)> {
        let pass = |jobs: &mut dyn Iterator<Item = (JobId, &Wanted)>, half| {
            Arc::new(Pass::new(jobs, half, lane, canary::choose(rate)))
        };
        let here = || self.jobs.iter().map(|(&id, wanted)| (id, wanted)).filter(|(_, wanted)| wanted.is_for(lane));
        let mut pool = here().filter(|(_, wanted)| wanted.split.is_none()).peekable();
        let pool_has_work = pool.peek().is_some();
        let mut claims = Vec::new();
        let split: BTreeMap<JobId, Wanted> =
            here().filter(|(_, wanted)| wanted.split.is_some()).map(|(id, wanted)| (id, wanted.clone())).collect();
        let parts = turns::parts(&split, pool_has_work);
        if pool_has_work {
            claims.push((Side::Pool, pass(&mut pool, None), 1.0 - parts.values().sum::<f64>()));
        }
        for (&id, wanted) in &split {
            let half = wanted.split.map(|(half, _)| half);
            claims.push((Side::Split(id), pass(&mut std::iter::once((id, wanted)), half), parts[&id]));
        }
        claims
    }
}

impl Subscription {
    /// Puts right what a launch was charged, now that its candidates are known.
    pub(super) fn settle(&mut self, pass: &Arc<Pass>, charged: f64, candidates: u64) {
        self.turns.settle(pass, charged, candidates);
    }

    /// Another lane from now on.
    pub(super) fn set_lane(&mut self, lane: Lane) {
        if self.lane != lane {
            self.lane = lane;
            self.generation = None;
        }
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
    pub fn insert(&self, job: JobId, wanted: Wanted) {
        self.change(|inner| {
            inner.jobs.insert(job, wanted);
        });
    }

    pub fn remove(&self, job: JobId) {
        self.change(|inner| {
            inner.jobs.remove(&job);
        });
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

    pub(super) fn subscribe(&self, lane: Lane) -> Subscription {
        Subscription { lane, generation: None, turns: Turns::default() }
    }

    /// The pass to search now. `rate` is the device's, for a canary that is neither rare nor a nuisance.
    pub(super) fn next(&self, held: &mut Subscription, rate: Option<Rate>) -> Next {
        let inner = self.lock();
        if inner.closed {
            return Next::End;
        }
        if held.generation != Some(inner.generation) {
            held.generation = Some(inner.generation);
            held.turns.renew(inner.claims(held.lane, rate));
        }
        held.turns.next().map_or(Next::Wait, |(pass, charged)| Next::Search(pass, charged))
    }

    /// The jobs and their parts of a device as this asker sees them.
    pub fn shares(&self, asker: Asker) -> Shares {
        turns::shares(&self.lock().jobs, asker)
    }

    /// Sleeps until the pool changes, at most `limit`.
    pub(super) fn wait(&self, held: &Subscription, limit: Duration) {
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
impl Wanted {
    /// A job of the pool, or of this asker on some point of theirs.
    pub(super) fn for_tests(texts: &[&str], asker: Option<Asker>) -> Wanted {
        let patterns = texts.iter().map(|text| Pattern::parse(text).unwrap()).collect();
        let point = |Asker(bytes): Asker| crate::key::Npub(bytes).to_string().parse();
        let split = asker.map(|asker| (point(asker).unwrap_or_else(|_| generator()), asker));
        Wanted { patterns, split }
    }
}

#[cfg(test)]
fn generator() -> HalfPoint {
    "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798".parse().expect("G is a point")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> Wanted {
        Wanted::for_tests(texts, None)
    }

    fn owners(pool: &Pool, lane: Lane) -> Vec<Owner> {
        match pool.next(&mut pool.subscribe(lane), None) {
            Next::Search(pass, _) => pass.owners.clone(),
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
        assert_eq!(owners(&pool, Lane::Easy), [Owner::Canary, Owner::Job(easy), Owner::Job(hard)]);
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
        pool.insert(JobId(2), Wanted::for_tests(&["ppppp"], Some(asker)));
        pool.insert(JobId(3), Wanted::for_tests(&["qq"], Some(asker)));
        let mut held = pool.subscribe(Lane::Hard);
        let mut turns = Vec::new();
        for _ in 0..4 {
            let Next::Search(pass, _) = pool.next(&mut held, None) else { panic!("there is work") };
            turns.push((pass.half.is_some(), pass.owners[1..].to_vec()));
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
