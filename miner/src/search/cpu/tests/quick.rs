//! The quick tests of whole keys, compared with the tests of their texts.

#[cfg(target_arch = "x86_64")]
use super::field::with_limbs;
use super::*;
use crate::pattern::TextTests;
use crate::search::cpu::formula::Products;
#[cfg(target_arch = "x86_64")]
use crate::search::cpu::ifma::{
    keys::{KeyFactors, unsure},
    quick::Quick8,
};
use crate::search::cpu::quick::{QuickTests, QuickWords};
use crate::search::cpu::text::{self, Lanes};
use crate::search::cpu::whole::{WordField, factors_of_keys, loose_keys, passes};
use std::ops::Range;

/// Numbers at the edges: 0, 1, β, numbers around p and 2^256, and numbers with limbs of all zeros
/// or all ones.
fn edges() -> Vec<Fe> {
    let mut edges = vec![Fe::ZERO, Fe::ONE, Fe::BETA, Fe([u64::MAX; 4]), Fe([0, 0, 0, u64::MAX])];
    for below in 0..3 {
        edges.push(Fe([0xffff_fffe_ffff_fc2f - below, u64::MAX, u64::MAX, u64::MAX]));
        edges.push(Fe([0xffff_fffe_ffff_fc2f + below, u64::MAX, u64::MAX, u64::MAX]));
    }
    edges.extend((0..256).step_by(13).map(|bit| {
        let mut limbs = [u64::MAX; 4];
        limbs[bit / 64] ^= 1 << (bit % 64);
        Fe(limbs)
    }));
    edges.extend((0..4).map(|limb| Fe(std::array::from_fn(|at| if at == limb { 0 } else { u64::MAX }))));
    edges
}

/// A random number, or one at an edge.
fn number(random: &mut StdRng, edges: &[Fe]) -> Fe {
    if random.random_range(0..3) > 0 { Fe(random.random()) } else { edges[random.random_range(0..edges.len())] }
}

/// Values of y0, y1, y2, a, b, and the x of a centre and of an entry. In half of the cases, one of
/// the keys is at an edge.
fn values(random: &mut StdRng) -> [Fe; 7] {
    let edges = edges();
    if random.random() {
        return std::array::from_fn(|_| number(random, &edges));
    }
    let mut edge = edges[random.random_range(0..edges.len())];
    for _ in 0..random.random_range(0..3) {
        edge = edge.mul(Fe::BETA);
    }
    let (zero, one) = (Fe::ZERO, Fe::ONE);
    match random.random_range(0..3) {
        0 => [edge, zero, zero, one, zero, zero, zero],
        1 => [zero, edge, zero, zero, one, zero, zero],
        _ => {
            let x = number(random, &edges);
            [edge.add(x).add(edge), zero, zero, one, zero, x, edge]
        }
    }
}

fn turned(xi: Fe) -> [Fe; 3] {
    [xi, xi.mul(Fe::BETA), xi.mul(Fe::BETA.square())].map(Fe::canonical)
}

/// The keys of an entry in every lane, each at `[2k + sign][j]`, and whether they may be wrong.
type Keys = [[Vec<(Fe, bool)>; 3]; 6];

fn keys_by_words<F: WordField>(lanes: &[[Fe; 7]], turned: [Fe; 3]) -> Keys {
    let vector = |at: usize| F::from_lanes(&lanes.iter().map(|lane| lane[at]).collect::<Vec<Fe>>());
    let products = Products { y: [vector(0), vector(1), vector(2)], a: vector(3), b: vector(4) };
    let turned = turned.map(|x| F::from_constant(&F::constant(x)).0);
    let beta = F::constant_factor(Fe::BETA);
    let factors = factors_of_keys(&products, &beta);
    std::array::from_fn(|n| {
        loose_keys(&factors, n, vector(5), turned[n / 2], &beta).map(|key| {
            let (words, unsure) = key.loose_words();
            (0..F::LANES).map(|lane| (Fe(F::lane_of(&words, lane)), unsure >> lane & 1 == 1)).collect()
        })
    })
}

