//! The open jobs.

use super::profile::{Compared, DeviceProfile, Lane};
use super::split_line::{Seats, SplitLine};
use crate::job::{BestSearch, JobId, JobSpec};
use crate::pattern::Pattern;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// All open jobs: those of the pool indexed by pattern, split jobs in their line. A change costs
/// `O(log jobs)`.
#[derive(Debug, Default)]
pub struct OpenJobs {
    jobs: BTreeMap<JobId, JobSpec>,
    pool: PatternIndex,
    /// The jobs of the pool with patterns that need whole keys compared.
    pool_whole: PatternIndex,
    split: SplitLine,
    /// Jobs without a target.
    best: BTreeSet<JobId>,
    /// Intervals that the devices' filters need for all open jobs.
    intervals: usize,
    /// Tests of whole texts, summed over all patterns.
    text_tests: usize,
    /// The share of keys that pass a filter and need a full check, summed over all patterns, in
    /// units of [`HANDED_ON_UNIT`]. A sum of floating-point numbers would drift.
    handed_on: u64,
    /// Number of changes so far. A device compares this number to learn whether its passes may be
    /// out of date.
    changes: u64,
    /// Number of times that the patterns of a job of the pool were replaced.
    raises: u64,
}

impl OpenJobs {
    /// Adds a job. Replaces a job of the same number.
    pub fn insert(&mut self, job: JobId, spec: JobSpec) {
        self.remove(job);
        if spec.best.is_some() {
            self.best.insert(job);
        }
        if spec.half.is_some() {
            self.split.insert(job, &spec);
        } else {
            self.pool.insert(job, &spec, Compared::TopWords);
            self.pool_whole.insert(job, &spec, Compared::WholeKeys);
        }
        self.intervals += intervals_of(&spec);
        self.text_tests += text_tests_of(&spec);
        self.handed_on += handed_on(&spec);
        self.jobs.insert(job, spec);
    }

