//! The open jobs.
//!
//! Selection: decides which jobs of the pool are in a pass.
//!
//! A start point yields at most one key, ever. So a launch serves at most as many jobs as it has
//! start points, and the device would waste time on any further pattern. Let `n` be the candidates
//! tested per start point and `p` the chance that a candidate matches: a pattern has `p·n` expected
//! hits per start point.
//!
//! - **Rare** patterns (few expected hits, even together with all harder ones) are in every pass.
//!   Their hits are seldom, and each is kept.
//! - All others are **plentiful**. Their jobs are added in turn, until every start point in flight
//!   is almost sure to serve one of them, or has as many hits as are worth verifying. The others
//!   wait. They lose nothing: until then each start point yields its key to a job before them.
//!
//! A device with an early stop ([`Searcher::early_stop`]) ignores the plentiful patterns at a start
//! point as soon as it has hits of them. The more there are, the sooner that is.
//!
//! [`Searcher::early_stop`]: crate::search::Searcher::early_stop
//!
//! **Turns.** Friends come first, then known askers, then new ones who did work, then other new
//! ones, and the oldest first among equals. Jobs with minutes of their own (`best`, `surprise`) come
//! last, whoever asked: those without a key, then those that improve on one. So no asker waits for
//! those that come after them, and nobody for `best`.
//!
//! **Nobody starves.** Hits of rare patterns are preferred, hardest first; then those of the job
//! whose turn it is. At one start point in sixteen the oldest job comes first instead. It is in
//! every selection.
//!
//! **No rare hit is lost.** A job with easy and hard patterns is in the pass with its rare ones
//! even while its plentiful ones wait. Whichever is found first ends the job.

use super::pass::{CanarySeed, Pass};
use super::profile::{DeviceProfile, Goal, KeyPart, Lane};
use super::split_line::{Seats, SplitLine};
use crate::job::{BestSearch, JobId, JobSpec, Priority, TimeClass};
use crate::pattern::Pattern;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// All open jobs: those of the pool indexed by pattern, split jobs in their line. A change costs
/// `O(log jobs)`.
#[derive(Debug, Default)]
pub struct OpenJobs {
    jobs: BTreeMap<JobId, JobSpec>,
    /// The jobs of the pool with patterns for each kind of launches ([`KeyPart`]).
    pool: [PatternIndex; 2],
    split: SplitLine,
    /// The room that all open jobs take.
    room: RoomTaken,
    /// Number of changes so far. A device compares this number to learn whether its passes may be
    /// out of date.
    changes: u64,
    /// Number of times so far that the patterns of a job of the pool were replaced.
    pub raises: u64,
}

impl OpenJobs {
    /// Adds a job. Replaces a job of the same number.
    pub fn insert(&mut self, job: JobId, spec: JobSpec) {
        self.raises += u64::from(self.jobs.contains_key(&job));
        self.remove(job);
        self.index(job, None, Some(&spec));
        self.room.add(&spec);
        self.jobs.insert(job, spec);
    }

    /// Removes a job. An unknown number is ignored.
    pub fn remove(&mut self, job: JobId) {
        self.changes += 1;
        if let Some(spec) = self.jobs.remove(&job) {
            self.room.remove(&spec);
            self.index(job, Some(&spec), None);
        }
    }

    /// Raises a job without a target. `kept` is the rarest pattern that its best key meets. From
    /// now on only rarer ones are searched for. The job keeps its place in line.
    pub fn raise(&mut self, job: JobId, kept: &Pattern) {
        let Some(spec) = self.jobs.get_mut(&job) else { return };
        let before = spec.clone();
        let Some(search) = &mut spec.best else { return };
        search.kept = Some(kept.clone());
        let patterns = search.best.patterns(Some(kept), None);
        if !patterns.is_empty() {
            spec.patterns = patterns;
        }
        let spec = spec.clone();
        self.index(job, Some(&before), Some(&spec));
        self.raises += 1;
        self.changes += 1;
    }

    /// Replaces the entries of a job: none before for a new job, none now for one that is gone.
    fn index(&mut self, job: JobId, before: Option<&JobSpec>, now: Option<&JobSpec>) {
        if now.or(before).is_some_and(|spec| spec.half.is_some()) {
            return self.split.change(job, before, now);
        }
        for compared in KeyPart::ALL {
            let index = &mut self.pool[compared as usize];
            before.into_iter().for_each(|spec| index.remove(job, spec, compared));
            now.into_iter().for_each(|spec| index.insert(job, spec, compared));
        }
    }

