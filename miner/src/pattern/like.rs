//! Characters with which keys of a pattern can begin, continue or end. The scheduler makes other
//! patterns from them, such as canaries, which cost a device little in the same launch.

use super::alphabet::{ALPHABET, value_of};
use super::character_set::{CharacterSet, LAST_OF_DATA, NPUB_CHARACTERS};
use super::kind::Kind;
use super::pattern::Pattern;
use super::shape::Shape;
use std::ops::Range;

/// Each function whose name ends with `_like` takes characters of the alphabet, `other`, and
/// returns as many. A character that the pattern allows at its place is kept; any other is replaced
/// by an allowed one.
impl Pattern {
    /// Characters that keys of this pattern can begin with.
    pub fn start_like(&self, other: &str) -> String {
        let shapes = self.shapes();
        let Some(first) = other.chars().find_map(value_of) else { return String::new() };
        let shape = &shapes[usize::from(first) % shapes.len()];
        all_like((0..).map(|at| set_at(shape, at)), other)
    }

    /// Characters that keys of this pattern can end with; `None` if it restricts no fixed place of
    /// the checksum.
    pub fn end_like(&self, other: &str) -> Option<String> {
        let shape = self.restricting(LAST_OF_DATA + 1..NPUB_CHARACTERS)?;
        Some(all_like((NPUB_CHARACTERS - other.len()..).map(|at| set_at(&shape, at)), other))
    }

    /// Characters that keys of this pattern can have just before the last one of the data (which
    /// holds only one bit of a key); `None` if the pattern restricts no fixed place among them.
    pub fn data_end_like(&self, other: &str) -> Option<String> {
        let from = LAST_OF_DATA - other.len();
        let shape = self.restricting(from..LAST_OF_DATA)?;
        Some(all_like((from..).map(|at| set_at(&shape, at)), other))
    }

    /// Whether the pattern is only one run of characters anywhere.
    pub fn is_a_run(&self) -> bool {
        let Kind::Parts { start, middle, within: None, end } = self.kind() else { return false };
        start.is_empty() && middle.len() == 1 && end.is_empty()
    }

    /// The pattern's first shape that restricts one of these places.
    fn restricting(&self, places: Range<usize>) -> Option<Shape> {
        let is_restricted = |shape: &Shape| places.clone().any(|at| set_at(shape, at) != CharacterSet::ANY);
        self.shapes().into_iter().find(is_restricted)
    }
}

/// The characters that a shape allows at a place.
fn set_at(shape: &Shape, place: usize) -> CharacterSet {
    let of_end = place.checked_sub(shape.end_from()).and_then(|at| shape.end.get(at));
    *shape.start.get(place).or(of_end).unwrap_or(&CharacterSet::ANY)
}

/// The characters of `other`; any that is not in its set is replaced by one of the set.
fn all_like(sets: impl Iterator<Item = CharacterSet>, other: &str) -> String {
    let like = |(set, value): (CharacterSet, u8)| {
        let value = if set.contains(value) { value } else { set.nth(u32::from(value) % set.len()) };
        char::from(ALPHABET[usize::from(value)])
    };
    sets.zip(other.chars().filter_map(value_of)).map(like).collect()
}
