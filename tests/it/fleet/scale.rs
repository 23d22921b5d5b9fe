//! Many workers of one bot, simulated: real connections, orders and answers, and a device
//! that sleeps.

use crate::support::fleet::{BOT_THREADS, Headquarters, InProcess, NatsServer};
use crate::support::harness::{Test, test};
use crate::support::{until, usage, wait_for};
use npubbot::job::JobId;
use npubbot::key::{Offset, Rotation, Tweak, VerifiedHit};
use npubbot::search::{ClaimedHit, DeviceId, DeviceInfo, Launch, LaunchReport, SearchError, Searcher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[test!(twenty_workers_hear_of_new_and_cancelled_jobs).slow()];

/// Candidates of a launch around each start point. They are really tested, so canaries are found.
const CANDIDATES: i64 = 4;
/// The pattern of the new job. Nobody finds it.
const PATTERN: &str = "qqqqqqqqqqqq";

/// For each worker, the times at which its device began to search for the pattern and stopped.
struct Heard {
    /// Time of the first launch with the pattern.
    came: Mutex<Vec<Option<Instant>>>,
    /// Time of the first launch after that without the pattern.
    went: Mutex<Vec<Option<Instant>>>,
    launches: AtomicU64,
}

/// A device that sleeps, and tests a few candidates.
struct Sleeper {
    info: DeviceInfo,
    number: usize,
    starts: usize,
    time: Duration,
    heard: Arc<Heard>,
    launch: Option<Launch>,
}

impl Searcher for Sleeper {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn starts(&self) -> usize {
        self.starts
    }

    fn in_flight(&self) -> usize {
        1
    }

    fn submit(&mut self, launch: Launch) -> Result<(), SearchError> {
        let is_there = launch.patterns.iter().any(|(_, pattern)| pattern.as_str() == PATTERN);
        let came = &mut self.heard.came.lock().unwrap()[self.number];
        if is_there {
            came.get_or_insert_with(Instant::now);
        } else if came.is_some() {
            self.heard.went.lock().unwrap()[self.number].get_or_insert_with(Instant::now);
        }
        self.heard.launches.fetch_add(1, Ordering::Relaxed);
        self.launch = Some(launch);
        Ok(())
    }

    fn collect(&mut self) -> Result<LaunchReport, SearchError> {
        let launch = self.launch.take().unwrap();
        std::thread::sleep(self.time);
        let tweaks = (1..=CANDIDATES)
            .map(|step| Tweak { offset: Offset::of_point(0, step, Rotation::ALL[0]), rotation: Rotation::ALL[0] });
        let all = tweaks.flat_map(|tweak| (0..self.starts).map(move |start| ClaimedHit { start, tweak }));
        let is_hit = |claim: &ClaimedHit| {
            let hit = VerifiedHit::recompute(launch.starts[claim.start], claim.tweak).unwrap();
            launch.patterns.may_match(&hit.npub())
        };
        let (candidates, hits) = (CANDIDATES as u64 * self.starts as u64, all.filter(is_hit).collect());
        Ok(LaunchReport { candidates, hits, busy: self.time, ..LaunchReport::default() })
    }
}

/// Median, 99th percentile and maximum of these times, counted from `since`.
fn spread(since: Instant, times: &Mutex<Vec<Option<Instant>>>) -> (Duration, Duration, Duration) {
    let mut times: Vec<Duration> =
        times.lock().unwrap().iter().map(|time| time.unwrap().saturating_duration_since(since)).collect();
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() * 99 / 100], times[times.len() - 1])
}

async fn twenty_workers_hear_of_new_and_cancelled_jobs() {
    measure(20, Duration::from_millis(200)).await;
}

/// Starts workers with these names within this process. Each launch takes `time`.
fn simulate(server: &NatsServer, names: &[String], starts: usize, time: Duration) -> (Arc<Heard>, Vec<InProcess>) {
    let times = || Mutex::new(vec![None; names.len()]);
    let heard = Arc::new(Heard { came: times(), went: times(), launches: AtomicU64::new(0) });
    let work = |(number, name): (usize, &String)| {
        let info =
            DeviceInfo { id: DeviceId::Cpu, name: "sleeper".into(), kernel: "none".into(), threads: 1, warning: None };
        server.work(name, Sleeper { info, number, starts, time, heard: Arc::clone(&heard), launch: None })
    };
    let running = names.iter().enumerate().map(work).collect();
    (heard, running)
}

/// Measures how long it takes until all workers have begun a launch with a new pattern, and then
/// until all have begun one without it after its job was cancelled.
async fn measure(workers: usize, time: Duration) {
    let names: Vec<String> = (0..workers).map(|number| format!("w{number}")).collect();
    let server = NatsServer::start(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let bot = Headquarters::start(&server);
    let (heard, _running) = simulate(&server, &names, 1, time);
    let there = || bot.status().devices().filter(|device| device.connected).count();
    let count = || bot.scheduler.devices().iter().filter(|device| device.rate.is_some()).count();
    wait_for("all workers are measured", || there() == workers && count() > workers).await;
    // A job that everybody searches, so that there are orders ahead, as in use.
    bot.order(1, "pppppppppppp");
    let before = heard.launches.load(Ordering::Relaxed);
    wait_for("they work", || heard.launches.load(Ordering::Relaxed) > before + 20 * workers as u64).await;
    // Processor times in seconds: of the bot, of this whole process, and of the server.
    let seconds = || {
        let this = std::process::id();
        [usage::seconds_of_threads(this, &BOT_THREADS), usage::of(this).0, usage::of(server.pid()).0]
    };
    let (began, before, used) = (Instant::now(), heard.launches.load(Ordering::Relaxed), seconds());
    bot.order(2, PATTERN);
    let all = |times: &Mutex<Vec<Option<Instant>>>| times.lock().unwrap().iter().all(Option::is_some);
    until("all search the new job", || async { all(&heard.came).then_some(()) }).await;
    let came = spread(began, &heard.came);
    let cancelled = Instant::now();
    bot.scheduler.remove(JobId(2));
    until("none searches it any more", || async { all(&heard.went).then_some(()) }).await;
    let went = spread(cancelled, &heard.went);
    let (orders, took, now) = (heard.launches.load(Ordering::Relaxed) - before, began.elapsed(), seconds());
    let rate = orders as f64 / took.as_secs_f64();
    println!("{workers} workers, launches of {time:?}, {rate:.0} orders a second: new {came:?}, cancelled {went:?}");
    let [bot_used, all_used, server_used] = [0, 1, 2].map(|at| (now[at] - used[at]) / took.as_secs_f64());
    let simulation = all_used - bot_used;
    println!("cores in use: bot {bot_used:.2}, simulation {simulation:.2}, server {server_used:.2}");
    assert!(bot.refused().is_empty() && there() == workers, "{:?}", bot.refused());
}
