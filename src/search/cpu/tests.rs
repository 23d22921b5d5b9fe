//! The formula and the walk against libsecp256k1 and plain arithmetic.

use super::field::Fe;
use super::filter::Filter;
use super::formula::{Centre, Products, address, place};
use super::ifma::{Fe8, is_supported};
use super::kernel::{Kernel, KernelChoice};
use super::lanes::Lanes;
use super::table::{Affine, ENTRIES, STEP, Table, multiple_of_generator};
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

/// Says by name what did not run. Past the test harness, which swallows what passing tests print.
fn no_ifma(what: &str) {
    use std::io::Write;
    let line = "SKIPPED for the kernel `ifma`: this processor has no AVX-512 IFMA";
    writeln!(std::io::stderr(), "{line} ({what})").expect("standard error is there");
}

/// The kernels this processor has, with the names of those it lacks printed.
fn kernels() -> Vec<Kernel> {
    if !is_supported() {
        no_ifma("its walks");
    }
    let choices = [KernelChoice::Portable, KernelChoice::Ifma];
    choices.into_iter().filter_map(|choice| Kernel::choose(choice).ok()).collect()
}

/// Every operation of a field type on every pair, lane by lane, against the slow ones.
fn check_field<F: Lanes>(values: &[Fe]) {
    for (at, &a) in values.iter().enumerate() {
        for chunk in values.chunks(F::LANES) {
            // All lanes full, each with another value; and `a` in the same lanes, turned.
            let b: Vec<Fe> = (0..F::LANES).map(|lane| chunk[lane % chunk.len()]).collect();
            let a: Vec<Fe> =
                (0..F::LANES).map(|lane| if lane % 2 == 0 { a } else { values[(at + lane) % values.len()] }).collect();
            let (fa, fb) = (F::from_lanes(&a), F::from_lanes(&b));
            let (product, sum, difference) = (fa.mul(fb), fa.add(fb), fa.sub(fb));
            let (square, top) = (fa.square(), fa.top_of_product(fb));
            // The loosest values the formula multiplies: sums of sums.
            let (loose_a, loose_b) = (fa.add(fa.add(fb)), fb.sub(fa).add(fb));
            let (loose, loose_top) = (loose_a.mul(loose_b), loose_a.top_of_product(loose_b));
            for lane in 0..F::LANES {
                let (x, y) = (a[lane].canonical(), b[lane].canonical());
                let expected = slow_product(x, y);
                assert_eq!(product.lane(lane).canonical().0, expected.0, "{x:?} · {y:?}");
                assert_eq!(square.lane(lane).canonical().0, slow_product(x, x).0, "{x:?}²");
                assert_eq!(sum.lane(lane).canonical().0, slow_sum(x, y).0, "{x:?} + {y:?}");
                assert_eq!(slow_sum(difference.lane(lane).canonical(), y).0, x.0, "{x:?} - {y:?}");
                let near = |tops: F::Tops, product: Fe, what: &str| {
                    // One term of six: a sixth of the slack, and the product may stand on either side of 0.
                    let off = product.canonical().top().wrapping_sub(F::top(tops, lane)).wrapping_add(F::SLACK / 6);
                    assert!(
                        off <= F::SLACK / 3,
                        "{what} of {x:?} and {y:?}: off by {}",
                        off.wrapping_sub(F::SLACK / 6) as i64
                    );
                };
                near(top, expected, "top");
                let (loose_x, loose_y) = (slow_sum(x, slow_sum(x, y)), slow_sum(difference_of(y, x), y));
                let expected = slow_product(loose_x, loose_y);
                assert_eq!(loose.lane(lane).canonical().0, expected.0, "loose {x:?} · {y:?}");
                near(loose_top, expected, "loose top");
            }
        }
        let many: Vec<Fe> = (0..F::LANES).map(|lane| values[(at + lane) % values.len()]).collect();
        let inverse = F::from_lanes(&many).invert();
        for (lane, &value) in many.iter().enumerate() {
            let one = u64::from(!value.is_zero());
            assert_eq!(value.mul(inverse.lane(lane)).canonical().0, [one, 0, 0, 0], "1 / {value:?}");
        }
    }
}

