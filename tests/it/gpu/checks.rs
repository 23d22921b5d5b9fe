//! The kernels compiled for the host: their arithmetic, and their check of whole keys compared with a
//! match on the text. And the time of launches on a GPU.

use super::arithmetic::field_arithmetic_is_right;
use super::hits::{launch, random_start};
use super::host_probe::HostProbe;
use crate::support::harness::{Test, figure, needs_gpu, test};
use npubbot::key::{Npub, Rotation};
use npubbot::pattern::{ALPHABET, ChecksumTables, Pattern, PatternSet};
use npubbot::search::SearchOptions;
use npubbot::search::cuda;
use npubbot::search::cuda::probe::{screen, text_tests};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use secp256k1::{PublicKey, SECP256K1, SecretKey};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

pub const TESTS: &[Test] = &[
    test!(the_kernels_compiled_for_the_host_are_right).slow(),
    test!(launches_of_every_kind_of_pattern_take_as_long).measures("latency"),
    test!(polite_launches_take_at_most_30_ms).measures("latency"),
];

fn seeded() -> StdRng {
    StdRng::seed_from_u64(crate::support::seed())
}

/// Random keys, keys whose first or last bytes are all zeros or all ones, and the two extreme keys.
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

/// A pattern that a key matches: parts of its text, with `*` between them.
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
    // Some characters become `?`, and some become a choice of two.
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

/// A list in the probe's input form.
fn list<N: Display>(numbers: impl IntoIterator<Item = N>) -> String {
    let numbers: Vec<String> = numbers.into_iter().map(|number| number.to_string()).collect();
    format!("{} {}\n", numbers.len(), numbers.join(" "))
}

/// The tables of a set, in the probe's input form.
fn tables(set: &PatternSet) -> String {
    let checks = set.checks().unwrap_or_default();
    let checksums = ChecksumTables::get();
    let ([tests, argument], [screen, form]) = (text_tests(set), screen(set));
    [
        list(set.intervals().iter().flat_map(|&(first, last)| [first, last])),
        list(checks.members.iter().flat_map(|member| [member.first, member.last])),
        list(checks.members.iter().map(|member| member.words)),
        list(&checks.first_member),
        list(&checks.words),
        list(checksums.bytes.iter().flatten().chain([&checksums.zero])),
        list(tests),
        list(argument),
        list(screen),
        list(form),
    ]
    .concat()
}

/// How many keys match, and how many pass the quick tests and the tests of their texts.
struct Passing {
    matching: usize,
    quick: usize,
    texts: usize,
}

/// Compares the kernels' checks of these keys with a match of every pattern singly, without the set's
/// own lookup.
fn compare(probe: &HostProbe, patterns: &[Pattern], keys: &[Npub]) -> Passing {
    let file = probe.folder().join("tables");
    std::fs::write(&file, tables(&PatternSet::new(patterns.to_vec()))).unwrap();
    let answers = probe.run(&[&file], keys.iter().map(|npub| format!("{}\n", hex::encode(npub.0))).collect());
    assert_eq!(answers.lines().count(), keys.len());
    let mut passing = Passing { matching: 0, quick: 0, texts: 0 };
    for (npub, answer) in keys.iter().zip(answers.lines()) {
        let matches = patterns.iter().any(|pattern| pattern.matches(npub));
        let (quick, texts, is_wanted) = (&answer[..1], &answer[2..3] == "1", answer.ends_with('1'));
        assert!(quick != "0" || !matches, "{npub} fails the quick tests of {patterns:?}");
        assert_eq!(is_wanted, matches, "{npub} and {patterns:?}");
        assert!(texts || !matches, "{npub} fails the tests of {patterns:?}");
        passing.matching += usize::from(matches);
        passing.quick += usize::from(quick == "1");
        passing.texts += usize::from(texts);
    }
    passing
}

/// One program has all the kernels' functions, and is compiled once.
fn the_kernels_compiled_for_the_host_are_right() {
    let probe = HostProbe::compile();
    field_arithmetic_is_right(&probe);
    the_eighteen_keys_of_an_entry_are_right(&probe);
    the_kernels_agree_with_a_match_on_the_text(&probe);
    the_quick_tests_of_keys_miss_no_pattern_at_any_place(&probe);
}

