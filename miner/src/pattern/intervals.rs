//! Turns shapes into intervals of the upper 64 bits of x, which the devices filter by.

use super::character_set::CharacterSet;
use super::shape::Shape;

/// Number of intervals that a shape may always have, because a filter with so few costs nothing.
const FREE: u64 = 64;
/// The most intervals of one shape.
const MOST: u64 = 4096;
/// A share of keys so small that finer intervals save nothing.
const RARE: f64 = 1.0 / (1u64 << 40) as f64;
/// Characters that lie completely in the upper 64 bits.
const WHOLE: usize = 12;

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
    pub fn of(shapes: &[Shape]) -> Intervals {
        let (mut list, mut is_exact) = (Vec::new(), true);
        for shape in shapes {
            is_exact &= add(&shape.start, &mut list) && shape.is_start_alone();
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
    let mut joined: Vec<(u64, u64)> = Vec::with_capacity(intervals.len());
    for (first, last) in intervals {
        match joined.last_mut() {
            Some(open) if first <= open.1.saturating_add(1) => open.1 = open.1.max(last),
            _ => joined.push((first, last)),
        }
    }
    joined
}

/// Adds the intervals of characters at the start. Returns whether they are exact.
fn add(start: &[CharacterSet], list: &mut Vec<(u64, u64)>) -> bool {
    let restricted = start.iter().rposition(|&set| set != CharacterSet::ANY).map_or(0, |at| at + 1);
    // Ranges of the number that the characters so far form.
    let (mut ranges, mut bits, mut is_exact) = (vec![(0u64, 0u64)], 0, restricted <= WHOLE + 1);
    for (at, &set) in start[..restricted.min(WHOLE + 1)].iter().enumerate() {
        let (set, width) = if at < WHOLE {
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
            if count > MOST || (count > FREE && share <= RARE) {
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
