//! The shares of the pool and of split jobs on a real device, counted in candidates.

use crate::clock::Clock;
use crate::job::{Asker, JobId, JobSpec};
use crate::pattern::ALPHABET;
use crate::roster::Roster;
use crate::scheduler::run::device_threads::{DeviceOpener, DeviceThreads};
use crate::scheduler::run::pool::Pool;
use crate::scheduler::run::verify::{Delivered, LAUNCHES_WAITING};
use crate::search::cpu::CpuSearcher;
use crate::search::{DeviceChoice, DeviceId, SearchError, SearchOptions, Searcher, Surroundings};
use crate::vault::Vault;
use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Number of launches to count. With this many, the shares are exact to 1 %.
const LAUNCHES: usize = 200;
/// Intended duration of a launch.
const LAUNCH: Duration = Duration::from_millis(10);

#[test]
fn two_split_jobs_and_a_pool_of_a_hundred_have_their_shares_of_a_device() {
    let pool = Arc::new(Pool::default());
    // All patterns differ and are too hard to be found.
    for number in 0..100usize {
        let text: String = (0..12).map(|at| char::from(ALPHABET[number >> (at % 2 * 5) & 31])).collect();
        pool.insert(JobId(number as i64 + 1), JobSpec::for_tests(&[&text], None));
    }
    for asker in [1u8, 2] {
        let wanted = JobSpec::for_tests(&["qqqqqqqqqqqq"], Some(Asker([asker; 32])));
        pool.insert(JobId(1000 + i64::from(asker)), wanted);
    }
    let options = SearchOptions { devices: DeviceChoice::Cpu, threads: Some(1), ..SearchOptions::default() };
    let open = |_: DeviceId, options: &SearchOptions| -> Result<Box<dyn Searcher>, SearchError> {
        Ok(Box::new(CpuSearcher::open(options.threads, options.cpu_kernel)?.with_launches_of(LAUNCH)))
    };
    let opener = DeviceOpener::new(|| Err(String::new()), open);
    let (sender, launches) = mpsc::sync_channel(LAUNCHES_WAITING);
    let (here, vault) = (Surroundings::new(Clock::System), Vault::without_identity().unwrap());
    let (pool_of_threads, none) = (Arc::clone(&pool), Roster::default());
    let mut threads = DeviceThreads::start(&options, opener, here, pool_of_threads, vault, sender, none).unwrap();
    let mut candidates: BTreeMap<String, f64> = BTreeMap::new();
    // Launches of the warm-up have only the canary and do not count.
    let counted = launches.iter().filter(|delivered| delivered.launch.pass.patterns.len() > 1).take(LAUNCHES);
    for Delivered { launch, .. } in counted {
        let whose = match launch.pass.patterns.len() {
            2 => format!("{:?}", launch.pass.owner(crate::pattern::PatternId(1))),
            _ => "pool".to_owned(),
        };
        *candidates.entry(whose).or_default() += launch.report.candidates as f64;
    }
    pool.close();
    while launches.recv().is_ok() {}
    threads.join();
    let all: f64 = candidates.values().sum();
    let shares: BTreeMap<&str, f64> = candidates.iter().map(|(whose, count)| (whose.as_str(), count / all)).collect();
    let expected = [("Job(JobId(1001))", 0.25), ("Job(JobId(1002))", 0.25), ("pool", 0.5)];
    assert_eq!(shares.len(), 3, "{shares:?}");
    for (whose, share) in expected {
        assert!((shares[whose] / share - 1.0).abs() < 0.05, "{shares:?}");
    }
}