fn the_kernels_agree_with_a_match_on_the_text(probe: &HostProbe) {
    let mut rng = seeded();
    let keys = keys(&mut rng);
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
        for _ in 0..5 {
            let mut of_key = || {
                let at = rng.random_range(0..keys.len());
                pattern_of(&mut rng, &keys[at])
            };
            sets.push((0..size).filter_map(|_| of_key()).collect());
        }
    }
    let (mut wanted, mut all, mut passing) = (0, 0, 0);
    for patterns in sets.into_iter().filter(|patterns| !patterns.is_empty()) {
        let found = compare(probe, &patterns, &keys);
        (wanted, all, passing) = (wanted + found.matching, all + keys.len(), passing + found.texts);
    }
    println!("{wanted} of {all} keys match, {passing} pass a test of their texts");
    assert!(wanted > all / 100 && wanted < all);
}

fn the_eighteen_keys_of_an_entry_are_right(probe: &HostProbe) {
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

/// The number of a character.
fn value_of(character: char) -> u8 {
    ALPHABET.iter().position(|&one| char::from(one) == character).unwrap() as u8
}

/// A random key that has these characters at a place. `None` if no key does.
fn key_with(rng: &mut StdRng, characters: &[u8], place: usize) -> Option<Npub> {
    let (mut key, mut fixed) = (rng.random::<[u8; 32]>(), [false; 256]);
    let (mut sum, mut mask) = (0, 0);
    for (at, value) in characters.iter().enumerate() {
        for bit in 0..5 {
            // Counted from the start of the text.
            let (at, is_set) = (5 * (place + at) + bit, value >> (4 - bit) & 1);
            match at {
                0..256 => {
                    key[at / 8] = key[at / 8] & !(0x80 >> (at % 8)) | is_set << (7 - at % 8);
                    fixed[at] = true;
                }
                256..260 if is_set == 1 => return None,
                256..260 => {}
                _ => (sum, mask) = (sum | u32::from(is_set) << (289 - at), mask | 1 << (289 - at)),
            }
        }
    }
    // The checksum is linear in the key. So flips free bits whose checksums add up to the
    // difference.
    let tables = ChecksumTables::get();
    let mut basis: Vec<(u32, [u8; 32])> = Vec::new();
    for at in (0..256).filter(|&at| !fixed[at]) {
        let mut flips = [0; 32];
        flips[at / 8] = 0x80 >> (at % 8);
        let mut part = tables.bytes[at / 8][usize::from(flips[at / 8])] & mask;
        for (other, others) in &basis {
            if part & 1 << other.ilog2() != 0 {
                part ^= other;
                flips.iter_mut().zip(others).for_each(|(flip, other)| *flip ^= other);
            }
        }
        if part != 0 {
            basis.push((part, flips));
        }
    }
    let mut missing = (tables.checksum(&key) ^ sum) & mask;
    for (part, flips) in &basis {
        if missing & 1 << part.ilog2() != 0 {
            missing ^= part;
            key.iter_mut().zip(flips).for_each(|(byte, flip)| *byte ^= flip);
        }
    }
    (missing == 0).then_some(Npub(key))
}

fn the_quick_tests_of_keys_miss_no_pattern_at_any_place(probe: &HostProbe) {
    let mut rng = seeded();
    let sets: [&[&str]; 12] = [
        &["*cafe"],
        &["*cafe", "*al7c", "*xyzn", "*4n4n", "*7777", "*eeee", "*jugs", "*m0ct"],
        &["*qqqq", "*ssss", "*scafe7l", "*qcafe77"],
        &["*qwerty*"],
        &["*al7cet*", "*m0ctane*"],
        &["*al[7l]cet9*", "*al?cet77*"],
        &["*qqqqqqq*", "*sssssss*"],
        &["=7*"],
        &["=9*", "=8*"],
        &["hex:*c0ffee"],
        &["hex:*c0ffee", "hex:*decade", "hex:*facade00", "=7*", "*al7cet9*"],
        &["*sat0sh77*@30", "*cafe", "m0ct*7777", "m0cta"],
    ];
    let mut forms = BTreeSet::new();
    for texts in sets {
        let patterns: Vec<Pattern> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let [words, form] = screen(&PatternSet::new(patterns.clone()));
        assert!(!words.is_empty(), "{texts:?} has no quick tests");
        forms.extend(form);
        let mut planted = Vec::new();
        for text in texts {
            // A pattern such as `=7*` is tried with a run of each character, the others with their
            // longest part.
            let runs: Vec<Vec<u8>> = match text.strip_prefix('=') {
                Some(count) => {
                    let count = count.trim_end_matches('*').parse().unwrap();
                    (0..32).map(|value| vec![value; count]).collect()
                }
                None => {
                    let written = text.split('@').next().unwrap().replace("[7l]", "7").replace('?', "q");
                    let longest = written.split('*').max_by_key(|part| part.len()).unwrap();
                    let is_hex = longest.starts_with("hex:") || text.starts_with("hex:");
                    if is_hex { Vec::new() } else { vec![longest.chars().map(value_of).collect()] }
                }
            };
            for run in runs {
                let places = (0..=58 - run.len()).flat_map(|place| [place; 3]);
                planted.extend(places.filter_map(|place| key_with(&mut rng, &run, place)));
            }
            if let Some(end) = text.strip_prefix("hex:*") {
                planted.extend((0..20).map(|_| {
                    let text = hex::encode(rng.random::<[u8; 32]>());
                    Npub(hex::decode(format!("{}{end}", &text[..64 - end.len()])).unwrap().try_into().unwrap())
                }));
            }
        }
        let others = (0..10_000).map(|_| Npub(rng.random()));
        let keys: Vec<Npub> = planted.into_iter().chain(others).collect();
        let Passing { matching, quick, .. } = compare(probe, &patterns, &keys);
        println!("{texts:?}: {matching} keys match, {quick} of {} pass", keys.len());
        assert!(matching >= 3, "{texts:?}: no key has them");
        assert!(quick < matching + 5 * (keys.len() - 10_000) / 10 + 100, "{texts:?}: {quick} keys pass");
    }
    assert_eq!(forms, BTreeSet::from([0, 1, 2]), "the forms of the kernel that were tested");
}

/// The times of six launches each of several kinds of patterns: by top words, by quick tests, and
/// by texts, with one test and with several.
fn times_of_launches(is_polite: bool) -> Vec<(&'static str, Vec<Duration>)> {
    needs_gpu();
    let mut rng = seeded();
    let mut searcher = cuda::open(0, &SearchOptions { polite: is_polite, ..SearchOptions::default() }).unwrap();
    let six_runs = "=6* *al7cet* *m0ctan* *satnsh* *qwerty* *zap5at* *3y3y3y*";
    let kinds = ["m0ctane", "~satosh", "*cafe7", "=6*", six_runs].into_iter().map(|texts| {
        let patterns = Arc::new(PatternSet::new(texts.split(' ').map(|text| text.parse().unwrap()).collect()));
        let mut time = || {
            let starts = (0..searcher.starts()).map(|_| random_start(&mut rng)).collect();
            launch(&mut *searcher, starts, &patterns, 20).busy
        };
        let times: Vec<Duration> = (0..6).map(|_| time()).collect();
        println!("{texts}: {times:?}");
        (texts, times)
    });
    kinds.collect()
}

fn polite_launches_take_at_most_30_ms() {
    for (texts, times) in times_of_launches(true) {
        figure(texts, *times.iter().max().unwrap(), Duration::from_millis(30));
    }
}

/// The lower bar holds from the third launch on. The first launches with new patterns are short,
/// because their speed is not known yet.
fn launches_of_every_kind_of_pattern_take_as_long() {
    for (texts, times) in times_of_launches(false) {
        figure(texts, *times.iter().max().unwrap(), Duration::from_millis(110));
        let shortest = times[2..].iter().min().unwrap().as_secs_f64();
        figure(&format!("{texts}, launches a second"), 1.0 / shortest, 1.0 / 0.036);
    }
}
