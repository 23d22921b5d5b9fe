//! The open jobs.

use super::lane::Lane;
use super::pattern_index::PatternIndex;
use super::split_line::{Seats, SplitLine};
use crate::job::{JobId, JobSpec};
use std::collections::BTreeMap;

/// The open jobs, those of the pool by their patterns and split jobs in their line. A change costs
/// `O(log jobs)`.
#[derive(Debug, Default)]
pub struct OpenJobs {
    jobs: BTreeMap<JobId, JobSpec>,
    pool: PatternIndex,
    split: SplitLine,
    /// Counts changes, so that a device knows when its passes may be out of date.
    changes: u64,
}

impl OpenJobs {
    /// Adds a job. One of the same number is replaced.
    pub fn insert(&mut self, job: JobId, spec: JobSpec) {
        self.remove(job);
        if spec.half.is_some() {
            self.split.insert(job, &spec);
        } else {
            self.pool.insert(job, &spec);
        }
        self.jobs.insert(job, spec);
    }

    /// Removes a job. Unknown ones are ignored.
    pub fn remove(&mut self, job: JobId) {
        self.changes += 1;
        if let Some(spec) = self.jobs.remove(&job) {
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

    /// Open jobs.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Changes so far.
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

    /// A job of the waiting asker whose turn it is, with its number.
    pub fn take_turn(&mut self, lane: Lane, seats: &Seats) -> Option<(JobId, &JobSpec)> {
        let job = self.split.take_turn(lane, seats)?;
        self.jobs.get(&job).map(|spec| (job, spec))
    }
}
