//! Checks of keys beyond the intervals of a pattern set, as flat tables that a device can read.

use super::pattern::Pattern;
use super::shape::Shape;

/// The most words of all shapes of a set: 64 MiB on a device. The host checks the keys of larger
/// sets.
const MOST_WORDS: usize = 1 << 24;

/// Further conditions on keys inside the intervals of a [`super::PatternSet`].
///
/// The words of a pattern are the number of its shapes, then each shape: its lengths, then its
/// character sets. The lengths are one word, `start | parts << 8 | end << 16 | within << 24`; the
/// sets are those of the start, those of the end, then for each part its length and its sets.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// The index of the first member of each interval; then the number of members.
    pub first_member: Vec<u32>,
    /// Intervals of single patterns, sorted within each interval.
    pub members: Vec<Member>,
    /// The words of all patterns.
    pub words: Vec<u32>,
}

/// An interval of one pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// The smallest value of the upper 64 bits of x.
    pub first: u64,
    /// The largest value of the upper 64 bits of x.
    pub last: u64,
    /// Index of the pattern's first word; [`Member::ALL`] if every key of the interval matches.
    pub words: u32,
}

impl Member {
    /// Value of [`Member::words`] if every key of the interval matches.
    pub const ALL: u32 = u32::MAX;
}

impl Checks {
    /// The checks of `patterns`. `members` are the patterns' intervals: the first and the last
    /// value, and the index of the pattern. `None` if there are too many words.
    pub(super) fn new(patterns: &[Pattern], members: &[(u64, u64, u32)], first_member: &[u32]) -> Option<Checks> {
        let mut words = Vec::new();
        let mut at = Vec::with_capacity(patterns.len());
        for pattern in patterns {
            if pattern.is_exact() {
                at.push(Member::ALL);
                continue;
            }
            at.push(words.len() as u32);
            let shapes = pattern.shapes();
            words.push(shapes.len() as u32);
            shapes.iter().for_each(|shape| add(shape, &mut words));
            if words.len() > MOST_WORDS {
                return None;
            }
        }
        let member = |&(first, last, pattern): &(u64, u64, u32)| Member { first, last, words: at[pattern as usize] };
        Some(Checks { first_member: first_member.to_vec(), members: members.iter().map(member).collect(), words })
    }
}

/// Adds the words of a shape.
fn add(shape: &Shape, words: &mut Vec<u32>) {
    let lengths = [shape.start.len(), shape.middle.len(), shape.end.len(), shape.within];
    words.push(lengths.iter().enumerate().fold(0, |all, (at, &length)| all | (length as u32) << (8 * at)));
    words.extend(shape.start.iter().chain(&shape.end).map(|set| set.0));
    for part in &shape.middle {
        words.push(part.len() as u32);
        words.extend(part.iter().map(|set| set.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::PatternSet;
    use crate::pattern::character_set::CharacterSet;

    /// The shapes that words from `at` on describe.
    fn shapes(words: &[u32], at: usize) -> Vec<Shape> {
        let mut rest = words[at..].iter().copied();
        let mut next = || rest.next().unwrap();
        let count = next();
        let sets = |count: u32, next: &mut dyn FnMut() -> u32| (0..count).map(|_| CharacterSet(next())).collect();
        let mut shape = || {
            let lengths = next();
            let [start, parts, end, within] = lengths.to_le_bytes();
            let start = sets(u32::from(start), &mut next);
            let end = sets(u32::from(end), &mut next);
            let middle = (0..parts)
                .map(|_| {
                    let length = next();
                    sets(length, &mut next)
                })
                .collect();
            Shape { start, middle, within: usize::from(within), end }
        };
        (0..count).map(|_| shape()).collect()
    }

    #[test]
    fn the_words_of_a_pattern_describe_its_shapes() {
        let texts = ["m0ct", "m0ct*cafe", "~al7ce*[qp]?*@40", "=5*", "m0ctanemmmmmmm?", "hex:*beef"];
        let patterns: Vec<Pattern> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let set = PatternSet::new(patterns.clone());
        let checks = set.checks().unwrap();
        assert_eq!(checks.first_member.len(), set.intervals().len() + 1);
        let mut seen = 0;
        for member in &checks.members {
            let is_of = |pattern: &&Pattern| pattern.intervals().contains(&(member.first, member.last));
            let pattern = patterns.iter().filter(is_of).find(|pattern| match member.words {
                Member::ALL => pattern.is_exact(),
                at => !pattern.is_exact() && shapes(&checks.words, at as usize) == pattern.shapes(),
            });
            assert!(pattern.is_some(), "{member:?}");
            seen += usize::from(member.words != Member::ALL);
        }
        assert!(seen >= 5);
    }

    #[test]
    fn a_set_whose_intervals_say_all_needs_no_checks() {
        let set = |texts: &[&str]| PatternSet::new(texts.iter().map(|text| text.parse().unwrap()).collect());
        assert!(set(&["m0ct", "~alice", "=7"]).checks().is_none());
        assert!(set(&["m0ct", "m0ct*cafe"]).checks().is_some());
    }
}
