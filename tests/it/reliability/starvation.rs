//! S9 in time: what a crowd of easy jobs costs a rare one on a real processor, through the scheduler.
//!
//! In CI the shorter form runs. The bar is for the release build:
//! `cargo test --release --test it reliability::starvation -- --ignored --nocapture --test-threads 1`

use crate::support::harness::{Test, test};
use npubbot::job::{JobId, JobSpec};
use npubbot::pattern::{ALPHABET, Pattern};
use npubbot::scheduler::{FindOutcome, Scheduler};
use npubbot::search::cpu::KernelChoice;
use npubbot::search::{DeviceChoice, SearchError, SearchOptions};
use npubbot::vault::Vault;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(ten_thousand_easy_jobs_cost_a_rare_one_little_time).long("compares processor times: for a quiet machine"),
    test!(ten_thousand_easy_jobs_cost_a_rare_one_on_a_gpu_two_percent_at_most).long("for a machine with a GPU"),
    test!(ten_thousand_easy_jobs_cost_a_rare_one_two_percent_at_most).long("the bar: for the release build"),
];

const EASY_JOBS: usize = 10_000;
/// Never found meanwhile: 2^60.
const RARE: &str = "rarerarerare";
const PATIENCE: Duration = Duration::from_secs(300);

/// A search with a rare job and a crowd that comes and goes.
struct Bench {
    scheduler: Scheduler,
    done: Receiver<JobId>,
    crowd: BTreeSet<JobId>,
    newest: i64,
    served: usize,
    rng: StdRng,
}

/// Candidates tested, and the processor time this took, in seconds: of the threads that search, and of all that the
/// scheduler has.
#[derive(Clone, Copy)]
struct Reading {
    candidates: f64,
    searching: f64,
    all: f64,
}

impl Bench {
    fn start(devices: DeviceChoice, kernel: KernelChoice) -> Option<Bench> {
        let options = SearchOptions { devices, threads: Some(1), cpu_kernel: kernel };
        let (sender, done) = mpsc::channel();
        let on_find = move |find: npubbot::scheduler::Find| {
            let _ = sender.send(find.job);
            FindOutcome::Done
        };
        let scheduler = match Scheduler::start(&options, Vault::without_identity().unwrap(), on_find) {
            Err(SearchError::UnsupportedCpuKernel { asked }) => {
                eprintln!("SKIPPED: this processor has no {asked}");
                return None;
            }
            Err(SearchError::NoSuchDevice { asked, .. }) => {
                eprintln!("SKIPPED: there is no {asked} beside a crowd");
                return None;
            }
            started => started.unwrap(),
        };
        scheduler.add(JobId(i64::MAX), JobSpec::local(vec![Pattern::parse(RARE).unwrap()]));
        let rng = StdRng::seed_from_u64(crate::support::seed());
        Some(Bench { scheduler, done, crowd: BTreeSet::new(), newest: 0, served: 0, rng })
    }

    /// As many easy jobs as there should be, each of 2^20 or 2^25.
    fn fill(&mut self, jobs: usize) {
        while self.crowd.len() < jobs {
            let length = self.rng.random_range(4..=5);
            let text: String = (0..length).map(|_| char::from(ALPHABET[self.rng.random_range(0..32)])).collect();
            self.newest += 1;
            let job = JobId(self.newest);
            self.scheduler.add(job, JobSpec::local(vec![Pattern::parse(&text).unwrap()]));
            self.crowd.insert(job);
        }
        while self.crowd.len() > jobs {
            let job = self.crowd.pop_last().unwrap();
            self.scheduler.remove(job);
        }
    }

    /// Replaces what is found until the next launch is collected.
    fn launch(&mut self, jobs: usize) -> Reading {
        let (before, deadline) = (self.scheduler.candidates(), Instant::now() + PATIENCE);
        loop {
            if let Ok(job) = self.done.recv_timeout(Duration::from_millis(1)) {
                assert_ne!(job, JobId(i64::MAX), "it takes years");
                self.served += usize::from(self.crowd.remove(&job));
            }
            self.fill(jobs);
            let candidates = self.scheduler.candidates();
            if candidates != before {
                let (searching, all) = processor_time();
                return Reading { candidates: candidates as f64, searching, all };
            }
            assert!(Instant::now() < deadline, "no launch ends");
        }
    }

