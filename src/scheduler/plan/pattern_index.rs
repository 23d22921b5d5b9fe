//! An index of the pool's jobs by the bits (difficulty) of their patterns.

use super::compared::Compared;
use super::lane::Lane;
use super::profile::DeviceProfile;
use crate::job::{JobId, JobSpec};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

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
