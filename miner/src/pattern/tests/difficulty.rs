//! Difficulties, compared with counts.

use super::super::characters::NPUB_CHARACTERS;
use super::super::pattern::KeyShape;
use super::super::{Difficulty, PatternSet};
use super::matching::{key_near, pattern_near};
use super::*;

/// The chance that a text has one of the shapes, by counting all values of the first four
/// characters.
fn counted(shapes: &[KeyShape]) -> f64 {
    let mut values = [0; NPUB_CHARACTERS];
    let mut fits = |number: u32| {
        (0..4).for_each(|at| values[at] = (number >> (15 - 5 * at) & 31) as u8);
        shapes.iter().any(|shape| shape.matches(&values))
    };
    (0..1u32 << 20).filter(|&number| fits(number)).count() as f64 / f64::from(1u32 << 20)
}

/// A random pattern of a random kind that restricts only the first four characters, as a person
/// writes it.
fn within_four_characters(rng: &mut StdRng) -> String {
    let place = |rng: &mut StdRng| {
        let mut one = || char::from(ALPHABET[rng.random_range(0..32)]).to_string();
        let (first, second, third) = (one(), one(), one());
        match rng.random_range(0..5) {
            0 => "?".to_owned(),
            1 => format!("[{first}{second}{third}]"),
            _ => first,
        }
    };
    let part = |rng: &mut StdRng, most: usize| -> String {
        let count = rng.random_range(1..=most);
        (0..count).map(|_| place(rng)).collect()
    };
    let alike = ["", "~"][rng.random_range(0..2)];
    match rng.random_range(0..8) {
        0 | 1 => format!("{alike}{}", part(rng, 4)),
        2 => format!("{alike}*{}*@{}", part(rng, 2), rng.random_range(2..=4)),
        3 => format!("{alike}{}*{}*@{}", part(rng, 2), part(rng, 2), rng.random_range(3..=4)),
        4 => format!("*{}*{}*@4", part(rng, 1), part(rng, 2)),
        5 => format!("={}", rng.random_range(2..=4)),
        6 => format!("zeros:{}", rng.random_range(1..=20)),
        _ => {
            let digits = rng.random_range(1..=5);
            format!(
                "hex:{}",
                (0..digits).map(|_| char::from(b"0123456789abcdef"[rng.random_range(0..16)])).collect::<String>()
            )
        }
    }
}

#[test]
fn of_sets_within_four_characters_all_are_counted() {
    let mut rng = random();
    const KINDS: usize = 7;
    let (mut sets, mut kinds) = (0, std::collections::BTreeSet::new());
    let known = ["q", "q?[ps]", "=3", "zeros:7 q", "hex:0f hex:0", "*aa*@4", "a*c*@4 *ac*@4 [ac]?[ac]"];
    let known = known.into_iter().chain(["*a*c*@4 *ca*@3", "~cat ca [cd]at c?t", "=2"]);
    let mut known = known.map(|texts| texts.split(' ').map(str::to_owned).collect::<Vec<_>>());
    // So few sets may lack a kind, so more are drawn until all kinds have occurred.
    while sets < 14 || (kinds.len() < KINDS && sets < 200) {
        let count = rng.random_range(1..=6);
        let written = known.next().unwrap_or_else(|| (0..count).map(|_| within_four_characters(&mut rng)).collect());
        let patterns: Vec<Pattern> = written.iter().filter_map(|text| text.parse().ok()).collect();
        let shapes: Vec<KeyShape> = patterns.iter().flat_map(Pattern::shapes).collect();
        if patterns.is_empty() {
            continue;
        }
        sets += 1;
        kinds.extend(
            patterns.iter().map(|pattern| std::mem::discriminant(pattern.kind())).map(|kind| format!("{kind:?}")),
        );
        let expected = counted(&shapes);
        let of_set = PatternSet::new(patterns.clone()).difficulty().unwrap().candidates();
        assert!((of_set * expected - 1.0).abs() < 1e-12, "{patterns:?}: {of_set}, not {}", 1.0 / expected);
    }
    assert_eq!(kinds.len(), KINDS, "every kind at the start but words: {kinds:?}");
}

#[test]
fn the_intervals_of_an_exact_pattern_have_its_chance() {
    let mut rng = random();
    let mut exact = 0;
    for _ in 0..1_000 {
        let npub = key_near(&mut rng);
        let Ok(pattern) = pattern_near(&mut rng, &npub).parse::<Pattern>() else { continue };
        if pattern.is_exact() {
            exact += 1;
            let share = super::super::set::share_of(&super::super::set::joined(pattern.intervals()));
            assert!((share * pattern.difficulty().candidates() - 1.0).abs() < 1e-9, "{pattern}");
        }
    }
    assert!(exact > 250, "{exact}");
}

#[test]
fn known_difficulties() {
    let bits = |text: &str| pattern(text).difficulty().candidates().log2();
    for (text, expected) in [
        ("q", 5.0),
        ("m0ctane", 35.0),
        ("q".repeat(52).as_str(), 256.0),
        ("m0?tane", 30.0),
        ("[s5]at0sh[l7]", 33.0),
        ("*cafe", 20.0),
        ("alice*cafe".replace("alice", "a").as_str(), 25.0),
        // The seventh character from the end is q or s, so it counts 1 bit.
        ("*csafecat", 36.0),
        ("*?scafe", 25.0),
        ("=7", 30.0),
        ("hex:0000c0de", 32.0),
        ("hex:*beef", 16.0),
        ("zeros:40", 40.0),
        ("zeros:255", 255.0),
    ] {
        assert!((bits(text) - expected).abs() < 1e-9, "{text}: {}", bits(text));
    }
    // Of 54 places, five would need one of these characters where only q and s can be.
    assert!((Difficulty::from_bits(25).candidates() / pattern("*al7ce*").difficulty().candidates() - 49.0).abs() < 0.1);
}

#[test]
fn the_chances_of_a_set_that_is_too_intricate_are_added() {
    let overlapping: Vec<Pattern> = ["*cat*", "*cats*"].map(pattern).into();
    let set = PatternSet::new(overlapping.clone());
    let sum = Difficulty::any_of(overlapping.iter().map(Pattern::difficulty));
    assert_eq!(set.difficulty_within(&mut super::super::Effort::steps(1)), sum);
    // A key that has both patterns counts once.
    let (both, one) = (set.difficulty().unwrap().candidates(), overlapping[0].difficulty().candidates());
    assert!((both / one - 1.0).abs() < 1e-12, "{both} {one}");
}
