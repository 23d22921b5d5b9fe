//! The patterns of one launch: which of them match a key, and the intervals that a device filters
//! by.

use super::chance::{Effort, chance_of_any};
use super::checks::Checks;
use super::difficulty::Difficulty;
use super::estimate::estimated_chance;
use super::intervals::share_of;
use super::pattern::{Pattern, top_of};
use super::text_test::TextTest;
use super::text_tests::TextTests;
use crate::key::Npub;
use std::sync::{Arc, OnceLock};

/// The most intervals of a set, for which a device's filter has room. If there are more, those with
/// the smallest gaps between them are joined.
pub const MOST_INTERVALS: usize = 1 << 20;

/// Index of a pattern in its set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PatternId(pub usize);

/// Patterns that every candidate of a launch is tested against. Duplicates and overlaps are
/// allowed.
#[derive(Clone, Debug, Default)]
pub struct PatternSet {
    patterns: Vec<Pattern>,
    /// Intervals of the upper 64 bits of x that can match: sorted, disjoint, both ends included.
    intervals: Vec<(u64, u64)>,
    /// The intervals of each pattern: both ends, and the pattern's index. Sorted.
    members: Vec<(u64, u64, u32)>,
    /// The index of the first member of each interval; then the number of members.
    first_member: Vec<u32>,
    is_exact: bool,
    compares_whole_keys: bool,
    /// Further patterns, in a set that other sets may share too. That set has no shared set of its
    /// own.
    shared: Option<Arc<PatternSet>>,
    /// All these patterns in a set without a shared set, made at its first use.
    flat: OnceLock<Box<PatternSet>>,
}

impl PatternSet {
    /// A set of patterns, in the given order.
    pub fn new(patterns: Vec<Pattern>) -> PatternSet {
        let mut members = Vec::with_capacity(patterns.len());
        for (at, pattern) in patterns.iter().enumerate() {
            members.extend(pattern.intervals().into_iter().map(|(first, last)| (first, last, at as u32)));
        }
        members.sort_unstable();
        let (mut intervals, mut first_member) = merged(&members, 0);
        let mut is_exact = patterns.iter().all(Pattern::is_exact);
        if let Some(gap) = gap_to_close(&intervals, MOST_INTERVALS) {
            (intervals, first_member) = merged(&members, gap);
            is_exact = false;
        }
        first_member.push(members.len() as u32);
        let compares_whole_keys = patterns.iter().any(|pattern| !pattern.begins_selectively());
        let (shared, flat) = (None, OnceLock::new());
        PatternSet { patterns, intervals, members, first_member, is_exact, compares_whole_keys, shared, flat }
    }

    /// A set of `own`, then the patterns of `shared`. Making it and comparing it with keys takes a
    /// time that does not grow with `shared`. The tables for a device's filter are made at their
    /// first use.
    pub fn before(own: Vec<Pattern>, shared: &Arc<PatternSet>) -> PatternSet {
        let own = PatternSet::new(own);
        if shared.shared.is_some() || own.members.len() + shared.members.len() > MOST_INTERVALS {
            // Too many intervals must be joined, and the choice depends on all of them.
            return PatternSet::new(
                own.patterns.iter().chain(shared.iter().map(|(_, pattern)| pattern)).cloned().collect(),
            );
        }
        PatternSet {
            is_exact: own.is_exact && shared.is_exact,
            compares_whole_keys: own.compares_whole_keys || shared.compares_whole_keys,
            shared: Some(Arc::clone(shared)),
            ..own
        }
    }

    /// The shared patterns after the set's own, if the set was made by [`PatternSet::before`].
    pub fn shared(&self) -> Option<&Arc<PatternSet>> {
        self.shared.as_ref()
    }

    /// Number of patterns, duplicates included.
    pub fn len(&self) -> usize {
        self.patterns.len() + self.behind().len()
    }

    /// Whether there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shared patterns.
    fn behind(&self) -> &[Pattern] {
        self.shared.as_ref().map_or(&[], |shared| &shared.patterns)
    }

    /// All these patterns in a set without a shared set.
    fn flat(&self) -> &PatternSet {
        let make = || Box::new(PatternSet::new(self.iter().map(|(_, pattern)| pattern.clone()).collect()));
        if self.shared.is_none() { self } else { self.flat.get_or_init(make) }
    }

    /// The pattern at an index from [`PatternSet::iter`] or [`PatternSet::matches`]. Panics at any
    /// other index.
    pub fn get(&self, id: PatternId) -> &Pattern {
        let own = self.patterns.len();
        if id.0 < own { &self.patterns[id.0] } else { &self.behind()[id.0 - own] }
    }

    /// All patterns with their indices, in order.
    pub fn iter(&self) -> impl Iterator<Item = (PatternId, &Pattern)> + Clone {
        self.patterns.iter().chain(self.behind()).enumerate().map(|(at, pattern)| (PatternId(at), pattern))
    }

