//! S7 on stable Rust: no stored input of the fuzzer causes harm. The stored inputs are the seeds.
//! Inputs that once crashed something are among them. To run the fuzzer itself:
//! `cargo +nightly fuzz run unwrap fuzz/corpus/unwrap fuzz/seeds/unwrap`
//! (`docs/developers/fuzzing.md`).

#[path = "../../fuzz/bodies.rs"]
mod bodies;

use crate::support::harness::{Test, test};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::fs;
use std::path::Path;

pub const TESTS: &[Test] = &[test!(no_stored_input_and_no_damaged_copy_does_harm)];

/// Damaged copies made of each file.
const COPIES: usize = 10;

/// Runs every seed of a target, and copies of it with some bytes inserted, changed, removed or
/// doubled.
fn replay(target: &str, body: fn(&[u8])) {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 3, "{} has {} files", folder.display(), files.len());
    for file in files {
        let input = fs::read(&file).unwrap();
        body(&input);
        for _ in 0..COPIES {
            let mut copy = input.clone();
            for _ in 0..rng.random_range(1..6) {
                let at = rng.random_range(0..=copy.len());
                match rng.random_range(0..4) {
                    0 => copy.insert(at, rng.random()),
                    1 => copy.truncate(at),
                    2 => copy.extend_from_within(at..),
                    _ => {
                        if let Some(byte) = copy.get_mut(at) {
                            *byte ^= 1 << rng.random_range(0..8);
                        }
                    }
                }
                copy.truncate(100_000);
            }
            body(&copy);
        }
    }
}

/// Each target has the name of the folder of its seeds.
fn no_stored_input_and_no_damaged_copy_does_harm() {
    replay("request", bodies::request);
    replay("unwrap", bodies::unwrap);
    replay("relays_toml", bodies::relays_toml);
    replay("hits", bodies::hits);
    replay("split_text", bodies::split_text);
    replay("patterns", bodies::patterns);
}
