//! Reasons why a text is not a pattern.

use super::character_set::MOST_CHOSEN;
use super::prefix::PatternError;
use thiserror::Error;

/// Reason why a text is not a pattern. Its text says what would work.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum GrammarError {
    /// A pattern of characters that is invalid for the same reason as a prefix.
    #[error("{error}{}", look_alike_hint(.look_alike))]
    Prefix {
        /// The reason.
        error: PatternError,
        /// The look-alike pattern that would work, if any.
        look_alike: Option<String>,
    },
    /// The pattern fits every key.
    #[error("that fits every key; name at least one character")]
    Anything,
    /// `[` without `]`, or nothing between them, or `]` alone.
    #[error("write several characters for one place as [s5]")]
    Class,
    /// A number that is missing, malformed or out of range.
    #[error("after `{keyword}` comes a number from {least} to {most}, like {keyword}{example}")]
    Number {
        /// The word before the number.
        keyword: &'static str,
        /// The smallest number allowed.
        least: usize,
        /// The largest number allowed.
        most: usize,
        /// A number that works.
        example: usize,
    },
    /// A text that is not hexadecimal, or has more digits than a key.
    #[error("after `hex:` come 1 to 64 of the digits 0 to 9 and a to f, like hex:c0de or hex:*beef")]
    Hex,
    /// A number after `@` that is too small for the parts before it, or without such parts.
    #[error("`@` follows a word between stars and says within how many characters, like *alice*@12")]
    Within,
    /// More characters than can be chosen together.
    #[error("with a part elsewhere, at most {most} characters can be chosen; these are {0}", most = MOST_CHOSEN)]
    TooMany(usize),
    /// An ending whose seventh character from the end is impossible there.
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

fn look_alike_hint(look_alike: &Option<String>) -> String {
    look_alike.as_ref().map_or_else(String::new, |text| format!("; “{text}” takes any spelling that looks like it"))
}

fn or_else(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |text| format!("; “{text}” would work"))
}
