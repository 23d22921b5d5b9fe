//! Errors of the grammar, one of each.

use crate::pattern::{GrammarError, PatternError};

/// Errors that random texts hardly ever cause.
pub(super) fn errors() -> Vec<GrammarError> {
    let prefix = |error| GrammarError::Prefix { error, look_alike: None };
    let number = |keyword: &'static str, nearest: Option<&str>| {
        let (nearest, example) = (nearest.map(str::to_owned), format!("{keyword}7"));
        GrammarError::Number { keyword, least: 2, most: 51, nearest, example }
    };
    let long = "m0ctane".repeat(7);
    vec![
        prefix(PatternError::Impossible(51)),
        prefix(PatternError::Empty),
        prefix(PatternError::TooLong(53)),
        GrammarError::Anything,
        GrammarError::Class,
        number("=", None),
        number("=", Some("=12*")),
        number("zeros:", Some("zeros:255")),
        GrammarError::Hex(None),
        GrammarError::Hex(Some(format!("hex:*{}", "dead".repeat(15)))),
        GrammarError::HexTooLong(65),
        GrammarError::Within(None),
        GrammarError::Within(Some(format!("*{long}*@58"))),
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
