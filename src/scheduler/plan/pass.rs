//! Passes: the patterns of a launch and the jobs they belong to.

use super::canary::{self, Draw};
use super::compared::Compared;
use super::lane::Lane;
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
    /// Nobody. It looks like the pattern of a job to a worker on another machine
    /// ([`super::decoys`]).
    Decoy,
}

/// The patterns that every candidate of a launch is tested against, with their owners.
#[derive(Debug)]
pub struct Pass {
    /// The canary first, then rare patterns, then plentiful ones, then decoys.
    pub patterns: Arc<PatternSet>,
    /// The asker's half point, at which a split job is searched; `None` for start points of our
    /// own.
    pub half: Option<HalfPoint>,
    /// The chance that one candidate matches the canary.
    pub canary_chance: f64,
    /// The owners of the patterns.
    requested: Arc<Requested>,
    /// The part of the expected hits that belongs to plentiful patterns, 0 to 1.
    plentiful_part: f64,
    /// The value of [`Pass::remaining`], computed at its first use.
    remaining: OnceLock<Option<Remaining>>,
}

/// The patterns that all launches for untrusted devices share: those of a pass without its canary,
/// then decoys. Each launch adds its own canary.
#[derive(Debug)]
pub(in crate::scheduler) struct SharedPatterns {
    patterns: Arc<PatternSet>,
    requested: Arc<Requested>,
}

/// The owners of the patterns of a pass.
#[derive(Debug)]
struct Requested {
    /// The owner of each pattern, the canary included.
    owners: Vec<Owner>,
    /// Index of the first plentiful pattern.
    plentiful_from: usize,
    /// Mean number of decoys that one candidate matches.
    decoy_chance: f64,
    /// The values of [`Pass::precedence`], computed at its first use.
    precedences: OnceLock<Vec<u32>>,
    /// The jobs in ascending order, for [`Pass::searches_for`]; computed at its first use.
    jobs: OnceLock<Vec<JobId>>,
}

impl Requested {
    fn new(owners: Vec<Owner>, plentiful_from: usize, decoy_chance: f64) -> Arc<Requested> {
        let (precedences, jobs) = (OnceLock::new(), OnceLock::new());
        Arc::new(Requested { owners, plentiful_from, decoy_chance, precedences, jobs })
    }
}

impl SharedPatterns {
    /// The patterns of a pass without its canary, then `decoys`.
    pub fn new(pass: &Pass, decoys: &[Pattern]) -> SharedPatterns {
        let Requested { owners, plentiful_from, .. } = &*pass.requested;
        let owners = owners.iter().copied().chain(decoys.iter().map(|_| Owner::Decoy)).collect();
        let patterns = pass.patterns.iter().skip(1).map(|(_, pattern)| pattern).chain(decoys).cloned().collect();
        SharedPatterns {
            patterns: Arc::new(PatternSet::new(patterns)),
            requested: Requested::new(owners, *plentiful_from, decoys.iter().map(chance).sum()),
        }
    }
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
        canary: impl Into<Draw>,
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
            remaining: OnceLock::new(),
            patterns: Arc::new(PatternSet::new(patterns)),
            half,
            requested: Requested::new(owners, plentiful_from, 0.0),
            canary_chance,
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

    /// The pass of one launch of an untrusted device with this rate: the `shared` patterns with
    /// their decoys, and a new canary. Where top words are compared, the canary does not depend on
    /// the other patterns, unlike on our own devices ([`canary::beside`]). Where whole keys are
    /// compared it does. There the device may recognise the canary, but not the decoys.
    ///
    /// Takes constant time, unless whole keys are compared.
    pub(in crate::scheduler) fn for_a_stranger(&self, rate: Option<Rate>, shared: &SharedPatterns) -> Pass {
        let drawn = Draw::new(rate, Lane::Hard);
        let canary = match self.compared() {
            Compared::TopWords => drawn.pattern,
            Compared::WholeKeys => {
                let requested = self.patterns.iter().skip(1).map(|(_, pattern)| pattern.clone());
                let requested: Vec<Pattern> = requested.collect();
                if requested.is_empty() {
                    canary::at_the_end(&drawn.pattern)
                } else {
                    canary::beside(drawn, &requested)
                }
            }
        };
        self.beside(canary, shared)
    }

