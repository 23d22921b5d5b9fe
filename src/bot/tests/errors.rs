//! Errors of the grammar, one of each.

use crate::pattern::PatternError;

/// Errors that random texts hardly ever cause.
pub(super) fn errors() -> Vec<PatternError> {
    let number = |keyword: &'static str, nearest: Option<&str>| {
        let (nearest, example) = (nearest.map(str::to_owned), format!("{keyword}7"));
        PatternError::Number { keyword, least: 2, most: 51, nearest, example }
    };
    let long = "m0ctane".repeat(7);
    vec![
        PatternError::Impossible(51),
        PatternError::Empty,
        PatternError::TooLong(53),
        PatternError::Anything,
        PatternError::Class,
        number("=", None),
        number("=", Some("=12*")),
        number("zeros:", Some("zeros:255")),
        PatternError::Hex(None),
        PatternError::Hex(Some(format!("hex:*{}", "dead".repeat(15)))),
        PatternError::HexTooLong(65),
        PatternError::Within(None),
        PatternError::Within(Some(format!("*{long}*@58"))),
        PatternError::TooMany(47),
        PatternError::Ending(None),
        PatternError::Ending(Some(long.clone())),
        PatternError::TooIntricate,
        PatternError::Best,
        PatternError::Forbidden { character: 'b', nearest: vec![long.clone(), long.clone()], look_alike: Some(long) },
    ]
}