/// The keys of every lane, each at `[2k + sign][j]`, with a bit for each lane in which one may be p or
/// more.
#[cfg(target_arch = "x86_64")]
fn keys_of_lanes(products: &Products<Fe8>, x: Fe8, turned: [Fe8; 3]) -> (u8, [[[Fe; 8]; 3]; 6]) {
    let beta = Fe8::constant_factor(Fe::BETA);
    let factors = KeyFactors::new(products, x, &beta);
    let mut unsure_lanes = 0;
    let mut points = [[[Fe::ZERO; 8]; 3]; 6];
    for k in 0..3 {
        let keys = factors.keys(k, turned[k]);
        unsure_lanes |= unsure(&keys);
        for (n, key) in keys.into_iter().enumerate() {
            points[2 * k + n / 3][n % 3] = std::array::from_fn(|lane| Fe8(key).lane(lane));
        }
    }
    (unsure_lanes, points)
}

#[cfg(target_arch = "x86_64")]
fn keys_of_ifma(lanes: &[[Fe; 7]], turned: [Fe; 3]) -> Keys {
    let vector = |at: usize| Fe8::from_lanes(&lanes.iter().map(|lane| lane[at]).collect::<Vec<Fe>>());
    let products = Products { y: [vector(0), vector(1), vector(2)], a: vector(3), b: vector(4) };
    let turned = turned.map(|x| Fe8::from_constant(&Fe8::constant(x)).0);
    let (unsure, keys) = keys_of_lanes(&products, vector(5), turned);
    keys.map(|keys| keys.map(|key| (0..8).map(|lane| (key[lane], unsure >> lane & 1 == 1)).collect()))
}

/// Whether one of these keys passes the quick tests and a test of its text, by the words of `F`.
fn passes_by_words<F: WordField>(quick: &QuickTests, tests: &TextTests, keys: &[Fe; 8]) -> bool {
    let quick = QuickWords::new(quick);
    keys.chunks_exact(F::LANES).any(|keys| {
        let (key, other) = (F::from_lanes(keys), F::from_lanes(&[OTHER; 8]));
        let of_three = [[key, other, other], [other, key, other], [other, other, key]];
        let passing = of_three.map(|keys| passes(Some(&quick), tests, &keys, &F::Word::tables()));
        assert_eq!(passing, [passing[0]; 3]);
        passing[0]
    })
}

#[cfg(target_arch = "x86_64")]
fn passes_by_ifma(quick: &QuickTests, tests: &TextTests, keys: &[Fe; 8]) -> bool {
    let passing: [bool; 6] = std::array::from_fn(|at| {
        let mut six = [Fe8::from_lanes(&[OTHER; 8]); 6];
        six[at] = Fe8::from_lanes(keys);
        Quick8::new(quick).passes_one(&six.map(|key| key.0), tests)
    });
    assert_eq!(passing, [passing[0]; 6]);
    passing[0]
}

/// Digits of π: a key that passes no test.
const OTHER: Fe = Fe([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89]);

/// The functions of a kernel for whole keys: [`keys_by_words`] and [`passes_by_words`].
struct Tested {
    name: &'static str,
    lanes: usize,
    keys: fn(&[[Fe; 7]], [Fe; 3]) -> Keys,
    passes: fn(&QuickTests, &TextTests, &[Fe; 8]) -> bool,
}

/// The kernels that this processor can run.
fn tested() -> Vec<Tested> {
    fn by_words<F: WordField>(name: &'static str) -> Tested {
        Tested { name, lanes: F::LANES, keys: keys_by_words::<F>, passes: passes_by_words::<F> }
    }
    let mut tested = vec![by_words::<Fe>("portable")];
    #[cfg(target_arch = "aarch64")]
    tested.push(by_words::<Fe2>("neon"));
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        tested.push(by_words::<Fe4>("avx2"));
    }
    #[cfg(target_arch = "x86_64")]
    if has_ifma() {
        tested.push(Tested { name: "ifma", lanes: 8, keys: keys_of_ifma, passes: passes_by_ifma });
    }
    tested
}