    /// Adds time that a job was searched for. Returns whether the job has no target and its search
    /// is over ([`BestSearch::is_over`]).
    pub fn count(&mut self, job: JobId, time: Duration) -> bool {
        let Some(search) = self.jobs.get_mut(&job).and_then(|spec| spec.best.as_mut()) else { return false };
        search.searched = search.searched.saturating_add(time);
        search.is_over()
    }

    /// The open jobs without a target.
    pub fn best(&self) -> impl Iterator<Item = (JobId, &BestSearch)> {
        self.jobs.iter().filter_map(|(job, spec)| Some((*job, spec.best.as_deref()?)))
    }

    /// Number of open jobs.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// The room that all open jobs take.
    pub fn room(&self) -> RoomTaken {
        self.room
    }

    /// Number of changes so far.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// All open jobs.
    pub fn all(&self) -> &BTreeMap<JobId, JobSpec> {
        &self.jobs
    }

    /// The jobs of the pool with patterns for launches of this kind.
    pub fn pool_index(&self, compared: KeyPart) -> &PatternIndex {
        &self.pool[compared as usize]
    }

    /// The split jobs.
    pub fn split_line(&self) -> &SplitLine {
        &self.split
    }

    /// Takes the next turn in the rotation of waiting askers. Returns a job of the asker whose turn
    /// it is.
    pub fn take_turn(&mut self, lane: Lane, seats: &Seats) -> Option<(JobId, &JobSpec)> {
        let job = self.split.take_turn(lane, seats)?;
        self.jobs.get(&job).map(|spec| (job, spec))
    }
}

/// The room that jobs take: the work that their patterns cause on each device, and their number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PatternLoad {
    /// Intervals that the devices' filters need.
    pub intervals: usize,
    /// Tests of whole texts.
    pub text_tests: usize,
    /// The share of keys that pass a filter and need a full check, in units of [`FULL_CHECK_UNIT`].
    /// A sum of floating-point numbers would drift.
    full_check_share: usize,
    /// Jobs of the pool without a target. They all search the same few patterns.
    pub best: usize,
    /// Split jobs. They have launches of their own, so their patterns burden no others.
    pub split: usize,
}

/// The unit of [`PatternLoad::full_check_share`], as a share of keys.
const FULL_CHECK_UNIT: f64 = 1.0 / (1u64 << 50) as f64;

impl PatternLoad {
    /// The load of a job.
    pub fn of(spec: &JobSpec) -> PatternLoad {
        PatternLoad::new(&spec.patterns, spec.best.is_some(), spec.half.is_some())
    }

    /// The load of a job with these patterns.
    pub fn new(patterns: &[Pattern], is_best: bool, is_split: bool) -> PatternLoad {
        let none = PatternLoad::default();
        match (is_split, is_best) {
            (true, _) => PatternLoad { split: 1, ..none },
            (false, true) => PatternLoad { best: 1, ..none },
            (false, false) => PatternLoad {
                intervals: patterns.iter().map(Pattern::interval_count).sum(),
                text_tests: patterns.iter().map(Pattern::text_test_count).sum(),
                full_check_share: patterns
                    .iter()
                    .map(|pattern| (pattern.full_check_share() / FULL_CHECK_UNIT) as usize)
                    .sum(),
                ..none
            },
        }
    }

    fn change(&mut self, by: fn(usize, usize) -> usize, load: PatternLoad) {
        self.intervals = by(self.intervals, load.intervals);
        self.text_tests = by(self.text_tests, load.text_tests);
        self.full_check_share = by(self.full_check_share, load.full_check_share);
        self.best = by(self.best, load.best);
        self.split = by(self.split, load.split);
    }

    /// The share of keys that pass a filter and need a full check
    /// ([`crate::pattern::Pattern::full_check_share`]).
    pub fn full_check_share(self) -> f64 {
        self.full_check_share as f64 * FULL_CHECK_UNIT
    }
}

