//! One pattern: the characters that follow `npub1`.

use super::alphabet::{nearest, value_of};
use super::difficulty::Difficulty;
use crate::key::Npub;
use std::fmt;
use thiserror::Error;

/// Characters of an npub that encode the key. The six after them are a checksum.
pub const MAX_CHARACTERS: usize = 52;

/// Prefix that at least one npub has. Every value of this type is valid.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Pattern {
    text: String,
    /// Smallest and largest x-coordinate that match, big-endian, both included.
    first: [u8; 32],
    last: [u8; 32],
}

/// Reason why a text is not a pattern, with advice on what would work.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PatternError {
    /// Nothing follows `npub1`.
    #[error("there is no prefix in it; send 1 to {MAX_CHARACTERS} of the characters {}", alphabet_text())]
    Empty,
    /// Longer than an npub, with the number of characters.
    #[error("{0} characters are too many; an npub has {MAX_CHARACTERS} that can be chosen, so send at most that many")]
    TooLong(usize),
    /// A character that bech32 does not have.
    #[error("“{character}” cannot occur in an npub{}", suggestion(.nearest))]
    Forbidden {
        /// The first such character, in lower case.
        character: char,
        /// Spellings of the whole text that are possible, the most similar first; empty if none is
        /// similar.
        nearest: Vec<String>,
    },
    /// A 52nd character or a value of x that no key has.
    #[error("no public key starts like that; the last of {MAX_CHARACTERS} characters can only be q or s, so send 51")]
    Impossible,
}

fn alphabet_text() -> &'static str {
    std::str::from_utf8(super::ALPHABET).expect("ASCII")
}

fn suggestion(nearest: &[String]) -> String {
    match nearest {
        [] => format!("; use the characters {}", alphabet_text()),
        [only] => format!("; “{only}” would work"),
        [first, second, ..] => format!("; “{first}” or “{second}” would work"),
    }
}

impl Pattern {
    /// Reads a prefix as a person writes it. Upper case, a leading `nostr:`, `npub1` or `/`, and
    /// spaces around it are accepted.
    ///
    /// Errors: [`PatternError`].
    pub fn parse(written: &str) -> Result<Pattern, PatternError> {
        let lower = written.trim().to_lowercase();
        let bare = lower.strip_prefix("nostr:").unwrap_or(&lower);
        let bare = bare.trim_start_matches('/');
        let text = bare.strip_prefix("npub1").unwrap_or(bare);
        let length = text.chars().count();
        if length == 0 {
            return Err(PatternError::Empty);
        }
        if length > MAX_CHARACTERS {
            return Err(PatternError::TooLong(length));
        }
        let Some(values) = text.chars().map(value_of).collect::<Option<Vec<u8>>>() else {
            let character = text.chars().find(|&c| value_of(c).is_none()).unwrap_or_default();
            return Err(PatternError::Forbidden { character, nearest: spellings(text) });
        };
        let (first, last) = range(&values).ok_or(PatternError::Impossible)?;
        Ok(Pattern { text: text.to_owned(), first, last })
    }

    /// The characters after `npub1`, in lower case.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Number of leading bits of x that the pattern fixes, 5 to 256.
    pub fn bits(&self) -> u32 {
        (self.text.len() as u32 * 5).min(256)
    }

    /// Expected number of candidates until one matches.
    pub fn difficulty(&self) -> Difficulty {
        Difficulty::from_bits(self.bits())
    }

    /// Whether the key has all fixed bits.
    pub fn matches(&self, npub: &Npub) -> bool {
        self.first <= npub.0 && npub.0 <= self.last
    }

    /// Smallest and largest x-coordinate that match, big-endian, both included.
    pub fn range(&self) -> (&[u8; 32], &[u8; 32]) {
        (&self.first, &self.last)
    }
}

/// Up to three similar spellings of `text` that use only characters of the alphabet.
fn spellings(text: &str) -> Vec<String> {
    let respell = |choice: usize| {
        text.chars()
            .map(|c| value_of(c).map(|_| c).or_else(|| nearest(c).get(choice).copied()))
            .collect::<Option<String>>()
    };
    (0..3).filter_map(respell).collect()
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

/// p = 2^256 - 2^32 - 977, big-endian.
const FIELD_PRIME: [u8; 32] = {
    let mut bytes = [0xff; 32];
    (bytes[27], bytes[28], bytes[29]) = (0xfe, 0xff, 0xff);
    (bytes[30], bytes[31]) = (0xfc, 0x2f);
    bytes
};

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({})", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prefixes_are_read_as_people_write_them() {
        for written in ["m0ctane", " M0ctane\n", "npub1m0ctane", "nostr:npub1m0ctane", "/m0ctane", "NPUB1M0CTANE"] {
            assert_eq!(Pattern::parse(written).unwrap().as_str(), "m0ctane", "{written:?}");
        }
    }

    #[test]
    fn a_character_that_cannot_occur_is_explained_with_similar_spellings() {
        let error = Pattern::parse("bob").unwrap_err();
        assert_eq!(error.to_string(), "“b” cannot occur in an npub; “808” or “6q6” would work");
        let error = Pattern::parse("smörgas").unwrap_err();
        assert!(matches!(&error, PatternError::Forbidden { character: 'ö', nearest } if nearest.is_empty()));
        assert!(error.to_string().contains("qpzry"));
    }

    #[test]
    fn lengths_from_1_to_52_are_patterns() {
        assert_eq!(Pattern::parse(""), Err(PatternError::Empty));
        assert_eq!(Pattern::parse("npub1"), Err(PatternError::Empty));
        assert_eq!(Pattern::parse(&"q".repeat(53)), Err(PatternError::TooLong(53)));
        assert_eq!(Pattern::parse(&"q".repeat(52)).unwrap().bits(), 256);
        assert_eq!(Pattern::parse(&format!("{}p", "q".repeat(51))), Err(PatternError::Impossible));
        // 51 times `l` sets the first 255 bits of x, which makes it at least p.
        assert_eq!(Pattern::parse(&"l".repeat(51)), Err(PatternError::Impossible));
        assert!(Pattern::parse(&"l".repeat(44)).is_ok());
        assert_eq!(Pattern::parse("q").unwrap().difficulty(), Difficulty::from_bits(5));
    }

    proptest! {
        /// Compares with the text itself: an npub matches a pattern exactly if its text starts with
        /// it.
        #[test]
        fn matching_agrees_with_the_text(x in any::<[u8; 32]>(), length in 1usize..=52, change in 0usize..52) {
            let npub = Npub(x);
            let text = npub.to_string()[5..57].to_owned();
            if let Ok(pattern) = Pattern::parse(&text[..length]) {
                prop_assert!(pattern.matches(&npub));
            }
            let mut other: Vec<u8> = text.into_bytes();
            let at = change % length;
            other[at] = if other[at] == b'q' { b's' } else { b'q' };
            let other = String::from_utf8(other).unwrap();
            if let Ok(pattern) = Pattern::parse(&other[..length]) {
                prop_assert!(!pattern.matches(&npub));
            }
        }

        #[test]
        fn no_text_panics(written in any::<String>()) {
            let _ = Pattern::parse(&written).map_err(|error| error.to_string());
        }
    }
}