    /// The same pass with the canary of another one. For an untrusted device that searched the
    /// launch of the other pass with these newer patterns.
    pub(in crate::scheduler) fn with_canary_of(&self, other: &Pass) -> Pass {
        let canary = other.patterns.get(PatternId(0)).clone();
        match self.patterns.shared() {
            Some(patterns) => {
                let (patterns, requested) = (Arc::clone(patterns), Arc::clone(&self.requested));
                self.beside(canary, &SharedPatterns { patterns, requested })
            }
            None => self.beside(canary, &SharedPatterns::new(self, &[])),
        }
    }

    /// These patterns beside another canary.
    fn beside(&self, canary: Pattern, shared: &SharedPatterns) -> Pass {
        Pass {
            canary_chance: chance(&canary),
            patterns: Arc::new(PatternSet::before(vec![canary], &shared.patterns)),
            half: self.half,
            requested: Arc::clone(&shared.requested),
            plentiful_part: self.plentiful_part,
            remaining: OnceLock::new(),
        }
    }

    /// Mean number of decoys that one candidate matches.
    pub fn decoy_chance(&self) -> f64 {
        self.requested.decoy_chance
    }

    /// Whether the pass has a pattern of some job. Warm-up passes have none.
    pub(in crate::scheduler) fn is_for_a_job(&self) -> bool {
        self.requested.owners.len() > 1
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
        self.requested.jobs.get_or_init(sorted).binary_search(&job).is_ok()
    }