    /// Indices of all patterns that `npub` matches, in order.
    pub fn matches(&self, npub: &Npub) -> Vec<PatternId> {
        let mut matching = self.own_matches(npub);
        let behind = self.shared.iter().flat_map(|shared| shared.own_matches(npub));
        matching.extend(behind.map(|id| PatternId(self.patterns.len() + id.0)));
        matching
    }

    fn own_matches(&self, npub: &Npub) -> Vec<PatternId> {
        let top = top_of(&npub.0);
        let Some(at) = self.interval_of(top) else { return Vec::new() };
        let members = &self.members[self.first_member[at] as usize..self.first_member[at + 1] as usize];
        let near = members.iter().filter(|(first, last, _)| (*first..=*last).contains(&top));
        let near = near.map(|&(.., at)| PatternId(at as usize));
        let mut matching: Vec<PatternId> = near.filter(|&id| self.patterns[id.0].matches(npub)).collect();
        matching.sort_unstable();
        matching
    }

    /// Intervals of the upper 64 bits of x for a device to filter by: sorted, disjoint, both ends
    /// included. A key outside all of them matches nothing; a key inside may match. At most
    /// [`MOST_INTERVALS`].
    pub fn intervals(&self) -> &[(u64, u64)] {
        &self.flat().intervals
    }

    /// Whether every key inside the intervals matches.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Conditions on the keys inside the intervals, for devices that check them. `None` if the
    /// intervals are exact, or if there are too many conditions for a device.
    pub fn checks(&self) -> Option<Checks> {
        let PatternSet { patterns, members, first_member, .. } = self.flat();
        if self.is_exact { None } else { Checks::new(patterns, members, first_member) }
    }

    /// Whether some pattern needs whole keys compared, because its first 32 bits restrict too
    /// little.
    pub fn compares_whole_keys(&self) -> bool {
        self.compares_whole_keys
    }

    /// Tests of whole texts, for the kernel that compares whole keys. `None` if the faster kernel
    /// can search every pattern by the first 32 bits.
    pub fn text_tests(&self) -> Option<TextTests> {
        let tests = || TextTests::new(self.iter().flat_map(|(_, pattern)| TextTest::of(pattern)).collect());
        self.compares_whole_keys().then(tests)
    }

    /// Whether the key is inside an interval. A device that filters by intervals reports such keys.
    pub fn may_match(&self, npub: &Npub) -> bool {
        let top = top_of(&npub.0);
        self.interval_of(top).is_some() || self.shared.as_ref().is_some_and(|shared| shared.interval_of(top).is_some())
    }

    /// Expected number of candidates until any pattern matches; `None` for the empty set. A key
    /// that has several patterns is counted once. For a set that is too intricate for that, the
    /// difficulty is an estimate from random texts. For a set with thousands of parts anywhere, the
    /// chances of the patterns are added.
    pub fn difficulty(&self) -> Option<Difficulty> {
        self.difficulty_within(&mut Effort::full())
    }

    /// [`PatternSet::difficulty`] with a bound on its time: a set that takes more than `effort`
    /// counts as too intricate.
    pub fn difficulty_within(&self, effort: &mut Effort) -> Option<Difficulty> {
        if self.is_empty() {
            return None;
        }
        if self.is_exact {
            return Some(Difficulty::from_chance(share_of(self.intervals())));
        }
        let shapes: Vec<_> = self.iter().flat_map(|(_, pattern)| pattern.shapes()).collect();
        match chance_of_any(&shapes, effort).or_else(|| estimated_chance(&shapes, effort)) {
            Some(chance) => Some(Difficulty::from_chance(chance)),
            None => Difficulty::any_of(self.iter().map(|(_, pattern)| pattern.difficulty())),
        }
    }

    fn interval_of(&self, top: u64) -> Option<usize> {
        let at = self.intervals.partition_point(|&(_, last)| last < top);
        self.intervals.get(at).is_some_and(|&(first, _)| first <= top).then_some(at)
    }
}

/// Joins sorted members where they overlap or touch, or where the values between them are at most
/// `gap`. Returns the intervals and the index of the first member of each.
fn merged(members: &[(u64, u64, u32)], gap: u64) -> (Vec<(u64, u64)>, Vec<u32>) {
    let mut intervals: Vec<(u64, u64)> = Vec::with_capacity(members.len());
    let mut first_member = Vec::with_capacity(members.len() + 1);
    for (at, &(first, last, _)) in members.iter().enumerate() {
        match intervals.last_mut() {
            Some(open) if first <= open.1.saturating_add(1).saturating_add(gap) => open.1 = open.1.max(last),
            _ => {
                intervals.push((first, last));
                first_member.push(at as u32);
            }
        }
    }
    (intervals, first_member)
}

