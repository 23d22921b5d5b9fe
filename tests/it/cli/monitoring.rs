//! Monitoring of a bot: metrics, health, the signs of life for systemd, JSON logs.

use crate::support::asker::Asker;
use crate::support::bot::{ChildGuard, Home, SERVING, assert_clean, at_relay};
use crate::support::harness::{Test, skip, test};
use crate::support::program::stdout;
use crate::support::relay::TestRelay;
use crate::support::vault::stop;
use crate::support::{LONG, PATIENCE, until, wait_for};
use nostr_sdk::prelude::*;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

pub const TESTS: &[Test] = &[
    test!(metrics_have_every_figure_and_name_no_asker),
    test!(readiness_follows_the_relay_and_health_does_not),
    test!(promtool_finds_nothing_wrong),
    test!(systemd_hears_that_the_bot_serves_lives_and_stops_and_json_logs_are_an_object_a_line),
    test!(a_bot_whose_ledger_hangs_gives_no_sign_of_life).slow(),
];

const DASHBOARD: &str = include_str!("../../../docs/operators/grafana.json");
const ALERTS: &str = include_str!("../../../docs/operators/alerts.yml");

/// A bot with metrics, and their address.
fn home_with_metrics(relay: &TestRelay) -> (Home, SocketAddr) {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    (Home::with(&[relay.url()], &format!("[web]\nmetrics = \"{address}\"\n")), address)
}

/// Status and body of a page.
pub fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Waits until the metrics have this line. Returns the whole page.
pub async fn metric(address: SocketAddr, line: &str) -> String {
    until(line, || async { Some(get(address, "/metrics").1).filter(|text| text.lines().any(|found| found == line)) })
        .await
}

async fn metrics_have_every_figure_and_name_no_asker() {
    let relay = TestRelay::start().await;
    let (home, address) = home_with_metrics(&relay);
    let bot = home.spawn().await;
    let mut asker = Asker::connect(&relay.url(), bot.public_key).await;
    asker.ask(LONG).await;
    let other = Keys::generate().public_key().to_bech32().unwrap();
    assert!(home.operate(&["deny", &other]).status.success());
    let text = metric(address, "npubbot_jobs{state=\"accepted\"} 1").await;
    for name in named_in_dashboard_and_alerts() {
        assert!(text.contains(&format!("# TYPE {name} ")), "{name} is missing in {text}");
    }
    assert!(text.contains(&format!("npubbot_relay_connected{{relay=\"{}\"}} 1", relay.url())), "{text}");
    assert!(text.contains("npubbot_device_working{device=\"cpu\"") && text.contains("cause=\"denied\"} 0"), "{text}");
    let key = asker.keys.public_key();
    let free = text.lines().find_map(|line| line.strip_prefix("npubbot_data_free_bytes "));
    assert!(free.is_some_and(|bytes| bytes.parse::<f64>().unwrap() > 0.0), "{text}");
    assert!(text.contains("npubbot_device_resting{device=\"cpu\",reason=\"heat\"} 0"), "{text}");
    assert!(text.contains("npubbot_device_time_ratio{device=\"cpu\"} 1"), "{text}");
    for secret in [LONG, &key.to_bech32().unwrap(), &key.to_hex(), &other, &bot.public_key.to_bech32().unwrap()] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert!(home.operate(&["pause"]).status.success());
    metric(address, "npubbot_search_paused 1").await;
    assert_eq!(get(address, "/other").0, 404);
}

async fn readiness_follows_the_relay_and_health_does_not() {
    let mut relay = TestRelay::start().await;
    let (home, address) = home_with_metrics(&relay);
    let _bot = home.spawn().await;
    assert_eq!(get(address, "/healthz"), (200, "ok\n".to_owned()));
    wait_for("it is ready", || get(address, "/readyz") == (200, "ok\n".to_owned())).await;
    relay.stop().await;
    let missing = (503, "no relay is connected\n".to_owned());
    wait_for("readiness ends", || get(address, "/readyz") == missing).await;
    assert_eq!(get(address, "/healthz").0, 200, "a restart would not help");
    let status = stdout(&home.operate(&["status"]));
    assert!(status.contains("\nBAD the bot is connected to no relay, so nobody reaches it"), "{status}");
    relay.start_again().await;
    wait_for("readiness returns", || get(address, "/readyz").0 == 200).await;
    // The server of the metrics goes on when the configuration changes.
    assert!(home.operate(&["reload"]).status.success());
    home.logs(SERVING, 2).await;
    home.answers().await;
    wait_for("it is ready again", || get(address, "/readyz").0 == 200).await;
}

/// Metrics that the dashboard and the alerts query, but for those of a fleet, which this bot lacks, and
/// of the clock, of which this relay tells nothing.
fn named_in_dashboard_and_alerts() -> BTreeSet<&'static str> {
    let words =
        [DASHBOARD, ALERTS].into_iter().flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    let is_absent = |word: &str| word.starts_with("npubbot_fleet") || word.starts_with("npubbot_clock");
    let names: BTreeSet<&str> = words.filter(|word| word.starts_with("npubbot_") && !is_absent(word)).collect();
    assert!(names.len() > 8, "{names:?}");
    names
}

