//! Measures the CPU kernels on one thread, in turn in one process, and compares the hits with the
//! expected number: `just bench-kernels`.
//!
//!     cpu_kernels [SECONDS [RUNS [KERNEL...]]]
//!     cpu_kernels launch KERNEL PATTERN...     prints the candidates of one launch, for count_instructions.sh

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a measurement ends at its first error")]

use npubbot_miner::key::StartPoint;
use npubbot_miner::pattern::{ALPHABET, PatternSet};
use npubbot_miner::search::cpu::{CpuSearcher, KernelChoice};
use npubbot_miner::search::{Launch, Searcher};
use secp256k1::{SECP256K1, SecretKey};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// The kernels, the one that the others are compared with first.
const KERNELS: [&str; 4] = ["portable", "neon", "avx2", "ifma"];
/// Launches of each kernel in turn. They take 50 ms, so that all kernels see the same disturbances.
const LAUNCHES: usize = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, kernel, texts @ ..] = arguments.as_slice()
        && mode == "launch"
    {
        return launch(kernel.parse()?, texts);
    }
    let mut arguments = arguments.into_iter();
    let seconds: f64 = arguments.next().map_or(Ok(3.0), |text| text.parse())?;
    let runs: usize = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let mut kernels: Vec<String> = arguments.collect();
    if kernels.is_empty() {
        kernels = KERNELS.map(str::to_owned).to_vec();
    }
    let mut searchers = Vec::new();
    for name in kernels {
        searchers.extend(CpuSearcher::open(Some(1), name.parse::<KernelChoice>()?).map(|searcher| (name, searcher)));
    }
    let sets: [(&str, Vec<String>); 5] = [
        ("1 pattern", random_prefixes(1, 4)),
        ("16 patterns", random_prefixes(16, 5)),
        ("1,000 patterns", random_prefixes(1_000, 6)),
        ("10,000 patterns", random_prefixes(10_000, 6)),
        ("`*cafe`", vec!["*cafe".to_owned()]),
    ];
    println!("| patterns | run | kernel | M candidates/s | times portable | hits | expected |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for (name, texts) in sets {
        let patterns = texts.iter().map(|text| text.parse()).collect::<Result<Vec<_>, _>>()?;
        let patterns = Arc::new(PatternSet::new(patterns));
        let difficulty = patterns.difficulty().ok_or("the set has a difficulty")?.candidates();
        for run in 1..=runs {
            let mut totals = vec![Total::default(); searchers.len()];
            while totals[0].time.as_secs_f64() < seconds {
                for ((_, searcher), total) in searchers.iter_mut().zip(&mut totals) {
                    total.add(searcher, &patterns)?;
                }
            }
            for ((kernel, _), total) in searchers.iter().zip(&totals) {
                let (rate, times) = (total.rate(), total.rate() / totals[0].rate());
                let (hits, expected) = (total.hits, total.candidates as f64 / difficulty);
                println!("| {name} | {run} | {kernel} | {:.1} | {times:.2} | {hits} | {expected:.0} |", rate / 1e6);
            }
        }
    }
    Ok(())
}

/// Prints the number of candidates of a launch.
fn launch(kernel: KernelChoice, texts: &[String]) -> Result<(), Box<dyn Error>> {
    let patterns = texts.iter().map(|text| text.parse()).collect::<Result<Vec<_>, _>>()?;
    let mut total = Total::default();
    total.launch(&mut CpuSearcher::open(Some(1), kernel)?, &Arc::new(PatternSet::new(patterns)))?;
    println!("{}", total.candidates);
    Ok(())
}

/// The launches of a kernel.
#[derive(Clone, Default)]
struct Total {
    time: Duration,
    candidates: u64,
    hits: usize,
}

impl Total {
    fn add(&mut self, searcher: &mut CpuSearcher, patterns: &Arc<PatternSet>) -> Result<(), Box<dyn Error>> {
        let before = processor_time()?;
        for _ in 0..LAUNCHES {
            self.launch(searcher, patterns)?;
        }
        self.time += processor_time()? - before;
        Ok(())
    }

    fn launch(&mut self, searcher: &mut CpuSearcher, patterns: &Arc<PatternSet>) -> Result<(), Box<dyn Error>> {
        let secret = SecretKey::new(&mut secp256k1::rand::thread_rng());
        let starts = vec![StartPoint::new(secret.public_key(SECP256K1))];
        searcher.submit(Launch { starts, patterns: Arc::clone(patterns), remaining: None })?;
        let report = searcher.collect()?;
        (self.candidates, self.hits) = (self.candidates + report.candidates, self.hits + report.hits.len());
        Ok(())
    }

    fn rate(&self) -> f64 {
        self.candidates as f64 / self.time.as_secs_f64()
    }
}

/// The processor time of all threads, by the Linux kernel: other programs do not count.
fn processor_time() -> Result<Duration, Box<dyn Error>> {
    let mut nanoseconds = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
        nanoseconds += text.split(' ').next().ok_or("an empty line")?.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// Prefixes, spread over all of this length.
fn random_prefixes(count: u64, length: usize) -> Vec<String> {
    let text = |number: u64| {
        let bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (0..length).map(|at| ALPHABET[(bits >> (59 - 5 * at)) as usize % 32] as char).collect()
    };
    (1..=count).map(text).collect()
}
