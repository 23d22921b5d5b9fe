//! Whether a key matches: every kind against the oracle.

use super::super::{PatternId, PatternSet, look_alikes};
use super::*;

/// A character of an npub's text, sometimes replaced by another of the alphabet.
fn nearly(rng: &mut StdRng, character: char) -> char {
    if rng.random_ratio(1, 40) { char::from(ALPHABET[rng.random_range(0..32)]) } else { character }
}

/// A part of a text as somebody may write it, with open places and classes.
fn written(rng: &mut StdRng, text: &str) -> String {
    let mut part = String::new();
    for c in text.chars() {
        let c = nearly(rng, c);
        match rng.random_range(0..8) {
            0 => part.push('?'),
            1 => {
                let mut class: Vec<char> = (0..rng.random_range(1..4)).map(|_| nearly(rng, c)).collect();
                class.push(char::from(ALPHABET[rng.random_range(0..32)]));
                part += &format!("[{}]", class.iter().collect::<String>());
            }
            _ => part.push(c),
        }
    }
    part
}

/// A letter that has this character among its look-alikes.
fn misread(rng: &mut StdRng, character: char) -> char {
    let letters: Vec<char> = ('0'..='9').chain('a'..='z').filter(|&l| look_alikes(l).contains(character)).collect();
    letters[rng.random_range(0..letters.len())]
}

/// A random pattern of a random kind, which this key usually matches.
pub fn pattern_near(rng: &mut StdRng, npub: &Npub) -> String {
    let text = text_of(npub);
    let hex: String = npub.0.iter().map(|byte| format!("{byte:02x}")).collect();
    let length = rng.random_range(1..=7);
    let start = |rng: &mut StdRng, most: usize| {
        let length = rng.random_range(0..=most);
        written(rng, &text[..length])
    };
    match rng.random_range(0..60) % 13 {
        0 => {
            let length = rng.random_range(1..=52);
            text[..length].chars().map(|c| nearly(rng, c)).collect()
        }
        1 => {
            let length = rng.random_range(1..=30);
            written(rng, &text[..length])
        }
        2 => format!("~{}", text[..length].chars().map(|c| misread(rng, c)).collect::<String>()),
        3 => {
            let end = written(rng, &text[58 - length..]);
            format!("{}*{end}", start(rng, 6))
        }
        4 => {
            let at = rng.random_range(6..50 - length);
            format!("{}*{}*", start(rng, 6), written(rng, &text[at..at + length]))
        }
        5 => {
            let at = rng.random_range(0..20);
            format!("*{}*@{}", written(rng, &text[at..at + length]), rng.random_range(length..=at + length + 2))
        }
        6 => {
            let (one, two) = (rng.random_range(6..20), rng.random_range(26..40));
            let parts = [written(rng, &text[one..one + 3]), written(rng, &text[two..two + 3])];
            format!("{}*{}*{}*{}", start(rng, 4), parts[0], parts[1], &text[56..])
        }
        7 => format!("hex:{}", &hex[..rng.random_range(1..=64)]),
        8 => format!("hex:*{}", &hex[64 - rng.random_range(1..=64)..]),
        9 => format!("zeros:{}", rng.random_range(1..40)),
        10 => ["=2", "=3", "=2*", "=3*"][rng.random_range(0..4)].to_owned(),
        11 => written(rng, &text[..length]),
        _ => format!("words:{}", rng.random_range(4..=9)),
    }
}

/// A random key; sometimes one with many zeros, many ones or a word at the start.
pub fn key_near(rng: &mut StdRng) -> Npub {
    let mut x: [u8; 32] = rng.random();
    match rng.random_range(0..6) {
        0 => {
            let bits = rng.random_range(0..48);
            (0..bits).for_each(|bit| x[bit / 8] &= !(0x80 >> (bit % 8)));
        }
        1 => {
            let bits = rng.random_range(0..48);
            (0..bits).for_each(|bit| x[bit / 8] |= 0x80 >> (bit % 8));
        }
        2 => {
            let shapes = super::super::words::shapes_of_built_in(4);
            let word = &shapes[rng.random_range(0..shapes.len())].start;
            for (at, set) in word.iter().enumerate() {
                for bit in 0..5 {
                    let place = 5 * at + bit;
                    x[place / 8] &= !(0x80 >> (place % 8));
                    x[place / 8] |= ((set.0.trailing_zeros() >> (4 - bit) & 1) as u8) << (7 - place % 8);
                }
            }
        }
        _ => {}
    }
    Npub(x)
}

