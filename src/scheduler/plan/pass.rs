//! Passes: the patterns of a launch and the jobs they belong to.

use super::canary;
use super::compared::Compared;
use crate::job::JobId;
use crate::key::HalfPoint;
use crate::pattern::{Pattern, PatternId, PatternSet, Rate};
use crate::search::Remaining;
use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

/// The owner of a pattern and of its hits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// The job that asked for it.
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
    /// The owner of each pattern.
    owners: Vec<Owner>,
    /// Index of the first plentiful pattern.
    plentiful_from: usize,
    /// The part of the expected hits that belongs to plentiful patterns, 0 to 1.
    plentiful_part: f64,
    /// The value of [`Pass::remaining`], computed at its first use.
    remaining: OnceLock<Option<Remaining>>,
    /// The values of [`Pass::precedence`], computed at its first use.
    precedences: OnceLock<Vec<u32>>,
}

impl Pass {
    /// A pass of these patterns, each with its job. [`super::select`] decides which are rare.
    pub(in crate::scheduler) fn new<'a>(
        rare: impl Iterator<Item = (JobId, &'a Pattern)>,
        plentiful: impl Iterator<Item = (JobId, &'a Pattern)>,
        half: Option<HalfPoint>,
        canary: Pattern,
    ) -> Pass {
        let chance = |pattern: &Pattern| 1.0 / pattern.difficulty().candidates();
        let (mut owners, mut patterns) = (vec![Owner::Canary], vec![canary]);
        let mut all = 0.0;
        let mut take = |(job, pattern): (JobId, &Pattern)| {
            all += chance(pattern);
            owners.push(Owner::Job(job));
            patterns.push(pattern.clone());
            (all, owners.len())
        };
        let (before, plentiful_from) = rare.map(&mut take).last().unwrap_or((0.0, 1));
        let (all, _) = plentiful.map(&mut take).last().unwrap_or((before, plentiful_from));
        patterns[0] = canary::beside(patterns[0].clone(), &patterns[1..]);
        let canary_chance = chance(&patterns[0]);
        Pass {
            plentiful_from,
            plentiful_part: 1.0 - (canary_chance + before) / (canary_chance + all),
            remaining: OnceLock::new(),
            precedences: OnceLock::new(),
            patterns: Arc::new(PatternSet::new(patterns)),
            half,
            owners,
            canary_chance,
        }
    }

    /// A pass with only the canary, to measure a device of this rate.
    pub fn canary_alone(rate: Option<Rate>) -> Pass {
        Pass::new(std::iter::empty(), std::iter::empty(), None, canary::choose(rate))
    }

    /// The same for launches that compare whole keys.
    pub fn canary_alone_of_whole_keys(rate: Option<Rate>) -> Pass {
        Pass::new(std::iter::empty(), std::iter::empty(), None, canary::at_the_end(&canary::choose(rate)))
    }

    /// Whether the pass has a pattern of some job. Warm-up passes have none.
    pub(in crate::scheduler) fn is_for_a_job(&self) -> bool {
        self.owners.len() > 1
    }

    /// The part of keys that its launches compare.
    pub(in crate::scheduler) fn compared(&self) -> Compared {
        if self.patterns.compares_whole_keys() { Compared::WholeKeys } else { Compared::TopWords }
    }

    /// The jobs of the patterns, each once a pattern.
    pub(in crate::scheduler) fn jobs(&self) -> impl Iterator<Item = JobId> {
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
        let mut in_order: Vec<usize> = (0..self.owners.len()).collect();
        in_order.sort_by_cached_key(|&pattern| {
            let is_plentiful = pattern >= self.plentiful_from;
            let bits = if is_plentiful { 0 } else { self.patterns.get(PatternId(pattern)).bits() };
            let job = match self.owners[pattern] {
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

    /// The patterns still searched at a start point after the early stop. A start point yields only
    /// one key, so plentiful patterns need no further hits. `None` if the pass has no plentiful
    /// patterns.
    pub(in crate::scheduler) fn remaining(&self) -> Option<Remaining> {
        let make = || {
            (self.owners.len() > self.plentiful_from).then(|| Remaining {
                patterns: Arc::new(PatternSet::new(
                    self.patterns.iter().take(self.plentiful_from).map(|(_, pattern)| pattern.clone()).collect(),
                )),
                is_wanted: self.plentiful_from > 1,
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
