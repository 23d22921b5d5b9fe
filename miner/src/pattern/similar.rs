//! Patterns and characters near a given pattern: the nearest one that is searched for at full rate,
//! cheaper look-alikes, and characters with which its keys can begin, continue or end. From these
//! the scheduler makes other patterns, such as canaries, which cost a device little in the same
//! launch.

use super::chance::Effort;
use super::characters::{ALPHABET, CharacterSet, LAST_OF_DATA, NPUB_CHARACTERS, value_of};
use super::pattern::{KeyShape, Pattern, PatternKind};
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
        let PatternKind::Parts { start, middle, within: None, end } = self.kind() else { return false };
        start.is_empty() && middle.len() == 1 && end.is_empty()
    }

    /// The pattern's first shape that restricts one of these places.
    fn restricting(&self, places: Range<usize>) -> Option<KeyShape> {
        let is_restricted = |shape: &KeyShape| places.clone().any(|at| set_at(shape, at) != CharacterSet::ANY);
        self.shapes().into_iter().find(is_restricted)
    }
}

/// The characters that a shape allows at a place.
fn set_at(shape: &KeyShape, place: usize) -> CharacterSet {
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

/// The least ratio of the difficulties at which a look-alike is worth naming.
const WORTH_NAMING: f64 = 1.9;

impl Pattern {
    /// The nearest pattern that the fast kernel searches for: this one, or one with the same
    /// characters at the start. `None` if there is none.
    pub fn nearest_searchable(&self) -> Option<Pattern> {
        if self.begins_selectively() {
            return Some(self.clone());
        }
        let text = match self.kind() {
            PatternKind::Prefix
            | PatternKind::Equal(_)
            | PatternKind::HexStart(_)
            | PatternKind::Zeros(_)
            | PatternKind::Words(_) => return None,
            PatternKind::Open => self.as_str().trim_start_matches('?').to_owned(),
            PatternKind::LookAlike => format!("~{}", self.as_str().trim_start_matches(['~', '?'])),
            PatternKind::EqualAnywhere(count) => format!("={count}"),
            PatternKind::HexEnd(digits) => format!("hex:{digits}"),
            PatternKind::Parts { start, middle, end, .. } => {
                let longest = middle.iter().chain([end]).max_by_key(|part| part.len())?;
                let mark = if self.as_str().starts_with('~') { "~" } else { "" };
                format!("{mark}{}{}", start.trim_start_matches('~'), longest.trim_start_matches('~'))
            }
        };
        text.parse().ok().filter(Pattern::begins_selectively)
    }

    /// Patterns that people read as the same, and that are found much sooner; the cheapest first.
    pub fn cheaper(&self) -> Vec<Pattern> {
        self.cheaper_within(&mut Effort::full())
    }

    /// [`Pattern::cheaper`] without patterns whose difficulty takes more than `effort` to compute.
    pub fn cheaper_within(&self, effort: &mut Effort) -> Vec<Pattern> {
        if !matches!(self.kind(), PatternKind::Prefix | PatternKind::Open | PatternKind::Parts { .. })
            || self.as_str().starts_with('~')
        {
            return Vec::new();
        }
        let alike = Pattern::read_within(&format!("~{}", self.as_str()), effort).ok();
        let is_cheaper = |other: &Pattern| {
            self.difficulty().candidates() >= WORTH_NAMING * other.difficulty().candidates() && other.is_searchable()
        };
        alike.into_iter().filter(is_cheaper).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_begins_with_nothing_has_a_nearest_one_that_does() {
        for (text, nearest) in [
            ("*cafe", Some("cafe")),
            ("*al7ce*", Some("al7ce")),
            ("m0*cafe", Some("m0cafe")),
            ("~*alice", Some("~alice")),
            ("=7*", Some("=7")),
            ("hex:*beef", Some("hex:beef")),
            ("????????cafe", Some("cafe")),
            ("m0ctane", Some("m0ctane")),
        ] {
            let pattern: Pattern = text.parse().unwrap();
            assert_eq!(pattern.nearest_searchable().as_ref().map(Pattern::as_str), nearest, "{text}");
        }
    }

    #[test]
    fn a_look_alike_is_named_where_it_is_cheaper() {
        let cheaper = |text: &str| text.parse::<Pattern>().unwrap().cheaper();
        assert_eq!(cheaper("m0ctane"), ["~m0ctane".parse().unwrap()]);
        assert_eq!(cheaper("m0ctn*cafe"), ["~m0ctn*cafe".parse().unwrap()]);
        assert_eq!(cheaper("*cafe"), ["~*cafe".parse().unwrap()]);
        assert_eq!((cheaper("kmn"), cheaper("~cat"), cheaper("=7")), (vec![], vec![], vec![]));
    }
}