/// The room that open jobs take, by class of device time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RoomTaken {
    /// All jobs.
    all: [PatternLoad; TimeClass::EVERY.len()],
    /// Those of friends and known askers.
    known: [PatternLoad; TimeClass::EVERY.len()],
}

impl RoomTaken {
    /// The room that all jobs of a class take.
    pub fn by_all(&self, class: TimeClass) -> PatternLoad {
        self.all[class as usize]
    }

    /// The room of a class that decides what a job of this priority costs. Known askers do not pay
    /// for what new ones take.
    pub fn for_price(&self, class: TimeClass, priority: Priority) -> PatternLoad {
        if is_known(priority) { self.known[class as usize] } else { self.by_all(class) }
    }

    /// Counts a job.
    pub fn add(&mut self, spec: &JobSpec) {
        self.change(usize::saturating_add, spec);
    }

    fn remove(&mut self, spec: &JobSpec) {
        self.change(usize::saturating_sub, spec);
    }

    fn change(&mut self, by: fn(usize, usize) -> usize, spec: &JobSpec) {
        let (class, load) = (spec.class as usize, PatternLoad::of(spec));
        self.all[class].change(by, load);
        if is_known(spec.priority) {
            self.known[class].change(by, load);
        }
    }
}

fn is_known(priority: Priority) -> bool {
    priority <= Priority::Known
}

/// The most hits per start point that all rare patterns may have together. If they had more, start
/// points would go to the oldest of their jobs anyway, so the easiest of them count as plentiful.
const RARE_TOGETHER: f64 = 1.0;

/// The jobs of the pool by turn and by the bits of their patterns of one kind. A change costs
/// `O(log jobs)`.
#[derive(Debug, Default)]
pub struct PatternIndex {
    turns: [JobsByBits; TURNS],
}

type JobsByBits = BTreeMap<u32, BTreeSet<JobId>>;

/// Turns of jobs with a target, one for each priority.
const TARGET_TURNS: usize = Priority::EVERY.len();
/// All turns: after those with a target, the jobs without a key, and those that improve on one.
const TURNS: usize = TARGET_TURNS + 2;

/// The turn of a job, counted from 0.
fn turn(spec: &JobSpec) -> usize {
    let improves = |search: &BestSearch| usize::from(search.kept.is_some());
    spec.best.as_ref().map_or(spec.priority as usize, |search| TARGET_TURNS + improves(search))
}

impl PatternIndex {
    /// Adds a job under the bits of each of its patterns for launches of a kind.
    pub fn insert(&mut self, job: JobId, spec: &JobSpec, compared: KeyPart) {
        for pattern in spec.patterns.iter().filter(|pattern| compared.takes(pattern)) {
            self.turns[turn(spec)].entry(pattern.bits()).or_default().insert(job);
        }
    }

    /// Removes a job. `spec` and `compared` must be those it was inserted with.
    pub fn remove(&mut self, job: JobId, spec: &JobSpec, compared: KeyPart) {
        let by_bits = &mut self.turns[turn(spec)];
        for pattern in spec.patterns.iter().filter(|pattern| compared.takes(pattern)) {
            if let Some(jobs) = by_bits.get_mut(&pattern.bits()) {
                jobs.remove(&job);
                if jobs.is_empty() {
                    by_bits.remove(&pattern.bits());
                }
            }
        }
    }

    /// Whether no job has a pattern for launches of this kind.
    pub fn is_empty(&self) -> bool {
        self.turns.iter().all(BTreeMap::is_empty)
    }

    /// Whether some job has a pattern for this lane.
    pub fn has_work_for(&self, lane: Lane) -> bool {
        self.classes(lane, TURNS).next().is_some()
    }

    /// The jobs of the first `turns` turns with patterns for this lane, by the bits of these.
    fn classes(&self, lane: Lane, turns: usize) -> impl Iterator<Item = (u32, &BTreeSet<JobId>)> {
        let classes = self.turns[..turns].iter().flatten();
        classes.map(|(&bits, jobs)| (bits, jobs)).filter(move |&(bits, _)| lane.takes(bits))
    }

    /// The numbers of jobs with a target, of this priority or before it, with patterns of so many
    /// bits.
    pub fn counts(&self, lane: Lane, priority: Priority) -> impl Iterator<Item = (u32, usize)> {
        self.classes(lane, priority as usize + 1).map(|(bits, jobs)| (bits, jobs.len()))
    }

