//! The open jobs.

use super::lane::Lane;
use super::pattern_index::PatternIndex;
use super::split_line::{Seats, SplitLine};
use crate::job::{JobId, JobSpec};
use crate::pattern::Pattern;
use std::collections::BTreeMap;

/// All open jobs: those of the pool indexed by pattern, split jobs in their line. A change costs
/// `O(log jobs)`.
#[derive(Debug, Default)]
pub struct OpenJobs {
    jobs: BTreeMap<JobId, JobSpec>,
    pool: PatternIndex,
    split: SplitLine,
    /// Intervals of all patterns.
    intervals: usize,
    /// Number of changes so far. A device compares it to learn whether its passes may be out of
    /// date.
    changes: u64,
}

impl OpenJobs {
    /// Adds a job. Replaces a job of the same number.
    pub fn insert(&mut self, job: JobId, spec: JobSpec) {
        self.remove(job);
        if spec.half.is_some() {
            self.split.insert(job, &spec);
        } else {
            self.pool.insert(job, &spec);
        }
        self.intervals += intervals_of(&spec);
        self.jobs.insert(job, spec);
    }

    /// Removes a job. An unknown number is ignored.
    pub fn remove(&mut self, job: JobId) {
        self.changes += 1;
        if let Some(spec) = self.jobs.remove(&job) {
            self.intervals -= intervals_of(&spec);
            if spec.half.is_some() {
                self.split.remove(job, &spec);
            } else {
                self.pool.remove(job, &spec);
            }
        }
    }

    /// Whether a job is open.
    pub fn contains(&self, job: JobId) -> bool {
        self.jobs.contains_key(&job)
    }

    /// Number of open jobs.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Intervals that the devices' filters need for all open jobs.
    pub fn intervals(&self) -> usize {
        self.intervals
    }

    /// Number of changes so far.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// All open jobs.
    pub fn all(&self) -> &BTreeMap<JobId, JobSpec> {
        &self.jobs
    }

    /// The jobs of the pool.
    pub fn pool_index(&self) -> &PatternIndex {
        &self.pool
    }

    /// The split jobs.
    pub fn split_line(&self) -> &SplitLine {
        &self.split
    }

    /// A job of the waiting asker who is next in the rotation. Counts as that asker's turn.
    pub fn take_turn(&mut self, lane: Lane, seats: &Seats) -> Option<(JobId, &JobSpec)> {
        let job = self.split.take_turn(lane, seats)?;
        self.jobs.get(&job).map(|spec| (job, spec))
    }
}

fn intervals_of(spec: &JobSpec) -> usize {
    spec.patterns.iter().map(Pattern::interval_count).sum()
}
