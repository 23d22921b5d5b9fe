//! Workers that lie or idle, a worker's stolen credentials, a worker of another version, and the
//! server's limits for a worker.

use super::server::client;
use crate::support::bot::ChildGuard;
use crate::support::fleet::{Headquarters, NatsServer, Twisted, claims};
use crate::support::harness::{Test, test};
use crate::support::{until, wait_for};
use async_nats::Client;
use npubbot::fleet::LARGEST_ANSWER;
use npubbot::key::{Offset, Rotation, Tweak};
use npubbot::scheduler::Health;
use npubbot::search::ClaimedHit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub const TESTS: &[Test] = &[
    test!(a_flood_of_hellos_and_answers_hides_no_other_worker).slow(),
    test!(a_worker_of_another_version_is_named_and_gets_no_orders).slow(),
    test!(the_limits_of_a_worker_are_kept_by_the_server),
    test!(workers_that_forge_hits_or_do_no_work_are_named_and_dropped).slow(),
];

/// A hello as the wire has it.
fn hello(version: u16, session: u64) -> Vec<u8> {
    postcard::to_stdvec(&(version, "0.1.0", session, "stolen", "none", 1u32, 1u32)).unwrap()
}

/// Sends hellos of all devices, and answers that belong to no order, as fast as the server takes
/// them.
async fn flood(client: Client, sent: Arc<AtomicU64>) {
    let junk = vec![0x55; LARGEST_ANSWER - 512];
    for round in 0u64.. {
        for device in 0..16 {
            let hello = hello(1, round);
            client.publish(format!("npubbot.stolen.{device}.hello"), hello.into()).await.unwrap();
            client.publish(format!("npubbot.stolen.{device}.answers"), junk.clone().into()).await.unwrap();
            sent.fetch_add(2, Ordering::Relaxed);
        }
        client.flush().await.unwrap();
    }
}

async fn a_flood_of_hellos_and_answers_hides_no_other_worker() {
    let server = NatsServer::start(&["stolen", "honest", "later"]).await;
    let bot = Headquarters::start(&server);
    let _honest = server.work("honest", Twisted::new(|_, report| report));
    bot.works("honest").await;
    bot.order(1, "qqqqqqqqqqqq");
    bot.goes_on("honest").await;
    let (thief, _) = client(&server, "stolen").await;
    let sent = Arc::new(AtomicU64::new(0));
    let flood = tokio::spawn(flood(thief, Arc::clone(&sent)));
    wait_for("the flood is there", || sent.load(Ordering::Relaxed) > 2_000).await;
    let _later = server.work("later", Twisted::new(|_, report| report));
    bot.works("later").await;
    bot.goes_on("later").await;
    bot.goes_on("honest").await;
    // The operator sees the reason.
    let reason = bot.drops("stolen").await;
    assert!(reason.contains("its answer is none"), "{reason}");
    assert!(bot.status().connected && bot.refused().len() == 1, "{:?}", bot.status());
    println!("{} messages of the thief", sent.load(Ordering::Relaxed));
    assert!(!flood.is_finished(), "the server still takes them");
    flood.abort();
    assert!(bot.finds.lock().unwrap().is_empty());
}

async fn a_worker_of_another_version_is_named_and_gets_no_orders() {
    let server = NatsServer::start(&["ann"]).await;
    let bot = Headquarters::start(&server);
    let (old, _) = client(&server, "ann").await;
    let refused = until("it is named", || async {
        old.publish("npubbot.ann.0.hello", hello(9, 1).into()).await.unwrap();
        bot.refused().pop()
    })
    .await;
    assert_eq!(refused.0, "ann");
    assert!(refused.1.contains("version 9") && refused.1.contains("both need the same npubbot"), "{}", refused.1);
    assert!(bot.device("ann").is_none() && bot.status().devices().count() == 0);
    // With the same version of npubbot as the bot, the worker works.
    drop(old);
    let _worker = ChildGuard(server.worker(&server.file("ann")).spawn().unwrap());
    assert_eq!(bot.works("ann").await.health, Health::Working);
    assert!(bot.refused().is_empty());
}

async fn the_limits_of_a_worker_are_kept_by_the_server() {
    let server = NatsServer::start(&["ann", "bob"]).await;
    let mut clients = Vec::new();
    for _ in 0..8 {
        clients.push(client(&server, "ann").await);
    }
    let text = std::fs::read_to_string(server.file("ann")).unwrap();
    let seed = text.lines().find(|line| line.starts_with("SU")).unwrap().to_owned();
    let options = async_nats::ConnectOptions::with_nkey(seed).add_root_certificates(server.file("ann"));
    assert!(options.connect(server.url()).await.is_err(), "the ninth connection");
    // Another worker can still connect.
    let (bob, _) = client(&server, "bob").await;
    bob.flush().await.unwrap();
    let (ann, said) = &clients[0];
    ann.publish("npubbot.ann.0.answers", vec![0; LARGEST_ANSWER].into()).await.unwrap();
    ann.flush().await.unwrap();
    assert!(said.lock().unwrap().is_empty(), "{said:?}");
    // The client library sends this message, because it only knows the larger limit of the server.
    let is_refused = |text: &String| text.to_lowercase().contains("payload");
    until("it is refused", || async {
        // Sends again each time: the server closes the connection, and its error is lost if the
        // client is still writing.
        ann.publish("npubbot.ann.0.answers", vec![0; LARGEST_ANSWER + 1].into()).await.unwrap();
        let _ = tokio::time::timeout(Duration::from_secs(1), ann.flush()).await;
        said.lock().unwrap().iter().any(is_refused).then_some(())
    })
    .await;
}

/// Waits until a worker is dropped, and checks that it gets no more work while an honest one does.
async fn dropped(bot: &Headquarters, worker: &str, reason: &str) {
    let said = bot.drops(worker).await;
    assert!(said.contains(reason), "{said}");
    let device =
        until("the device is out", || async { bot.device(worker).filter(|device| device.health != Health::Working) })
            .await;
    assert!(matches!(&device.health, Health::Out(text) if text.contains(reason)), "{:?}", device.health);
    // A worker says hello every two seconds, so that it would come back within five.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let after = bot.device(worker).unwrap();
    assert_eq!((after.health, after.candidates), (device.health, device.candidates));
    bot.goes_on("honest").await;
    assert!(bot.finds.lock().unwrap().is_empty(), "nothing was found");
}

async fn workers_that_forge_hits_or_do_no_work_are_named_and_dropped() {
    let server = NatsServer::start(&["liar", "idler", "honest"]).await;
    let bot = Headquarters::start(&server);
    let _honest = server.work("honest", Twisted::new(|_, report| report));
    bot.order(1, "qqqqqqqqqqqq");
    let mut number = 0;
    let forged = move |_: &_, report: npubbot::search::LaunchReport| {
        number += 1;
        let tweak = Tweak { offset: Offset::of_point(number, 1, Rotation::ALL[0]), rotation: Rotation::ALL[1] };
        claims(vec![ClaimedHit { start: 0, tweak }], report.candidates)
    };
    let _liar = server.work("liar", Twisted::new(forged));
    let _idler = server.work("idler", Twisted::new(|_, _| claims(Vec::new(), 1 << 30)));
    dropped(&bot, "liar", "hits were wrong").await;
    dropped(&bot, "idler", "it does not really search").await;
    // The idler claims 2·10^10 a second; a core does less than 10^9.
    let rate = bot.scheduler.rate().unwrap();
    assert!(rate.0 < 1e9, "the claims of the idler are in the rate of all: {rate}");
}