    /// Candidates a second of processor time, of the search and of everything, beside so many easy jobs.
    fn rates(&mut self, jobs: usize, seconds: f64) -> (f64, f64) {
        self.fill(jobs);
        // What was under way is not part of it.
        self.launch(jobs);
        self.launch(jobs);
        let from = self.launch(jobs);
        loop {
            let to = self.launch(jobs);
            if to.all - from.all >= seconds {
                let candidates = to.candidates - from.candidates;
                return (candidates / (to.searching - from.searching), candidates / (to.all - from.all));
            }
        }
    }
}

/// Processor time in seconds of the search threads, and of these with the device's own and the verifier.
fn processor_time() -> (f64, f64) {
    let (mut searching, mut all) = (0.0, 0.0);
    for thread in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let read = |name: &str| std::fs::read_to_string(thread.path().join(name)).unwrap_or_default();
        let name = read("comm");
        let took = read("schedstat").split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0.0) / 1e9;
        if name.starts_with("search") {
            searching += took;
        }
        if name.starts_with("search") || ["cpu", "verifier"].contains(&name.trim()) {
            all += took;
        }
    }
    (searching, all)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// By how much a rare job's time grows beside the crowd, in turn with slices without it: a shared machine changes its
/// mind from minute to minute.
fn growth(kernel: KernelChoice, turns: usize, seconds: f64) -> Option<f64> {
    let mut bench = Bench::start(DeviceChoice::Cpu, kernel)?;
    let (mut searching, mut all, mut alone_rate) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..turns {
        let alone = bench.rates(0, seconds);
        let crowded = bench.rates(EASY_JOBS, seconds);
        searching.push(alone.0 / crowded.0 - 1.0);
        all.push(alone.1 / crowded.1 - 1.0);
        alone_rate.push(alone.1);
    }
    let (searching, growth) = (median(searching), median(all));
    println!(
        "{kernel:?}: alone {:.0} M candidates a second of processor time; beside {EASY_JOBS} easy jobs {:.1} % more time \
         (the search alone {:.1} %), {} of them served",
        median(alone_rate) / 1e6,
        100.0 * growth,
        100.0 * searching,
        bench.served
    );
    assert!(bench.served > turns, "{} easy jobs were served", bench.served);
    Some(growth)
}

/// The same of a GPU, in wall time: nobody else uses it.
fn growth_on_a_gpu(turns: usize, seconds: f64) -> Option<f64> {
    let mut bench = Bench::start(DeviceChoice::Cuda, KernelChoice::Auto)?;
    let mut rate = |jobs: usize| {
        bench.fill(jobs);
        bench.launch(jobs);
        bench.launch(jobs);
        let (from, began) = (bench.launch(jobs), Instant::now());
        loop {
            let to = bench.launch(jobs);
            let took = began.elapsed().as_secs_f64();
            if took >= seconds {
                return (to.candidates - from.candidates) / took;
            }
        }
    };
    let (growths, alone): (Vec<f64>, Vec<f64>) = (0..turns)
        .map(|_| {
            let (alone, crowded) = (rate(0), rate(EASY_JOBS));
            (alone / crowded - 1.0, alone)
        })
        .unzip();
    let growth = median(growths);
    println!(
        "GPUs: alone {:.1} G candidates a second; beside {EASY_JOBS} easy jobs {:.1} % more time, {} of them served",
        median(alone) / 1e9,
        100.0 * growth,
        bench.served
    );
    assert!(bench.served > turns, "{} easy jobs were served", bench.served);
    Some(growth)
}

/// Both kernels, so that both figures are there whatever becomes of the first.
fn growths(turns: usize, seconds: f64) -> Vec<f64> {
    let kernels = [KernelChoice::Portable, KernelChoice::Ifma];
    kernels.into_iter().filter_map(|kernel| growth(kernel, turns, seconds)).collect()
}

fn ten_thousand_easy_jobs_cost_a_rare_one_little_time() {
    let growths = growths(5, 0.3);
    assert!(growths.iter().all(|&growth| growth < 0.25), "{growths:?}");
}

fn ten_thousand_easy_jobs_cost_a_rare_one_on_a_gpu_two_percent_at_most() {
    let growth = growth_on_a_gpu(9, 2.0);
    assert!(growth.is_none_or(|growth| growth < 0.02), "{growth:?}");
}

fn ten_thousand_easy_jobs_cost_a_rare_one_two_percent_at_most() {
    let growths = growths(31, 1.0);
    assert!(growths.iter().all(|&growth| growth < 0.02), "{growths:?}");
}
