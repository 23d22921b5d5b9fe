//! The processor as a search device.

use super::dispatch::{Kernel, KernelChoice};
use super::threads::Threads;
use crate::search::device::{DeviceId, DeviceInfo};
use crate::search::error::SearchError;
use crate::search::os::processor_name;
use crate::search::searcher::{ClaimedHit, Launch, LaunchReport, Searcher};
use std::collections::VecDeque;
use std::time::Duration;

/// Intended duration of a launch.
const LAUNCH: Duration = Duration::from_millis(50);
/// Rounds of the first launch, before the speed is known, and of the shortest: a walk may skip three.
const LEAST_ROUNDS: u64 = 4;

/// The processor as one device with several threads. Each thread searches at a start point of its
/// own.
pub struct CpuSearcher {
    info: DeviceInfo,
    calibration_key: String,
    threads: Threads,
    /// Length in rounds of the next launch that compares top words, and of the next launch that
    /// compares whole keys.
    rounds: [u64; 2],
    submitted: VecDeque<Launch>,
}

/// Describes the processor: its name, its number of cores, and the kernel it would search with.
pub fn describe_kernel() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = Kernel::choose(KernelChoice::Auto).map_or("none", |kernel| kernel.name);
    format!("{}, {cores} cores, searches with the kernel {kernel}", name())
}

impl CpuSearcher {
    /// Starts the threads; `None` means one per core. Errors: the processor lacks the kernel.
    pub fn open(threads: Option<usize>, kernel: KernelChoice) -> Result<CpuSearcher, SearchError> {
        let count = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1);
        let kernel = Kernel::choose(kernel)?;
        let info = DeviceInfo {
            id: DeviceId::Cpu,
            name: name(),
            kernel: kernel.name.to_owned(),
            threads: count,
            warning: None,
        };
        Ok(CpuSearcher {
            calibration_key: calibration_key(&info),
            info,
            threads: Threads::start(count, kernel),
            rounds: [LEAST_ROUNDS; 2],
            submitted: VecDeque::new(),
        })
    }

    /// Sets the length of the next launch of a kind. The last one took `busy`.
    fn adapt(&mut self, kind: usize, busy: Duration) {
        let rounds = self.rounds[kind];
        let ideal = rounds as f64 * LAUNCH.as_secs_f64() / busy.as_secs_f64();
        self.rounds[kind] = ideal.clamp(LEAST_ROUNDS as f64, (rounds * 8) as f64) as u64;
    }
}

impl Searcher for CpuSearcher {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn starts(&self) -> usize {
        self.info.threads
    }

    fn in_flight(&self) -> usize {
        1
    }

    fn calibration_key(&self) -> Option<&str> {
        Some(&self.calibration_key)
    }

    fn early_stop(&self) -> bool {
        true
    }

    fn submit(&mut self, launch: Launch) -> Result<(), SearchError> {
        if launch.starts.len() != self.starts() {
            return Err(SearchError::START_COUNT);
        }
        self.submitted.push_back(launch);
        Ok(())
    }

    fn collect(&mut self) -> Result<LaunchReport, SearchError> {
        let launch = self.submitted.pop_front().ok_or(SearchError::NOTHING_SUBMITTED)?;
        let target = self.threads.target(&launch);
        let kind = usize::from(launch.patterns.compares_whole_keys());
        let rounds = self.rounds[kind];
        let walks = self.threads.walk(&launch.starts, rounds, &target);
        let mut report = LaunchReport::default();
        for (start, walk) in walks.into_iter().enumerate() {
            let (walked, busy) = walk.ok_or_else(|| SearchError::DeviceFailed {
                device: DeviceId::Cpu,
                reason: "one of its threads panicked".to_owned(),
            })?;
            report.candidates += walked.candidates;
            report.busy = report.busy.max(busy);
            report.hits.extend(walked.hits.into_iter().map(|tweak| ClaimedHit { start, tweak }));
            report.is_cut_short |= walked.is_cut_short;
        }
        // The duration of a launch that its hits ended says nothing about the speed.
        if !report.is_cut_short && !report.busy.is_zero() {
            self.adapt(kind, report.busy);
        }
        Ok(report)
    }
}

/// The key under which measured figures are kept. They are valid for one processor, one kernel of
/// one version of the program, and one number of threads.
fn calibration_key(info: &DeviceInfo) -> String {
    let DeviceInfo { name, kernel, threads, .. } = info;
    format!("{name}; kernel {kernel} of {}; {threads} threads", env!("CARGO_PKG_VERSION"))
}

/// The name of the processor, or of its architecture if the system does not know the name.
fn name() -> String {
    processor_name().unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::StartPoint;
    use crate::pattern::PatternSet;
    use std::sync::Arc;

    /// Runs one launch, whose patterns need whole keys.
    fn search(searcher: &mut CpuSearcher) {
        let secret = secp256k1::SecretKey::from_slice(&[1; 32]).unwrap();
        let start = StartPoint::new(secret.public_key(secp256k1::SECP256K1));
        let patterns = Arc::new(PatternSet::new(vec!["*cafe7x".parse().unwrap()]));
        searcher.submit(Launch { starts: vec![start; searcher.starts()], patterns, remaining: None }).unwrap();
        searcher.collect().unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_search_has_the_lowest_priority() {
        // No other test has so many threads.
        let mut searcher = CpuSearcher::open(Some(7), KernelChoice::Portable).unwrap();
        search(&mut searcher);
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let stats = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
        let stat = stats.into_iter().find(|stat| stat.contains("(search 6)")).unwrap();
        // The fields after the name begin with the state; the 17th is the niceness.
        let niceness = stat.rsplit_once(") ").unwrap().1.split(' ').nth(16);
        assert_eq!(niceness, Some("19"), "{stat}");
    }

    #[test]
    fn each_kind_of_launch_has_its_own_length() {
        let mut searcher = CpuSearcher::open(Some(1), KernelChoice::Portable).unwrap();
        searcher.adapt(0, LAUNCH / 8);
        searcher.adapt(1, LAUNCH / 2);
        assert_eq!(searcher.rounds, [8 * LEAST_ROUNDS, 2 * LEAST_ROUNDS]);
        search(&mut searcher);
        assert_eq!(searcher.rounds[0], 8 * LEAST_ROUNDS, "it was no launch of that kind");
        assert_ne!(searcher.rounds[1], 2 * LEAST_ROUNDS, "its own length follows its time");
    }
}