/// The largest gap between neighbours that must be closed so that at most `most` intervals are
/// left; `None` if there are few enough already.
fn gap_to_close(intervals: &[(u64, u64)], most: usize) -> Option<u64> {
    let excess = intervals.len().checked_sub(most).filter(|&excess| excess > 0)?;
    let mut gaps: Vec<u64> = intervals.windows(2).map(|pair| pair[1].0 - pair[0].1 - 1).collect();
    Some(*gaps.select_nth_unstable(excess - 1).1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(texts: &[&str]) -> PatternSet {
        PatternSet::new(texts.iter().map(|text| Pattern::parse(text).unwrap()).collect())
    }

    #[test]
    fn overlapping_patterns_share_an_interval() {
        let nested = set(&["q", "qqqq", "qp", "r"]);
        assert_eq!(nested.intervals().len(), 2);
        assert_eq!(nested.difficulty(), Some(Difficulty::from_bits(4)));
        assert_eq!(set(&["q", "p"]).intervals().len(), 1, "neighbours touch");
        assert_eq!(set(&[]).difficulty(), None);
        let all_zero = Npub([0; 32]);
        assert_eq!(nested.matches(&all_zero), [PatternId(0), PatternId(1)]);
    }

    #[test]
    fn of_too_many_intervals_the_nearest_are_joined() {
        let intervals = [(0, 1), (10, 11), (13, 20), (40, 41), (44, 50)];
        let members: Vec<_> = intervals.iter().map(|&(first, last)| (first, last, 0)).collect();
        assert_eq!(gap_to_close(&intervals, 5), None);
        for (most, expected) in [(4, 4), (3, 3), (1, 1)] {
            let gap = gap_to_close(&intervals, most).unwrap();
            assert_eq!(merged(&members, gap).0.len(), expected);
        }
        let gap = gap_to_close(&intervals, 4).unwrap();
        assert_eq!(merged(&members, gap).0, [(0, 1), (10, 20), (40, 41), (44, 50)]);
    }

    /// The answers of a set about itself and a key.
    fn answers(set: &PatternSet, npub: &Npub) -> impl PartialEq + std::fmt::Debug {
        let texts: Vec<String> = set.iter().map(|(id, _)| set.get(id).to_string()).collect();
        let kinds = (set.len(), set.is_empty(), set.is_exact(), set.compares_whole_keys());
        let checks = set.checks().map(|checks| (checks.members, checks.words));
        (texts, kinds, checks, set.difficulty(), set.intervals().to_vec(), set.matches(npub), set.may_match(npub))
    }

    #[test]
    fn a_set_of_too_many_intervals_with_those_it_shares_shares_none() {
        let shared = Arc::new(PatternSet {
            members: (0..MOST_INTERVALS as u64).map(|at| (at << 40, at << 40, 0)).collect(),
            ..PatternSet::default()
        });
        let own = |count: usize| vec![Pattern::parse("q").unwrap(); count];
        assert!(PatternSet::before(own(0), &shared).shared().is_some());
        assert!(PatternSet::before(own(1), &shared).shared().is_none());
        let layered = Arc::new(PatternSet::before(own(1), &Arc::new(set(&["p"]))));
        let twice = PatternSet::before(own(1), &layered);
        assert_eq!((twice.len(), twice.shared().is_none()), (3, true));
    }

    proptest! {
        /// A set gives the same answers about every key, whether patterns are shared or not.
        #[test]
        fn shared_patterns_are_as_good_as_own_ones(
            x in any::<[u8; 32]>(),
            texts in prop::collection::vec("[qpzry9x8gf2tvdw0s3jn54khce6mua7l]{1,3}|\\*[qpz]{3}|qp\\*z", 0..12),
            own in 0usize..12,
        ) {
            let npub = Npub(x);
            let mut patterns: Vec<Pattern> = texts.iter().map(|text| text.parse().unwrap()).collect();
            patterns.extend(Pattern::parse(&npub.to_string()[5..7]));
            let shared = patterns.split_off(own.min(patterns.len()));
            let layered = PatternSet::before(patterns.clone(), &Arc::new(PatternSet::new(shared.clone())));
            prop_assert!(layered.shared().is_some_and(|set| set.len() == shared.len()));
            let flat = PatternSet::new([patterns, shared].concat());
            prop_assert_eq!(answers(&layered, &npub), answers(&flat, &npub));
        }

        #[test]
        fn the_intervals_lose_nothing(
            x in any::<[u8; 32]>(),
            texts in prop::collection::vec("[qpzry9x8gf2tvdw0s3jn54khce6mua7l]{1,14}", 0..20),
            own in 1usize..52,
        ) {
            let npub = Npub(x);
            let mut patterns: Vec<Pattern> = texts.iter().map(|text| Pattern::parse(text).unwrap()).collect();
            patterns.extend(Pattern::parse(&npub.to_string()[5..5 + own]));
            let expected: Vec<_> =
                patterns.iter().enumerate().filter(|(_, p)| p.matches(&npub)).map(|(at, _)| PatternId(at)).collect();
            let set = PatternSet::new(patterns);
            prop_assert_eq!(set.matches(&npub), expected);
            prop_assert!(set.intervals().windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }
}