#[test]
fn the_eighteen_keys_of_an_entry_are_right_or_say_that_they_may_not_be() {
    let (kernels, mut random) = (tested(), random());
    let (mut unsure, mut all) = (0, 0);
    for _ in 0..4_000 {
        let lanes: [[Fe; 7]; 8] = std::array::from_fn(|_| values(&mut random));
        // The entry is the same in every lane.
        let turned = turned(lanes[0][6]);
        for kernel in &kernels {
            let keys = lanes.chunks(kernel.lanes).map(|lanes| (lanes, (kernel.keys)(lanes, turned)));
            for (lanes, keys) in keys {
                for (at, &[y0, y1, y2, a, b, x, _]) in lanes.iter().enumerate() {
                    for (k, sign, j) in (0..18).map(|at| (at / 6, at / 3 % 2, at % 3)) {
                        let (key, is_unsure) = keys[2 * k + sign][j][at];
                        let products = Products { y: [y0, y1, y2], a, b };
                        let expected = products.exact(x, turned[0], (k, sign, j));
                        let name = kernel.name;
                        assert!(is_unsure || key.0 == expected.0, "{name}: {k} {sign} {j} of {:?}", lanes[at]);
                        (unsure, all) = (unsure + u32::from(is_unsure), all + 1);
                    }
                }
            }
        }
    }
    println!("{unsure} of {all} may not be right");
    assert!(unsure > 0 && unsure < all / 2);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_keys_of_the_largest_factors_are_right() {
    if !has_ifma() {
        return;
    }
    // The bounds of `ifma`, with bits above 2^52 in the lower limbs.
    let (lower, product) = ((1u64 << 57) - 1, (1u64 << 48) + 63);
    let y = with_limbs([lower, lower, lower, lower, product]);
    let a = with_limbs([lower, lower, lower, lower, 2 * product]);
    let b = with_limbs([lower, lower, lower, lower, (1 << 51) + 63]);
    let xi = Fe::ZERO.sub(Fe::ONE).canonical();
    let turned = turned(xi);
    let constants = turned.map(|x| Fe8::from_constant(&Fe8::constant(x)).0);
    let zero = with_limbs([0; 5]);
    for y in [[y, zero, y], [y, y, zero], [zero, y, y], [y, y, y]] {
        for (a, b) in [(a, b), (a, zero), (zero, b)] {
            let products = Products { y, a, b };
            let (unsure, keys) = keys_of_lanes(&products, y[0], constants);
            assert_eq!(unsure, 0);
            for (k, sign, j) in (0..18).map(|at| (at / 6, at / 3 % 2, at % 3)) {
                let expected = products.lane(0).exact(y[0].lane(0), xi, (k, sign, j));
                assert_eq!(keys[2 * k + sign][j][0].0, expected.0);
            }
        }
    }
}

/// Pattern sets made from a key's text. Most of them have quick tests.
fn patterns_of(random: &mut StdRng, text: &str) -> Vec<Vec<String>> {
    let part = |from: usize, count: usize| text[from..from + count].to_owned();
    let mut from = |count: usize| random.random_range(0..=58 - count);
    let (five, six, seven, end) = (from(5), from(6), from(7), from(7) % 4 + 3);
    vec![
        vec![format!("*{}", part(58 - end, end))],
        vec![format!("*{}*", part(five, 5))],
        vec![format!("*{}*", part(six, 6)), format!("*{}", part(54, 4))],
        vec![format!("*{}*", part(seven, 7)), "=7*".into()],
        vec![format!("*{}*", part(five, 5)), "*al7ce*".into(), "=6*".into()],
        vec![format!("*{}", part(52, 6)), format!("{}*{}", part(0, 2), part(56, 2)), "=7*".into()],
        vec![format!("*{}", part(54, 4)), format!("*{}", part(51, 7)), "*cafe".into(), "*al7ce".into()],
        vec![format!("q*{}*", part(five, 5)), format!("*{}?{}", part(52, 2), part(55, 3))],
    ]
}

/// A key with the same bits as `key` at one end, or with equal characters at some place, or `key`
/// itself.
fn neighbour(random: &mut StdRng, key: Fe) -> Fe {
    let mut limbs: [u64; 4] = random.random();
    match random.random_range(0..4) {
        0 => limbs[0] = key.0[0],
        1 => limbs[3] = key.0[3],
        2 => return key,
        _ => {
            let (from, count) = (random.random_range(0..52), random.random_range(5..9));
            set_equal(&mut limbs, from..from + count, random.random());
        }
    }
    Fe(limbs).canonical()
}

/// Sets the characters at these places to the lowest five bits of `value`. The bits of a character
/// may lie across two limbs.
fn set_equal(limbs: &mut [u64; 4], places: Range<usize>, value: u8) {
    for bit in (0..5 * places.len()).filter_map(|at| (255 - 5 * places.start).checked_sub(at)) {
        let is_set = (value >> ((bit + 4) % 5)) & 1;
        limbs[bit / 64] = limbs[bit / 64] & !(1 << (bit % 64)) | u64::from(is_set) << (bit % 64);
    }
}

#[test]
fn equal_characters_at_every_place_pass_the_quick_tests() {
    let (kernels, mut random) = (tested(), random());
    for (text, count) in [("=6*", 6), ("=7*", 7), ("=9*", 9)] {
        let tests = patterns(&[text]).text_tests().unwrap();
        let quick = QuickTests::new(&tests).unwrap();
        // Without the key's last character, which has one bit of the key and four zero bits.
        for (from, value) in (0..=51 - count).flat_map(|from| (0..32).map(move |value| (from, value))) {
            let mut limbs = random.random();
            set_equal(&mut limbs, from..from + count, value);
            let key = Fe(limbs).canonical();
            assert!(text::passes_a_test(&tests, &key.0), "{text} at {from}: {value}");
            for kernel in &kernels {
                assert!((kernel.passes)(&quick, &tests, &[key; 8]), "{}: {text} at {from}: {value}", kernel.name);
            }
        }
    }
}

#[test]
fn keys_pass_the_quick_tests_if_and_only_if_a_text_among_them_passes() {
    let (kernels, mut random) = (tested(), random());
    let (mut passing, mut all, mut without) = (0, 0, 0);
    for _ in 0..60 {
        let key = Fe(random.random()).canonical();
        let text = npub_of(key).to_string();
        for texts in patterns_of(&mut random, &text[5..]) {
            let Ok(set) = texts.iter().map(|text| text.parse::<Pattern>()).collect::<Result<Vec<_>, _>>() else {
                continue;
            };
            let Some(tests) = PatternSet::new(set).text_tests() else { continue };
            let Some(quick) = QuickTests::new(&tests) else {
                without += 1;
                continue;
            };
            for round in 0..6 {
                let mut lanes = [[Fe::ONE; 8]; 18];
                lanes.as_flattened_mut().iter_mut().for_each(|key| *key = Fe(random.random()).canonical());
                let place = random.random_range(0..18);
                lanes[place][random.random_range(0..8)] = if round == 0 { key } else { neighbour(&mut random, key) };
                let passes = |key: &Fe| text::passes_a_test(&tests, &key.0);
                for keys in &lanes {
                    let expected = keys.iter().any(passes);
                    // A key that may be p or more counts as passed.
                    let is_unsure = keys.iter().any(|key| key.top() >> 40 == (1 << 24) - 1);
                    for kernel in &kernels {
                        let passes = (kernel.passes)(&quick, &tests, keys);
                        assert!(passes == expected || is_unsure, "{}: {texts:?}: {keys:?}", kernel.name);
                    }
                    (passing, all) = (passing + u32::from(expected), all + 1);
                }
            }
        }
    }
    println!("{passing} of {all} pass, {without} sets have no quick tests");
    assert!(passing > all / 400 && passing < all / 4 && without < 120);
}

#[test]
fn a_key_that_may_be_p_or_more_passes_in_every_lane() {
    for text in ["*cafe7", "hex:*c0ffee", "*qwerty*", "=7*"] {
        let tests = patterns(&[text]).text_tests().unwrap();
        let quick = QuickTests::new(&tests).unwrap();
        for (kernel, place) in tested().iter().flat_map(|kernel| (0..=8).map(move |place| (kernel, place))) {
            let mut keys = [OTHER; 8];
            let is_large = keys.get_mut(place).map(|key| key.0[3] = u64::MAX).is_some();
            assert_eq!((kernel.passes)(&quick, &tests, &keys), is_large, "{}: {text}, {place}", kernel.name);
        }
    }
}

#[test]
fn the_quick_tests_of_one_kind_are_few() {
    let of = |texts: &[&str]| QuickTests::new(&patterns(texts).text_tests().unwrap());
    let counts = |texts: &[&str]| of(texts).map(|quick| (quick.parities.len(), quick.even.len(), quick.odd.len()));
    assert_eq!(counts(&["*cafe7"]), Some((1, 0, 0)));
    assert_eq!(counts(&["*cafe7", "*al7ce", "*q7q7q7"]), Some((1, 0, 0)));
    assert_eq!(counts(&["*qwerty*"]).map(|(parities, ..)| parities), Some(1));
    let (parities, even, odd) = counts(&["*al7ce*"]).unwrap();
    assert!(parities == 1 && even + odd <= 4, "{parities} {even} {odd}");
    assert_eq!(counts(&["=7*"]), Some((1, 0, 0)));
    assert!(
        of(&["hex:*c0ffee"])
            .is_some_and(|quick| quick.low == Some((0xff_ffff, 0xc0_ffee)) && quick.parities.is_empty())
    );
    assert!(of(&["=5*"]).is_none() && of(&["*al7*"]).is_none(), "too many keys would pass");
}

/// The pairs are those that `canary::beside` of the bot chooses.
#[test]
fn a_pattern_of_the_same_kind_takes_no_further_quick_test() {
    let counts = |texts: &[&str]| {
        let quick = QuickTests::new(&patterns(texts).text_tests().unwrap()).unwrap();
        (quick.parities.len(), quick.even.len() + quick.odd.len(), quick.equal)
    };
    for (requested, canary) in [
        ("*cafe7", "*cafe7"),
        ("*cafe7", "*qcafe7"),
        ("*cafe", "*qcafe"),
        ("*qwerty*", "*qwert*"),
        ("*qwerty*", "*qwertyq*"),
        ("*al7ce*", "*al7cea*"),
        ("=7*", "*al7c??????e"),
        ("=8*", "*al7cet?????t0"),
        ("hex:*c0ffee", "*wqllh???????"),
        ("hex:*beef", "*ahlmh???????"),
    ] {
        let (alone, both) = (counts(&[requested]), counts(&[requested, canary]));
        assert_eq!(alone, both, "{requested} {canary}");
    }
    let low = |texts: &[&str]| QuickTests::new(&patterns(texts).text_tests().unwrap()).unwrap().low;
    assert_eq!(low(&["hex:*c0ffee", "*wqllh???????"]), Some((0xff_fffe, 0xc0_ffee)));
    assert_eq!(low(&["hex:*c0ffee", "hex:*3f0011"]), Some((0xff_ffff, 0xc0_ffee)), "nothing in common");
}
