//! Runs short launches of the portable CPU kernel and prints how many candidates they tested:
//! `scripts/count_instructions.sh` counts the instructions of two such runs.
//!
//!     portable_rounds LAUNCHES

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement ends at its first error")]

use npubbot_miner::key::StartPoint;
use npubbot_miner::pattern::PatternSet;
use npubbot_miner::search::cpu::{CpuSearcher, KernelChoice};
use npubbot_miner::search::{Launch, Searcher};
use secp256k1::{PublicKey, SECP256K1, SecretKey};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let launches: u64 = std::env::args().nth(1).ok_or("how many launches?")?.parse()?;
    // With an intended time of zero, every launch after the first is one round. So the number of
    // candidates does not depend on the speed of the machine.
    let mut searcher = CpuSearcher::open(Some(1), KernelChoice::Portable)?.with_launches_of(Duration::ZERO);
    let patterns = Arc::new(PatternSet::new(vec!["m0ctane".parse()?]));
    let mut candidates = 0;
    for number in 1..=launches {
        let mut secret = [0x5a; 32];
        secret[24..].copy_from_slice(&number.to_be_bytes());
        let start = StartPoint::new(PublicKey::from_secret_key(SECP256K1, &SecretKey::from_slice(&secret)?));
        searcher.submit(Launch { starts: vec![start], patterns: Arc::clone(&patterns), remaining: None })?;
        candidates += searcher.collect()?.candidates;
    }
    println!("{candidates}");
    Ok(())
}
