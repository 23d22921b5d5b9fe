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

#[cfg(target_arch = "x86_64")]
use super::avx2::{self, Fe4};
use super::dispatch::{Kernel, KernelChoice};
use super::field::Fe;
use super::filter::{Filter, Lookup};
#[cfg(target_arch = "x86_64")]
use super::ifma::{self, Fe8};
#[cfg(target_arch = "aarch64")]
use super::neon::Fe2;
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

/// Whether a kernel can be tested. If not, prints that, bypassing the test harness, which hides the
/// output of passing tests.
#[cfg(target_arch = "x86_64")]
fn has(kernel: &str, is_supported: bool) -> bool {
    use std::io::Write;
    if !is_supported {
        writeln!(std::io::stderr(), "SKIPPED for the kernel `{kernel}`, which this processor lacks")
            .expect("standard error is there");
    }
    is_supported
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    has("avx2", avx2::is_supported())
}

#[cfg(target_arch = "x86_64")]
fn has_ifma() -> bool {
    has("ifma", ifma::is_supported())
}

/// Calls a function for the field type of every kernel that this processor can run.
macro_rules! for_each_field {
    ($function:ident($($argument:expr),*)) => {{
        $function::<Fe>($($argument),*);
        #[cfg(target_arch = "aarch64")]
        $function::<Fe2>($($argument),*);
        #[cfg(target_arch = "x86_64")]
        if has_avx2() {
            $function::<Fe4>($($argument),*);
        }
        #[cfg(target_arch = "x86_64")]
        if has_ifma() {
            $function::<Fe8>($($argument),*);
        }
    }};
}
use for_each_field;

/// The kernels of this processor.
fn kernels() -> Vec<Kernel> {
    #[cfg(target_arch = "x86_64")]
    let _ = (has_avx2(), has_ifma());
    let choices = [KernelChoice::Portable, KernelChoice::Neon, KernelChoice::Avx2, KernelChoice::Ifma];
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

fn patterns(texts: &[&str]) -> Arc<PatternSet> {
    Arc::new(PatternSet::new(texts.iter().map(|text| text.parse::<Pattern>().unwrap()).collect()))
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
fn hits_of(kernel: Kernel, start: &StartPoint, centres: u64, set: &Arc<PatternSet>) -> (u64, HashSet<Tweak>) {
    assert_eq!(CENTRES % kernel.centres, 0);
    let [one, other] = LOOKUPS.map(|lookup| {
        let filter = kernel.filter(set).with_lookup(lookup);
        let walked = (kernel.walker())(start, centres / kernel.centres, &target(filter, usize::MAX));
        let hits: HashSet<Tweak> = walked.hits.iter().copied().collect();
        assert_eq!(hits.len(), walked.hits.len(), "no hit is reported twice");
        (walked.candidates, hits)
    });
    assert!(one == other, "{}: {} hits by gathers, {} by loads", kernel.name, one.1.len(), other.1.len());
    one
}
