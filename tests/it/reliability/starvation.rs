//! S9, measured in time: how much longer a rare job takes beside many easy jobs. The whole
//! scheduler runs, on a real processor or GPU.
//!
//! CI runs the short form. The limit applies to the release build: `cargo test --release --test it
//! reliability::starvation -- --ignored --nocapture --test-threads 1`

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
/// The rare pattern, of 60 bits: never found during the test.
const RARE: &str = "rarerarerare";
const PATIENCE: Duration = Duration::from_secs(300);

/// A search with a rare job, and easy jobs that come and go.
struct Bench {
    scheduler: Scheduler,
    done: Receiver<JobId>,
    easy: BTreeSet<JobId>,
    newest: i64,
    served: usize,
    rng: StdRng,
}

/// Candidates tested so far, and processor time in seconds: that of the search threads, and that of
/// all threads of the scheduler.
#[derive(Clone, Copy)]
struct Reading {
    candidates: f64,
    searching: f64,
    all: f64,
}

impl Bench {
    fn start(devices: DeviceChoice, kernel: KernelChoice) -> Option<Bench> {
        let options = SearchOptions { devices, threads: Some(1), cpu_kernel: kernel, ..SearchOptions::default() };
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
                eprintln!("SKIPPED: there is no {asked} for this test");
                return None;
            }
            started => started.unwrap(),
        };
        scheduler.add(JobId(i64::MAX), JobSpec::local(vec![Pattern::parse(RARE).unwrap()]));
        let rng = StdRng::seed_from_u64(crate::support::seed());
        Some(Bench { scheduler, done, easy: BTreeSet::new(), newest: 0, served: 0, rng })
    }

    /// Adds or removes easy jobs until there are `jobs`. Each has a difficulty of 2^20 or 2^25.
    fn fill(&mut self, jobs: usize) {
        while self.easy.len() < jobs {
            let length = self.rng.random_range(4..=5);
            let text: String = (0..length).map(|_| char::from(ALPHABET[self.rng.random_range(0..32)])).collect();
            self.newest += 1;
            let job = JobId(self.newest);
            self.scheduler.add(job, JobSpec::local(vec![Pattern::parse(&text).unwrap()]));
            self.easy.insert(job);
        }
        while self.easy.len() > jobs {
            let job = self.easy.pop_last().unwrap();
            self.scheduler.remove(job);
        }
    }

    /// Waits until the next launch is collected, and replaces the jobs that are found meanwhile.
    /// Returns the reading at the end.
    fn launch(&mut self, jobs: usize) -> Reading {
        let (before, deadline) = (self.scheduler.candidates(), Instant::now() + PATIENCE);
        loop {
            if let Ok(job) = self.done.recv_timeout(Duration::from_millis(1)) {
                assert_ne!(job, JobId(i64::MAX), "it takes years");
                self.served += usize::from(self.easy.remove(&job));
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

    /// Candidates per second of processor time, with `jobs` easy jobs: by the time of the search
    /// threads, and by that of all threads.
    fn rates(&mut self, jobs: usize, seconds: f64) -> (f64, f64) {
        self.fill(jobs);
        // Launches already in flight do not count.
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

/// Processor time in seconds of the search threads, and of these with the device thread and the
/// verifier.
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

/// The part by which a rare job takes longer beside easy jobs than alone. Measurements with and
/// without easy jobs alternate, because a shared machine changes its speed from minute to minute.
fn growth(kernel: KernelChoice, turns: usize, seconds: f64) -> Option<f64> {
    let mut bench = Bench::start(DeviceChoice::Cpu, kernel)?;
    let (mut searching, mut all, mut alone_rate) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..turns {
        let alone = bench.rates(0, seconds);
        let beside_easy = bench.rates(EASY_JOBS, seconds);
        searching.push(alone.0 / beside_easy.0 - 1.0);
        all.push(alone.1 / beside_easy.1 - 1.0);
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

/// [`growth`] on a GPU, in wall time, because nobody else uses the GPU.
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
            let (alone, beside_easy) = (rate(0), rate(EASY_JOBS));
            (alone / beside_easy - 1.0, alone)
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

/// The growth with each kernel. Both are measured before any is checked, so that both figures are
/// printed even if one is too high.
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
