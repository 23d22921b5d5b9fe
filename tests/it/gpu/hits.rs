//! Searches on a GPU. The tests recompute hits and compare their number with the expected one.

use crate::support::half::small;
use crate::support::harness::{Test, needs_gpu, test};
use npubbot::key::{Rotation, StartPoint, VerifiedHit};
use npubbot::pattern::{ALPHABET, Pattern, PatternSet};
use npubbot::search::cuda;
use npubbot::search::cuda::constants::TABLE;
use npubbot::search::{Calibrations, Choice, Launch, LaunchReport, SearchOptions, Searcher};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use secp256k1::{PublicKey, SECP256K1, SecretKey};
use std::collections::BTreeMap;
use std::sync::Arc;

pub const TESTS: &[Test] = &[
    test!(every_hit_of_a_gpu_is_true_and_their_number_is_as_expected),
    test!(a_gpu_with_a_shorter_table_finds_true_hits_in_the_number_expected),
    test!(chosen_start_points_give_a_gpu_no_wrong_hit),
];

/// A random start point, as the vault draws them.
pub fn random_start(rng: &mut StdRng) -> StartPoint {
    let secret = SecretKey::from_slice(&rng.random::<[u8; 32]>()).unwrap();
    StartPoint::new(PublicKey::from_secret_key(SECP256K1, &secret))
}

/// Runs one launch and returns its report. Recomputes at most `recomputed` of the hits and checks
/// that each matches a pattern.
pub fn launch(
    searcher: &mut dyn Searcher,
    starts: Vec<StartPoint>,
    patterns: &Arc<PatternSet>,
    recomputed: usize,
) -> LaunchReport {
    let launch = Launch { starts: starts.clone(), patterns: Arc::clone(patterns), remaining: None };
    searcher.submit(launch).unwrap();
    let report = searcher.collect().unwrap();
    for hit in report.hits.iter().take(recomputed) {
        let verified = VerifiedHit::recompute(starts[hit.start], hit.tweak).expect("no candidate is infinity");
        assert!(!patterns.matches(&verified.npub()).is_empty(), "{hit:?} from {:?}", starts[hit.start]);
    }
    report
}

/// Also simulates GPUs with less shared memory. Those of compute capability 8.6, 8.9 and 12.0 give a
/// block at most 99 KB, those of 7.5 give it 64 KB.
fn every_hit_of_a_gpu_is_true_and_their_number_is_as_expected() {
    needs_gpu();
    for (kilobytes, variants) in
        [(None, None), (Some(99), Some(["middle", "plain"])), (Some(64), Some(["small", "plain"]))]
    {
        let options = SearchOptions { shared_memory: kilobytes.map(|size| size * 1024), ..SearchOptions::default() };
        let kernel = every_hit_is_true(&options);
        println!("{kilobytes:?} KB: {kernel}");
        assert!(variants.is_none_or(|all| all.iter().any(|one| kernel.contains(one))), "{kilobytes:?} KB: {kernel}");
    }
}

/// The first start measures which length of the table is best and keeps it. Later starts take the
/// kept length without a measurement, and find true hits even if a damaged file has an impossible
/// one.
fn a_gpu_with_a_shorter_table_finds_true_hits_in_the_number_expected() {
    needs_gpu();
    let calibrations = Calibrations::kept_by(BTreeMap::new(), |_| {});
    let options = SearchOptions { calibrations: calibrations.clone(), ..SearchOptions::default() };
    let open = || cuda::open(0, &options).unwrap().calibration_key().unwrap().to_owned();
    let key = open();
    let kept = || calibrations.get(&key).and_then(|kept| kept.choice).unwrap();
    let chosen = kept();
    println!("{chosen:?}");
    // A second measurement would find other speeds.
    assert_eq!((open(), kept()), (key.clone(), chosen.clone()));
    for entries in [0, 1, 4, 510, 1024, u32::MAX] {
        let choice = Choice { entries, ..chosen.clone() };
        calibrations.change(&key, |kept| kept.choice = Some(choice.clone()));
        every_hit_is_true(&options);
        let kept = kept();
        // Another test may have taken or freed the memory meanwhile. Then a start measures again.
        assert!(kept == choice || kept.prefixes != choice.prefixes, "it was measured again: {kept:?}");
    }
}

