//! Which jobs of the pool a pass is for.
//!
//! A start point gives one key, ever. So a launch cannot serve more jobs than it has start points, and every further pattern it is
//! searched for costs the device time for nothing. Let `n` be the candidates a start point is searched over and `p` the chance
//! that one of them matches: a pattern has `p·n` hits a start point to be expected.
//!
//! - **Rare** patterns, with fewer than [`RARE`], and fewer than [`RARE_TOGETHER`] with all that are as hard or harder, are
//!   in every pass: their hits come seldom, and each is kept.
//! - The others are **plentiful**. Their jobs are taken in the order of age until every start point that may be in flight is sure
//!   to find something for one of them, or until a start point has as many hits as are worth verifying. The younger ones wait.
//!   They lose nothing by it: each start point gives its key to an older job.
//!
//! A device that leaves out the plentiful patterns at a start point that has hits of them ([`Searcher::early_stop`]) looks for
//! them for a little while only, the shorter the more of them there are. It takes so many that they are found soon.
//!
//! [`Searcher::early_stop`]: crate::search::Searcher::early_stop
//!
//! **Nobody starves.** Among the hits of a start point rare ones come first, by hardness; then the oldest job. A job that waits
//! therefore waits for older jobs and for rare patterns only, whatever comes after it. Each of those takes one start point and is
//! gone. The oldest plentiful job is always taken; it has its key with the first start point that has a hit of it and none of a rare
//! pattern. Its own hits come `p·n` a start point, [`RARE`] at least, so that this takes finitely many launches. What a stream of
//! *rare* jobs without end could do is bounded by how seldom they are found.
//!
//! **No rare hit is lost.** A job with easy and hard patterns is in the pass with the rare ones even while its plentiful
//! ones wait, and with all that are plentiful when its turn has come: whichever is found first ends it, as promised.

use super::pass::{Lane, Pass};
use crate::job::{JobId, JobSpec};
use crate::pattern::Pattern;
use std::collections::{BTreeMap, BTreeSet};

/// Hits a start point below which a pattern is rare. One of 2^36 is rare up to 1.4 G candidates a start point; an H200 has 0.5.
const RARE: f64 = 1.0 / 50.0;

/// Hits to be expected that a start point is served by: without any is then one start point in 150.
const ENOUGH: f64 = 5.0;

/// A pass is made for this many times the start points in flight, so that it lasts for a while and the harvests that wait to be
/// settled are not all for the same jobs.
const SPARE: usize = 2;

/// Hits a start point that rare patterns have together at most: where there are more, their start points are served by the oldest of them
/// too, and the easiest count as plentiful.
const RARE_TOGETHER: f64 = 1.0;

/// Hits a start point that are worth verifying beside a rare pattern. Each is recomputed with libsecp256k1, some 50 µs, and a
/// start point of the CPU search takes a core 50 ms: so many cost 1 %. On a busy processor it takes less, and is worth fewer.
const HITS_BESIDE_RARE: f64 = 8.0;

/// Hits of all start points in flight that the one thread which verifies them can take: in half of the 50 ms they were found in.
const HITS_IN_FLIGHT: f64 = 512.0;

/// Hits a start point to be expected of what a device takes that leaves the plentiful patterns out once it has four of them:
/// after a twenty-fifth of its time.
const SOON: f64 = 100.0;

/// Hits a start point that are worth verifying while so many start points are in flight and each is searched over `part` of what the
/// device manages at best.
pub(in crate::scheduler) fn hits_worth_verifying(in_flight: usize, beside_rare: bool, part: f64) -> f64 {
    let most = HITS_IN_FLIGHT / in_flight.max(1) as f64;
    if beside_rare { most.min(HITS_BESIDE_RARE * part) } else { most }
}

/// The jobs of the pool by the bits of their patterns: what is chosen is found without a look at the others.
#[derive(Debug, Default)]
pub(in crate::scheduler) struct PatternIndex {
    by_bits: BTreeMap<u32, BTreeSet<JobId>>,
}

impl PatternIndex {
    pub fn insert(&mut self, job: JobId, wanted: &JobSpec) {
        for pattern in &wanted.patterns {
            self.by_bits.entry(pattern.bits()).or_default().insert(job);
        }
    }

    pub fn remove(&mut self, job: JobId, wanted: &JobSpec) {
        for pattern in &wanted.patterns {
            if let Some(jobs) = self.by_bits.get_mut(&pattern.bits()) {
                jobs.remove(&job);
                if jobs.is_empty() {
                    self.by_bits.remove(&pattern.bits());
                }
            }
        }
    }

    pub fn has_work_for(&self, lane: Lane) -> bool {
        self.by_bits.keys().any(|&bits| lane.takes(bits))
    }

    /// How many jobs have patterns of how many bits.
    pub fn counts(&self, lane: Lane) -> impl Iterator<Item = (u32, usize)> {
        self.by_bits.iter().filter(move |&(&bits, _)| lane.takes(bits)).map(|(&bits, jobs)| (bits, jobs.len()))
    }

