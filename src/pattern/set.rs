//! The patterns of one launch: which of them a key matches, and the intervals that a device filters
//! by.

use super::difficulty::Difficulty;
use super::prefix::Pattern;
use crate::key::Npub;

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
}

impl PatternSet {
    /// A set in the given order.
    pub fn new(patterns: Vec<Pattern>) -> PatternSet {
        let intervals = merge(patterns.iter().map(top_64_bits).collect());
        PatternSet { patterns, intervals }
    }

    /// Number of patterns, duplicates included.
    pub fn len(&self) -> usize {
        self.patterns.len()
    }

    /// Whether there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The pattern at an index from [`PatternSet::iter`] or [`PatternSet::matches`]. Panics at any
    /// other index.
    pub fn get(&self, id: PatternId) -> &Pattern {
        &self.patterns[id.0]
    }

    /// All patterns with their indices, in order.
    pub fn iter(&self) -> impl Iterator<Item = (PatternId, &Pattern)> {
        self.patterns.iter().enumerate().map(|(at, pattern)| (PatternId(at), pattern))
    }

    /// Indices of all patterns that `npub` matches, in order.
    pub fn matches(&self, npub: &Npub) -> Vec<PatternId> {
        if !self.may_match(npub) {
            return Vec::new();
        }
        self.iter().filter(|(_, pattern)| pattern.matches(npub)).map(|(id, _)| id).collect()
    }

    /// Intervals of the upper 64 bits of x for a device to filter by: sorted, disjoint, both ends
    /// included. A key outside all of them matches nothing; a key inside may match.
    pub fn intervals(&self) -> &[(u64, u64)] {
        &self.intervals
    }

    /// Expected number of candidates until any pattern matches; `None` for the empty set.
    pub fn difficulty(&self) -> Option<Difficulty> {
        Difficulty::any_of(self.intervals.iter().map(|&(first, last)| {
            // Only 64 bits are counted, because harder patterns are out of reach anyway.
            Difficulty::from_top_values((last - first) as f64 + 1.0)
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
    fn overlapping_patterns_share_an_interval() {
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
