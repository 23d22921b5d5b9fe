//! The formula and the walk against libsecp256k1 and plain arithmetic.

use super::field::Fe;
use super::filter::Filter;
use super::formula::{Centre, Products, SLACK};
use super::table::{Affine, ENTRIES, STEP, multiple_of_generator, table};
use super::walk::{Scratch, walk};
use crate::key::{BasePoint, Npub, Offset, Rotation, Tweak, candidate};
use crate::pattern::{Pattern, PatternSet};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use secp256k1::{PublicKey, SECP256K1, Scalar, SecretKey};
use std::collections::HashSet;

/// A generator with a seed that is printed, and taken back from `NPUBBOT_TEST_SEED`.
fn random() -> StdRng {
    let seed = std::env::var("NPUBBOT_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    println!("NPUBBOT_TEST_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

/// Values at which carries, folds and comparisons go wrong, and random ones: uniform and as runs of ones and zeros.
fn values(random: &mut StdRng) -> Vec<Fe> {
    const P: [u64; 4] = [0xffff_fffe_ffff_fc2f, u64::MAX, u64::MAX, u64::MAX];
    let near_p = [-2i64, -1, 0, 1, 2].map(|d| Fe([P[0].wrapping_add_signed(d), P[1], P[2], P[3]]));
    let limbs = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 63, u64::MAX - 1, u64::MAX];
    let mut values = vec![Fe::from_small(0), Fe::ONE, Fe([u64::MAX; 4]), Fe::BETA, Fe([0x1_0000_03d1, 0, 0, 0])];
    values.extend(near_p);
    values.extend(limbs.map(|limb| Fe([0, 0, 0, limb])));
    values.extend(limbs.map(|limb| Fe([limb; 4])));
    values.extend((0..20).map(|_| Fe(random.random())));
    values.extend((0..20).map(|_| {
        let (start, length) = (random.random_range(0..256u32), random.random_range(1..256u32));
        let mut limbs = [0u64; 4];
        (start..start + length).for_each(|bit| limbs[(bit % 256 / 64) as usize] |= 1 << (bit % 64));
        Fe(limbs)
    }));
    values
}

/// `a·b mod p`, one bit after the other.
fn slow_product(a: Fe, b: Fe) -> Fe {
    let (a, b) = (a.canonical(), b.canonical());
    (0..256).rev().fold(Fe::from_small(0), |sum, bit| {
        let doubled = slow_sum(sum, sum);
        if b.0[bit / 64] >> (bit % 64) & 1 == 1 { slow_sum(doubled, a) } else { doubled }
    })
}

/// `a + b mod p` of canonical values, by libsecp256k1-free limb arithmetic with one conditional subtraction.
fn slow_sum(a: Fe, b: Fe) -> Fe {
    let mut limbs = [0u64; 5];
    let mut carry = 0u128;
    for ((limb, a), b) in limbs.iter_mut().zip(a.0).zip(b.0) {
        carry += u128::from(a) + u128::from(b);
        *limb = carry as u64;
        carry >>= 64;
    }
    if carry == 0 {
        return Fe([limbs[0], limbs[1], limbs[2], limbs[3]]).canonical();
    }
    // Above 2^256: subtracting p is adding 2^32 + 977 and dropping 2^256.
    let mut add = 0x1_0000_03d1u128;
    for limb in limbs.iter_mut().take(4) {
        add += u128::from(*limb);
        *limb = add as u64;
        add >>= 64;
    }
    Fe([limbs[0], limbs[1], limbs[2], limbs[3]]).canonical()
}

#[test]
fn field_operations_agree_with_slow_ones() {
    let mut random = random();
    let values = values(&mut random);
    for &a in &values {
        for &b in &values {
            let product = slow_product(a, b);
            assert_eq!(a.mul(b).canonical().0, product.0, "{a:?} · {b:?}");
            assert_eq!(a.add(b).canonical().0, slow_sum(a.canonical(), b.canonical()).0, "{a:?} + {b:?}");
            assert_eq!(a.sub(b).add(b).canonical().0, a.canonical().0, "{a:?} - {b:?}");
            // The bound the filter's slack is built on: low by 0 to 9, one more where the product is taken near 2^256.
            let low = a.mul(b).top().wrapping_sub(a.top_of_product(b)).wrapping_add(1);
            assert!(low <= 11, "{a:?} · {b:?}: low by {}", low as i64 - 1);
        }
        let inverse = a.invert();
        let one = if a.is_zero() { 0 } else { 1 };
        assert_eq!(a.mul(inverse).canonical().0, [one, 0, 0, 0], "1 / {a:?}");
        assert_eq!(a.square().canonical().0, slow_product(a, a).0);
    }
}

fn point_of(secret: &SecretKey) -> BasePoint {
    BasePoint::new(PublicKey::from_secret_key(SECP256K1, secret))
}

fn random_secret(random: &mut StdRng) -> SecretKey {
    SecretKey::from_slice(&random.random::<[u8; 32]>()).expect("a random value is below n but for a chance of 2^-128")
}

fn npub_of(x: Fe) -> Npub {
    let mut bytes = [0; 32];
    for (at, limb) in x.canonical().0.iter().rev().enumerate() {
        bytes[at * 8..at * 8 + 8].copy_from_slice(&limb.to_be_bytes());
    }
    Npub(bytes)
}

fn tweak(centre: u64, step: i64, k: usize, j: usize) -> Tweak {
    Tweak { offset: Offset::of_point(centre, step, Rotation::ALL[k]), rotation: Rotation::ALL[j] }
}

#[test]
fn all_18_candidates_of_an_entry_are_what_libsecp256k1_says() {
    let mut random = random();
    for round in 0..40 {
        let base = point_of(&random_secret(&mut random));
        let centre = Centre::new(Affine::of(base.public_key()));
        let i = match round {
            0 => 1,
            1 => ENTRIES,
            _ => random.random_range(1..=ENTRIES),
        };
        let entry = &table().entries[i - 1];
        let products = Products::new(&centre, entry, centre.factor(entry).invert());
        let tops = products.tops(&centre, entry);
        for (k, sign, j) in (0..18).map(|n| (n / 6, n / 3 % 2, n % 3)) {
            let step = if sign == 1 { -(i as i64) } else { i as i64 };
            let expected = candidate(&base, &tweak(0, step, k, j)).unwrap();
            let exact = products.exact(&centre, entry, k, sign == 1, j);
            assert_eq!(npub_of(exact), expected, "i {i} k {k} sign {sign} j {j}");
            let off = tops[k][sign][j].wrapping_sub(exact.top()).wrapping_add(SLACK);
            assert!(off <= 2 * SLACK, "top off by {}", off.wrapping_sub(SLACK) as i64);
        }
    }
}

fn patterns(texts: &[&str]) -> PatternSet {
    PatternSet::new(texts.iter().map(|text| Pattern::parse(text).unwrap()).collect())
}

/// Every candidate of the first `centres` centres that matches, found one by one with libsecp256k1.
fn by_brute_force(base: &BasePoint, centres: u64, set: &PatternSet) -> HashSet<Tweak> {
    let mut found = HashSet::new();
    for centre in 0..centres {
        for i in 1..=ENTRIES as i64 {
            for step in [i, -i] {
                for k in 0..3 {
                    for j in 0..3 {
                        let tweak = tweak(centre * STEP, step, k, j);
                        if candidate(base, &tweak).is_some_and(|npub| !set.matches(&npub).is_empty()) {
                            found.insert(tweak);
                        }
                    }
                }
            }
        }
    }
    found
}

fn hits_of(base: &BasePoint, centres: u64, set: &PatternSet) -> (u64, HashSet<Tweak>) {
    let walked = walk(table(), base, centres, &Filter::new(set, SLACK), usize::MAX, &mut Scratch::default());
    let hits: HashSet<Tweak> = walked.hits.iter().copied().collect();
    assert_eq!(hits.len(), walked.hits.len(), "no hit is reported twice");
    (walked.candidates, hits)
}

#[test]
fn a_walk_finds_every_match_and_nothing_else() {
    let mut random = random();
    let base = point_of(&random_secret(&mut random));
    let set = patterns(&["q", "l7", "zz", "p0", "6mu"]);
    let (candidates, hits) = hits_of(&base, 2, &set);
    assert_eq!(candidates, 2 * ENTRIES as u64 * 18);
    assert_eq!(hits, by_brute_force(&base, 2, &set));
    assert!(hits.len() > 300);
}

#[test]
fn a_walk_counts_as_many_hits_as_chance_gives() {
    let mut random = random();
    let set = patterns(&["cat", "dad"]);
    let base = point_of(&random_secret(&mut random));
    let (candidates, hits) = hits_of(&base, 40, &set);
    let expected = candidates as f64 / set.difficulty().unwrap().candidates();
    assert!((hits.len() as f64 - expected).abs() <= 5.0 * expected.sqrt(), "{} for {expected}", hits.len());
}

/// Points at which a factor of the shared inversion is zero, or the next centre is no plain addition.
#[test]
fn a_zero_in_the_shared_inversion_harms_nothing_else() {
    let mut random = random();
    let set = patterns(&["q"]);
    let i = random.random_range(1..=ENTRIES as u64);
    let small = |multiple: u64| multiple_of_generator(multiple);
    let turned = |point: PublicKey, power: usize| point.mul_tweak(SECP256K1, &Rotation::ALL[power].scalar()).unwrap();
    let minus = |point: PublicKey| point.negate(SECP256K1);
    let chosen = [
        small(1),
        minus(small(1)),
        small(i),
        minus(turned(small(i), 1)),
        turned(small(i), 2),
        small(STEP),
        minus(small(STEP)),
        minus(small(2 * STEP)),
        minus(small(STEP - i)),
        small(i).add_exp_tweak(SECP256K1, &Scalar::ONE).unwrap(),
    ];
    for point in chosen {
        let base = BasePoint::new(point);
        let (candidates, hits) = hits_of(&base, 3, &set);
        let all = by_brute_force(&base, 3, &set);
        assert!(hits.is_subset(&all), "a wrong hit from {base:?}");
        let whole = 3 * ENTRIES as u64 * 18;
        assert!(candidates >= whole - ENTRIES as u64 * 18 - 3 * 18, "{candidates} of {whole} from {base:?}");
        assert!(hits.len() as f64 >= 0.5 * all.len() as f64, "{} of {} from {base:?}", hits.len(), all.len());
    }
}

#[test]
fn a_walk_with_too_many_hits_ends_early_and_says_what_it_tested() {
    let mut random = random();
    let base = point_of(&random_secret(&mut random));
    let set = patterns(&["q"]);
    let walked = walk(table(), &base, 50, &Filter::new(&set, SLACK), 1, &mut Scratch::default());
    assert_eq!(walked.centres, 1);
    assert_eq!(walked.candidates, ENTRIES as u64 * 18);
    assert!(walked.hits.len() > 100);
}

#[test]
fn the_filter_passes_whatever_may_match() {
    let mut random = random();
    let texts: Vec<String> = (0..300)
        .map(|_| {
            let x: [u8; 32] = random.random();
            let length = random.random_range(1..=20);
            Npub(x).to_string()[5..5 + length].to_owned()
        })
        .chain(["qqqqqqqqqqqqqqqqqq".to_owned(), "llllllllllllllllll".to_owned()])
        .collect();
    let set = patterns(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let filter = Filter::new(&set, SLACK);
    for &(first, last) in set.intervals() {
        for end in [first, last] {
            assert!(filter.matches_exactly(end));
            for error in [0, 1, SLACK] {
                assert!(filter.may_match(end.wrapping_add(error)), "{end:x} + {error}");
                assert!(filter.may_match(end.wrapping_sub(error)), "{end:x} - {error}");
            }
        }
    }
    for _ in 0..10_000 {
        let top = random.random();
        let at = set.intervals().partition_point(|&(_, last)| last < top);
        let within = set.intervals().get(at).is_some_and(|&(first, _)| first <= top);
        assert_eq!(filter.matches_exactly(top), within);
    }
}
