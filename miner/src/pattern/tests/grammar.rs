//! Reading patterns, and the words of refusals.

use super::super::{PatternError, PatternKind};
use super::matching::{key_near, pattern_near};
use super::*;
use proptest::prelude::*;

#[test]
fn a_pattern_is_written_as_it_was_read() {
    let mut rng = random();
    for _ in 0..1_500 {
        let npub = key_near(&mut rng);
        if let Ok(pattern) = pattern_near(&mut rng, &npub).parse::<Pattern>() {
            let again: Pattern = pattern.to_string().parse().unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(again, pattern);
            assert_eq!((again.kind(), again.bits()), (pattern.kind(), pattern.bits()), "{pattern}");
            assert!(!pattern.as_str().contains(char::is_whitespace), "the ledger separates them by spaces");
        }
    }
}

#[test]
fn patterns_are_read_as_people_write_them() {
    for (written, text) in [
        (" M0ctane\n", "m0ctane"),
        ("npub1m0ctane", "m0ctane"),
        ("nostr:npub1m0ctane", "m0ctane"),
        ("/m0ctane", "m0ctane"),
        ("NPUB1M0?TANE", "m0?tane"),
        ("[5s5]at0", "[5s]at0"),
        ("[s]at", "sat"),
        ("[qpzry9x8gf2tvdw0s3jn54khce6mua7l]at", "?at"),
        ("alice".replace('i', "l").as_str(), "allce"),
        ("~Bitcoin", "~bitcoin"),
        ("m0ct*", "m0ct"),
        ("m0ct**cafe", "m0ct*cafe"),
        ("*cafe*", "*cafe*"),
        ("hex:0000C0DE", "hex:0000c0de"),
        ("words", "words:5"),
        ("*ca*@12", "*ca*@12"),
    ] {
        assert_eq!(pattern(written).as_str(), text, "{written}");
    }
    assert_eq!(pattern("m0ct*").kind(), &PatternKind::Prefix);
    assert_eq!(pattern("~cat").kind(), &PatternKind::LookAlike);
}

