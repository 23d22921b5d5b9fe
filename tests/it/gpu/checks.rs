//! The kernels' check of whole keys compared with a match on the text, on the GPU and compiled for
//! the host.

use super::host_probe::HostProbe;
use super::launch::{launch, random_start};
use crate::support::harness::{Test, needs_gpu, test};
use crate::support::hex;
use npubbot::key::{Npub, Rotation};
use npubbot::pattern::{ALPHABET, ChecksumTables, Pattern, PatternSet};
use npubbot::search::cuda;
use npubbot::search::cuda::probe::text_tests;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use secp256k1::{PublicKey, SECP256K1, SecretKey};
use std::fmt::Display;
use std::sync::Arc;

pub const TESTS: &[Test] = &[
    test!(the_kernels_agree_with_a_match_on_the_text),
    test!(the_eighteen_keys_of_an_entry_are_right),
    test!(a_gpu_hands_back_only_keys_that_match_and_all_of_them),
];

fn seeded() -> StdRng {
    StdRng::seed_from_u64(crate::support::seed())
}

/// Random keys, keys of which all first or last bits are equal, and the extremes.
fn keys(rng: &mut StdRng) -> Vec<Npub> {
    let mut keys = vec![[0; 32], [0xff; 32]];
    for round in 0..4000 {
        let mut key: [u8; 32] = rng.random();
        let equal = rng.random_range(1..=8);
        match round % 6 {
            0 => key[..equal].fill(0),
            1 => key[..equal].fill(0xff),
            2 => key[32 - equal..].fill(0),
            3 => key[32 - equal..].fill(0xff),
            _ => {}
        }
        keys.push(key);
    }
    keys.into_iter().map(Npub).collect()
}

/// A pattern that a key has: parts of its text, between them anything.
fn pattern_of(rng: &mut StdRng, npub: &Npub) -> Option<Pattern> {
    let text = &npub.to_string()[5..];
    let mut places: Vec<usize> = (0..rng.random_range(0..3) * 2).map(|_| rng.random_range(0..58)).collect();
    places.sort_unstable();
    let (start, end) = (rng.random_range(0..7), rng.random_range(0..9));
    let mut parts = vec![&text[..start]];
    for ends in places.chunks(2).filter(|ends| ends[0] >= start && ends[1] + end <= 58 && ends[1] - ends[0] < 12) {
        parts.push(&text[ends[0]..ends[1]]);
    }
    parts.push(&text[58 - end..]);
    let joined = parts.join("*");
    // Some places are open, and some have one of two characters.
    let mut written = String::new();
    for character in joined.chars() {
        match rng.random_range(0..12) {
            0 if character != '*' => written.push('?'),
            1 if character != '*' => {
                written += &format!("[{character}{}]", char::from(ALPHABET[rng.random_range(0..32)]));
            }
            _ => written.push(character),
        }
    }
    written.parse().ok()
}

/// A list as the program reads it.
fn list<N: Display>(numbers: impl IntoIterator<Item = N>) -> String {
    let numbers: Vec<String> = numbers.into_iter().map(|number| number.to_string()).collect();
    format!("{} {}\n", numbers.len(), numbers.join(" "))
}

/// The tables of a set, as the program reads them.
fn tables(set: &PatternSet) -> String {
    let checks = set.checks().unwrap_or_default();
    let checksums = ChecksumTables::get();
    let [tests, argument] = text_tests(set);
    [
        list(set.intervals().iter().flat_map(|&(first, last)| [first, last])),
        list(checks.members.iter().flat_map(|member| [member.first, member.last])),
        list(checks.members.iter().map(|member| member.words)),
        list(&checks.first_member),
        list(&checks.words),
        list(checksums.bytes.iter().flatten().chain([&checksums.zero])),
        list(tests),
        list(argument),
    ]
    .concat()
}

