//! Errors of the grammar, one of each.

use crate::pattern::{GrammarError, PatternError};

/// Errors that random texts hardly ever cause.
pub(super) fn errors() -> Vec<GrammarError> {
    let prefix = |error| GrammarError::Prefix { error, look_alike: None };
    let number = |keyword| GrammarError::Number { keyword, least: 2, most: 51, example: 7 };
    let long = "m0ctane".repeat(7);
    vec![
        prefix(PatternError::Impossible),
        prefix(PatternError::Empty),
        prefix(PatternError::TooLong(53)),
        GrammarError::Anything,
        GrammarError::Class,
        number("="),
        number("zeros:"),
        GrammarError::Hex,
        GrammarError::Within,
        GrammarError::TooMany(47),
        GrammarError::Ending(None),
        GrammarError::Ending(Some(long.clone())),
        GrammarError::TooIntricate,
        GrammarError::Best,
        GrammarError::Prefix {
            error: PatternError::Forbidden { character: 'b', nearest: vec![long.clone(), long.clone()] },
            look_alike: Some(long),
        },
    ]
}
