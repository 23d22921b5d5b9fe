//! Three workers, each limited to a share of a processor. Together they reach the sum of the rates
//! that they reach alone.

use crate::support::fleet::{Headquarters, Killed, NatsServer};
use crate::support::harness::{Test, skip, test};
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

pub const TESTS: &[Test] =
    &[test!(workers_together_prove_what_they_prove_alone).long("6 min, alone on the machine").alone()];

const WORKERS: [&str; 3] = ["ann", "bob", "cat"];
/// The share of a processor that each worker has.
const QUOTA: f64 = 0.2;
/// Period over which the share is counted, in microseconds.
const PERIOD: u64 = 10_000;
/// Seconds of a measurement: long enough that a few launches more or less do not matter.
const SECONDS: u64 = 40;

/// A control group with a share of a processor. Dropping it removes it; it must be empty then.
struct Group(PathBuf);

impl Group {
    /// Makes a group. Skips the test if the system gives none.
    fn new(name: &str) -> Group {
        let name = format!("npubbot-test-{}-{name}", std::process::id());
        let quota = (QUOTA * PERIOD as f64) as u64;
        // Version 2 of control groups, then version 1.
        for (root, files) in [
            ("/sys/fs/cgroup", vec![("cpu.max", format!("{quota} {PERIOD}"))]),
            (
                "/sys/fs/cgroup/cpu",
                vec![("cpu.cfs_period_us", PERIOD.to_string()), ("cpu.cfs_quota_us", quota.to_string())],
            ),
        ] {
            let group = Group(PathBuf::from(root).join(&name));
            let is_made = fs::create_dir(&group.0).is_ok();
            // If the system has no such control, the new folder lacks the control's file, and
            // nobody can make that file.
            let is_set = |(file, value): &(&str, String)| {
                let path = group.0.join(file);
                path.exists() && fs::write(path, value).is_ok()
            };
            if is_made && files.iter().all(is_set) {
                return group;
            }
        }
        skip("the system gives no control group with a part of a processor")
    }

    fn add(&self, worker: &Killed) {
        fs::write(self.0.join("cgroup.procs"), worker.0.id().to_string()).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Runs these workers at the same time. Returns their proven rates in candidates per second.
async fn rates(server: &NatsServer, bot: &Headquarters, groups: &[Group], workers: &[usize]) -> Vec<f64> {
    let start = |&at: &usize| {
        let worker = Killed(server.worker(&server.file(WORKERS[at])).spawn().unwrap());
        groups[at].add(&worker);
        worker
    };
    let _running: Vec<Killed> = workers.iter().map(start).collect();
    for &at in workers {
        bot.works(WORKERS[at]).await;
        bot.goes_on(WORKERS[at]).await;
    }
    // The candidates of a device are those that its canaries prove.
    let proven = || workers.iter().map(|&at| bot.device(WORKERS[at]).unwrap().candidates).collect::<Vec<u64>>();
    let (began, before) = (Instant::now(), proven());
    tokio::time::sleep(std::time::Duration::from_secs(SECONDS)).await;
    let (time, after) = (began.elapsed().as_secs_f64(), proven());
    after.iter().zip(before).map(|(after, before)| (after - before) as f64 / time).collect()
}

async fn workers_together_prove_what_they_prove_alone() {
    let groups: Vec<Group> = WORKERS.iter().map(|name| Group::new(name)).collect();
    let server = NatsServer::start(&WORKERS).await;
    let bot = Headquarters::start(&server);
    bot.order(1, "qqqqqqqqqqqq");
    let mut alone = Vec::new();
    for at in 0..WORKERS.len() {
        alone.extend(rates(&server, &bot, &groups, &[at]).await);
    }
    let together = rates(&server, &bot, &groups, &[0, 1, 2]).await;
    let sum = |rates: &[f64]| rates.iter().sum::<f64>();
    let part = sum(&together) / sum(&alone);
    println!("proven rates alone {alone:.0?}, together {together:.0?}: {:.1} %", part * 100.0);
    assert!((0.95..1.05).contains(&part), "{part}");
}
