//! Selection: which jobs of the pool are in a pass.
//!
//! A start point yields one key, ever. A launch therefore serves at most as many jobs as it has
//! start points, and every further pattern costs the device time for nothing. Let `n` be the
//! candidates a start point is searched over and `p` the chance that one of them matches: a pattern
//! has `p·n` expected hits a start point.
//!
//! - **Rare** patterns (few expected hits, also together with all harder ones) are in every pass.
//!   Their hits come seldom, and each is kept.
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

use super::lane::Lane;
use super::pass::Pass;
use super::pattern_index::PatternIndex;
use super::profile::{DeviceProfile, Goal};
use crate::job::{JobId, JobSpec};
use crate::pattern::Pattern;
use std::collections::BTreeMap;

/// Expected hits that serve a start point: one in 150 then has none.
const ENOUGH: f64 = 5.0;

/// A selection suffices for this many times the start points in flight. It then lasts for a while,
/// and launches that wait to be verified are not all for the same jobs.
const SPARE: usize = 2;

/// The jobs of a pass.
#[derive(Clone, PartialEq, Debug)]
pub struct Selection {
    device: DeviceProfile,
    /// The fewest bits of a rare pattern.
    rare_from: u32,
    /// Jobs with rare patterns, oldest first.
    rare: Vec<JobId>,
    /// Jobs whose plentiful patterns are in the pass, oldest first.
    plentiful: Vec<JobId>,
    /// Whether no job waits.
    is_all: bool,
}

impl Selection {
    /// The selection for a device. `in_flight` is the number of start points in flight on all
    /// devices.
    pub fn new(
        index: &PatternIndex,
        jobs: &BTreeMap<JobId, JobSpec>,
        device: DeviceProfile,
        in_flight: usize,
    ) -> Selection {
        let rare_from = index.rare_from(device);
        let rare: Vec<JobId> = index.jobs(device.lane, |bits| bits >= rare_from).collect();
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

    /// Whether a pass of this selection may stay in use where `newest` would be selected now. Jobs
    /// that are done stay in it while the others suffice for the start points in flight.
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

    fn has_rare(&self) -> bool {
        !self.rare.is_empty()
    }

    /// Whether hits of plentiful patterns slow the rare ones down, so that some launches must do
    /// without them.
    pub fn is_rationed(&self) -> bool {
        self.has_rare() && !self.plentiful.is_empty() && !self.device.early_stop
    }

    /// The pass of this selection, with the rare patterns alone if `rare_alone`.
    pub fn pass(&self, jobs: &BTreeMap<JobId, JobSpec>, canary: Pattern, rare_alone: bool) -> Pass {
        let patterns = |selected: &[JobId], is_rare: bool| {
            let mut patterns = Vec::new();
            for &job in selected {
                let own = jobs[&job].patterns.iter();
                let own = own.filter(|pattern| self.device.lane.takes(pattern.bits()));
                let own = own.filter(|pattern| (pattern.bits() >= self.rare_from) == is_rare);
                patterns.extend(own.map(|pattern| (job, pattern)));
            }
            patterns.into_iter()
        };
        let plentiful: &[JobId] = if rare_alone { &[] } else { &self.plentiful };
        Pass::new(patterns(&self.rare, true), patterns(plentiful, false), None, canary)
    }
}

/// The pass of a split job, alone at its asker's point.
pub fn split_pass(id: JobId, spec: &JobSpec, lane: Lane, canary: Pattern) -> Pass {
    let patterns = spec.patterns.iter().filter(|pattern| lane.takes(pattern.bits()));
    Pass::new(patterns.map(|pattern| (id, pattern)), std::iter::empty(), spec.half, canary)
}

/// Expected hits a start point of a job's plentiful patterns.
fn hits(spec: &JobSpec, device: DeviceProfile, rare_from: u32) -> f64 {
    let bits = spec.patterns.iter().map(Pattern::bits).filter(|&bits| device.lane.takes(bits));
    bits.filter(|&bits| bits < rare_from).map(|bits| device.hits(bits)).sum()
}

/// The expected hits a start point of some jobs, while each start point takes one of them away.
struct Filling {
    starts: usize,
    goal: Goal,
    /// Hits of the jobs that have most, at most one for each start point, ascending.
    largest: Vec<f64>,
    /// Hits of all other jobs: the least that the last start point can count on.
    rest: f64,
    all: f64,
}

impl Filling {
    fn new(starts: usize, goal: Goal) -> Filling {
        Filling { starts, goal, largest: Vec::new(), rest: 0.0, all: 0.0 }
    }

    /// Adds a job with these expected hits.
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
