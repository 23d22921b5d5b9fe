//! Benchmarks the field operations and the search of the CPU kernels:
//! `cargo bench --bench cpu_kernels`.
//!
//! Use it to compare two versions of the code. The rates in `docs/performance.md` come from
//! `npubbot bench`, which proves them by hits.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement ends at its first error")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use npubbot::key::StartPoint;
use npubbot::pattern::{ALPHABET, Pattern, PatternSet};
use npubbot::search::cpu::bench_support::{CHAINS, Operation, repeat};
use npubbot::search::cpu::{CpuSearcher, KernelChoice};
use npubbot::search::{Launch, Searcher};
use rand::Rng;
use secp256k1::{PublicKey, SECP256K1, SecretKey};
use std::sync::Arc;
use std::time::{Duration, Instant};

const KERNELS: [(&str, KernelChoice); 2] = [("ifma", KernelChoice::Ifma), ("portable", KernelChoice::Portable)];
/// Candidates per iteration of the search benchmark.
const CANDIDATES: u64 = 1_000_000;

/// Field operations per second, each measured alone.
fn field(criterion: &mut Criterion) {
    for (name, kernel) in KERNELS {
        let Ok(once) = repeat(kernel, Operation::Multiply, 1) else {
            println!("SKIPPED: this processor lacks the kernel `{name}`");
            continue;
        };
        let mut group = criterion.benchmark_group(format!("field/{name}"));
        group.throughput(Throughput::Elements((once.lanes * CHAINS) as u64));
        for operation in Operation::ALL {
            group.bench_function(BenchmarkId::from_parameter(format!("{operation:?}")), |bencher| {
                bencher.iter_custom(|times| repeat(kernel, operation, times).expect("it was there before").time);
            });
        }
        group.finish();
    }
}

/// Candidates per second of one thread.
fn search(criterion: &mut Criterion) {
    for (name, kernel) in KERNELS {
        let Ok(mut searcher) = CpuSearcher::open(Some(1), kernel) else { continue };
        let mut group = criterion.benchmark_group(format!("search/{name}"));
        group.throughput(Throughput::Elements(CANDIDATES));
        for count in [1, 1_000, 10_000] {
            let patterns = Arc::new(random_patterns(count));
            group.bench_function(BenchmarkId::new("patterns", count), |bencher| {
                bencher.iter_custom(|times| search_for(&mut searcher, &patterns, times * CANDIDATES));
            });
        }
        group.finish();
    }
}

/// Measures the time that testing `candidates` candidates takes. It runs whole launches and scales
/// their time.
fn search_for(searcher: &mut CpuSearcher, patterns: &Arc<PatternSet>, candidates: u64) -> Duration {
    let (mut done, began) = (0, Instant::now());
    while done < candidates {
        let starts = (0..searcher.starts()).map(|_| random_start()).collect();
        let launch = Launch { starts, patterns: Arc::clone(patterns), remaining: None };
        searcher.submit(launch).expect("as many starts as it takes");
        done += searcher.collect().expect("the processor searches").candidates;
    }
    began.elapsed().mul_f64(candidates as f64 / done as f64)
}

fn random_start() -> StartPoint {
    let secret = SecretKey::from_slice(&rand::rng().random::<[u8; 32]>()).expect("below n but for a chance of 2^-128");
    StartPoint::new(PublicKey::from_secret_key(SECP256K1, &secret))
}

/// Random patterns of six characters.
fn random_patterns(count: usize) -> PatternSet {
    let mut random = rand::rng();
    let mut text = || -> String { (0..6).map(|_| ALPHABET[random.random_range(0..32)] as char).collect() };
    PatternSet::new((0..count).map(|_| Pattern::parse(&text()).expect("six characters of the alphabet")).collect())
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2))
        .sample_size(10);
    targets = field, search
}
criterion_main!(benches);
