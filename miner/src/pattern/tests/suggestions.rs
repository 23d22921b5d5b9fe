//! Patterns that an error names in place of a text that is not a pattern.

use super::super::Best;
use super::matching::{key_near, pattern_near};
use super::*;

/// The patterns that an error's text says would work: those in quotes, except the character that
/// cannot occur, and those after `like`.
fn named_in(error: &str) -> Vec<String> {
    let quoted = error.split('“').skip(1).filter(|rest| !rest.contains("” cannot occur"));
    let mut named: Vec<String> = quoted.filter_map(|rest| Some(rest.split_once('”')?.0.to_owned())).collect();
    if let Some((_, examples)) = error.split_once(", like ") {
        let examples = examples.split(';').next().unwrap_or_default();
        named.extend(examples.split(", ").flat_map(|words| words.split(" or ")).map(str::to_owned));
    }
    named
}

fn is_readable(text: &str) -> bool {
    text.parse::<Pattern>().is_ok() || text.parse::<Best>().is_ok()
}

/// Changes a pattern, so that it may be impossible: other characters at some places, another
/// number, or one more part.
fn spoiled(rng: &mut StdRng, pattern: &str) -> String {
    let keyword = pattern.find([':', '=']).map(|at| &pattern[..=at]);
    if let Some(keyword) = keyword.filter(|_| rng.random_bool(0.5)) {
        let digits = rng.random_range(0..70);
        let beyond = ["0x", "", "0", "+", "*"][rng.random_range(0..5)];
        let all: String = (0..digits).map(|_| char::from(b"0123456789abcdefol-"[rng.random_range(0..19)])).collect();
        let number = rng.random_range(0..400);
        return if keyword == "hex:" { format!("hex:{beyond}{all}") } else { format!("{keyword}{number}{beyond}") };
    }
    let mut text: Vec<char> = pattern.chars().collect();
    for _ in 0..rng.random_range(1..=3) {
        let strange: Vec<char> = "bbb11iiooö-=:@*[]?~8s".chars().collect();
        let strange = strange[rng.random_range(0..strange.len())];
        match rng.random_range(0..4) {
            0 => text.insert(rng.random_range(0..=text.len()), strange),
            1 => text.extend(format!("*@{}", rng.random_range(0..70)).chars()),
            2 => text.extend(format!("*{strange}{}", &pattern[..pattern.len().min(6)]).chars()),
            _ if text.is_empty() => {}
            _ => {
                let at = rng.random_range(0..text.len());
                text[at] = strange;
            }
        }
    }
    text.into_iter().collect()
}

#[test]
fn every_pattern_that_an_error_names_can_be_read() {
    let mut rng = random();
    let (mut refused, mut named) = (0, 0);
    for _ in 0..4_000 {
        let npub = key_near(&mut rng);
        let near = pattern_near(&mut rng, &npub);
        let text = spoiled(&mut rng, &near);
        let Err(error) = text.parse::<Pattern>() else { continue };
        refused += 1;
        let said = error.to_string();
        for other in named_in(&said) {
            assert!(is_readable(&other), "{text}: {other} cannot be read either. {said}");
        }
        for other in error.suggestions() {
            assert!(is_readable(other) && said.contains(other), "{text}: {other}. {said}");
            named += 1;
        }
    }
    assert!(refused > 2_000 && named > 1_000, "{named} of {refused}");
}

#[test]
fn a_suggestion_keeps_all_that_is_possible() {
    for (written, expected) in [
        ("*alice*@12", &["*allce*@12", "*aljce*@12", "~*alice*@12"][..]),
        ("bob", &["808", "6q6", "~bob"]),
        ("*b0bcats", &["*s08cats", "*s06cats"]),
        ("m0ct*b0bcats", &["m0ct*s08cats", "m0ct*s06cats"]),
        ("*caafecat", &["*csafecat"]),
        ("ca?*caafecat", &["ca?*csafecat"]),
        ("~*caafecat", &["~*csafecat"]),
        ("*bö*", &[]),
        ("*ab*cd*@3", &["*a8*cd*@4", "*a6*cd*@4"]),
        ("zeros:300", &["zeros:255"]),
        ("hex:0xdead", &["hex:dead"]),
        ("*ca*@60", &["*ca*@58"]),
    ] {
        let error = written.parse::<Pattern>().unwrap_err();
        assert_eq!(error.suggestions(), expected, "{written}: {error}");
    }
    let long = format!("{}b", "q".repeat(51));
    assert_eq!(long.parse::<Pattern>().unwrap_err().suggestions(), [""; 0], "a 52nd character is q or s");
}
