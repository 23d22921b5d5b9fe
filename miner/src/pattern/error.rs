//! Reasons why a text is not a pattern.

use super::characters::{ALPHABET, MAX_CHOSEN};
use super::pattern::MAX_CHARACTERS;
use thiserror::Error;

/// Hexadecimal digits of a key.
pub const HEX_DIGITS: usize = 64;

/// Reason why a text is not a pattern. Its text says what would work.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PatternError {
    /// Nothing follows `npub1`.
    #[error("there is no prefix in it; send 1 to {MAX_CHARACTERS} of the characters {}", alphabet_text())]
    Empty,
    /// More characters than can be chosen: their number.
    #[error("{0} characters are too many; an npub has {MAX_CHARACTERS} that can be chosen, so send at most that many")]
    TooLong(usize),
    /// A character that bech32 does not have.
    #[error("“{character}” cannot occur in an npub{}{}", suggestion(.nearest), look_alike_hint(.look_alike))]
    Forbidden {
        /// The first forbidden character, in lower case.
        character: char,
        /// Spellings of the whole text that are possible, at most two, the most similar first;
        /// empty if none is similar.
        nearest: Vec<String>,
        /// The look-alike pattern that would work, if any.
        look_alike: Option<String>,
    },
    /// No key has this 52nd character or this value of x. Carries the number of leading characters
    /// or digits that a key can have.
    #[error("no public key starts like that; its first {0} characters would be possible")]
    Impossible(usize),
    /// The pattern fits every key.
    #[error("that fits every key; name at least one character")]
    Anything,
    /// `[` without `]`, or nothing between them, or `]` alone.
    #[error("write several characters for one place as [s5]")]
    Class,
    /// A number that is missing, malformed or out of range.
    #[error("after `{keyword}` comes a number from {least} to {most}{}", hint(.nearest, .example))]
    Number {
        /// The word before the number.
        keyword: &'static str,
        /// The smallest number allowed.
        least: usize,
        /// The largest number allowed.
        most: usize,
        /// The pattern with the nearest number that works; `None` if the text is no number.
        nearest: Option<String>,
        /// A pattern that works.
        example: String,
    },
    /// A text that is not hexadecimal. Carries the pattern that was probably meant, if any.
    #[error("after `hex:` come 1 to 64 of the digits 0 to 9 and a to f{}", hint(.0, "hex:c0de or hex:*beef"))]
    Hex(Option<String>),
    /// More hexadecimal digits than a key has: their number.
    #[error("a key has {HEX_DIGITS} hexadecimal digits; these are {digits}, leave out {more}", digits = .0, more = .0 - HEX_DIGITS)]
    HexTooLong(usize),
    /// A number after `@` that is too small for the parts before it, or without such parts. Carries
    /// the pattern with the nearest number that works, if there is one.
    #[error("`@` follows a word between stars and says within how many characters{}", hint(.0, "*m0ct*@12"))]
    Within(Option<String>),
    /// More characters than can be chosen together.
    #[error("with a part elsewhere, at most {most} characters can be chosen; these are {0}", most = MAX_CHOSEN)]
    TooMany(usize),
    /// An ending whose seventh character from the end is impossible there. Carries a pattern that
    /// works, if there is one.
    #[error("the seventh character from the end is always q or s{}", or_else(.0))]
    Ending(Option<String>),
    /// The difficulty takes too long to compute.
    #[error("that has too many open places; leave some out")]
    TooIntricate,
    /// `best` or `surprise` among patterns, or `best` without a time.
    #[error(
        "`best` comes alone and with a time, like best 10m, best zeros 10m, best words 10m; `surprise` comes alone"
    )]
    Best,
}

impl PatternError {
    /// Patterns that would work in place of the text, the most similar first. Each can be read.
    pub fn suggestions(&self) -> Vec<&str> {
        match self {
            PatternError::Forbidden { nearest, look_alike, .. } => {
                nearest.iter().chain(look_alike).map(String::as_str).collect()
            }
            PatternError::Ending(nearest)
            | PatternError::Hex(nearest)
            | PatternError::Within(nearest)
            | PatternError::Number { nearest, .. } => nearest.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }
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

fn look_alike_hint(look_alike: &Option<String>) -> String {
    look_alike.as_ref().map_or_else(String::new, |text| format!("; “{text}” takes any spelling that looks like it"))
}

/// The nearest pattern that works, or else an example.
fn hint(nearest: &Option<String>, example: &str) -> String {
    if nearest.is_none() { format!(", like {example}") } else { or_else(nearest) }
}

fn or_else(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |text| format!("; “{text}” would work"))
}

/// The number from `least` to `most` that is nearest to a text of digits, which may begin with `+`.
/// `None` for any other text.
pub(super) fn nearest_number(text: &str, least: usize, most: usize) -> Option<usize> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    // A number that is too long for the type is larger than `most`.
    is_number.then(|| digits.parse().unwrap_or(most).clamp(least, most.max(least)))
}
