//! Many patterns for many devices: the cost of a launch, and of a new job, for the bot.

use crate::support::harness::{Test, test};
use crate::support::{until, usage};
use npubbot::clock::Clock;
use npubbot::job::{JobId, JobSpec};
use npubbot::pattern::Pattern;
use npubbot::scheduler::{Find, FindOutcome, OpenDevice, Scheduler};
use npubbot::search::{
    DeviceChoice, DeviceId, DeviceInfo, Launch, LaunchReport, RemoteId, SearchError, SearchOptions, Searcher,
    Surroundings,
};
use npubbot::vault::Vault;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub const TESTS: &[Test] = &[
    test!(devices_share_their_patterns).slow(),
    test!(a_hundred_thousand_patterns_are_measured).long("1 min, a measurement"),
];

/// Names of the bot's threads that handle the launches of workers' devices.
const THREADS: [&str; 2] = ["worker ", "verifier"];

/// The launches that the devices have seen.
#[derive(Default)]
struct Seen {
    launches: AtomicU64,
    /// Devices that have got a launch with as many patterns as `patterns` says.
    current: Mutex<BTreeSet<String>>,
    patterns: AtomicU64,
}

/// A worker's device that takes twenty launches ahead and finds nothing.
struct Far {
    info: DeviceInfo,
    time: Duration,
    seen: Arc<Seen>,
    waiting: usize,
}

impl Searcher for Far {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn starts(&self) -> usize {
        1
    }

    fn in_flight(&self) -> usize {
        20
    }

    fn submit(&mut self, launch: Launch) -> Result<(), SearchError> {
        self.waiting += 1;
        if launch.patterns.len() as u64 == self.seen.patterns.load(Ordering::Relaxed) {
            self.seen.current.lock().unwrap().insert(self.info.id.to_string());
        }
        Ok(())
    }

    fn collect(&mut self) -> Result<LaunchReport, SearchError> {
        std::thread::sleep(self.time);
        self.waiting -= 1;
        self.seen.launches.fetch_add(1, Ordering::Relaxed);
        // So few candidates prove and disprove nothing.
        Ok(LaunchReport { candidates: 1, busy: self.time, ..LaunchReport::default() })
    }
}

/// The bot's own device: it takes no jobs, since it is never measured.
fn nothing(id: DeviceId) -> Box<dyn Searcher> {
    let info = DeviceInfo { id, name: "slow".into(), kernel: "slow".into(), threads: 1 };
    Box::new(Far { info, time: Duration::from_millis(500), seen: Arc::default(), waiting: 0 })
}

/// A pattern of twelve characters, different for each number.
fn pattern(number: usize) -> JobSpec {
    let text = format!("{number:012}").replace('1', "q");
    JobSpec::local(vec![Pattern::parse(&text).unwrap()])
}

/// Prints the bot's processor time per launch and per new job. Returns the bytes of memory per
/// device.
async fn cost(devices: usize, patterns: usize) -> u64 {
    let opener: OpenDevice = Arc::new(|id, _: &SearchOptions| Ok(nothing(id)));
    let options = SearchOptions { devices: DeviceChoice::Cpu, ..SearchOptions::default() };
    let (vault, surroundings) = (Vault::without_identity().unwrap(), Surroundings::new(Clock::System));
    let on_find = |_: Find| FindOutcome::Done;
    let bot = Scheduler::start_with(&options, opener, surroundings, vault, on_find).unwrap();
    for number in 0..patterns {
        bot.add(JobId(number as i64), pattern(number));
    }
    let seen = Arc::new(Seen::default());
    // Each device has the patterns of the jobs and the canary.
    let have = |jobs: usize| seen.patterns.store(jobs as u64 + 1, Ordering::Relaxed);
    let all_are_current = || async {
        let is_all = seen.current.lock().unwrap().len() == devices;
        is_all.then(|| seen.current.lock().unwrap().clear())
    };
    have(patterns);
    let memory = usage::status(std::process::id(), "VmRSS");
    for number in 0..devices {
        let id = DeviceId::Remote(RemoteId { worker: format!("w{number}").parse().unwrap(), device: 0 });
        let info = DeviceInfo { id, name: "far".into(), kernel: "none".into(), threads: 1 };
        bot.attach(Box::new(Far { info, time: Duration::from_millis(20), seen: Arc::clone(&seen), waiting: 0 }));
    }
    let launches = || seen.launches.load(Ordering::Relaxed);
    until("all search all patterns", all_are_current).await;
    let more = |count: u64| {
        let enough = launches() + count * devices as u64;
        until("they go on", move || async move { (launches() >= enough).then_some(()) })
    };
    more(40).await;
    let seconds = || usage::seconds_of_threads(std::process::id(), &THREADS);
    let (before, used) = (launches(), seconds());
    more(40).await;
    let launch = (seconds() - used) / (launches() - before) as f64;
    let memory = usage::status(std::process::id(), "VmRSS").saturating_sub(memory) * 1024 / devices as u64;
    let (before, used, changes) = (launches(), seconds(), 4);
    for number in patterns..patterns + changes {
        have(number + 1);
        seen.current.lock().unwrap().clear();
        bot.add(JobId(number as i64), pattern(number));
        until("all search the new one", all_are_current).await;
    }
    let beside = launch * (launches() - before) as f64;
    let change = (seconds() - used - beside).max(0.0) / changes as f64;
    let (launch, change) = (Duration::from_secs_f64(launch), Duration::from_secs_f64(change));
    println!(
        "{devices} devices, {patterns} patterns: {launch:?} a launch, {change:?} a change, {memory} bytes a device"
    );
    memory
}

async fn devices_share_their_patterns() {
    assert!(cost(32, 10_000).await < 1 << 20, "10,000 patterns of a device alone take 2 MB");
}

/// The figures of `docs/scale.md`.
async fn a_hundred_thousand_patterns_are_measured() {
    for (devices, patterns) in [(2, 1000), (2, 100_000), (100, 100_000)] {
        cost(devices, patterns).await;
    }
}
