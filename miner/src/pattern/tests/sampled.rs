//! Difficulties of random patterns and sets, against the texts of random keys.

use super::super::{Effort, PatternKind, PatternSet};
use super::matching::pattern_near;
use super::naive::{Naive, Texts};
use super::*;
use std::collections::BTreeMap;

/// The fewest matches that are expected of each pattern.
const FEWEST: f64 = 100.0;
/// Random keys, and sets of patterns.
const KEYS: usize = 40_000;
const SETS: usize = 40;

/// A name of the pattern's kind, with the parts that the pattern has.
fn kind_of(pattern: &Pattern) -> String {
    match pattern.kind() {
        PatternKind::Parts { start, middle, within, end } => {
            let some = |is: bool, name: &'static str| if is { name } else { "" };
            let parts = [some(!start.is_empty(), "start"), some(!middle.is_empty(), "*"), some(!end.is_empty(), "end")];
            format!("{}{}", parts.concat(), some(within.is_some(), "@"))
        }
        kind => format!("{kind:?}").split(['(', ' ']).next().unwrap_or_default().to_owned(),
    }
}

/// Up to `each` random patterns of each kind, not harder than `hardest`.
fn random_patterns(rng: &mut StdRng, each: usize, hardest: f64) -> BTreeMap<String, Vec<Pattern>> {
    let mut found: BTreeMap<String, Vec<Pattern>> = BTreeMap::new();
    for _ in 0..20_000 {
        let npub = Npub(rng.random());
        let text = match rng.random_range(0..20) {
            // A start, a middle and an end, short enough not to be too hard.
            0 => {
                let own = text_of(&npub);
                let at = rng.random_range(6..40);
                format!("{}*{}*{}", &own[..1], &own[at..at + rng.random_range(1..3)], &own[57..])
            }
            _ => pattern_near(rng, &npub),
        };
        let Ok(pattern) = Pattern::read_within(&text, &mut Effort::steps(1 << 14)) else { continue };
        let of_kind = found.entry(kind_of(&pattern)).or_default();
        let is_new = !of_kind.contains(&pattern) && of_kind.len() < each;
        if is_new && pattern.difficulty().candidates() <= hardest {
            of_kind.push(pattern);
        }
    }
    found.retain(|_, patterns| !patterns.is_empty());
    found
}

/// The difficulties of random patterns, and of sets of 2 to 6 of them, compared with the number of
/// random keys whose texts match.
#[test]
fn of_random_sets_as_many_texts_match_as_the_difficulty_says() {
    let mut rng = random();
    let by_kind = random_patterns(&mut rng, 3, KEYS as f64 / FEWEST);
    let kinds = ["Prefix", "Open", "LookAlike", "Equal", "EqualAnywhere", "HexStart", "HexEnd", "Zeros", "end", "*@"];
    let missing: Vec<_> = kinds.iter().filter(|&&kind| !by_kind.contains_key(kind)).collect();
    assert!(missing.is_empty(), "no pattern of {missing:?} among {by_kind:?}");
    let patterns: Vec<Pattern> = by_kind.into_values().flatten().collect();
    let mut asked: Vec<Vec<usize>> = (0..patterns.len()).map(|at| vec![at]).collect();
    asked.extend((0..SETS).map(|_| {
        let count = rng.random_range(2..=6);
        (0..count).map(|_| rng.random_range(0..patterns.len())).collect()
    }));
    let exact = |set: &Vec<usize>| {
        let set = PatternSet::new(set.iter().map(|&at| patterns[at].clone()).collect());
        1.0 / set.difficulty().unwrap().candidates()
    };
    let chances: Vec<f64> = asked.iter().map(exact).collect();
    let naive: Vec<Naive> = patterns.iter().map(|pattern| Naive::read(pattern.as_str())).collect();
    let mut found = vec![0usize; asked.len()];
    for _ in 0..KEYS {
        let texts = Texts::of(&Npub(rng.random()));
        let has: Vec<bool> = naive.iter().map(|pattern| pattern.has(&texts)).collect();
        for (found, set) in found.iter_mut().zip(&asked) {
            *found += usize::from(set.iter().any(|&at| has[at]));
        }
    }
    for ((set, chance), found) in asked.iter().zip(chances).zip(found) {
        let (mean, spread) = (chance * KEYS as f64, (chance * (1.0 - chance) * KEYS as f64).sqrt());
        let named: Vec<&str> = set.iter().map(|&at| patterns[at].as_str()).collect();
        // Six standard deviations: with some hundred comparisons, one run in a million fails by
        // chance.
        assert!((found as f64 - mean).abs() < 6.0 * spread + 1.0, "{named:?}: {found}, not {mean:.0} ± {spread:.0}");
    }
    println!("{} patterns and {SETS} sets agree with {KEYS} texts", patterns.len());
}
