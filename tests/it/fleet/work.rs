//! Honest workers: the operator sees them, and no start point is used by two.

use crate::cli::monitoring::metric;
use crate::support::bot::{ChildGuard, Met, met_process};
use crate::support::fleet::{Headquarters, NatsServer, Twisted};
use crate::support::harness::{Test, test};
use crate::support::program::stdout;
use crate::support::{until, wait_for};
use npubbot::job::JobId;
use npubbot::key::StartPoint;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

pub const TESTS: &[Test] = &[
    test!(the_operator_sees_the_workers_of_a_running_bot).slow(),
    test!(no_start_point_is_used_by_two_workers).slow(),
];

async fn the_operator_sees_the_workers_of_a_running_bot() {
    let mut server = NatsServer::start(&["ann"]).await;
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let Met { relay: _relay, home, bot: _bot, mut asker } =
        met_process(&format!("{}[web]\nmetrics = \"{address}\"\n", server.config())).await;
    let fleet = || -> Value { serde_json::from_str(&stdout(&home.operate(&["fleet", "--json"]))).unwrap() };
    until("the server is connected", || async { fleet()["connected"].as_bool().unwrap().then_some(()) }).await;
    assert_eq!((&fleet()["server"], &fleet()["workers"]), (&json!(server.url()), &json!([])));
    let worker = ChildGuard(server.worker(&server.file("ann")).spawn().unwrap());
    let ann = |is_as_wanted: fn(&Value) -> bool| async move {
        until("the worker is shown", || async { Some(fleet()["workers"][0].clone()).filter(is_as_wanted) }).await
    };
    let shown = ann(|ann| ann["proven_rate"].as_f64() > Some(0.0) && ann["hits"].as_u64() > Some(0)).await;
    assert_eq!(
        (&shown["name"], &shown["connected"], &shown["state"]),
        (&json!("ann"), &json!(true), &json!("working"))
    );
    assert_eq!((&shown["hits_wrong"], &shown["devices"][0]["id"]), (&json!(0), &json!("ann:0")));
    assert_eq!(shown["devices"][0]["version"], json!(env!("CARGO_PKG_VERSION")));
    let named = |text: &str| {
        [home.operate(&["fleet"]), home.operate(&["doctor"])].map(|output| {
            let said = stdout(&output);
            assert!(said.contains(text), "{text} in {said}");
        })
    };
    named("hits");
    named("errors");
    assert!(stdout(&home.operate(&["status"])).contains("workers: 1 of 1 are there"));
    asker.ask("cats").await;
    asker.next_key().await.assert_starts_with("cats");
    for line in [
        "npubbot_fleet_connected 1",
        "npubbot_fleet_devices 1",
        concat!("npubbot_fleet_device_info{device=\"worker ann:0\",version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
        "npubbot_device_wrong_hits_total{device=\"worker ann:0\"} 0",
    ] {
        metric(address, line).await;
    }
    let metrics = metric(address, "npubbot_fleet_connected 1").await;
    // The values are not checked: on a loaded machine an answer may come too late, which counts as
    // an error.
    for name in ["device_hits_total", "fleet_device_errors_total"] {
        assert!(metrics.contains(&format!("npubbot_{name}{{device=\"worker ann:0\"}} ")), "{metrics}");
    }
    drop(worker);
    let shown = ann(|ann| ann["connected"] == json!(false)).await;
    // The reason is not checked: on a loaded machine the worker's last order may be older than its
    // last hello.
    assert!(shown["state"].as_str().unwrap().starts_with("away: no "), "{shown}");
    server.kill();
    wait_for("the server is away", || !fleet()["connected"].as_bool().unwrap()).await;
    let doctor = stdout(&home.operate(&["doctor"]));
    assert!(doctor.contains("is away; they get no orders"), "{doctor}");
    let status = stdout(&home.operate(&["status"]));
    assert!(status.contains("is away; workers get no orders until it is back"), "{status}");
    metric(address, "npubbot_fleet_connected 0").await;
    // The connection to the server comes back without help, and the log has one line for each
    // change.
    server.start_again().await;
    until("the server is back", || async { fleet()["connected"].as_bool().unwrap().then_some(()) }).await;
    metric(address, "npubbot_fleet_connected 1").await;
    let log = home.log();
    let [away, connected] = ["away", "connected"].map(|state| format!("the fleet's server is {state}"));
    let changes: Vec<bool> = log
        .lines()
        .filter(|line| line.contains(&away) || line.contains(&connected))
        .map(|line| line.contains(&connected))
        .collect();
    assert!(changes.len() >= 3 && changes.windows(2).all(|two| two[0] != two[1]), "a line for each change: {log}");
    assert!(log.contains("a worker's device has come"), "{log}");
}

/// Start points that were searched, each with the number of its worker and the patterns.
type Used = Arc<Mutex<Vec<(usize, Vec<u8>, Vec<String>)>>>;

/// A cancelled job leaves the orders of both workers.
async fn no_start_point_is_used_by_two_workers() {
    let server = NatsServer::start(&["ann", "bob"]).await;
    let bot = Headquarters::start(&server);
    let used: Used = Arc::default();
    let watched = |worker: usize| {
        let used = Arc::clone(&used);
        Twisted::new(move |launch, report| {
            let patterns: Vec<String> = launch.patterns.iter().map(|(_, one)| one.as_str().to_owned()).collect();
            let point = |start: &StartPoint| start.public_key().serialize().to_vec();
            let points = launch.starts.iter().map(|start| (worker, point(start), patterns.clone()));
            used.lock().unwrap().extend(points);
            report
        })
    };
    let _workers = (server.work("ann", watched(0)), server.work("bob", watched(1)));
    bot.works("ann").await;
    bot.works("bob").await;
    bot.order(1, "qqqqqqqqqqqq");
    until("both have searched", || async {
        let used = used.lock().unwrap();
        (0..2).all(|worker| used.iter().filter(|(user, ..)| *user == worker).count() > 50).then_some(())
    })
    .await;
    bot.order(2, "pppppppppppp");
    bot.scheduler.remove(JobId(1));
    until("both search for the other job only", || async {
        let used = used.lock().unwrap();
        let newest = |worker| used.iter().rfind(|(user, ..)| *user == worker).map(|(.., patterns)| patterns);
        let is_other =
            |all: &Vec<String>| all.iter().any(|one| one == "pppppppppppp") && !all.contains(&"q".repeat(12));
        (0..2).all(|worker| newest(worker).is_some_and(is_other)).then_some(())
    })
    .await;
    let used = used.lock().unwrap();
    let different: HashSet<&Vec<u8>> = used.iter().map(|(_, point, _)| point).collect();
    assert_eq!(different.len(), used.len());
}