    /// Removes a job. An unknown number is ignored.
    pub fn remove(&mut self, job: JobId) {
        self.changes += 1;
        self.best.remove(&job);
        if let Some(spec) = self.jobs.remove(&job) {
            self.intervals -= intervals_of(&spec);
            self.text_tests -= text_tests_of(&spec);
            self.handed_on -= handed_on(&spec);
            if spec.half.is_some() {
                self.split.remove(job, &spec);
            } else {
                self.pool.remove(job, &spec, Compared::TopWords);
                self.pool_whole.remove(job, &spec, Compared::WholeKeys);
            }
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
        if patterns.is_empty() || patterns == spec.patterns {
            return;
        }
        spec.patterns = patterns;
        self.intervals = self.intervals - intervals_of(&before) + intervals_of(spec);
        self.text_tests = self.text_tests - text_tests_of(&before) + text_tests_of(spec);
        self.handed_on = self.handed_on - handed_on(&before) + handed_on(spec);
        if spec.half.is_some() {
            self.split.renew(job, &before, spec);
        } else {
            for (index, compared) in [(&mut self.pool, Compared::TopWords), (&mut self.pool_whole, Compared::WholeKeys)]
            {
                index.remove(job, &before, compared);
                index.insert(job, spec, compared);
            }
            self.raises += 1;
        }
        self.changes += 1;
    }

    /// Number of times so far that the patterns of a job of the pool were replaced.
    pub fn raises(&self) -> u64 {
        self.raises
    }

    /// Adds time that a job was searched for. Returns whether the job has no target and its search
    /// is over ([`BestSearch::is_over`]).
    pub fn count(&mut self, job: JobId, time: Duration) -> bool {
        let Some(search) = self.jobs.get_mut(&job).and_then(|spec| spec.best.as_mut()) else { return false };
        search.searched = search.searched.saturating_add(time);
        search.is_over()
    }

    /// Whether some open job has no target.
    pub fn has_best(&self) -> bool {
        !self.best.is_empty()
    }

    /// The open jobs without a target.
    pub fn best(&self) -> impl Iterator<Item = (JobId, &BestSearch)> {
        self.best.iter().filter_map(|job| Some((*job, self.jobs.get(job)?.best.as_deref()?)))
    }

    /// Number of open jobs.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Intervals that the devices' filters need for all open jobs.
    pub fn intervals(&self) -> usize {
        self.intervals
    }

    /// Number of tests of whole texts, summed over the patterns of all open jobs.
    pub fn text_tests(&self) -> usize {
        self.text_tests
    }

    /// The share of keys that pass a filter and need a full check, summed over the patterns of all
    /// open jobs ([`crate::pattern::Pattern::handed_on`]).
    pub fn handed_on(&self) -> f64 {
        self.handed_on as f64 * HANDED_ON_UNIT
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
    pub fn pool_index(&self, compared: Compared) -> &PatternIndex {
        match compared {
            Compared::TopWords => &self.pool,
            Compared::WholeKeys => &self.pool_whole,
        }
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

/// The unit of [`OpenJobs::handed_on`], as a share of keys.
const HANDED_ON_UNIT: f64 = 1.0 / (1u64 << 50) as f64;

fn handed_on(spec: &JobSpec) -> u64 {
    spec.patterns.iter().map(|pattern| (pattern.handed_on() / HANDED_ON_UNIT) as u64).sum()
}

fn text_tests_of(spec: &JobSpec) -> usize {
    spec.patterns.iter().map(Pattern::text_test_count).sum()
}

fn intervals_of(spec: &JobSpec) -> usize {
    spec.patterns.iter().map(Pattern::interval_count).sum()
}

/// The most hits per start point that all rare patterns may have together. If they had more, start
/// points would go to the oldest of their jobs anyway, so the easiest of them count as plentiful.
const RARE_TOGETHER: f64 = 1.0;

/// The jobs of the pool by the bits of their patterns of one kind. A change costs `O(log jobs)`.
#[derive(Debug, Default)]
pub struct PatternIndex {
    by_bits: BTreeMap<u32, BTreeSet<JobId>>,
    /// The lists that [`PatternIndex::rare_jobs`] has made since the last change.
    rare: RefCell<RareJobs>,
}

/// Lists of jobs, by lane and by the least bits of their patterns.
type RareJobs = BTreeMap<(Lane, u32), Arc<[JobId]>>;

impl PatternIndex {
    /// Adds a job under the bits of each of its patterns for launches of a kind.
    pub fn insert(&mut self, job: JobId, spec: &JobSpec, compared: Compared) {
        self.forget();
        for pattern in spec.patterns.iter().filter(|pattern| compared.takes(pattern)) {
            self.by_bits.entry(pattern.bits()).or_default().insert(job);
        }
    }

    /// Removes a job. `spec` and `compared` must be those it was inserted with.
    pub fn remove(&mut self, job: JobId, spec: &JobSpec, compared: Compared) {
        self.forget();
        for pattern in spec.patterns.iter().filter(|pattern| compared.takes(pattern)) {
            if let Some(jobs) = self.by_bits.get_mut(&pattern.bits()) {
                jobs.remove(&job);
                if jobs.is_empty() {
                    self.by_bits.remove(&pattern.bits());
                }
            }
        }
    }

    /// Whether no job has a pattern for launches of this kind.
    pub fn is_empty(&self) -> bool {
        self.by_bits.is_empty()
    }

    /// Whether some job has a pattern for this lane.
    pub fn has_work_for(&self, lane: Lane) -> bool {
        self.by_bits.keys().any(|&bits| lane.takes(bits))
    }

    /// For each number of bits of this lane, the number of jobs that have patterns of so many bits.
    pub fn counts(&self, lane: Lane) -> impl Iterator<Item = (u32, usize)> {
        self.by_bits.iter().filter(move |&(&bits, _)| lane.takes(bits)).map(|(&bits, jobs)| (bits, jobs.len()))
    }

    /// The fewest bits of a pattern that is rare on this device.
    pub fn rare_from(&self, device: DeviceProfile) -> u32 {
        let from = device.rare_from();
        let mut together = 0.0;
        for (&bits, jobs) in self.by_bits.range(from..).rev().filter(|&(&bits, _)| device.lane.takes(bits)) {
            together += jobs.len() as f64 * device.hits(bits);
            if together > RARE_TOGETHER {
                return bits + 1;
            }
        }
        from
    }

    /// The jobs with patterns of at least `rare_from` bits, oldest first. All callers get the same
    /// list until the index changes.
    pub fn rare_jobs(&self, lane: Lane, rare_from: u32) -> Arc<[JobId]> {
        let mut rare = self.rare.borrow_mut();
        let make = || self.jobs(lane, |bits| bits >= rare_from).collect();
        Arc::clone(rare.entry((lane, rare_from)).or_insert_with(make))
    }

    fn forget(&mut self) {
        self.rare.get_mut().clear();
    }

    /// The jobs with patterns of these bits, oldest first.
    pub fn jobs(&self, lane: Lane, bits: impl Fn(u32) -> bool) -> impl Iterator<Item = JobId> {
        let classes = self.by_bits.iter().filter(move |&(&class, _)| lane.takes(class) && bits(class));
        let mut classes: Vec<_> = classes.map(|(_, jobs)| jobs.iter().copied().peekable()).collect();
        std::iter::from_fn(move || {
            let oldest = classes.iter_mut().filter_map(|jobs| jobs.peek().copied()).min()?;
            for jobs in &mut classes {
                jobs.next_if_eq(&oldest);
            }
            Some(oldest)
        })
    }
}
