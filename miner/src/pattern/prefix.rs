//! Prefixes: the characters that follow `npub1`, and the x-coordinates that have them.

use super::alphabet::{ALPHABET, nearest, value_of};
use super::character_set::CharacterSet;
use thiserror::Error;

/// Characters of an npub that encode the key. The six after them are a checksum.
pub const MAX_CHARACTERS: usize = 52;

/// The most spellings that an error names.
pub(super) const MOST_NAMED: usize = 2;

/// Reason why a text is not a prefix, with advice on what would work.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PatternError {
    /// Nothing follows `npub1`.
    #[error("there is no prefix in it; send 1 to {MAX_CHARACTERS} of the characters {}", alphabet_text())]
    Empty,
    /// More characters than can be chosen: their number.
    #[error("{0} characters are too many; an npub has {MAX_CHARACTERS} that can be chosen, so send at most that many")]
    TooLong(usize),
    /// A character that bech32 does not have.
    #[error("“{character}” cannot occur in an npub{}", suggestion(.nearest))]
    Forbidden {
        /// The first forbidden character, in lower case.
        character: char,
        /// Spellings of the whole text that are possible, at most two, the most similar first;
        /// empty if none is similar.
        nearest: Vec<String>,
    },
    /// No key has this 52nd character or this value of x. Carries the number of leading characters
    /// or digits that a key can have.
    #[error("no public key starts like that; its first {0} characters would be possible")]
    Impossible(usize),
}

fn alphabet_text() -> &'static str {
    std::str::from_utf8(ALPHABET).expect("ASCII")
}

fn suggestion(nearest: &[String]) -> String {
    match nearest {
        [] => format!("; use the characters {}", alphabet_text()),
        [only] => format!("; “{only}” would work"),
        [first, second, ..] => format!("; “{first}” or “{second}” would work"),
    }
}

/// Removes spaces, capitals, `nostr:`, `npub1` and `/` around a pattern.
pub(super) fn bare(written: &str) -> String {
    let lower = written.trim().to_lowercase();
    let bare = lower.strip_prefix("nostr:").unwrap_or(&lower).trim_start_matches('/');
    bare.strip_prefix("npub1").unwrap_or(bare).to_owned()
}

/// Smallest and largest x-coordinate of a prefix, big-endian, both included.
pub(super) fn range_of(text: &str) -> Result<([u8; 32], [u8; 32]), PatternError> {
    let length = text.chars().count();
    if length == 0 {
        return Err(PatternError::Empty);
    }
    if length > MAX_CHARACTERS {
        return Err(PatternError::TooLong(length));
    }
    let Some(values) = text.chars().map(value_of).collect::<Option<Vec<u8>>>() else {
        let character = text.chars().find(|&c| value_of(c).is_none()).unwrap_or_default();
        let respelled = spellings(text, |c| value_of(c).is_some());
        let nearest = respelled.filter(|text| range_of(text).is_ok()).take(MOST_NAMED).collect();
        return Err(PatternError::Forbidden { character, nearest });
    };
    let possible = || (0..length).rev().find(|&count| range(&values[..count]).is_some()).unwrap_or(0);
    range(&values).ok_or_else(|| PatternError::Impossible(possible()))
}

/// Up to three spellings of `text` in characters that can occur. Characters for which `stays` is
/// true are kept. The caller checks that a spelling is a pattern.
pub(super) fn spellings(text: &str, stays: impl Fn(char) -> bool) -> impl Iterator<Item = String> {
    let respell = move |choice: usize| {
        text.chars()
            .map(|c| if stays(c) { Some(c) } else { nearest(c).get(choice).copied() })
            .collect::<Option<String>>()
    };
    (0..3).filter_map(respell)
}

/// Smallest and largest x-coordinate whose leading 5-bit groups are `values`; `None` if no key has
/// them. The 52nd group is one bit of the key and four bits of padding, which are zero, and x is
/// below p.
fn range(values: &[u8]) -> Option<([u8; 32], [u8; 32])> {
    let fill = |fill_bit: u8| {
        let mut bytes = [0u8; 32];
        for bit in 0..256 {
            let value = values.get(bit / 5).map_or(fill_bit, |v| v >> (4 - bit % 5) & 1);
            bytes[bit / 8] |= value << (7 - bit % 8);
        }
        bytes
    };
    if values.get(51).is_some_and(|last| last & 0x0f != 0) {
        return None;
    }
    let (first, last) = (fill(0), fill(1));
    (first < FIELD_PRIME).then_some((first, last))
}

/// Whether some x-coordinate below p has these characters at its start.
pub(super) fn is_possible(start: &[CharacterSet]) -> bool {
    let smallest: Vec<u8> = start.iter().map(|set| set.0.trailing_zeros() as u8).collect();
    start.len() <= MAX_CHARACTERS && range(&smallest).is_some()
}

/// The length of the longest start of these characters, shorter than all of them, that some key
/// has.
pub(super) fn possible_characters(start: &[CharacterSet]) -> usize {
    (0..start.len()).rev().find(|&count| is_possible(&start[..count])).unwrap_or(0)
}

/// p = 2^256 - 2^32 - 977, big-endian.
const FIELD_PRIME: [u8; 32] = {
    let mut bytes = [0xff; 32];
    (bytes[27], bytes[28], bytes[29]) = (0xfe, 0xff, 0xff);
    (bytes[30], bytes[31]) = (0xfc, 0x2f);
    bytes
};