    /// The fewest bits of a pattern that is rare on this device. Jobs without a target do not make
    /// others plentiful.
    pub fn rare_from(&self, device: DeviceProfile) -> u32 {
        let from = device.rare_from();
        let mut hits: BTreeMap<u32, f64> = BTreeMap::new();
        for (bits, jobs) in self.classes(device.lane, TARGET_TURNS).filter(|&(bits, _)| bits >= from) {
            *hits.entry(bits).or_default() += jobs.len() as f64 * device.hits(bits);
        }
        let mut together = 0.0;
        for (bits, hits) in hits.into_iter().rev() {
            together += hits;
            if together > RARE_TOGETHER {
                return bits + 1;
            }
        }
        from
    }

    /// Whether a job with a target has a pattern of at least so many bits.
    pub fn has_rare(&self, lane: Lane, rare_from: u32) -> bool {
        self.classes(lane, TARGET_TURNS).any(|(bits, _)| bits >= rare_from)
    }

    /// The jobs with patterns of these bits, in turn, and the oldest first within a turn.
    pub fn jobs(&self, lane: Lane, bits: impl Fn(u32) -> bool + Copy) -> impl Iterator<Item = JobId> {
        self.turns.iter().flat_map(move |by_bits| {
            let classes = by_bits.iter().filter(|&(&class, _)| lane.takes(class) && bits(class));
            let mut classes: Vec<_> = classes.map(|(_, jobs)| jobs.iter().copied().peekable()).collect();
            std::iter::from_fn(move || {
                let oldest = classes.iter_mut().filter_map(|jobs| jobs.peek().copied()).min()?;
                for jobs in &mut classes {
                    jobs.next_if_eq(&oldest);
                }
                Some(oldest)
            })
        })
    }

    /// The oldest job with patterns of these bits, whatever its turn.
    fn oldest(&self, lane: Lane, bits: impl Fn(u32) -> bool) -> Option<JobId> {
        let classes = self.classes(lane, TURNS).filter(|&(class, _)| bits(class));
        classes.filter_map(|(_, jobs)| jobs.first().copied()).min()
    }
}

/// A start point with this many expected hits counts as served: only one such start point in 150
/// has no hit.
const SERVED_HITS: f64 = 5.0;

/// A selection must suffice for this many times the start points in flight. So it stays usable for
/// a while, and the launches waiting for verification are not all for the same jobs.
const SPARE_FACTOR: usize = 2;

/// The jobs of a pass.
#[derive(Clone, PartialEq, Debug)]
pub struct Selection {
    device: DeviceProfile,
    /// Patterns of at least this many bits are rare.
    rare_from: u32,
    /// Whether a job with a target has a rare pattern.
    has_rare: bool,
    /// Jobs with rare patterns, in turn.
    rare: Vec<JobId>,
    /// Jobs whose plentiful patterns are in the pass, in turn.
    plentiful: Vec<JobId>,
    /// Whether every job is in the selection.
    is_all: bool,
}

impl Selection {
    /// Selects jobs for a device. `in_flight` is the number of start points in flight on all
    /// devices.
    pub fn new(
        index: &PatternIndex,
        jobs: &BTreeMap<JobId, JobSpec>,
        device: DeviceProfile,
        in_flight: usize,
    ) -> Selection {
        let rare_from = index.rare_from(device);
        let rare = index.jobs(device.lane, |bits| bits >= rare_from).collect();
        let has_rare = index.has_rare(device.lane, rare_from);
        let is_plentiful = |bits| bits < rare_from;
        let mut filling = Filling::new(SPARE_FACTOR * in_flight, device.goal(in_flight, has_rare));
        let mut waiting = index.jobs(device.lane, is_plentiful);
        let mut plentiful = Vec::new();
        while !filling.is_full()
            && let Some(job) = waiting.next()
        {
            filling.take(hits(&jobs[&job], device, rare_from));
            plentiful.push(job);
        }
        let is_all = waiting.next().is_none();
        let oldest = index.oldest(device.lane, is_plentiful).filter(|job| !plentiful.contains(job));
        plentiful.extend(oldest);
        Selection { device, rare_from, has_rare, rare, plentiful, is_all }
    }

