//! GPUs of workers: through the fleet they reach their local rate.

use crate::cli::monitoring::get;
use crate::support::asker::Asker;
use crate::support::bot::{ChildGuard, Home};
use crate::support::fleet::NatsServer;
use crate::support::harness::{Test, figure, needs_gpu, test};
use crate::support::program::{self, stdout};
use crate::support::relay::TestRelay;
use crate::support::{until, wait_for};
use npubbot::search::cuda;
use serde_json::Value;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] =
    &[test!(gpus_keep_their_rate_through_the_fleet).long("4 min for each GPU: `just economy`").measures("economy")];

/// Found after two hours on average: easy enough to be accepted, and unlikely to be found within
/// the test.
const PATTERN: &str = "qqqqqqqqqq";
/// Variable for the seconds of each measurement.
const SECONDS: &str = "NPUBBOT_TEST_SECONDS";
/// How often each rate is measured. The rates take turns.
const ROUNDS: usize = 3;

/// The rate of a GPU without a bot, in candidates per second. Checks that the number of hits fits
/// this rate.
fn local(gpu: usize, seconds: u64) -> f64 {
    let arguments = ["bench", "--json", "--device", &format!("cuda:{gpu}"), "--seconds", &seconds.to_string()];
    let said = stdout(&program::command().args(arguments).args(["--patterns", "1"]).output().unwrap());
    let line: Value = serde_json::from_str(&said).unwrap();
    println!("cuda:{gpu} locally: {said}");
    let [found, expected] = ["hits_found", "hits_expected"].map(|name| line[name].as_f64().unwrap());
    assert!((found - expected).abs() < 5.0 * expected.sqrt() && line["hits_wrong"] == 0, "{said}");
    line["candidates_per_second"].as_f64().unwrap()
}

/// A running bot whose metrics are read.
struct Measured<'a> {
    server: &'a NatsServer,
    address: SocketAddr,
}

impl Measured<'_> {
    /// Candidates of all workers since the bot started, as far as their canaries prove them.
    fn proven(&self) -> f64 {
        let text = get(self.address, "/metrics").1;
        let of_workers = |line: &str| {
            let value = line.strip_prefix("npubbot_device_candidates_total{device=\"worker ")?.rsplit_once(' ')?.1;
            Some(value.parse::<f64>().unwrap())
        };
        text.lines().filter_map(of_workers).sum()
    }

    /// The proven rate of these GPUs together, in candidates per second. Each is a worker.
    async fn rate(&self, gpus: &[usize], seconds: u64) -> f64 {
        let start = |&gpu: &usize| {
            let mut worker = program::command();
            worker.args(["worker", "--nats", &self.server.url(), "--device", &format!("cuda:{gpu}")]);
            ChildGuard(worker.arg("--creds").arg(self.server.file(&format!("gpu{gpu}"))).spawn().unwrap())
        };
        let _workers: Vec<ChildGuard> = gpus.iter().map(start).collect();
        for gpu in gpus {
            let device = format!("npubbot_device_working{{device=\"worker gpu{gpu}:0\"");
            let works = |line: &str| line.starts_with(&device) && line.ends_with(" 1");
            let there = || async { get(self.address, "/metrics").1.lines().any(works).then_some(()) };
            until("the worker works", there).await;
        }
        // Waits until each worker has searched for longer than its waiting orders take.
        let (began, before) = (Instant::now(), self.proven());
        wait_for("all search", || self.proven() > before && began.elapsed() > Duration::from_secs(5)).await;
        let (began, before) = (Instant::now(), self.proven());
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        (self.proven() - before) / began.elapsed().as_secs_f64()
    }
}

/// Bot, server and workers are separate processes. There is one pattern, as when the
/// local rate is measured.
async fn gpus_keep_their_rate_through_the_fleet() {
    needs_gpu();
    let gpus: Vec<usize> = (0..cuda::device_count().unwrap()).collect();
    let seconds = std::env::var(SECONDS).map_or(20, |text| text.parse().unwrap());
    let names: Vec<String> = gpus.iter().map(|gpu| format!("gpu{gpu}")).collect();
    let server = NatsServer::start(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let (relay, credentials) = (TestRelay::start().await, server.file("bot"));
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let fleet = format!("[fleet]\nserver = \"{}\"\ncredentials = \"{}\"\n", server.url(), credentials.display());
    // The bot's own device hardly searches.
    let search = "[search]\ndevice = \"cpu\"\nthreads = 1\nshare_percent = 10\n";
    let extra = format!("{fleet}{search}[web]\nmetrics = \"{address}\"\n");
    let home = Home::with(&[relay.url()], &extra);
    let bot = home.spawn().await;
    let mut asker = Asker::connect(&relay.url(), bot.public_key).await;
    let answer = asker.ask(PATTERN).await;
    assert!(answer.contains(PATTERN), "{answer}");
    let measured = Measured { server: &server, address };
    let (mut alone, mut through, mut together) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for &gpu in &gpus {
            alone.push(local(gpu, seconds));
            through.push(measured.rate(&[gpu], seconds).await);
        }
        if gpus.len() > 1 {
            together.push(measured.rate(&gpus, seconds).await);
        }
    }
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let part = mean(&through) / mean(&alone);
    let billions = |rates: &[f64]| rates.iter().map(|rate| format!("{:.1}", rate / 1e9)).collect::<Vec<_>>().join(", ");
    println!("G/s locally: {}; through the fleet: {}", billions(&alone), billions(&through));
    println!("G/s of {} together: {}", gpus.len(), billions(&together));
    println!("through the fleet: {:.1} % of the local rate", part * 100.0);
    figure("the part of a GPU's rate that is lost through the fleet", 1.0 - part, 0.02);
    if !together.is_empty() {
        let times = mean(&together) / mean(&through);
        figure("the part that several lose together", 1.0 - times / gpus.len() as f64, 0.02);
    }
}
