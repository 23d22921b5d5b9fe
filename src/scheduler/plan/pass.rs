//! What a launch tests every candidate against.

use super::canary;
use crate::job::JobId;
use crate::key::HalfPoint;
use crate::pattern::{Pattern, PatternId, PatternSet, Rate};
use crate::search::Remaining;
use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

/// Patterns of fewer bits are left to the CPU: a GPU would drown in their hits.
const EASY_BITS: u32 = 20;
/// Of fewer, the CPU thread beside GPUs takes its part: a GPU has so many hits of them that it seldom takes more.
const BESIDE_BITS: u32 = 25;

/// Which of the pool's patterns a device searches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// Everything: the CPU when it is the only kind of device.
    All,
    /// What is worth a GPU.
    Hard,
    /// What is not, and what is nearly not: a CPU thread beside the GPUs.
    Easy,
}

impl Lane {
    /// Whether patterns of so many bits are for it.
    pub(in crate::scheduler) fn takes(self, bits: u32) -> bool {
        match self {
            Lane::All => true,
            Lane::Hard => bits >= EASY_BITS,
            Lane::Easy => bits < BESIDE_BITS,
        }
    }
}

/// Who wants what a pattern finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    Job(JobId),
    /// Nobody: its hits are counted against what was to be expected, to tell whether a device really searches.
    Canary,
}

/// What every candidate of a launch is tested against, and for whom.
#[derive(Debug)]
pub struct Pass {
    pub patterns: Arc<PatternSet>,
    /// The asker's point to search at; `None` for start points of our own.
    pub half: Option<HalfPoint>,
    /// The owner of each pattern of the set: the canary, then those of rare patterns, then those of plentiful ones.
    owners: Vec<Owner>,
    /// Where the plentiful ones begin.
    plentiful_from: usize,
    /// The part of its hits that are of these, to be expected.
    plentiful_part: f64,
    /// See [`Pass::remaining`]; made when a device asks for it.
    remaining: OnceLock<Option<Remaining>>,
    /// The chance that one candidate matches the canary.
    pub canary_chance: f64,
}

impl Pass {
    /// Patterns and whose they are. Which are rare is [`super::select`]'s to say.
    pub(in crate::scheduler) fn new<'a>(
        rare: impl Iterator<Item = (JobId, &'a Pattern)>,
        plentiful: impl Iterator<Item = (JobId, &'a Pattern)>,
        half: Option<HalfPoint>,
        canary: Pattern,
    ) -> Pass {
        let chance = |pattern: &Pattern| 1.0 / pattern.difficulty().candidates();
        let canary_chance = chance(&canary);
        let (mut owners, mut patterns) = (vec![Owner::Canary], vec![canary]);
        let mut all = canary_chance;
        let mut take = |(job, pattern): (JobId, &Pattern)| {
            all += chance(pattern);
            owners.push(Owner::Job(job));
            patterns.push(pattern.clone());
            (all, owners.len())
        };
        let (before, plentiful_from) = rare.map(&mut take).last().unwrap_or((canary_chance, 1));
        let (all, _) = plentiful.map(&mut take).last().unwrap_or((before, plentiful_from));
        Pass {
            plentiful_from,
            plentiful_part: 1.0 - before / all,
            remaining: OnceLock::new(),
            patterns: Arc::new(PatternSet::new(patterns)),
            half,
            owners,
            canary_chance,
        }
    }

    /// A pass for nobody but the canary: to measure a device.
    pub fn of_canary_alone(rate: Option<Rate>) -> Pass {
        Pass::new(std::iter::empty(), std::iter::empty(), None, canary::choose(rate))
    }

    /// Whether some job waits for it: the launches of a warm-up are for the canary alone.
    pub(in crate::scheduler) fn is_for_a_job(&self) -> bool {
        self.owners.len() > 1
    }

    pub fn owner(&self, pattern: PatternId) -> Owner {
        self.owners[pattern.0]
    }

    /// Whose hit has the start point that several were found under: the least. Rare patterns come first, the hardest before
    /// the others, the oldest job first among equals; then plentiful ones, the oldest job first.
    pub(in crate::scheduler) fn precedence(&self, pattern: PatternId) -> impl Ord + use<> {
        let is_plentiful = pattern.0 >= self.plentiful_from;
        let bits = if is_plentiful { 0 } else { self.patterns.get(pattern).bits() };
        let job = match self.owner(pattern) {
            Owner::Job(job) => Some(job),
            Owner::Canary => None,
        };
        (Reverse(bits), job, pattern)
    }

    /// What a start point that has given something to a plentiful pattern is still searched for: it gives one key. `None` without
    /// plentiful patterns.
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

    pub(in crate::scheduler) fn plentiful_part(&self) -> f64 {
        self.plentiful_part
    }

    #[cfg(test)]
    pub(in crate::scheduler) fn owners(&self) -> &[Owner] {
        &self.owners
    }
}