#[test]
fn an_impossible_pattern_is_refused_with_one_that_works() {
    for (written, expected) in [
        ("", "there is no prefix in it"),
        ("npub1", "there is no prefix in it"),
        (&"q".repeat(53), "53 characters are too many"),
        ("bob", "“b” cannot occur in an npub; “808” or “6q6” would work; “~bob” takes any spelling that looks like it"),
        ("b?b", "“b” cannot occur in an npub; “8?8” or “6?6” would work; “~b?b”"),
        ("*b*", "“*8*” or “*6*” would work"),
        ("?", "fits every key"),
        ("??*", "fits every key"),
        ("*", "fits every key"),
        ("[st", "[s5]"),
        ("s]t", "[s5]"),
        ("[]t", "[s5]"),
        ("=1", "from 2 to 51; “=2” would work"),
        ("=60", "from 2 to 51; “=51” would work"),
        ("=", "from 2 to 51, like =7"),
        ("=13*", "from 2 to 12; “=12*” would work"),
        ("=x*", "from 2 to 12, like =7*"),
        ("zeros:0", "from 1 to 255; “zeros:1” would work"),
        ("zeros:300", "from 1 to 255; “zeros:255” would work"),
        ("zeros:300000000000000000000000000000", "“zeros:255” would work"),
        ("zeros:+4", "from 1 to 255; “zeros:4” would work"),
        ("zeros:04", "from 1 to 255; “zeros:4” would work"),
        ("zeros:-4", "from 1 to 255, like zeros:40"),
        ("words:10", "from 4 to 9; “words:9” would work"),
        ("words:1", "from 4 to 9; “words:4” would work"),
        ("words:many", "from 4 to 9, like words:8"),
        ("hex:", "1 to 64"),
        ("hex:xyz", "1 to 64 of the digits 0 to 9 and a to f, like hex:c0de"),
        ("hex:g", "1 to 64"),
        ("hex:0xdead", "1 to 64 of the digits 0 to 9 and a to f; “hex:dead” would work"),
        ("hex:*Coffee", "“hex:*c0ffee” would work"),
        ("hex:de:ad-be_ef*", "“hex:deadbeef” would work"),
        (&format!("hex:0x{}", "0123456789abcdef".repeat(4)), "like hex:c0de"),
        (&format!("hex:{}", "a".repeat(65)), "a key has 64 hexadecimal digits; these are 65, leave out 1"),
        (&format!("hex:*{}", "a".repeat(70)), "these are 70, leave out 6"),
        (
            &format!("hex:{}", "f".repeat(64)),
            "no public key starts like that; its first 55 characters would be possible",
        ),
        (&"l".repeat(51), "its first 44 characters would be possible"),
        (&format!("{}p", "q".repeat(51)), "its first 51 characters would be possible"),
        (&format!("?{}[pz]", "q".repeat(50)), "its first 51 characters would be possible"),
        ("*acafecaf", "the seventh character from the end is always q or s"),
        ("*a?cafeca@7", "`@` follows a word between stars"),
        ("*allce*@4", "`@` follows a word between stars and says within how many characters; “*allce*@5” would work"),
        ("m0*ca*@60", "“m0*ca*@58” would work"),
        ("*ca*@0", "“*ca*@2” would work"),
        ("~*ca*@07", "“~*ca*@7” would work"),
        ("*ca*@", "within how many characters, like *m0ct*@12"),
        ("m0**@3", "within how many characters, like *m0ct*@12"),
        ("best", "`best` comes alone and with a time"),
        ("surprise", "`surprise` comes alone"),
        ("smörgas", "“ö” cannot occur in an npub; use the characters qpzry"),
        ("word:8", "“o” cannot occur"),
    ] {
        let error = written.parse::<Pattern>().expect_err(written).to_string();
        assert!(error.contains(expected), "{written}: {error}");
    }
    let ending = "*caafecat".parse::<Pattern>().unwrap_err();
    assert_eq!(ending, PatternError::Ending(Some("*csafecat".to_owned())));
    assert!("*csafecat".parse::<Pattern>().is_ok());
    let long = format!("{}*cafe", "q".repeat(43));
    assert_eq!(long.parse::<Pattern>(), Err(PatternError::TooMany(47)));
    assert!(matches!("~é".parse::<Pattern>(), Err(PatternError::Forbidden { .. })));
    assert_eq!(format!("*{}a*", "?".repeat(30)).parse::<Pattern>().map(|p| p.bits()), Ok(1));
}

#[test]
fn the_start_says_which_kernel_searches_for_it() {
    for text in [
        "q",
        "m0?tane",
        "?m0ct",
        "~bitcoin",
        "m0ct*cafe",
        "m0ct*ne*",
        "=7",
        "zeros:3",
        "words:4",
        "*al*@4",
        "[mn]0ct[pq]*s",
    ] {
        assert!(pattern(text).begins_selectively() && pattern(text).is_searchable(), "{text}");
    }
    for text in
        ["*cafe", "*al*", "=7*", "hex:*beef", "????????cafe", "m0c*cafe", "*alice*@30".replace('i', "l").as_str()]
    {
        assert!(!pattern(text).begins_selectively() && pattern(text).is_searchable(), "{text}");
    }
}

/// Marks of the grammar, words of it, and anything else.
fn text() -> impl Strategy<Value = String> {
    let words = ["hex:", "zeros:", "words:", "npub1", "b", "É", "🚀", "@99999999999"];
    let piece = prop_oneof![
        3 => "[*?@=~:q-s5\\[\\]0-9l]{0,8}",
        1 => prop::sample::select(words.to_vec()).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_panics(written in text()) {
        match written.parse::<Pattern>() {
            Ok(pattern) => prop_assert_eq!(pattern.to_string().parse::<Pattern>(), Ok(pattern)),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
