//! Passes: the patterns of a launch and the jobs they belong to.

use super::canary::{self, CanarySeed};
use super::profile::Compared;
use crate::job::JobId;
use crate::key::HalfPoint;
use crate::pattern::{Pattern, PatternId, PatternSet, Rate};
use crate::search::Remaining;
use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

/// Start points that are verified for each plentiful pattern of a pass, and for all of them. One
/// serves a job. A job of `npubbot mine` may want many.
const STARTS_A_PATTERN: usize = 4;
const SPARE_STARTS: usize = 16;

/// The owner of a pattern and of its hits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// The job that asked for the pattern.
    Job(JobId),
    /// Nobody. The number of hits is compared with the expected number, to tell whether a device
    /// really searches.
    Canary,
}

/// The patterns that every candidate of a launch is tested against, with their owners.
#[derive(Debug)]
pub struct Pass {
    /// The canary first, then rare patterns, then plentiful ones.
    pub patterns: Arc<PatternSet>,
    /// The asker's half point, at which a split job is searched; `None` for start points of our
    /// own.
    pub half: Option<HalfPoint>,
    /// The chance that one candidate matches the canary.
    pub canary_chance: f64,
    /// The owner of each pattern, the canary included.
    owners: Vec<Owner>,
    /// Index of the first plentiful pattern.
    plentiful_from: usize,
    /// The part of the expected hits that belongs to plentiful patterns, 0 to 1.
    plentiful_part: f64,
    /// The value of [`Pass::remaining`], computed at its first use.
    remaining: OnceLock<Option<Remaining>>,
    /// The values of [`Pass::precedence`], computed at its first use.
    precedences: OnceLock<Vec<u32>>,
    /// The jobs in ascending order, for [`Pass::searches_for`]; computed at its first use.
    jobs: OnceLock<Vec<JobId>>,
}

/// The chance that one candidate matches.
fn chance(pattern: &Pattern) -> f64 {
    1.0 / pattern.difficulty().candidates()
}

impl Pass {
    /// A pass of these patterns, each with its job. [`super::select`] decides which are rare.
    pub(in crate::scheduler) fn new<'a>(
        rare: impl Iterator<Item = (JobId, &'a Pattern)>,
        plentiful: impl Iterator<Item = (JobId, &'a Pattern)>,
        half: Option<HalfPoint>,
        canary: impl Into<CanarySeed>,
    ) -> Pass {
        let canary = canary.into();
        let (mut owners, mut patterns) = (vec![Owner::Canary], vec![canary.pattern.clone()]);
        let mut all = 0.0;
        let mut take = |(job, pattern): (JobId, &Pattern)| {
            all += chance(pattern);
            owners.push(Owner::Job(job));
            patterns.push(pattern.clone());
            (all, owners.len())
        };
        let (before, plentiful_from) = rare.map(&mut take).last().unwrap_or((0.0, 1));
        let (all, _) = plentiful.map(&mut take).last().unwrap_or((before, plentiful_from));
        patterns[0] = canary::beside(canary, &patterns[1..]);
        let canary_chance = chance(&patterns[0]);
        Pass {
            plentiful_part: 1.0 - (canary_chance + before) / (canary_chance + all),
            patterns: Arc::new(PatternSet::new(patterns)),
            half,
            owners,
            plentiful_from,
            canary_chance,
            remaining: OnceLock::new(),
            precedences: OnceLock::new(),
            jobs: OnceLock::new(),
        }
    }

    /// A pass with only the canary, to measure a device of this rate.
    pub fn canary_alone(rate: Option<Rate>) -> Pass {
        Pass::new(std::iter::empty(), std::iter::empty(), None, canary::choose(rate))
    }

    /// [`Pass::canary_alone`] for launches that compare whole keys.
    pub fn canary_alone_of_whole_keys(rate: Option<Rate>) -> Pass {
        Pass::new(std::iter::empty(), std::iter::empty(), None, canary::at_the_end(&canary::choose(rate)))
    }

    /// Whether the pass has a pattern of some job. Warm-up passes have none.
    pub(in crate::scheduler) fn is_for_a_job(&self) -> bool {
        self.owners.len() > 1
    }

    /// The part of a key that its launches compare.
    pub(in crate::scheduler) fn compared(&self) -> Compared {
        if self.patterns.compares_whole_keys() { Compared::WholeKeys } else { Compared::TopWords }
    }

    /// Whether the pass has a pattern of this job.
    pub(in crate::scheduler) fn searches_for(&self, job: JobId) -> bool {
        let sorted = || {
            let mut jobs: Vec<JobId> = self.jobs().collect();
            jobs.sort_unstable();
            jobs
        };
        self.jobs.get_or_init(sorted).binary_search(&job).is_ok()
    }

    /// The job of each pattern, without the canary. A job occurs once for each of its
    /// patterns.
    fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.owners.iter().filter_map(|owner| match owner {
            Owner::Job(job) => Some(*job),
            Owner::Canary => None,
        })
    }

