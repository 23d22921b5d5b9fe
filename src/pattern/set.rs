//! All patterns of one pass: which of them a key matches, and the intervals a device filters by.

use super::{Difficulty, Pattern};
use crate::key::Npub;

/// The place of a pattern in its set, as given.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PatternId(pub usize);

/// The patterns that every candidate of a launch is tested against. Duplicates and patterns within one another are fine.
#[derive(Clone, Debug, Default)]
pub struct PatternSet {
    patterns: Vec<Pattern>,
    /// Disjoint and sorted: the first and last value of the top 64 bits of x that can match, both included.
    intervals: Vec<(u64, u64)>,
}

impl PatternSet {
    pub fn new(patterns: Vec<Pattern>) -> PatternSet {
        let intervals = merge(patterns.iter().map(top_64_bits).collect());
        PatternSet { patterns, intervals }
    }

    pub fn len(&self) -> usize {
        self.patterns.len()
    }

    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    pub fn get(&self, id: PatternId) -> &Pattern {
        &self.patterns[id.0]
    }

    pub fn iter(&self) -> impl Iterator<Item = (PatternId, &Pattern)> {
        self.patterns.iter().enumerate().map(|(at, pattern)| (PatternId(at), pattern))
    }

    /// Every pattern that `npub` matches, in the order of the set.
    pub fn matches(&self, npub: &Npub) -> Vec<PatternId> {
        if !self.may_match(npub) {
            return Vec::new();
        }
        self.iter().filter(|(_, pattern)| pattern.matches(npub)).map(|(id, _)| id).collect()
    }

    /// What a device filters by: disjoint, sorted intervals of the top 64 bits of x, both ends included.
    /// A key outside all of them matches nothing; one inside may match.
    pub fn intervals(&self) -> &[(u64, u64)] {
        &self.intervals
    }

    /// Expected candidates until any pattern of the set matches. `None` for the empty set.
    pub fn difficulty(&self) -> Option<Difficulty> {
        Difficulty::any_of(self.intervals.iter().map(|&(first, last)| {
            // Longer patterns than 64 bits look easier than they are; at 2^64 that no longer matters.
            Difficulty::of_top_values((last - first) as f64 + 1.0)
        }))
    }

    fn may_match(&self, npub: &Npub) -> bool {
        let top = top_of(&npub.0);
        let at = self.intervals.partition_point(|&(_, last)| last < top);
        self.intervals.get(at).is_some_and(|&(first, _)| first <= top)
    }
}

fn top_of(x: &[u8; 32]) -> u64 {
    u64::from_be_bytes(x[..8].try_into().expect("eight bytes"))
}

fn top_64_bits(pattern: &Pattern) -> (u64, u64) {
    let (first, last) = pattern.range();
    (top_of(first), top_of(last))
}

fn merge(mut intervals: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    intervals.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(intervals.len());
    for (first, last) in intervals {
        match merged.last_mut() {
            Some(open) if first <= open.1 => open.1 = open.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(texts: &[&str]) -> PatternSet {
        PatternSet::new(texts.iter().map(|text| Pattern::parse(text).unwrap()).collect())
    }

    #[test]
    fn patterns_within_one_another_share_an_interval() {
        let nested = set(&["q", "qqqq", "qp", "p"]);
        assert_eq!(nested.intervals().len(), 2);
        assert_eq!(nested.difficulty(), Some(Difficulty::from_bits(4)));
        assert_eq!(set(&[]).difficulty(), None);
        let all_zero = Npub([0; 32]);
        assert_eq!(nested.matches(&all_zero), [PatternId(0), PatternId(1)]);
    }

    proptest! {
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