#[test]
fn every_kind_matches_as_its_text_says() {
    let mut rng = random();
    let (mut matched, mut read) = (0, 0);
    for _ in 0..2_400 {
        let npub = key_near(&mut rng);
        let text = pattern_near(&mut rng, &npub);
        let Ok(pattern) = text.parse::<Pattern>() else { continue };
        read += 1;
        let expected = naive(pattern.as_str(), &npub);
        assert_eq!(pattern.matches(&npub), expected, "{text} read as {pattern}, {npub}");
        assert_eq!(naive(&text, &npub), expected, "{text} was read as {pattern}, {npub}");
        let met = pattern.met_by(&npub);
        assert_eq!(met.is_some(), expected);
        for part in met.iter().flat_map(|met| met.split('…')) {
            assert!(text_of(&npub).contains(part), "{pattern}: {part} in {npub}");
        }
        matched += usize::from(expected);
    }
    assert!(read > 1_800 && matched > 480, "{matched} of {read}");
}

#[test]
fn no_key_that_matches_is_outside_the_intervals_of_a_set() {
    let mut rng = random();
    for _ in 0..40 {
        let keys: Vec<Npub> = (0..20).map(|_| key_near(&mut rng)).collect();
        let patterns: Vec<Pattern> =
            keys.iter().filter_map(|key| pattern_near(&mut rng, key).parse::<Pattern>().ok()).collect();
        let set = PatternSet::new(patterns.clone());
        assert!(set.intervals().windows(2).all(|pair| pair[0].1 < pair[1].0));
        for key in &keys {
            let expected: Vec<PatternId> = patterns
                .iter()
                .enumerate()
                .filter(|(_, pattern)| naive(pattern.as_str(), key))
                .map(|(at, _)| PatternId(at))
                .collect();
            assert_eq!(set.matches(key), expected, "{patterns:?} {key}");
            assert!(expected.is_empty() || set.may_match(key));
            if set.is_exact() {
                assert_eq!(set.may_match(key), !expected.is_empty(), "{patterns:?} {key}");
            }
        }
    }
}

#[test]
fn the_ends_of_the_intervals_are_exact() {
    for text in [
        "m0ct",
        "[s5]at0",
        "=7",
        "zeros:40",
        "hex:0000c0de",
        "~al1ce",
        "words:6",
        "?m0ct",
        "*al*@4",
        "m0ct??ne",
        "m0ctane?0cta",
        "m0ctane?0cta[qp]",
    ] {
        let set = PatternSet::new(vec![pattern(text)]);
        assert!(set.is_exact(), "{text}");
        let at = |top: u64, fill: u8| {
            let mut x = [fill; 32];
            x[..8].copy_from_slice(&top.to_be_bytes());
            Npub(x)
        };
        for &(first, last) in set.intervals() {
            assert!(naive(text, &at(first, 0)) && naive(text, &at(last, 0xff)), "{text}");
            let before = first.checked_sub(1).is_some_and(|top| naive(text, &at(top, 0xff)));
            let after = last.checked_add(1).is_some_and(|top| naive(text, &at(top, 0)));
            assert!(!before && !after, "{text}");
        }
    }
}

#[test]
fn the_answer_names_what_was_found() {
    let mut rng = random();
    let npub = Npub(rng.random());
    let text = text_of(&npub);
    let met = |written: String| pattern(&written).met_by(&npub).unwrap();
    assert_eq!(met(format!("{}?{}", &text[..3], &text[4..6])), text[..6]);
    assert_eq!(met(format!("{}*{}", &text[..4], &text[54..])), format!("{}…{}", &text[..4], &text[54..]));
    let alike: String = text[..6].chars().map(|c| misread(&mut rng, c)).collect();
    assert_eq!(met(format!("~{alike}")), text[..6]);
}
