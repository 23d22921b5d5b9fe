//! The texts of whole keys and their tests, compared with the npub of each key.

use super::*;
#[cfg(target_arch = "x86_64")]
use crate::pattern::ChecksumTables;
use crate::search::cpu::text::{passes_a_test, whole_text};
#[cfg(target_arch = "x86_64")]
use crate::search::cpu::{ifma::text::words_of, text::Lanes, whole::WholeField};

/// Random numbers below p, and numbers at the edges.
fn keys(random: &mut StdRng) -> Vec<Fe> {
    let mut keys = vec![Fe::ZERO, Fe::ONE, Fe::ZERO.sub(Fe::ONE).canonical(), Fe([u64::MAX, 0, u64::MAX, 1])];
    for round in 0..1004 {
        let mut limbs: [u64; 4] = random.random();
        match round % 5 {
            0 => limbs[3] = 0,
            1 => limbs[0] = u64::MAX,
            2 => limbs[random.random_range(0..4)] = [0, 1, u64::MAX][round % 3],
            _ => {}
        }
        keys.push(Fe(limbs).canonical());
    }
    keys
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_first_test_passes_the_lanes_with_these_bits_of_the_checksum() {
    if !has_ifma() {
        return;
    }
    let (mut random, tables) = (random(), ChecksumTables::get());
    let (mut passing, mut all) = (0, 0);
    for lanes in keys(&mut random).chunks_exact(16) {
        let text = npub_of(lanes[random.random_range(0..16)]).to_string();
        for end in ["", "?", "??"] {
            // Two ends. One of the keys has the first.
            let own = format!("*{}{end}", &text[59..63 - end.len()]);
            let set = patterns(&[&own, &format!("*q7{end}")]);
            let Some(first) = set.text_tests().unwrap().first else { continue };
            let [one, other] = [0, 8].map(|at| words_of(&Fe8::from_lanes(&lanes[at..at + 8]).0));
            let [one, other] = Lanes::checksums_may_pass([&one, &other], &first, &<Fe8 as WholeField>::Word::tables());
            for (lane, key) in lanes.iter().enumerate() {
                let sum = tables.checksum(&npub_of(*key).0) ^ tables.zero;
                let bits = [0, 1].map(|byte| (sum >> (8 * first.bytes[byte])) as u8 & first.mask[byte]);
                let passes = (u32::from(one) | u32::from(other) << 8) >> lane & 1 == 1;
                assert_eq!(passes, first.sums.contains(&bits), "{first:?} {}", npub_of(*key));
                (passing, all) = (passing + u32::from(passes), all + 1);
            }
        }
    }
    println!("{passing} of {all} pass");
    assert!(passing > all / 20 && passing < all / 8);
}

/// The texts of eight keys side by side are those of each.
#[test]
fn a_text_has_the_characters_of_the_npub() {
    for keys in keys(&mut random()).chunks_exact(8) {
        let texts: Vec<[u64; 5]> = keys.iter().map(|key| whole_text(&key.0, &())).collect();
        for (words, key) in texts.iter().zip(keys) {
            let value = |place: usize| words[place / 12] >> (55 - place % 12 * 5) & 31;
            let text: String = (0..58).map(|place| char::from(ALPHABET[value(place) as usize])).collect();
            assert_eq!(format!("npub1{text}"), npub_of(*key).to_string());
        }
        #[cfg(target_arch = "x86_64")]
        if ifma::is_supported() {
            let tables = <Fe8 as WholeField>::Word::tables();
            let eight: [[u64; 8]; 5] = bytemuck::cast(whole_text(&words_of(&Fe8::from_lanes(keys).0), &tables));
            let of_lane: Vec<[u64; 5]> = (0..8).map(|lane| eight.map(|word| word[lane])).collect();
            assert_eq!(of_lane, texts);
        }
    }
}

/// Patterns made from a key's text. The key matches all of them.
fn patterns_of(random: &mut StdRng, text: &str) -> Vec<Pattern> {
    let mut between = || {
        let (one, other) = (random.random_range(0..58), random.random_range(0..58));
        &text[one.min(other)..one.max(other).min(one.min(other) + 9)]
    };
    let end = &text[58 - text.len() % 7 - 1..];
    [
        format!("*{end}"),
        format!("*{}*", between()),
        format!("{}*{}", &text[..2], &text[50..]),
        format!("*?{}?*", between()),
        format!("{}*{}*{end}", &text[..1], &text[20..24]),
        format!("*{}*@58", &text[54..]),
        format!("*{}*@58", &text[47..53]),
    ]
    .iter()
    .filter_map(|written| written.parse().ok())
    .collect()
}

#[test]
fn no_test_of_a_text_misses_a_match_and_few_pass_without_one() {
    let mut random = random();
    let keys = keys(&mut random);
    let (mut matching, mut passing, mut all) = (0, 0, 0);
    // Only every fifth key, because parsing a pattern takes a while.
    for key in keys.iter().step_by(5) {
        let npub = npub_of(*key).to_string();
        for pattern in patterns_of(&mut random, &npub[5..]) {
            let set = PatternSet::new(vec![pattern]);
            let tests = set.text_tests();
            for other in [*key, keys[random.random_range(0..keys.len())]] {
                let is_match = !set.matches(&npub_of(other)).is_empty();
                let passes = tests.as_ref().is_none_or(|tests| passes_a_test(tests, &other.0));
                assert!(passes || !is_match, "{set:?} {}", npub_of(other));
                (matching, passing, all) = (matching + u32::from(is_match), passing + u32::from(passes), all + 1);
            }
        }
    }
    println!("{matching} match, {passing} of {all} pass");
    assert!(matching > all / 4 && passing < matching + all / 10);
}
