//! S9, measured in time: how much longer a rare job takes beside many easy jobs. The whole
//! scheduler runs, on a real processor or GPU. `just economy` measures.

use crate::support::harness::{Test, figure, test};
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

pub const TESTS: &[Test] =
    &[test!(ten_thousand_easy_jobs_cost_a_rare_one_little_on_each_device).long("`just economy`").measures("economy")];

const EASY_JOBS: usize = 10_000;
/// The rare pattern, of 60 bits: never found during the test.
const RARE: &str = "rarerarerare";
/// Rates with and without easy jobs alternate, because a shared machine changes its speed.
const TURNS: usize = 15;
/// Seconds of each measurement.
const SECONDS: f64 = 1.0;

/// A search with a rare job, and easy jobs that come and go.
struct Bench {
    scheduler: Scheduler,
    done: Receiver<JobId>,
    easy: BTreeSet<JobId>,
    newest: i64,
    served: usize,
    rng: StdRng,
}

impl Bench {
    /// `None`, with the reason, if this machine has no such device.
    fn start(devices: DeviceChoice, kernel: KernelChoice) -> Option<Bench> {
        let options = SearchOptions { devices, threads: Some(1), cpu_kernel: kernel, ..SearchOptions::default() };
        let (sender, done) = mpsc::channel();
        let on_find = move |find: npubbot::scheduler::Find| {
            let _ = sender.send(find.job);
            FindOutcome::Done
        };
        let scheduler = match Scheduler::start(&options, Vault::without_identity().unwrap(), on_find) {
            Err(error @ (SearchError::UnsupportedCpuKernel { .. } | SearchError::NoSuchDevice { .. })) => {
                println!("{devices:?}, {kernel:?}: {error}");
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
    /// Returns the candidates so far.
    fn launch(&mut self, jobs: usize) -> f64 {
        let before = self.scheduler.candidates();
        loop {
            if let Ok(job) = self.done.recv_timeout(Duration::from_millis(1)) {
                assert_ne!(job, JobId(i64::MAX), "it takes years");
                self.served += usize::from(self.easy.remove(&job));
            }
            self.fill(jobs);
            let candidates = self.scheduler.candidates();
            if candidates != before {
                return candidates as f64;
            }
        }
    }

    /// Candidates per second by this clock, with `jobs` easy jobs.
    fn rate(&mut self, jobs: usize, clock: &impl Fn() -> f64) -> f64 {
        self.fill(jobs);
        // Launches already in flight do not count.
        self.launch(jobs);
        self.launch(jobs);
        let (from, began) = (self.launch(jobs), clock());
        loop {
            let (to, took) = (self.launch(jobs), clock() - began);
            if took >= SECONDS {
                return (to - from) / took;
            }
        }
    }
}

/// Processor time in seconds of the search threads, the device thread and the verifier.
fn processor_time() -> f64 {
    crate::support::usage::seconds_of_threads(std::process::id(), &["search", "cpu", "verifier"])
}

/// Measures the part by which a rare job takes longer beside easy jobs than alone.
fn growth(devices: DeviceChoice, kernel: KernelChoice, clock: impl Fn() -> f64) {
    let Some(mut bench) = Bench::start(devices, kernel) else { return };
    let mut growth = || bench.rate(0, &clock) / bench.rate(EASY_JOBS, &clock) - 1.0;
    let mut growths: Vec<f64> = (0..TURNS).map(|_| growth()).collect();
    growths.sort_by(f64::total_cmp);
    assert!(bench.served > TURNS, "{} easy jobs were served", bench.served);
    figure(&format!("the growth of a rare job's time, {devices:?}, {kernel:?}"), growths[TURNS / 2], 0.02);
}

fn ten_thousand_easy_jobs_cost_a_rare_one_little_on_each_device() {
    growth(DeviceChoice::Cpu, KernelChoice::Portable, processor_time);
    growth(DeviceChoice::Cpu, KernelChoice::Ifma, processor_time);
    // In wall time, because nobody else uses the GPU.
    let began = Instant::now();
    growth(DeviceChoice::Cuda, KernelChoice::Auto, || began.elapsed().as_secs_f64());
}
