//! Selection: decides which jobs of the pool are in a pass.
//!
//! A start point yields at most one key, ever. So a launch serves at most as many jobs as it has
//! start points, and the device would waste time on any further pattern. Let `n` be the candidates
//! tested per start point and `p` the chance that a candidate matches: a pattern has `p·n` expected
//! hits per start point.
//!
//! - **Rare** patterns (few expected hits, even together with all harder ones) are in every pass.
//!   Their hits are seldom, and each is kept.
//! - All others are **plentiful**. Their jobs are added oldest first, until every start point in
//!   flight is almost sure to serve one of them, or has as many hits as are worth verifying.
//!   Younger jobs wait. They lose nothing: until then each start point yields its key to an older
//!   job.
//!
//! A device with an early stop ([`Searcher::early_stop`]) ignores the plentiful patterns at a start
//! point as soon as it has hits of them. The more there are, the sooner that is.
//!
//! [`Searcher::early_stop`]: crate::search::Searcher::early_stop
//!
//! **Nobody starves.** Hits of rare patterns are preferred, hardest first; then those of the oldest
//! job. A waiting job therefore waits for older jobs and rare patterns only, and each of these uses
//! one start point and is gone. The oldest plentiful job is in every selection. It gets the first
//! start point that has a hit of it and none of a rare pattern.
//!
//! **No rare hit is lost.** A job with easy and hard patterns is in the pass with its rare ones
//! even while its plentiful ones wait. Whichever is found first ends the job.

use super::canary::CanarySeed;
use super::jobs::PatternIndex;
use super::pass::Pass;
use super::profile::{DeviceProfile, Goal, Lane};
use crate::job::{JobId, JobSpec};
use crate::pattern::Pattern;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A start point with this many expected hits counts as served: only one such start point in 150
/// has no hit.
const ENOUGH: f64 = 5.0;

/// A selection must suffice for this many times the start points in flight. So it stays usable for
/// a while, and the launches waiting for verification are not all for the same jobs.
const SPARE: usize = 2;

/// The jobs of a pass.
#[derive(Clone, PartialEq, Debug)]
pub struct Selection {
    device: DeviceProfile,
    /// Patterns of at least this many bits are rare.
    rare_from: u32,
    /// Jobs with rare patterns, oldest first.
    rare: Arc<[JobId]>,
    /// Jobs whose plentiful patterns are in the pass, oldest first.
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
        let rare = index.rare_jobs(device.lane, rare_from);
        let mut filling = Filling::new(SPARE * in_flight, device.goal(in_flight, !rare.is_empty()));
        let mut waiting = index.jobs(device.lane, |bits| bits < rare_from);
        let mut plentiful = Vec::new();
        while !filling.is_full()
            && let Some(job) = waiting.next()
        {
            filling.take(hits(&jobs[&job], device, rare_from));
            plentiful.push(job);
        }
        let is_all = waiting.next().is_none();
        Selection { device, rare_from, rare, plentiful, is_all }
    }

    /// Whether a pass of this selection may stay in use although `newest` would be selected now.
    /// Finished jobs may stay in it while the others suffice for the start points in flight.
    pub fn still_serves(&self, newest: &Selection, jobs: &BTreeMap<JobId, JobSpec>, in_flight: usize) -> bool {
        if self == newest {
            return true;
        }
        let mut goal = self.device.goal(in_flight, self.has_rare());
        goal.least /= 2.0;
        let mut filling = Filling::new(in_flight, goal);
        let open = self.plentiful.iter().filter_map(|job| jobs.get(job));
        open.for_each(|spec| filling.take(hits(spec, self.device, self.rare_from)));
        let same = (self.device, self.rare_from) == (newest.device, newest.rare_from) && self.rare == newest.rare;
        same && !self.is_all && filling.is_full()
    }

    /// Whether a pass of this selection can serve `other`: both have the same patterns, and the
    /// same patterns are rare.
    pub fn has_pass_of(&self, other: &Selection) -> bool {
        let kind = |selection: &Selection| (selection.device.lane, selection.device.compared, selection.rare_from);
        // Compares the pointers of the lists. Equal lists are not enough: the patterns of their
        // jobs may have changed in between.
        Arc::ptr_eq(&self.rare, &other.rare) && kind(self) == kind(other) && self.plentiful == other.plentiful
    }

    fn has_rare(&self) -> bool {
        !self.rare.is_empty()
    }

    /// Whether hits of plentiful patterns slow down the search for rare ones, so that some launches
    /// must omit them.
    pub fn is_rationed(&self) -> bool {
        self.has_rare() && !self.plentiful.is_empty() && !self.device.early_stop
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
        Pass::new(patterns(&self.rare, true), patterns(plentiful, false), None, canary)
    }
}

/// Makes the pass of a split job, which is searched alone at its asker's half point.
pub fn split_pass(id: JobId, spec: &JobSpec, lane: Lane, canary: impl Into<CanarySeed>) -> Pass {
    let patterns = spec.patterns.iter().filter(|pattern| lane.takes(pattern.bits()));
    Pass::new(patterns.map(|pattern| (id, pattern)), std::iter::empty(), spec.half, canary)
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
        (self.rest >= ENOUGH && self.all >= self.goal.least) || self.all >= self.goal.most
    }
}
