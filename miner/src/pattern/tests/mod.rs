//! Tests of patterns against a plain match on the text of the npub.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod best;
mod difficulty;
mod grammar;
mod matching;
mod naive;
mod suggestions;

use super::{ALPHABET, Pattern};
use crate::key::Npub;
use naive::naive;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A generator with a printed seed, which `NPUBBOT_TEST_SEED` sets.
fn random() -> StdRng {
    let seed = std::env::var("NPUBBOT_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    println!("NPUBBOT_TEST_SEED={seed}");
    StdRng::seed_from_u64(seed)
}

fn pattern(text: &str) -> Pattern {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The 58 characters after `npub1`.
fn text_of(npub: &Npub) -> String {
    npub.to_string()[5..].to_owned()
}
