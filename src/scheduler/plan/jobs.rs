//! The open jobs.

use super::compared::Compared;
use super::lane::Lane;
use super::pattern_index::PatternIndex;
use super::split_line::{Seats, SplitLine};
use crate::job::{BestSearch, JobId, JobSpec};
use crate::pattern::Pattern;
use std::collections::{BTreeMap, BTreeSet};
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
