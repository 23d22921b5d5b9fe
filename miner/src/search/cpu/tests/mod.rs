//! The CPU search compared with libsecp256k1 and plain arithmetic.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and prints its seed")]

mod cells;
mod chosen_points;
mod dispatch;
mod field;
mod filter;
mod formula;
mod quick;
mod walk;
mod whole;

use super::avx2::{self, Fe4};
use super::dispatch::{Kernel, KernelChoice};
use super::field::Fe;
use super::filter::{Filter, Lookup};
use super::ifma::{Fe8, is_supported};
use super::simd::SimdField;
use super::table::{Affine, ENTRIES, STEP, multiple_of_generator};
use super::walk::WalkTarget;
use crate::key::{Npub, Offset, Rotation, StartPoint, Tweak, candidate};
use crate::pattern::{ALPHABET, Pattern, PatternSet};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use secp256k1::{PublicKey, SECP256K1, SecretKey};
use std::collections::HashSet;
use std::sync::Arc;

/// A random generator. Prints its seed, which `NPUBBOT_TEST_SEED` can set.
fn random() -> StdRng {
    let seed = std::env::var("NPUBBOT_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    println!("NPUBBOT_TEST_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

/// Prints which tests did not run, bypassing the test harness, which hides the output of passing
/// tests.
fn no_ifma(what: &str) {
    use std::io::Write;
    let line = "SKIPPED for the kernel `ifma`: this processor has no AVX-512 IFMA";
    writeln!(std::io::stderr(), "{line} ({what})").expect("standard error is there");
}

/// Whether the kernel `avx2` can be tested. Prints if not.
fn has_avx2() -> bool {
    use std::io::Write;
    if !avx2::is_supported() {
        let line = "SKIPPED for the kernel `avx2`: this processor has no AVX2";
        writeln!(std::io::stderr(), "{line}").expect("standard error is there");
    }
    avx2::is_supported()
}

/// The kernels of this processor. Prints the names of those it lacks.
fn kernels() -> Vec<Kernel> {
    if !is_supported() {
        no_ifma("its walks");
    }
    has_avx2();
    let choices = [KernelChoice::Portable, KernelChoice::Avx2, KernelChoice::Ifma];
    choices.into_iter().filter_map(|choice| Kernel::choose(choice).ok()).collect()
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

fn patterns(texts: &[&str]) -> PatternSet {
    PatternSet::new(texts.iter().map(|text| text.parse::<Pattern>().unwrap()).collect())
}

fn target(filter: Filter, most_hits: usize) -> WalkTarget {
    WalkTarget { filter: Arc::new(filter), most_hits, remaining: None }
}

/// Number of centres that is a whole number of rounds for every kernel.
const CENTRES: u64 = 16;

/// Every method of looking up top words.
const LOOKUPS: [Lookup; 2] = [Lookup::Gathers, Lookup::Loads];

/// Walks `centres` centres, a multiple of [`CENTRES`]. Returns the number of candidates and the
/// hits. Asserts that every method of looking up top words gives the same.
fn hits_of(kernel: Kernel, start: &StartPoint, centres: u64, set: &PatternSet) -> (u64, HashSet<Tweak>) {
    assert_eq!(CENTRES % kernel.centres(), 0);
    let [one, other] = LOOKUPS.map(|lookup| {
        let filter = kernel.filter(set).with_lookup(lookup);
        let walked = kernel.walker().walk(start, centres / kernel.centres(), &target(filter, usize::MAX));
        let hits: HashSet<Tweak> = walked.hits.iter().copied().collect();
        assert_eq!(hits.len(), walked.hits.len(), "no hit is reported twice");
        (walked.candidates, hits)
    });
    assert!(one == other, "{}: {} hits by gathers, {} by loads", kernel.name(), one.1.len(), other.1.len());
    one
}