    /// The least bits of a rare pattern.
    pub fn rare_from(&self, device: Device) -> u32 {
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

    /// The jobs that have patterns of these bits, the oldest first.
    fn jobs(&self, lane: Lane, bits: impl Fn(u32) -> bool) -> impl Iterator<Item = JobId> {
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

/// What is known of the device a pass is for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::scheduler) struct Device {
    pub lane: Lane,
    /// Candidates a start point is searched over; `None` before the first launch was collected: everything is rare then.
    pub stretch: Option<f64>,
    /// The part this is of what the device manages at best.
    pub part: f64,
    /// Whether it leaves the plentiful patterns out at a start point that has hits of them.
    pub early_stop: bool,
}

impl Device {
    /// Hits a start point to be expected of a pattern of so many bits.
    pub fn hits(self, bits: u32) -> f64 {
        self.stretch.map_or(0.0, |stretch| stretch * (-f64::from(bits)).exp2())
    }

    /// The hits of plentiful patterns that a start point is to have.
    pub fn goal(self, in_flight: usize, beside_rare: bool) -> Goal {
        if self.early_stop {
            Goal { least: SOON, most: f64::INFINITY }
        } else {
            Goal { least: 0.0, most: hits_worth_verifying(in_flight, beside_rare, self.part) }
        }
    }

    /// The least bits of a rare pattern, were there only a few.
    fn rare_from(self) -> u32 {
        self.stretch.map_or(0, |stretch| (stretch / RARE).log2().max(0.0) as u32 + 1)
    }
}

/// The jobs of a pass.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::scheduler) struct Selection {
    device: Device,
    /// The least bits of a rare pattern.
    rare_from: u32,
    /// Those with rare patterns, the oldest first.
    rare: Vec<JobId>,
    /// Those whose plentiful patterns are taken, the oldest first.
    plentiful: Vec<JobId>,
    /// Whether none waits.
    is_all: bool,
}

impl Selection {
    /// For a device while so many start points are in flight, all devices together.
    pub fn new(crowd: &PatternIndex, jobs: &BTreeMap<JobId, JobSpec>, device: Device, in_flight: usize) -> Selection {
        let rare_from = crowd.rare_from(device);
        let rare: Vec<JobId> = crowd.jobs(device.lane, |bits| bits >= rare_from).collect();
        let mut filling = Filling::of(SPARE * in_flight, device.goal(in_flight, !rare.is_empty()));
        let mut waiting = crowd.jobs(device.lane, |bits| bits < rare_from);
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

    /// Whether a pass made for this choice still does where `newest` would be chosen now. Jobs that are done only stay
    /// behind in it while those left serve every start point in flight: nobody else would have a key of these start points.
    pub fn still_serves(&self, newest: &Selection, jobs: &BTreeMap<JobId, JobSpec>, in_flight: usize) -> bool {
        if self == newest {
            return true;
        }
        let mut goal = self.device.goal(in_flight, self.has_rare());
        goal.least /= 2.0;
        let mut filling = Filling::of(in_flight, goal);
        let open = self.plentiful.iter().filter_map(|job| jobs.get(job));
        open.for_each(|wanted| filling.take(hits(wanted, self.device, self.rare_from)));
        let same = (self.device, self.rare_from) == (newest.device, newest.rare_from) && self.rare == newest.rare;
        same && !self.is_all && filling.is_full()
    }

    fn has_rare(&self) -> bool {
        !self.rare.is_empty()
    }

    /// Whether the hits of the plentiful patterns take something from the rare ones, so that launches without them are needed.
    pub fn rations(&self) -> bool {
        self.has_rare() && !self.plentiful.is_empty() && !self.device.early_stop
    }

    /// The pass; with the rare patterns alone if `rests`.
    pub fn pass(&self, jobs: &BTreeMap<JobId, JobSpec>, canary: Pattern, rests: bool) -> Pass {
        let of = |chosen: &[JobId], is_rare: bool| {
            let mut patterns = Vec::new();
            for &job in chosen {
                let own = jobs[&job].patterns.iter();
                let own = own.filter(|pattern| self.device.lane.takes(pattern.bits()));
                let own = own.filter(|pattern| (pattern.bits() >= self.rare_from) == is_rare);
                patterns.extend(own.map(|pattern| (job, pattern)));
            }
            patterns.into_iter()
        };
        let plentiful: &[JobId] = if rests { &[] } else { &self.plentiful };
        Pass::new(of(&self.rare, true), of(plentiful, false), None, canary)
    }
}

/// The pass of a split job, alone at its point.
pub(in crate::scheduler) fn pass_of_split(id: JobId, wanted: &JobSpec, lane: Lane, canary: Pattern) -> Pass {
    let patterns = wanted.patterns.iter().filter(|pattern| lane.takes(pattern.bits()));
    Pass::new(patterns.map(|pattern| (id, pattern)), std::iter::empty(), wanted.half, canary)
}

/// Hits a start point to be expected of a job's plentiful patterns.
fn hits(wanted: &JobSpec, device: Device, rare_from: u32) -> f64 {
    let bits = wanted.patterns.iter().map(Pattern::bits).filter(|&bits| device.lane.takes(bits));
    bits.filter(|&bits| bits < rare_from).map(|bits| device.hits(bits)).sum()
}

/// How many hits of plentiful patterns a start point is to have.
#[derive(Clone, Copy)]
pub(in crate::scheduler) struct Goal {
    /// Below, it is not served yet.
    least: f64,
    /// From here on nobody else is taken, served or not.
    pub most: f64,
}

/// Hits a start point that are to be expected of some jobs, while each start point takes one of the jobs away.
struct Filling {
    starts: usize,
    goal: Goal,
    /// Of the jobs with the most hits, at most as many as there are start points, ascending.
    largest: Vec<f64>,
    /// The hits of all others: what is left to the last start point at the worst.
    rest: f64,
    all: f64,
}

impl Filling {
    fn of(starts: usize, goal: Goal) -> Filling {
        Filling { starts, goal, largest: Vec::new(), rest: 0.0, all: 0.0 }
    }

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
