//! The formula and the walk against libsecp256k1 and plain arithmetic.

mod chosen_points;

use super::dispatch::{Kernel, KernelChoice};
use super::field::Fe;
use super::filter::{COARSE_BITS, Filter};
use super::formula::{Centre, Products, address, cube, factor};
use super::ifma::{Fe8, is_supported};
use super::simd::Lanes;
use super::table::{Affine, ENTRIES, STEP, Table, multiple_of_generator};
use super::walk::{Remaining, Sought};
use crate::key::{Npub, Offset, Rotation, StartPoint, Tweak, candidate};
use crate::pattern::{ALPHABET, Pattern, PatternSet};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use secp256k1::{PublicKey, SECP256K1, SecretKey};
use std::collections::HashSet;
use std::sync::Arc;

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
        let factor = F::constant_factor(a);
        for chunk in values.chunks(F::LANES) {
            // All lanes full, each with another value; and `a` in the same lanes, turned.
            let b: Vec<Fe> = (0..F::LANES).map(|lane| chunk[lane % chunk.len()]).collect();
            let others: Vec<Fe> =
                (0..F::LANES).map(|lane| if lane % 2 == 0 { a } else { values[(at + lane) % values.len()] }).collect();
            let (fa, fb) = (F::from_lanes(&others), F::from_lanes(&b));
            // The loosest values there are: a sum with a product by a prepared factor.
            let loose = F::sum(fa.times_constant(&factor).tidy(), fb.tidy());
            for lane in 0..F::LANES {
                let (x, y, c) = (others[lane].canonical(), b[lane].canonical(), a.canonical());
                let same = |value: F, expected: Fe, what: &str| {
                    assert_eq!(value.lane(lane).canonical().0, expected.0, "{what}: {x:?}, {y:?}, {c:?}");
                };
                let (xy, xx) = (slow_product(x, y), slow_product(x, x));
                same(fa.mul(fb), xy, "mul");
                same(fa.square(), xx, "square");
                same(fa.square_plus(fb.tidy()), slow_sum(xx, y), "square_plus");
                same(F::sum(fa.tidy(), fb.tidy()), slow_sum(x, y), "sum");
                same(fa.sub(fb), difference_of(x, y), "sub");
                same(fa.times_constant(&factor), slow_product(x, c), "times_constant");
                same(fa.times(&fb.mul(fb).factor()), slow_product(x, slow_product(y, y)), "times");
                let z = slow_sum(slow_product(x, c), y);
                same(loose, z, "loose");
                same(loose.mul(loose), slow_product(z, z), "loose mul");
                same(loose.square(), slow_product(z, z), "loose square");
                same(loose.square_plus(loose.tidy()), slow_sum(slow_product(z, z), z), "loose square_plus");
                same(loose.times_constant(&factor), slow_product(z, c), "loose times_constant");
                same(fa.sub(loose), difference_of(x, z), "sub of loose");
                same(loose.sub(fb), difference_of(z, y), "sub from loose");
                // A sum's and a difference's top are two terms of six: a third of the slack. They may stand on either
                // side of 0.
                for (top_words, one, two) in [
                    (F::tops_of_products(fa, fb, fb), xy, slow_product(y, y)),
                    (F::tops_of_products(loose, fa, loose), slow_product(z, z), slow_product(x, z)),
                ] {
                    for (difference, expected) in [(false, slow_sum(one, two)), (true, difference_of(one, two))] {
                        let off =
                            expected.top().wrapping_sub(F::top(top_words, difference, lane)).wrapping_add(F::SLACK / 3);
                        let by = off.wrapping_sub(F::SLACK / 3) as i64;
                        assert!(off <= F::SLACK / 3 * 2, "top of {x:?}, {y:?}, {z:?}: off by {by}");
                    }
                }
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

/// Limbs as large as their bounds allow, with leftovers above those of which 52 bits count.
#[test]
fn limbs_at_their_bounds_are_reduced() {
    if !is_supported() {
        return no_ifma("limbs at their bounds");
    }
    let mut random = random();
    let power = |bits: usize| (0..bits).fold(Fe::ONE, |power, _| slow_sum(power, power));
    let limb = |random: &mut StdRng| {
        let value = [0, 1, (1 << 51) - 1, 1 << 51, (1 << 52) - 2, (1 << 52) - 1][random.random_range(0..6)];
        value | random.random_range(0..1 << 12) << 52
    };
    let top = |random: &mut StdRng| {
        // The greatest: a sum of a product by a prepared factor and a product.
        [0, 1, (1 << 48) - 1, (1 << 48) + 63, (1 << 51) + 63, (1 << 51) + (1 << 48) + 127][random.random_range(0..6)]
    };
    for _ in 0..500 {
        let mut number =
            || [limb(&mut random), limb(&mut random), limb(&mut random), limb(&mut random), top(&mut random)];
        let (a, b) = (number(), number());
        let value = |limbs: [u64; 5]| {
            limbs.iter().enumerate().fold(Fe::ZERO, |sum, (at, &limb)| {
                let counts = if at < 4 { limb & ((1 << 52) - 1) } else { limb };
                slow_sum(sum, slow_product(Fe::from_small(counts), power(52 * at)))
            })
        };
        let (x, y) = (value(a), value(b));
        let (fa, fb) = (Fe8::of_limbs(a), Fe8::of_limbs(b));
        let same = |number: Fe8, expected: Fe, what: &str| {
            assert_eq!(number.lane(3).canonical().0, expected.0, "{what}: {a:x?}, {b:x?}");
        };
        let xy = slow_product(x, y);
        same(fa, x, "as it is");
        same(fa.mul(fb), xy, "mul");
        same(fa.square(), slow_product(x, x), "square");
        same(fa.square_plus(fb.tidy()), slow_sum(slow_product(x, x), y), "square_plus");
        same(fa.times(&fb.factor()), xy, "times");
        same(fa.times_constant(&Fe8::constant_factor(y)), xy, "times_constant");
        same(fa.sub(fb), difference_of(x, y), "sub");
        let top_words = Fe8::tops_of_products(fa, fb, fb);
        let expected = slow_sum(xy, slow_product(y, y)).top();
        assert!(
            expected.wrapping_sub(Fe8::top(top_words, false, 3)).wrapping_add(Fe8::SLACK / 3) <= Fe8::SLACK / 3 * 2
        );
    }
}

#[test]
fn a_kernel_the_processor_lacks_is_a_clear_error() {
    match Kernel::choose(KernelChoice::Ifma) {
        Ok(kernel) => assert_eq!(kernel.name(), "ifma"),
        Err(error) => assert_eq!(error.to_string(), "this processor has no AVX-512 IFMA; use `--cpu-kernel auto`"),
    }
    assert_eq!(Kernel::choose(KernelChoice::Portable).unwrap().name(), "portable");
    let refusal = |name: &str| name.parse::<KernelChoice>().unwrap_err().to_string();
    assert_eq!(refusal("avx9"), "`avx9` is no CPU kernel; say `auto`, `ifma` or `portable`");
    assert!(
        refusal("avx2").starts_with("there is no kernel for AVX2: where it was tried, the portable one was faster")
    );
}

fn point_of(secret: &SecretKey) -> StartPoint {
    StartPoint::new(PublicKey::from_secret_key(SECP256K1, secret))
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

/// All 18 candidates of one entry around one centre a lane, exact and by their top_words.
fn check_entry<F: Lanes>(table: &Table<F>, random: &mut StdRng, i: usize) {
    let starts: Vec<StartPoint> = (0..F::LANES).map(|_| point_of(&random_secret(random))).collect();
    let points: Vec<Affine<Fe>> = starts.iter().map(|start| Affine::of(start.public_key())).collect();
    let (xs, ys): (Vec<Fe>, Vec<Fe>) = points.iter().map(|point| (point.x, point.y)).unzip();
    let x = F::from_lanes(&xs);
    let (z, entry) = (cube(x), &table.entries.0[i - 1]);
    let centre = Centre::new(Affine { x, y: F::from_lanes(&ys) }, z, x.invert());
    let q = F::sum(x.tidy(), x.tidy()).mul(factor(z, entry).invert());
    let products = Products::new(&centre, entry, q);
    let top_words = products.top_words(&centre, entry);
    for (lane, start) in starts.iter().enumerate() {
        for (word, sign) in (0..9).flat_map(|word| [(word, 0), (word, 1)]) {
            let (k, j) = address(word);
            let step = if sign == 1 { -(i as i64) } else { i as i64 };
            let expected = candidate(start, &tweak(0, step, k, j)).unwrap();
            let exact = products.lane(lane).exact(x.lane(lane), entry.x, (k, sign, j));
            assert_eq!(npub_of(exact), expected, "i {i} k {k} sign {sign} j {j} lane {lane}");
            let off = F::top(top_words[word], sign == 1, lane).wrapping_sub(exact.top()).wrapping_add(F::SLACK);
            assert!(off <= 2 * F::SLACK, "top off by {}", off.wrapping_sub(F::SLACK) as i64);
        }
    }
}

#[test]
fn all_18_candidates_of_an_entry_are_what_libsecp256k1_says() {
    let mut random = random();
    let table = Table::<Fe>::new(1);
    for round in 0..40 {
        let i = [1, ENTRIES].get(round).copied().unwrap_or_else(|| random.random_range(1..=ENTRIES));
        check_entry(&table, &mut random, i);
    }
    if is_supported() {
        let table = Table::<Fe8>::new(Fe8::LANES);
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
fn by_brute_force(start: &StartPoint, centres: u64, set: &PatternSet) -> HashSet<Tweak> {
    let mut found = HashSet::new();
    for centre in 0..centres {
        for i in 1..=ENTRIES as i64 {
            for step in [i, -i] {
                for k in 0..3 {
                    for j in 0..3 {
                        let tweak = tweak(centre * STEP, step, k, j);
                        if candidate(start, &tweak).is_some_and(|npub| !set.matches(&npub).is_empty()) {
                            found.insert(tweak);
                        }
                    }
                }
            }
        }
    }
    found
}

fn sought(filter: Filter, hits_wanted: usize) -> Sought {
    Sought { filter: Arc::new(filter), hits_wanted, remaining: None }
}

/// Centres that are whole rounds of every kernel.
const CENTRES: u64 = 16;

/// Walks `centres` centres, a multiple of [`CENTRES`].
fn hits_of(kernel: Kernel, start: &StartPoint, centres: u64, set: &PatternSet) -> (u64, HashSet<Tweak>) {
    let filter = kernel.filter(set);
    assert_eq!(CENTRES % kernel.centres(), 0);
    let walked = kernel.walker().walk(start, centres / kernel.centres(), &sought(filter, usize::MAX));
    let hits: HashSet<Tweak> = walked.hits.iter().copied().collect();
    assert_eq!(hits.len(), walked.hits.len(), "no hit is reported twice");
    (walked.candidates, hits)
}

#[test]
fn a_walk_finds_every_match_and_nothing_else() {
    let mut random = random();
    let start = point_of(&random_secret(&mut random));
    // Few intervals are compared with one by one, more are looked up. Of the longest and most, each look leaves some top_words
    // and takes others away.
    let words = |count: usize| -> Vec<String> {
        let word = |n: usize| [ALPHABET[n % 32] as char, ALPHABET[n / 3 % 32] as char, 'q'].iter().collect();
        (0..count).map(word).collect()
    };
    let (some, many) = (words(60), words(900));
    let texts = |words: &[String]| patterns(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let few = ["q", "l7"].map(str::to_owned);
    let more = ["q", "l7", "zz", "p0", "6mu", "ttt", "2j"].map(str::to_owned);
    let long: Vec<String> =
        (0..30_000).map(|_| (0..5).map(|_| ALPHABET[random.random_range(0..32)] as char).collect()).collect();
    for set in [texts(&few), texts(&more), texts(&some), texts(&many), texts(&long)] {
        let expected = by_brute_force(&start, CENTRES, &set);
        assert!(expected.len() > 50);
        for kernel in kernels() {
            let (candidates, hits) = hits_of(kernel, &start, CENTRES, &set);
            assert_eq!(candidates, CENTRES * ENTRIES as u64 * 18);
            assert!(hits == expected, "{}: {} hits, {} expected", kernel.name(), hits.len(), expected.len());
        }
    }
}

#[test]
fn a_walk_counts_as_many_hits_as_chance_gives() {
    let mut random = random();
    let start = point_of(&random_secret(&mut random));
    for texts in [&["cat", "dad"][..], &["cat", "dad", "ham", "jam", "yam", "pan"]] {
        let set = patterns(texts);
        for kernel in kernels() {
            let (candidates, hits) = hits_of(kernel, &start, 80, &set);
            let expected = candidates as f64 / set.difficulty().unwrap().candidates();
            assert!((hits.len() as f64 - expected).abs() <= 5.0 * expected.sqrt(), "{} for {expected}", hits.len());
        }
    }
}

#[test]
fn a_walk_with_too_many_hits_ends_early_and_says_what_it_tested() {
    let mut random = random();
    let start = point_of(&random_secret(&mut random));
    let set = patterns(&["q"]);
    for kernel in kernels() {
        let walked = kernel.walker().walk(&start, 50, &sought(kernel.filter(&set), 1));
        assert_eq!(walked.rounds, 1);
        assert_eq!(walked.candidates, kernel.centres() * ENTRIES as u64 * 18);
        assert!(walked.hits.len() > 100);
    }
}

/// From the round on by which enough of the others were found, it is as if they had not been asked for; or the walk ends.
#[test]
fn a_walk_that_has_found_enough_goes_on_for_what_lasts() {
    let mut random = random();
    let start = point_of(&random_secret(&mut random));
    let (rare, all) = (patterns(&["cat", "pan"]), patterns(&["cat", "pan", "q", "l7", "zz", "p0", "6mu"]));
    for kernel in kernels() {
        let filter = |set| Arc::new(kernel.filter(set));
        let rounds = 160 / kernel.centres();
        let walk = |set, remaining| {
            let sought = Sought { filter: filter(set), hits_wanted: usize::MAX, remaining };
            kernel.walker().walk(&start, rounds, &sought)
        };
        let everything: HashSet<Tweak> = walk(&all, None).hits.into_iter().collect();
        let rare_ones: HashSet<Tweak> = walk(&rare, None).hits.into_iter().collect();
        // A round has some hundred hits of the others: after the second round there are enough.
        let a_round = kernel.centres() * ENTRIES as u64 * 18 / 32;
        let after = a_round as usize * 3 / 2;
        let remaining = |is_wanted| Some(Remaining { filter: filter(&rare), is_wanted, after });
        let two = Sought { filter: filter(&all), hits_wanted: usize::MAX, remaining: None };
        let in_two_rounds: HashSet<Tweak> = kernel.walker().walk(&start, 2, &two).hits.into_iter().collect();
        let gone_on = walk(&all, remaining(true));
        assert_eq!(gone_on.rounds, rounds);
        assert_eq!(gone_on.candidates, 160 * ENTRIES as u64 * 18);
        let expected: HashSet<Tweak> = everything
            .iter()
            .filter(|tweak| rare_ones.contains(tweak) || in_two_rounds.contains(tweak))
            .copied()
            .collect();
        assert!(gone_on.hits.iter().copied().collect::<HashSet<Tweak>>() == expected);
        assert!(expected.len() < everything.len() / 2);
        let ended = walk(&all, remaining(false));
        assert_eq!(ended.rounds, 2);
        assert!(ended.hits.into_iter().collect::<HashSet<Tweak>>() == in_two_rounds);
        // What lasts does not count as found.
        let all_last = Some(Remaining { filter: filter(&all), is_wanted: false, after: 1 });
        assert_eq!(walk(&all, all_last).rounds, rounds);
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
    let in_coarse = |top: u64| {
        let bucket = (top >> (64 - COARSE_BITS)) as usize;
        filter.coarse()[bucket / 32] >> (bucket % 32) & 1 == 1
    };
    for &(first, last) in set.intervals() {
        for end in [first, last] {
            assert!(filter.matches_exactly(end));
            for error in [0, 1, SLACK] {
                for top in [end.wrapping_add(error), end.wrapping_sub(error)] {
                    assert!(filter.is_marked(top) && in_coarse(top), "{end:x} ± {error}");
                }
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
