//! Plain prefixes.

use super::super::{Difficulty, PatternError};
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
    assert!(matches!(&error, PatternError::Forbidden { character: 'ö', nearest, .. } if nearest.is_empty()));
    assert!(error.to_string().contains("qpzry"));
}

#[test]
fn lengths_from_1_to_52_are_patterns() {
    assert_eq!(Pattern::parse(""), Err(PatternError::Empty));
    assert_eq!(Pattern::parse("npub1"), Err(PatternError::Empty));
    assert_eq!(Pattern::parse(&"q".repeat(53)), Err(PatternError::TooLong(53)));
    assert_eq!(Pattern::parse(&"q".repeat(52)).unwrap().bits(), 256);
    assert_eq!(Pattern::parse(&format!("{}p", "q".repeat(51))), Err(PatternError::Impossible(51)));
    // 51 times `l` sets the first 255 bits of x, which makes it at least p.
    assert_eq!(Pattern::parse(&"l".repeat(51)), Err(PatternError::Impossible(44)));
    assert!(Pattern::parse(&"l".repeat(44)).is_ok());
    assert_eq!(Pattern::parse("q").unwrap().difficulty(), Difficulty::from_bits(5));
}

proptest! {
    /// The oracle is the text itself: an npub matches a pattern if and only if its text starts
    /// with it.
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
}