    /// The job of each pattern, without canary and decoys. A job occurs once for each of its
    /// patterns.
    fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.requested.owners.iter().filter_map(|owner| match owner {
            Owner::Job(job) => Some(*job),
            Owner::Canary | Owner::Decoy => None,
        })
    }

    /// The owner of a pattern.
    pub fn owner(&self, pattern: PatternId) -> Owner {
        self.requested.owners[pattern.0]
    }

    /// Order in which several hits of one start point are preferred; the smallest wins. Rare
    /// patterns come first, hardest before easier, oldest job first among equals. Plentiful ones
    /// follow, oldest job first.
    pub(in crate::scheduler) fn precedence(&self, pattern: PatternId) -> u32 {
        self.requested.precedences.get_or_init(|| self.all_precedences())[pattern.0]
    }

    fn all_precedences(&self) -> Vec<u32> {
        let Requested { owners, plentiful_from, .. } = &*self.requested;
        let mut in_order: Vec<usize> = (0..owners.len()).collect();
        in_order.sort_by_cached_key(|&pattern| {
            let is_plentiful = pattern >= *plentiful_from;
            let bits = if is_plentiful { 0 } else { self.patterns.get(PatternId(pattern)).bits() };
            let job = match owners[pattern] {
                Owner::Job(job) => Some(job),
                Owner::Canary | Owner::Decoy => None,
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
        let Requested { owners, plentiful_from, .. } = &*self.requested;
        let has_rare = *plentiful_from > 1;
        let jobs = owners.len() - plentiful_from;
        (!has_rare && jobs > 0).then_some(SPARE_STARTS + STARTS_A_PATTERN * jobs)
    }

    /// The patterns still searched at a start point after the early stop. A start point yields only
    /// one key, so plentiful patterns need no further hits. `None` if the pass has no plentiful
    /// patterns.
    pub(in crate::scheduler) fn remaining(&self) -> Option<Remaining> {
        let make = || {
            let Requested { owners, plentiful_from, .. } = &*self.requested;
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
        &self.requested.owners
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(texts: &[&str]) -> Pass {
        let patterns: Vec<Pattern> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let rare = patterns.iter().enumerate().map(|(job, pattern)| (JobId(job as i64), pattern));
        Pass::new(rare, std::iter::empty(), None, canary::choose(Some(Rate(1e9))))
    }

    /// The pass of a launch for an untrusted device of this rate.
    fn stranger(pass: &Pass, rate: Option<Rate>, decoys: &[&str]) -> Pass {
        let decoys: Vec<Pattern> = decoys.iter().map(|text| text.parse().unwrap()).collect();
        pass.for_a_stranger(rate, &SharedPatterns::new(pass, &decoys))
    }

    #[test]
    fn an_order_has_a_canary_of_its_own_that_is_not_made_of_the_patterns() {
        let shared = pass(&["m0ctane"]);
        assert!(shared.patterns.get(PatternId(0)).as_str().starts_with("m0ct"), "that of our own devices is");
        let drawn: std::collections::BTreeSet<String> = (0..20)
            .map(|_| {
                let own = stranger(&shared, Some(Rate(1e9)), &[]);
                assert_eq!((own.owners(), own.patterns.len()), (shared.owners(), 2));
                assert_eq!(own.patterns.get(PatternId(1)).as_str(), "m0ctane");
                let canary = own.patterns.get(PatternId(0));
                assert_eq!(own.canary_chance * canary.difficulty().candidates(), 1.0);
                canary.as_str().to_owned()
            })
            .collect();
        // There are 33 million canaries. Two of twenty are equal once in 170,000 runs.
        assert_eq!(drawn.len(), 20);
        assert!(drawn.iter().filter(|canary| "m0ctane".starts_with(canary.as_str())).count() < 2);
    }

    #[test]
    fn newer_patterns_are_searched_for_beside_the_canary_of_the_launch() {
        let (old, new) = (pass(&["m0ctane"]), pass(&["alyce", "stack"]));
        let old = stranger(&old, Some(Rate(1e9)), &[]);
        let new = stranger(&new, None, &["cafe"]);
        let both = new.with_canary_of(&old);
        let texts: Vec<&str> = both.patterns.iter().map(|(_, pattern)| pattern.as_str()).collect();
        assert_eq!(texts, [old.patterns.get(PatternId(0)).as_str(), "alyce", "stack", "cafe"]);
        assert_eq!(both.owners(), [Owner::Canary, Owner::Job(JobId(0)), Owner::Job(JobId(1)), Owner::Decoy]);
        assert_eq!((both.canary_chance, both.decoy_chance()), (old.canary_chance, new.decoy_chance()));
        assert!(both.patterns.shared().zip(new.patterns.shared()).is_some_and(|(one, other)| Arc::ptr_eq(one, other)));
    }

    #[test]
    fn decoys_stand_behind_the_patterns_of_jobs_and_are_nobodys() {
        let own = stranger(&pass(&["m0ctane"]), None, &["alyce", "stack"]);
        assert_eq!(own.owners()[1..], [Owner::Job(JobId(0)), Owner::Decoy, Owner::Decoy]);
        assert_eq!(own.patterns.get(PatternId(3)).as_str(), "stack");
        assert_eq!(own.decoy_chance(), 2.0 / f64::from(1 << 25));
        assert_eq!(own.jobs().collect::<Vec<_>>(), [JobId(0)]);
        assert!(own.searches_for(JobId(0)) && !own.searches_for(JobId(1)));
    }

    #[test]
    fn where_whole_keys_are_compared_the_own_canary_compares_them() {
        for shared in [pass(&["*al7ce*"]), Pass::canary_alone_of_whole_keys(None)] {
            let own = stranger(&shared, Some(Rate(1e9)), &[]);
            assert!(own.patterns.get(PatternId(0)).as_str().starts_with('*'), "{:?}", own.patterns.get(PatternId(0)));
            assert_eq!(own.compared(), Compared::WholeKeys);
        }
        assert_eq!(stranger(&Pass::canary_alone(None), None, &[]).compared(), Compared::TopWords);
    }
}
