//! The patterns of one launch: which of them match a key, and the intervals that a device filters
//! by.

use super::chance::{Effort, chance_of_any};
use super::characters::CharacterSet;
use super::difficulty::Difficulty;
use super::key_tests::{Checks, TextTest, TextTests};
use super::pattern::{KeyShape, Pattern, top_of};
use crate::key::Npub;

/// The most intervals of a set, for which a device's filter has room. If there are more, those with
/// the smallest gaps between them are joined.
pub const MAX_INTERVALS: usize = 1 << 20;

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
        if let Some(gap) = gap_to_close(&intervals, MAX_INTERVALS) {
            (intervals, first_member) = merged(&members, gap);
            is_exact = false;
        }
        first_member.push(members.len() as u32);
        let compares_whole_keys = patterns.iter().any(|pattern| !pattern.begins_selectively());
        PatternSet { patterns, intervals, members, first_member, is_exact, compares_whole_keys }
    }

    /// Number of patterns, duplicates included.
    pub fn len(&self) -> usize {
        self.patterns.len()
    }

    /// Whether there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pattern at an index from [`PatternSet::iter`] or [`PatternSet::matches`]. Panics at any
    /// other index.
    pub fn get(&self, id: PatternId) -> &Pattern {
        &self.patterns[id.0]
    }

    /// All patterns with their indices, in order.
    pub fn iter(&self) -> impl Iterator<Item = (PatternId, &Pattern)> + Clone {
        self.patterns.iter().enumerate().map(|(at, pattern)| (PatternId(at), pattern))
    }

    /// Indices of all patterns that `npub` matches, in order.
    pub fn matches(&self, npub: &Npub) -> Vec<PatternId> {
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
    /// [`MAX_INTERVALS`].
    pub fn intervals(&self) -> &[(u64, u64)] {
        &self.intervals
    }

    /// Whether every key inside the intervals matches.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Conditions on the keys inside the intervals, for devices that check them. `None` if the
    /// intervals are exact, or if there are too many conditions for a device.
    pub fn checks(&self) -> Option<Checks> {
        if self.is_exact { None } else { Checks::new(&self.patterns, &self.members, &self.first_member) }
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
        self.interval_of(top_of(&npub.0)).is_some()
    }

    /// Expected number of candidates until any pattern matches; `None` for the empty set. A key
    /// that has several patterns is counted once. For a set that is too intricate for that, the chances
    /// of the patterns are added.
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
        match chance_of_any(&shapes, effort) {
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

/// Number of intervals that a shape may always have, because a filter with so few costs nothing.
const FREE_INTERVALS: u64 = 64;
/// The most intervals of one shape.
const MAX_OF_A_SHAPE: u64 = 4096;
/// A share of keys so small that finer intervals save nothing.
const RARE_SHARE: f64 = 1.0 / (1u64 << 40) as f64;
/// Characters that lie completely in the upper 64 bits.
const WHOLE_CHARACTERS: usize = 12;

/// Intervals of the upper 64 bits of x: sorted, disjoint, both ends included. They contain every
/// key that has one of the shapes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Intervals {
    /// The intervals.
    pub list: Vec<(u64, u64)>,
    /// Whether every key within them has a shape.
    pub is_exact: bool,
}

impl Intervals {
    /// The intervals of all shapes together.
    pub fn of(shapes: &[KeyShape]) -> Intervals {
        let (mut list, mut is_exact) = (Vec::new(), true);
        for shape in shapes {
            is_exact &= add_intervals(&shape.start, &mut list) && shape.is_start_alone();
        }
        Intervals { list: joined(list), is_exact }
    }

    /// The share of keys that the intervals contain, 0 to 1.
    pub fn share(&self) -> f64 {
        share_of(&self.list)
    }
}

/// The share of keys in disjoint intervals, 0 to 1.
pub fn share_of(intervals: &[(u64, u64)]) -> f64 {
    intervals.iter().map(|&(first, last)| ((last - first) as f64 + 1.0) / 64f64.exp2()).sum()
}

/// Sorts intervals, and joins those that overlap or touch.
pub fn joined(mut intervals: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    intervals.sort_unstable();
    let members: Vec<_> = intervals.into_iter().map(|(first, last)| (first, last, 0)).collect();
    merged(&members, 0).0
}

/// Adds the intervals of characters at the start. Returns whether they are exact.
fn add_intervals(start: &[CharacterSet], list: &mut Vec<(u64, u64)>) -> bool {
    let restricted = start.iter().rposition(|&set| set != CharacterSet::ANY).map_or(0, |at| at + 1);
    // Ranges of the number that the characters so far form.
    let (mut ranges, mut bits, mut is_exact) = (vec![(0u64, 0u64)], 0, restricted <= WHOLE_CHARACTERS + 1);
    for (at, &set) in start[..restricted.min(WHOLE_CHARACTERS + 1)].iter().enumerate() {
        let (set, width) = if at < WHOLE_CHARACTERS {
            (set, 5)
        } else if set == CharacterSet::ANY {
            break;
        } else {
            // Only the upper four bits of this character are in the upper 64 bits of x, so its
            // values form pairs.
            let pairs = (set.0 | set.0 >> 1) & 0x5555_5555;
            is_exact &= pairs * 3 == set.0;
            (CharacterSet((0..16).fold(0, |half, pair| half | (pairs >> (2 * pair) & 1) << pair)), 4)
        };
        if set == CharacterSet::ANY {
            for range in &mut ranges {
                *range = (range.0 << 5, range.1 << 5 | 31);
            }
        } else {
            let values: u64 = ranges.iter().map(|(first, last)| last - first + 1).sum();
            let count = values.saturating_mul(set.runs().count() as u64);
            let share = values as f64 * (-f64::from(bits)).exp2();
            if count > MAX_OF_A_SHAPE || (count > FREE_INTERVALS && share <= RARE_SHARE) {
                is_exact = false;
                break;
            }
            let each =
                |value: u64| set.runs().map(move |(first, last)| (value << width | first, value << width | last));
            ranges = ranges.iter().flat_map(|&(first, last)| (first..=last).flat_map(each)).collect();
        }
        bits += width;
    }
    let below = 64 - bits;
    let filled = |value: u64| if below == 64 { u64::MAX } else { value << below | ((1 << below) - 1) };
    let begun = |value: u64| if below == 64 { 0 } else { value << below };
    list.extend(ranges.into_iter().map(|(first, last)| (begun(first), filled(last))));
    is_exact
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