    /// The owner of a pattern.
    pub fn owner(&self, pattern: PatternId) -> Owner {
        self.owners[pattern.0]
    }

    /// Order in which several hits of one start point are preferred; the smallest wins. Rare
    /// patterns come first, hardest before easier, oldest job first among equals. Plentiful ones
    /// follow, oldest job first.
    pub(in crate::scheduler) fn precedence(&self, pattern: PatternId) -> u32 {
        self.precedences.get_or_init(|| self.all_precedences())[pattern.0]
    }

    fn all_precedences(&self) -> Vec<u32> {
        let Pass { owners, plentiful_from, .. } = self;
        let mut in_order: Vec<usize> = (0..owners.len()).collect();
        in_order.sort_by_cached_key(|&pattern| {
            let is_plentiful = pattern >= *plentiful_from;
            let bits = if is_plentiful { 0 } else { self.patterns.get(PatternId(pattern)).bits() };
            let job = match owners[pattern] {
                Owner::Job(job) => Some(job),
                Owner::Canary => None,
            };
            (Reverse(bits), job, pattern)
        });
        let mut precedences = vec![0; in_order.len()];
        for (precedence, pattern) in in_order.into_iter().enumerate() {
            precedences[pattern] = precedence as u32;
        }
        precedences
    }

    /// Number of start points with a match after which the others of a launch are not worth
    /// verifying. `None` for a pass with rare patterns: each of their hits counts.
    pub(in crate::scheduler) fn starts_worth_verifying(&self) -> Option<usize> {
        let has_rare = self.plentiful_from > 1;
        let jobs = self.owners.len() - self.plentiful_from;
        (!has_rare && jobs > 0).then_some(SPARE_STARTS + STARTS_A_PATTERN * jobs)
    }

    /// The patterns still searched at a start point after the early stop. A start point yields only
    /// one key, so plentiful patterns need no further hits. `None` if the pass has no plentiful
    /// patterns.
    pub(in crate::scheduler) fn remaining(&self) -> Option<Remaining> {
        let make = || {
            let Pass { owners, plentiful_from, .. } = self;
            (owners.len() > *plentiful_from).then(|| Remaining {
                patterns: Arc::new(PatternSet::new(
                    self.patterns.iter().take(*plentiful_from).map(|(_, pattern)| pattern.clone()).collect(),
                )),
                is_wanted: *plentiful_from > 1,
            })
        };
        self.remaining.get_or_init(make).clone()
    }

    /// The part of the expected hits that belongs to plentiful patterns, 0 to 1.
    pub(in crate::scheduler) fn plentiful_part(&self) -> f64 {
        self.plentiful_part
    }

    /// The owner of each pattern.
    #[cfg(test)]
    pub(in crate::scheduler) fn owners(&self) -> &[Owner] {
        &self.owners
    }
}
