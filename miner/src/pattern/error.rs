//! Reasons why a text is not a pattern.

use super::character_set::MOST_CHOSEN;
use super::prefix::PatternError;
use thiserror::Error;

/// Reason why a text is not a pattern. Its text says what would work.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum GrammarError {
    /// No pattern of characters, for the reason that also holds for a prefix.
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
    /// A number that is missing, no number or out of range.
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
    /// No hexadecimal digits, or more than a key has.
    #[error("after `hex:` come 1 to 64 of the digits 0 to 9 and a to f, like hex:c0de or hex:*beef")]
    Hex,
    /// A number after `@` that leaves no room, or without parts anywhere before it.
    #[error("`@` follows a word between stars and says within how many characters, like *m0ct*@12")]
    Within,
    /// More characters than can be chosen together.
    #[error("with a part elsewhere, at most {most} characters can be chosen; these are {0}", most = MOST_CHOSEN)]
    TooMany(usize),
    /// An ending whose seventh character from the end cannot be there.
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

impl GrammarError {
    /// Patterns that would work in place of the text, the most similar first. Each can be read.
    pub fn suggestions(&self) -> Vec<&str> {
        match self {
            GrammarError::Prefix { error: PatternError::Forbidden { nearest, .. }, look_alike } => {
                nearest.iter().chain(look_alike).map(String::as_str).collect()
            }
            GrammarError::Ending(nearest) => nearest.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }
}

fn look_alike_hint(look_alike: &Option<String>) -> String {
    look_alike.as_ref().map_or_else(String::new, |text| format!("; “{text}” takes any spelling that looks like it"))
}

fn or_else(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |text| format!("; “{text}” would work"))
}