/// `a - b mod p` of canonical values.
fn difference_of(a: Fe, b: Fe) -> Fe {
    // p - b, and p for 0, which is the same number.
    let mut minus = [0u64; 4];
    let mut borrow = false;
    for ((limb, p), b) in minus.iter_mut().zip([0xffff_fffe_ffff_fc2f, u64::MAX, u64::MAX, u64::MAX]).zip(b.0) {
        let (first, one) = p.overflowing_sub(b);
        let (second, two) = first.overflowing_sub(u64::from(borrow));
        (*limb, borrow) = (second, one | two);
    }
    slow_sum(a, Fe(minus).canonical())
}

#[test]
fn field_operations_agree_with_slow_ones() {
    let mut random = random();
    let values = values(&mut random);
    check_field::<Fe>(&values);
    if is_supported() {
        check_field::<Fe8>(&values);
    } else {
        no_ifma("its field");
    }
}

#[test]
fn a_kernel_the_processor_lacks_is_a_clear_error() {
    match Kernel::choose(KernelChoice::Ifma) {
        Ok(kernel) => assert_eq!(kernel.name(), "ifma"),
        Err(error) => assert_eq!(error.to_string(), "this processor has no AVX-512 IFMA; use `--cpu-kernel auto`"),
    }
    assert_eq!(Kernel::choose(KernelChoice::Portable).unwrap().name(), "portable");
    assert!("avx9".parse::<KernelChoice>().unwrap_err().to_string().contains("portable"));
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

/// All 18 candidates of one entry around one centre a lane, exact and by their tops.
fn check_entry<F: Lanes>(table: &Table<F>, random: &mut StdRng, i: usize) {
    let bases: Vec<BasePoint> = (0..F::LANES).map(|_| point_of(&random_secret(random))).collect();
    let points: Vec<Affine<Fe>> = bases.iter().map(|base| Affine::of(base.public_key())).collect();
    let (xs, ys): (Vec<Fe>, Vec<Fe>) = points.iter().map(|point| (point.x, point.y)).unzip();
    let centre = Centre::new(Affine { x: F::from_lanes(&xs), y: F::from_lanes(&ys) });
    let (entry, plain) = (&table.entries[i - 1], &table.plain[i - 1]);
    let products = Products::new(&centre, entry, centre.factor(entry).invert());
    let tops = products.tops(&centre, entry);
    for (lane, base) in bases.iter().enumerate() {
        for (n, &top) in tops.iter().enumerate() {
            let (k, sign, j) = address(n);
            assert_eq!(place(k, sign, j), n);
            let step = if sign == 1 { -(i as i64) } else { i as i64 };
            let expected = candidate(base, &tweak(0, step, k, j)).unwrap();
            let exact = products.lane(lane).exact(&centre.lane(lane), plain, k, sign, j);
            assert_eq!(npub_of(exact), expected, "i {i} k {k} sign {sign} j {j} lane {lane}");
            let off = F::top(top, lane).wrapping_sub(exact.top()).wrapping_add(F::SLACK);
            assert!(off <= 2 * F::SLACK, "top off by {}", off.wrapping_sub(F::SLACK) as i64);
        }
    }
}

#[test]
fn all_18_candidates_of_an_entry_are_what_libsecp256k1_says() {
    let mut random = random();
    let table = Table::<Fe>::new();
    for round in 0..40 {
        let i = [1, ENTRIES].get(round).copied().unwrap_or_else(|| random.random_range(1..=ENTRIES));
        check_entry(&table, &mut random, i);
    }
    if is_supported() {
        let table = Table::<Fe8>::new();
        for round in 0..8 {
            let i = [1, ENTRIES].get(round).copied().unwrap_or_else(|| random.random_range(1..=ENTRIES));
            check_entry(&table, &mut random, i);
        }
    } else {
        no_ifma("its candidates");
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

fn lanes(kernel: Kernel) -> u64 {
    if kernel.name() == "ifma" { 8 } else { 1 }
}

/// Walks `centres` centres, a multiple of eight.
fn hits_of(kernel: Kernel, base: &BasePoint, centres: u64, set: &PatternSet) -> (u64, HashSet<Tweak>) {
    let filter = Filter::new(set, kernel.slack());
    let walked = kernel.walker().walk(base, centres / lanes(kernel), &filter, usize::MAX);
    let hits: HashSet<Tweak> = walked.hits.iter().copied().collect();
    assert_eq!(hits.len(), walked.hits.len(), "no hit is reported twice");
    (walked.candidates, hits)
}

#[test]
fn a_walk_finds_every_match_and_nothing_else() {
    let mut random = random();
    let base = point_of(&random_secret(&mut random));
    // Few intervals are compared with one by one, many are looked up.
    for texts in [&["q", "l7"][..], &["q", "l7", "zz", "p0", "6mu", "ttt", "2j"]] {
        let set = patterns(texts);
        let expected = by_brute_force(&base, 8, &set);
        assert!(expected.len() > 1000);
        for kernel in kernels() {
            let (candidates, hits) = hits_of(kernel, &base, 8, &set);
            assert_eq!(candidates, 8 * ENTRIES as u64 * 18);
            assert!(hits == expected, "{}: {} hits, {} expected", kernel.name(), hits.len(), expected.len());
        }
    }
}

#[test]
fn a_walk_counts_as_many_hits_as_chance_gives() {
    let mut random = random();
    let base = point_of(&random_secret(&mut random));
    for texts in [&["cat", "dad"][..], &["cat", "dad", "ham", "jam", "yam", "pan"]] {
        let set = patterns(texts);
        for kernel in kernels() {
            let (candidates, hits) = hits_of(kernel, &base, 80, &set);
            let expected = candidates as f64 / set.difficulty().unwrap().candidates();
            assert!((hits.len() as f64 - expected).abs() <= 5.0 * expected.sqrt(), "{} for {expected}", hits.len());
        }
    }
}

/// Points at which a factor of the shared inversion is zero, a centre is infinity, or the next centre is no plain
/// addition.
#[test]
fn a_zero_in_the_shared_inversion_harms_nothing_else() {
    let mut random = random();
    let set = patterns(&["qq"]);
    let i = random.random_range(1..=ENTRIES as u64);
    let small = multiple_of_generator;
    let turned = |point: PublicKey, power: usize| point.mul_tweak(SECP256K1, &Rotation::ALL[power].scalar()).unwrap();
    let minus = |point: PublicKey| point.negate(SECP256K1);
    let chosen = [
        small(1),
        minus(turned(small(i), 1)),
        turned(small(i), 2),
        small(STEP),
        minus(small(STEP)),
        minus(small(8 * STEP)),
        minus(small(2 * STEP)),
        minus(small(STEP - i)),
        small(i).add_exp_tweak(SECP256K1, &Scalar::ONE).unwrap(),
    ];
    for point in chosen {
        let base = BasePoint::new(point);
        let all = by_brute_force(&base, 16, &set);
        for kernel in kernels() {
            let (candidates, hits) = hits_of(kernel, &base, 16, &set);
            assert!(hits.is_subset(&all), "a wrong hit from {base:?}");
            // At most a centre that is infinity, and a few entries, are left out.
            let whole = 16 * ENTRIES as u64 * 18;
            assert!(candidates >= whole - (ENTRIES as u64 + 6) * 18, "{candidates} of {whole} from {base:?}");
            let missed = all.len() - hits.len();
            assert!(missed as f64 <= 0.1 * all.len() as f64 + 10.0, "{missed} of {} from {base:?}", all.len());
        }
    }
}

#[test]
fn a_walk_with_too_many_hits_ends_early_and_says_what_it_tested() {
    let mut random = random();
    let base = point_of(&random_secret(&mut random));
    let set = patterns(&["q"]);
    for kernel in kernels() {
        let walked = kernel.walker().walk(&base, 50, &Filter::new(&set, kernel.slack()), 1);
        assert_eq!(walked.rounds, 1);
        assert_eq!(walked.candidates, lanes(kernel) * ENTRIES as u64 * 18);
        assert!(walked.hits.len() > 100);
    }
}

#[test]
fn the_filter_passes_whatever_may_match() {
    const SLACK: u64 = 1 << 24;
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
                assert!(
                    filter.is_marked(end.wrapping_add(error)) && filter.may_match(end.wrapping_add(error)),
                    "{end:x} + {error}"
                );
                assert!(
                    filter.is_marked(end.wrapping_sub(error)) && filter.may_match(end.wrapping_sub(error)),
                    "{end:x} - {error}"
                );
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