fn the_kernels_agree_with_a_match_on_the_text() {
    let probe = HostProbe::compile();
    let mut rng = seeded();
    let keys = keys(&mut rng);
    let lines: String = keys.iter().map(|npub| format!("{}\n", hex::encode(npub.0))).collect();
    let fixed: [&[&str]; 8] = [
        &["*a*s*[qp]", "m*q", "l7*x*"],
        &["*cafe", "*[qp]?", "*al*@30"],
        &["=2*", "=3*"],
        &["hex:*f", "hex:*0000"],
        &["~al*7", "a*s*t*", "q*q*q*q", "qq", "q*7"],
        &["*qqqqqq*", "*llll*", "?????????????[qpzr]"],
        &["=7", "words:4", "~cat"],
        &["q", "p*p", "l*l"],
    ];
    let fixed = fixed.iter().map(|texts| texts.iter().map(|text| text.parse().unwrap()).collect());
    let mut sets: Vec<Vec<Pattern>> = fixed.collect();
    for size in [1, 2, 20, 300] {
        for _ in 0..10 {
            let mut of_key = || {
                let at = rng.random_range(0..keys.len());
                pattern_of(&mut rng, &keys[at])
            };
            sets.push((0..size).filter_map(|_| of_key()).collect());
        }
    }
    let (mut wanted, mut all, mut passing) = (0, 0, 0);
    for patterns in sets.into_iter().filter(|patterns| !patterns.is_empty()) {
        let set = PatternSet::new(patterns.clone());
        let file = probe.folder().join("tables");
        std::fs::write(&file, tables(&set)).unwrap();
        let answers = probe.run(&[&file], lines.clone());
        assert_eq!(answers.lines().count(), keys.len());
        for (npub, answer) in keys.iter().zip(answers.lines()) {
            // Not the set's own lookup: every pattern by itself.
            let matches = patterns.iter().any(|pattern| pattern.matches(npub));
            let (passes, is_wanted) = (answer.starts_with('1'), answer.ends_with('1'));
            assert_eq!(is_wanted, matches, "{npub} and {patterns:?}");
            assert!(passes || !matches, "{npub} fails the tests of {patterns:?}");
            (wanted, all, passing) = (wanted + usize::from(matches), all + 1, passing + usize::from(passes));
        }
    }
    println!("{wanted} of {all} keys match, {passing} pass a test of their texts");
    assert!(wanted > all / 100 && wanted < all);
}

fn the_eighteen_keys_of_an_entry_are_right() {
    let probe = HostProbe::compile();
    let mut rng = seeded();
    let point = |secret: &SecretKey| PublicKey::from_secret_key(SECP256K1, secret);
    let pairs: Vec<(PublicKey, PublicKey)> = (0..200)
        .map(|number: u8| {
            let mut small = [0; 32];
            small[31] = number + 1;
            let centre = SecretKey::from_slice(&rng.random::<[u8; 32]>()).unwrap();
            (point(&centre), point(&SecretKey::from_slice(&small).unwrap()))
        })
        .collect();
    let coordinates = |point: &PublicKey| hex::encode(&point.serialize_uncompressed()[1..]);
    let lines: String = pairs
        .iter()
        .map(|(centre, entry)| {
            let (centre, entry) = (coordinates(centre), coordinates(entry));
            format!("{} {} {} {}\n", &centre[..64], &centre[64..], &entry[..64], &entry[64..])
        })
        .collect();
    let answers = probe.run(&["points".as_ref()], lines);
    let mut keys = answers.lines();
    for (centre, entry) in &pairs {
        for (k, sign, j) in (0..3).flat_map(|k| (0..2).flat_map(move |sign| (0..3).map(move |j| (k, sign, j)))) {
            let scalar = |power: usize| Rotation::ALL[power].scalar();
            let turned = entry.mul_tweak(SECP256K1, &scalar(k)).unwrap();
            let turned = if sign == 1 { turned.negate(SECP256K1) } else { turned };
            let expected = centre.combine(&turned).unwrap().mul_tweak(SECP256K1, &scalar(j)).unwrap();
            assert_eq!(keys.next().unwrap(), &coordinates(&expected)[..64], "k {k}, sign {sign}, j {j}");
        }
    }
    assert!(keys.next().is_none());
}

fn a_gpu_hands_back_only_keys_that_match_and_all_of_them() {
    needs_gpu();
    let mut rng = seeded();
    let mut searcher = cuda::open(0).unwrap();
    for texts in [
        &["m0ct*[qp]"][..],
        &["m0ct*a*", "qqqq*7", "00000"],
        &["~al7c*[qpzry]*@20"],
        &["*qrcafe", "*al7ce*", "=6*", "hex:*c0ffee", "m0*cafe"],
    ] {
        let patterns: Vec<Pattern> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let patterns = Arc::new(PatternSet::new(patterns));
        let starts = (0..searcher.starts()).map(|_| random_start(&mut rng)).collect();
        let report = launch(&mut *searcher, starts, &patterns, 5000);
        let (found, expected) =
            (report.hits.len(), report.candidates as f64 / patterns.difficulty().unwrap().candidates());
        let off = (found as f64 - expected) / expected.sqrt();
        println!("{texts:?}: {found} hits, {expected:.0} expected");
        assert!(off.abs() < 5.0, "{texts:?}: {found} hits where {expected} are expected");
    }
}