/// Searches with patterns of each form of each kernel: those that filter by top words, then those
/// that compare whole keys. Returns the kernel's description.
fn every_hit_is_true(options: &SearchOptions) -> String {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let mut searcher = cuda::open(0, options).unwrap();
    let many: Vec<String> = (0..300).map(|_| random_prefix(&mut rng, 5)).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for texts in [
        &["qqqqq"][..],
        &["l2345", "q0rtg", "0000000"],
        &["~satosh", "=5"],
        &["p", "zzzz"],
        &["n0??r"],
        &["hex:c0ffe"],
        &["zeros:22"],
        &["hex:0c0de", "hex:ffff8", "zeros:21", "[m0][0c]tan"],
        &["words:6"],
        &["words:7", "hex:beef5", "~crayfe"],
        &many,
        &["m0ct*[qp]"],
        &["m0ct*a*", "qqqq*7", "00000"],
        &["~al7c*[qpzry]*@20"],
        &["*qrcafe", "*al7ce*", "=6*", "hex:*c0ffee", "m0*cafe"],
        &["*cafe"],
        &["*al7cet*"],
        &["*al7cet*", "*m0cta", "hex:*c0ffee", "=7*"],
    ] {
        let patterns = Arc::new(PatternSet::new(texts.iter().map(|text| text.parse().unwrap()).collect()));
        let starts = (0..searcher.starts()).map(|_| random_start(&mut rng)).collect();
        let report = launch(&mut *searcher, starts, &patterns, 20_000);
        let expected = report.candidates as f64 / patterns.difficulty().unwrap().candidates();
        let off = (report.hits.len() as f64 - expected) / expected.sqrt();
        let few: Vec<_> = texts.iter().take(5).collect();
        assert!(off.abs() < 5.0, "{few:?} …: {} hits where {expected} are expected", report.hits.len());
    }
    searcher.info().kernel.clone()
}

fn random_prefix(rng: &mut StdRng, characters: usize) -> String {
    (0..characters).map(|_| char::from(ALPHABET[rng.random_range(0..32)])).collect()
}

/// As in `search::cuda::geometry`: distance between centres, and between the first centres of
/// neighbouring threads, in multiples of G.
const STEP: u64 = 2 * TABLE as u64 + 1;
const STRIDE: u64 = 17 * STEP;
const THREADS_PER_START: u64 = 3072;

/// A start point at which the search meets a zero. Nobody can choose one, because the vault blinds
/// start points, but the kernel does not rely on that (S10).
fn chosen(rng: &mut StdRng, kind: usize) -> StartPoint {
    let plus = |one: SecretKey, other: SecretKey| one.add_tweak(&other.into()).unwrap();
    let start = STRIDE * rng.random_range(1..=THREADS_PER_START);
    let centre = small(start + STEP * rng.random_range(0..17)).negate();
    let i = u64::from([1, TABLE, rng.random_range(2..TABLE)][rng.random_range(0..3)]);
    let sign = |secret: SecretKey, minus: bool| if minus { secret.negate() } else { secret };
    let (minus, turn) = (rng.random(), Rotation::ALL[rng.random_range(0..3)].scalar());
    let secret = match kind % 6 {
        // A centre is the same as the point of a table entry, or as that point times ±λ^k.
        0 | 1 => plus(sign(small(i).mul_tweak(&turn).unwrap(), minus), centre),
        // A thread's first centre is twice the start point, or infinity.
        2 => sign(small(start), minus),
        // A centre and the next one are equally far from infinity, or the next one is infinity.
        3 => plus(sign(small(STEP), minus), centre),
        4 => plus(sign(small(1), minus), sign(small(TABLE.into()), minus)),
        _ => return random_start(rng),
    };
    StartPoint::new(PublicKey::from_secret_key(SECP256K1, &secret))
}

fn chosen_start_points_give_a_gpu_no_wrong_hit() {
    needs_gpu();
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let mut searcher = cuda::open(0, &SearchOptions::default()).unwrap();
    let patterns = Arc::new(PatternSet::new(vec![Pattern::parse("qqqq").unwrap()]));
    for number in 0..8 {
        let starts = (0..searcher.starts()).map(|kind| chosen(&mut rng, kind)).collect();
        let report = launch(&mut *searcher, starts, &patterns, usize::MAX);
        // Such start points are neighbours and share candidates, so the number of hits varies more.
        let share = report.hits.len() as f64 * 2f64.powi(20) / report.candidates as f64;
        println!("launch {number}: {} hits, {:.1} % of what is expected", report.hits.len(), 100.0 * share);
        assert!((share - 1.0).abs() < 0.25, "{} hits of {} candidates", report.hits.len(), report.candidates);
    }
}
