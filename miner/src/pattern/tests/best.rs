//! Searches without a target: their texts, and the rarity of keys.

use super::*;
use crate::pattern::{Best, Difficulty, Family, PatternError, Rate};
use std::time::Duration;

const FAMILIES: [Family; 3] = [Family::Any, Family::Zeros, Family::Words];

/// A key whose characters after `npub1` begin like this.
fn key(start: &str) -> Npub {
    let mut bits: Vec<bool> = Vec::new();
    for character in start.chars() {
        let value = ALPHABET.iter().position(|&c| char::from(c) == character).unwrap();
        bits.extend((0..5).map(|bit| value >> (4 - bit) & 1 == 1));
    }
    // The rest does not continue zeros, equal characters or a word.
    bits.extend((bits.len()..256).map(|bit| bit % 3 != 0));
    Npub(std::array::from_fn(|byte| (0..8).fold(0, |all, bit| all << 1 | u8::from(bits[8 * byte + bit]))))
}

#[test]
fn a_best_search_is_written_as_it_was_read() {
    let seconds = |family, seconds| Best { family, time: Duration::from_secs(seconds) };
    for (written, text, expected) in [
        ("best 10m", "best 10m", seconds(Family::Any, 600)),
        ("Best Zeros 10 min", "best zeros 10m", seconds(Family::Zeros, 600)),
        ("best words 90s", "best words 1m30s", seconds(Family::Words, 90)),
        ("best 1 h 30 min", "best 1h30m", seconds(Family::Any, 5400)),
        ("BEST ZEROS 2H", "best zeros 2h", seconds(Family::Zeros, 7200)),
        ("surprise", "best words 10s", Best::SURPRISE),
        ("best 3 days", "best 3days", seconds(Family::Any, 3 * 86_400)),
    ] {
        let best: Best = written.parse().unwrap_or_else(|error| panic!("{written}: {error}"));
        assert_eq!((best, best.to_string().as_str()), (expected, text), "{written}");
        assert_eq!(text.parse(), Ok(best), "{text}");
    }
    for wrong in ["best", "best zeros", "best 10", "best cat 10m", "best 10m cat", "surprise cat", "best zeros:30 10m"]
    {
        assert_eq!(wrong.parse::<Best>(), Err(PatternError::Best), "{wrong}");
    }
    assert_eq!(Best::read(&["cat"]), None);
    assert_eq!(Best::read(&[]), None);
    // As patterns, both words are refused.
    for word in ["best", "surprise"] {
        assert_eq!(word.parse::<Pattern>(), Err(PatternError::Best));
    }
}

#[test]
fn each_pattern_of_a_ladder_holds_the_keys_of_the_next() {
    for ladder in Family::Any.ladders() {
        for pair in ladder.windows(2) {
            assert!(pair[0].difficulty() < pair[1].difficulty(), "{pair:?}");
        }
        for (at, pattern) in ladder.iter().enumerate() {
            let start = pattern.start_like("qqqqqqqqqqqqq");
            let npub = key(&start);
            let met = ladder.partition_point(|pattern| pattern.matches(&npub));
            assert!(met > at && ladder.iter().skip(met).all(|rarer| !rarer.matches(&npub)), "{pattern} {npub}");
        }
        assert!(ladder[0].bits() >= 20, "a GPU takes it");
        assert!(ladder.iter().all(Pattern::is_searchable));
    }
}

#[test]
fn the_rarity_of_a_key_is_that_of_the_rarest_pattern_it_meets() {
    let rarest = |family: Family, start: &str| family.rarest(&key(start)).map(|pattern| pattern.to_string());
    // The characters q, g and l begin with five, one and no zero bits.
    assert_eq!(rarest(Family::Zeros, "qqqgl"), None);
    assert_eq!(rarest(Family::Zeros, "qqqqgl"), Some("zeros:21".to_owned()));
    assert_eq!(rarest(Family::Any, "qqqqqqql"), Some("zeros:35".to_owned()), "not =7");
    assert_eq!(rarest(Family::Any, "aaaaaaaq"), Some("=7".to_owned()));
    assert_eq!(rarest(Family::Any, "sakuraqq"), Some("words:6".to_owned()));
    assert_eq!(rarest(Family::Words, "aaaaaaaq"), None);
    assert_eq!(rarest(Family::Any, "m0ctane"), None);
}

/// A search that knows its best key so far finds every rarer one, and no other.
#[test]
fn a_search_asks_for_exactly_the_keys_that_are_rarer() {
    let mut rng = random();
    for _ in 0..3_000 {
        let family = FAMILIES[rng.random_range(0..3)];
        let steps: Vec<&Pattern> = family.ladders().iter().flatten().collect();
        let kept = steps[rng.random_range(0..steps.len())];
        let other = steps[rng.random_range(0..steps.len())];
        let npub = key(&other.start_like(&"qpzry9x8gf2tv"[rng.random_range(0..5)..]));
        let wanted = Best { family, time: Duration::from_secs(1) }.patterns(Some(kept), None);
        let rarest = family.rarest(&npub).map_or(1.0, |pattern| pattern.difficulty().candidates());
        let is_wanted = wanted.iter().any(|pattern| pattern.matches(&npub));
        assert_eq!(is_wanted, rarest > kept.difficulty().candidates(), "{npub}, kept {kept}, wanted {wanted:?}");
    }
}

#[test]
fn a_search_begins_with_what_is_likely_and_keeps_few_keys() {
    for family in FAMILIES {
        for (seconds, rate) in [(10, 1e6), (10, 80e6), (600, 80e6), (600, 1.6e9), (600, 178e9), (600, 2e12)] {
            let (best, rate) = (Best { family, time: Duration::from_secs(seconds) }, Rate(rate));
            let first = best.patterns(None, Some(rate));
            assert_eq!(first.len(), family.ladders().len());
            let hits = |pattern: &Pattern| rate.0 * seconds as f64 / pattern.difficulty().candidates();
            for (pattern, ladder) in first.iter().zip(family.ladders()) {
                assert!(hits(pattern) >= 3.0 || pattern == &ladder[0], "{pattern} at {rate}");
            }
        }
        let best = Best { family, time: Duration::from_secs(600) };
        assert_eq!(best.patterns(None, None), family.floor());
        // Even a lucky search keeps a bounded number of keys.
        let (mut kept, mut number) = (None, 0);
        while let Some(next) = best.patterns(kept.as_ref(), None).into_iter().min_by(super::super::best::by_difficulty)
        {
            (kept, number) = (Some(next), number + 1);
        }
        let most = family.ladders().iter().map(Vec::len).sum::<usize>();
        assert!((4..=most).contains(&number), "{number}");
    }
}

#[test]
fn the_likely_rarity_grows_with_rate_and_time() {
    let likely =
        |text: &str, rate: f64| text.parse::<Best>().unwrap().likely_pattern(Rate(rate)).map(|p| p.to_string());
    assert_eq!(likely("best zeros 10m", 80e6), Some("zeros:36".to_owned()));
    assert_eq!(likely("best words 10m", 80e6), Some("words:8".to_owned()));
    assert_eq!(likely("surprise", 178e9), Some("words:9".to_owned()));
    assert_eq!(likely("surprise", 1e3), None);
    // 4.8e10 candidates: one key in 3.4e10 has zeros:35, and one in 6.9e10 has zeros:36.
    let chance = Difficulty::from_bits(36).chance_after(80e6 * 600.0);
    assert!((0.5..0.55).contains(&chance), "{chance}");
}
