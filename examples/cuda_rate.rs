//! Measures a GPU through the `Searcher` trait: rate by wall time and by kernel time, and hits
//! found against hits expected. Every hit is recomputed with libsecp256k1.
//!
//!     cuda_rate <ordinal> <seconds> <patterns> <length> [<runs>]

#![allow(clippy::unwrap_used, reason = "a measurement ends at its first error")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement ends at its first error")]

use npubbot::key::{StartPoint, VerifiedHit};
use npubbot::pattern::{ALPHABET, Pattern, PatternSet};
use npubbot::search::{Launch, SearchOptions, Searcher, cuda};
use rand::Rng;
use secp256k1::{PublicKey, SECP256K1, SecretKey};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).map(|arg| arg.parse().expect("a number")).collect();
    let [ordinal, seconds, count, length, ref rest @ ..] = numbers[..] else {
        panic!("cuda_rate <ordinal> <seconds> <patterns> <length> [<runs>]");
    };
    let opening = Instant::now();
    let mut searcher =
        cuda::open(ordinal as usize, &SearchOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    println!("{:?}, open after {:?}", searcher.info(), opening.elapsed());
    for _ in 0..rest.first().copied().unwrap_or(1) {
        measure(searcher.as_mut(), Duration::from_secs(seconds), count as usize, length as usize);
    }
}

fn measure(searcher: &mut dyn Searcher, time: Duration, count: usize, length: usize) {
    let mut rng = rand::rng();
    let mut random = || -> String { (0..length).map(|_| ALPHABET[rng.random_range(0..32)] as char).collect() };
    let patterns = Arc::new(PatternSet::new(
        (0..count).map(|_| Pattern::parse(&random()).expect("letters of the alphabet")).collect(),
    ));
    let chance: f64 =
        patterns.intervals().iter().map(|&(first, last)| ((last - first) as f64 + 1.0) / 2f64.powi(64)).sum();
    let mut submitted = VecDeque::new();
    let submit = |searcher: &mut dyn Searcher, submitted: &mut VecDeque<Vec<StartPoint>>| {
        let mut rng = rand::rng();
        let starts: Vec<StartPoint> = (0..searcher.starts())
            .map(|_| {
                let secret = SecretKey::from_slice(&rng.random::<[u8; 32]>()).expect("below n");
                StartPoint::new(PublicKey::from_secret_key(SECP256K1, &secret))
            })
            .collect();
        searcher
            .submit(Launch { starts: starts.clone(), patterns: patterns.clone(), remaining: None })
            .expect("a launch");
        submitted.push_back(starts);
    };
    let (mut candidates, mut busy, mut launches) = (0u64, Duration::ZERO, 0);
    let (mut found, mut wrong) = (0u64, 0u64);
    let mut kept = Vec::new();
    let cpu = cpu_seconds();
    let start = Instant::now();
    for _ in 0..searcher.in_flight() {
        submit(searcher, &mut submitted);
    }
    while let Some(starts) = submitted.pop_front() {
        let report = searcher.collect().expect("a launch that ends");
        if start.elapsed() < time {
            submit(searcher, &mut submitted);
        }
        candidates += report.candidates;
        busy += report.busy;
        launches += 1;
        found += report.hits.len() as u64;
        kept.extend(report.hits.into_iter().map(|hit| (starts[hit.start], hit.tweak)).take(200_000));
    }
    let wall = start.elapsed();
    let cpu = cpu_seconds() - cpu;
    let mut distinct = std::collections::HashSet::new();
    let checking = kept.len().min(200_000);
    for (start, tweak) in &kept[..checking] {
        let verified = VerifiedHit::recompute(*start, *tweak);
        if !verified.is_some_and(|hit| !patterns.matches(&hit.npub()).is_empty() && distinct.insert(hit.npub())) {
            wrong += 1;
        }
    }
    let expected = candidates as f64 * chance;
    println!(
        "{count} patterns of {length}: wall {:.2} G/s, kernel {:.2} G/s, {launches} launches of {:.1} ms, host {:.2} % of a core; \
         found {found}, expected {expected:.0} ({:+.2} sigma), checked {checking}, wrong {wrong}",
        candidates as f64 / wall.as_secs_f64() / 1e9,
        candidates as f64 / busy.as_secs_f64() / 1e9,
        busy.as_secs_f64() * 1e3 / f64::from(launches),
        100.0 * cpu / wall.as_secs_f64(),
        (found as f64 - expected) / expected.sqrt().max(1.0),
    );
}

/// Processor time that this process has used so far.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks: f64 = stat
        .rsplit(')')
        .next()
        .unwrap_or("")
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|t| t.parse::<f64>().ok())
        .sum();
    ticks / 100.0
}