async fn promtool_finds_nothing_wrong() {
    if Command::new("promtool").arg("--version").output().is_err() {
        skip("there is no promtool (Debian's package prometheus)");
    }
    let relay = TestRelay::start().await;
    let (home, address) = home_with_metrics(&relay);
    let _bot = home.spawn().await;
    let text = metric(address, "npubbot_search_paused 0").await;
    let promtool = Command::new("promtool").args(["check", "metrics"]).stdin(Stdio::piped()).spawn();
    let mut promtool = promtool.unwrap();
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(promtool.wait().unwrap().success(), "{text}");
    let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/cli/alerts.test.yml");
    let tested = Command::new("promtool").args(["test", "rules", rules]).output().unwrap();
    assert!(tested.status.success(), "{tested:?}");
}

/// A service manager's socket, and `npubbot serve` with a watchdog of three seconds.
fn managed(home: &Home, fault: Option<&str>) -> (UnixDatagram, ChildGuard) {
    let path = home.folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    let log = std::fs::OpenOptions::new().create(true).append(true).open(home.folder.path().join("log")).unwrap();
    let mut command = home.command();
    command
        .args(["--log", "json"])
        .env("NOTIFY_SOCKET", path)
        .env("WATCHDOG_USEC", "3000000")
        .stdout(Stdio::null())
        .stderr(log);
    if let Some(fault) = fault {
        command.env("NPUBBOT_TEST_FAULT", fault);
    }
    (manager, ChildGuard(command.spawn().unwrap()))
}

/// The next message to the service manager; `None` if none comes in time.
fn told(manager: &UnixDatagram, patience: Duration) -> Option<String> {
    manager.set_read_timeout(Some(patience)).unwrap();
    let mut message = [0; 256];
    let length = manager.recv(&mut message).ok()?;
    Some(String::from_utf8(message[..length].to_vec()).unwrap().trim().to_owned())
}

/// Reads the messages to the service manager up to this one. Fails if it does not come.
fn told_until(manager: &UnixDatagram, expected: &str) {
    while let Some(said) = told(manager, PATIENCE) {
        if said == expected {
            return;
        }
    }
    panic!("the service manager was not told {expected}");
}

/// Discards messages that were already sent.
fn drain(manager: &UnixDatagram) {
    while told(manager, Duration::from_millis(1)).is_some() {}
}

/// Two periods of the watchdog: systemd would have acted.
const TOO_LATE: Duration = Duration::from_secs(6);

async fn systemd_hears_that_the_bot_serves_lives_and_stops_and_json_logs_are_an_object_a_line() {
    let (_relay, home) = at_relay("").await;
    let (manager, mut bot) = managed(&home, None);
    told_until(&manager, "READY=1");
    for _ in 0..3 {
        told_until(&manager, "WATCHDOG=1");
    }
    stop(bot.0.id()).await;
    drain(&manager);
    assert_eq!(told(&manager, TOO_LATE), None, "a stopped process says nothing");
    bot.signal(Signal::CONT);
    told_until(&manager, "WATCHDOG=1");
    bot.signal(Signal::TERM);
    told_until(&manager, "STOPPING=1");
    assert_clean(bot.ended().await, &home);
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let log: Vec<serde_json::Value> = home.log().lines().map(read).collect();
    let is_whole = |line: &serde_json::Value| line["level"].is_string() && line["timestamp"].is_string();
    assert!(log.iter().all(|line| is_whole(line) && line["fields"].is_object()), "{}", home.log());
    let searching = log.iter().find(|line| line["fields"]["message"] == "searching on").unwrap();
    assert_eq!(searching["fields"]["device"], "cpu", "figures are fields of their own");
}

/// The process runs and its timers fire, but a thread holds the ledger for ever.
async fn a_bot_whose_ledger_hangs_gives_no_sign_of_life() {
    let relay = TestRelay::start().await;
    let (home, address) = home_with_metrics(&relay);
    let (manager, _bot) = managed(&home, Some("hang:answer:before"));
    told_until(&manager, "READY=1");
    told_until(&manager, "WATCHDOG=1");
    assert_eq!(get(address, "/healthz").0, 200);
    let asker = Asker::connect(&relay.url(), home.vault().public_key()).await;
    asker.send("help").await;
    // The log is not checked: if tasks wait for the ledger too, the main loop stands still and
    // cannot log this.
    until("the signs of life end", || async { told(&manager, TOO_LATE).is_none().then_some(()) }).await;
    until("the health check names the step", || async {
        let (status, reason) = get(address, "/healthz");
        (status == 503 && reason.contains("answer")).then_some(())
    })
    .await;
}