    /// Whether a pass of this selection may stay in use although `newest` would be selected now.
    /// Finished jobs may stay in it while the others suffice for the start points in flight.
    pub fn still_serves(&self, newest: &Selection, jobs: &BTreeMap<JobId, JobSpec>, in_flight: usize) -> bool {
        if self == newest {
            return true;
        }
        let mut goal = self.device.goal(in_flight, self.has_rare);
        goal.least /= 2.0;
        let mut filling = Filling::new(in_flight, goal);
        let open = self.plentiful.iter().filter_map(|job| jobs.get(job));
        open.for_each(|spec| filling.take(hits(spec, self.device, self.rare_from)));
        let same = self.rare_from == newest.rare_from && self.rare == newest.rare;
        same && !self.is_all && filling.is_full()
    }

    /// Whether hits of plentiful patterns slow down the search for rare ones, so that some launches
    /// must omit them.
    pub fn is_rationed(&self) -> bool {
        self.has_rare && !self.plentiful.is_empty() && !self.device.early_stop
    }

    /// Makes the pass of this selection, without plentiful patterns if `rare_alone`.
    pub fn pass(&self, jobs: &BTreeMap<JobId, JobSpec>, canary: impl Into<CanarySeed>, rare_alone: bool) -> Pass {
        let patterns = |selected: &[JobId], is_rare: bool| {
            let mut patterns = Vec::new();
            for &job in selected {
                let own = jobs[&job].patterns.iter();
                let own = own.filter(|pattern| self.device.takes(pattern));
                let own = own.filter(|pattern| (pattern.bits() >= self.rare_from) == is_rare);
                patterns.extend(own.map(|pattern| (job, pattern)));
            }
            patterns.into_iter()
        };
        let plentiful: &[JobId] = if rare_alone { &[] } else { &self.plentiful };
        let timed = self.rare.iter().chain(plentiful).filter_map(|job| has_key(*job, &jobs[job])).collect();
        Pass::new(patterns(&self.rare, true), patterns(plentiful, false), None, canary).with_timed(timed)
    }
}

/// Makes the pass of a split job, which is searched alone at its asker's half point.
pub fn split_pass(id: JobId, spec: &JobSpec, lane: Lane, canary: impl Into<CanarySeed>) -> Pass {
    let patterns = spec.patterns.iter().filter(|pattern| lane.takes(pattern.bits()));
    let pass = Pass::new(patterns.map(|pattern| (id, pattern)), std::iter::empty(), spec.half, canary);
    pass.with_timed(has_key(id, spec).into_iter().collect())
}

/// Whether a job without a target has a key already; `None` for a job with a target.
fn has_key(id: JobId, spec: &JobSpec) -> Option<(JobId, bool)> {
    Some((id, spec.best.as_ref()?.kept.is_some()))
}

/// Expected hits per start point of a job's plentiful patterns.
fn hits(spec: &JobSpec, device: DeviceProfile, rare_from: u32) -> f64 {
    let bits = spec.patterns.iter().filter(|pattern| device.takes(pattern)).map(Pattern::bits);
    bits.filter(|&bits| bits < rare_from).map(|bits| device.hits(bits)).sum()
}

/// Expected hits per start point of the jobs selected so far, given that each start point removes
/// one job.
struct Filling {
    starts: usize,
    goal: Goal,
    /// The hits of the jobs with the most hits, at most one job per start point, ascending.
    largest: Vec<f64>,
    /// The hits of all other jobs together. Even the last start point has this many expected hits.
    rest: f64,
    all: f64,
}

impl Filling {
    fn new(starts: usize, goal: Goal) -> Filling {
        Filling { starts, goal, largest: Vec::new(), rest: 0.0, all: 0.0 }
    }

    /// Adds a job with this many expected hits.
    fn take(&mut self, hits: f64) {
        self.all += hits;
        self.largest.insert(self.largest.partition_point(|&other| other < hits), hits);
        if self.largest.len() > self.starts {
            self.rest += self.largest.remove(0);
        }
    }

    /// Whether every start point is served, or has as many hits as are worth verifying.
    fn is_full(&self) -> bool {
        (self.rest >= SERVED_HITS && self.all >= self.goal.least) || self.all >= self.goal.most
    }
}
