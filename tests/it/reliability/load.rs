//! Many askers at once: the time until a request is accepted, and the cost of a burst of requests
//! and of an idle bot.
//!
//! CI runs the short form. The limits apply to the release build on an otherwise idle machine:
//! `cargo test --release --test it reliability::load -- --ignored --nocapture`

use crate::support::bot::Home;
use crate::support::harness::{Test, judge, test};
use crate::support::relay::TestRelay;
use crate::support::usage;
use crate::support::vault::vault_of;
use crate::support::{PATIENCE, connect};
use nostr_sdk::prelude::*;
use std::collections::HashMap;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(many_askers_at_once_are_accepted_and_no_request_is_lost).timed(),
    test!(many_askers_at_once_are_accepted_within_the_time_limits)
        .long("time limits: for the release build, on a quiet machine"),
    test!(an_idle_bot_uses_almost_no_processor_time).long("time limits: for the release build, on a quiet machine"),
];

/// A request that is accepted but not found during the test, different for each asker.
fn request(number: usize) -> String {
    let alphabet = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    let tail: String = (0..4).map(|at| char::from(alphabet[number >> (3 * at) & 31])).collect();
    format!("qqqq{tail}")
}

/// Publishes the DM relay lists of `askers` new askers. Returns one wrapped request of each.
async fn requests(relay: &TestRelay, clients: &Askers, bot: PublicKey, askers: usize) -> Vec<(PublicKey, Event)> {
    let mut requests = Vec::new();
    for number in 0..askers {
        let keys = Keys::generate();
        let list = EventBuilder::new(Kind::InboxRelays, "").tag(Tag::relay(relay.url()));
        clients.writer.send_event(&list.sign_with_keys(&keys).unwrap()).await.unwrap();
        requests.push((keys.public_key(), EventBuilder::private_msg(&keys, bot, request(number), []).await.unwrap()));
    }
    requests
}

/// Sends all requests, `at_once` at a time. Returns the sorted times from sending a request to its
/// acceptance.
async fn acceptances(clients: &Askers, requests: Vec<(PublicKey, Event)>, at_once: usize) -> Vec<Duration> {
    let (client, mut notifications) = (&clients.writer, clients.reader.notifications());
    let mut sent: HashMap<PublicKey, Instant> = HashMap::new();
    let mut took = Vec::new();
    let mut left = requests.into_iter();
    let all = left.len();
    let begun = Instant::now();
    while took.len() < all {
        while sent.len() < at_once {
            let Some((asker, event)) = left.next() else { break };
            sent.insert(asker, Instant::now());
            let client = client.clone();
            tokio::spawn(async move { client.send_event(&event).await.map(|_| ()) });
        }
        let next = tokio::time::timeout(PATIENCE, notifications.recv());
        let Ok(RelayPoolNotification::Event { event, .. }) = next.await.expect("an acceptance") else { continue };
        let receiver = event.tags.public_keys().next().copied();
        if let Some(at) = receiver.and_then(|receiver| sent.remove(&receiver)) {
            took.push(at.elapsed());
        }
        assert!(begun.elapsed() < PATIENCE, "{} of {all} are accepted", took.len());
    }
    took.sort();
    took
}

/// The connections of all askers. One is only for reading: on a connection that also writes, the
/// embedded relay's Nagle delay holds an acceptance back for 40 ms, until the preceding OK is
/// acknowledged.
struct Askers {
    writer: Client,
    reader: Client,
}

impl Askers {
    async fn gather(relay: &TestRelay) -> Askers {
        let pool = RelayPoolOptions::new().notification_channel_size(65_536);
        let reader = Client::builder().opts(ClientOptions::new().pool(pool)).build();
        let writer = Client::default();
        for client in [&reader, &writer] {
            client.add_relay(relay.url()).await.unwrap();
            connect(client).await;
        }
        reader.subscribe(Filter::new().kind(Kind::GiftWrap).limit(0), None).await.unwrap();
        Askers { writer, reader }
    }
}

/// The same load without the bot. In its place, a client answers each request at once with a
/// prepared wrap, so the time is only that of the relay and the askers.
async fn without_the_bot(askers: usize) -> Vec<Duration> {
    let relay = TestRelay::start().await;
    let (clients, nobody) = (Askers::gather(&relay).await, Keys::generate());
    let many = requests(&relay, &clients, nobody.public_key(), askers).await;
    let mut ready: HashMap<EventId, Event> = HashMap::new();
    for (asker, request) in &many {
        ready.insert(request.id, EventBuilder::private_msg(&nobody, *asker, "accepted", []).await.unwrap());
    }
    let echo = Client::default();
    echo.add_relay(relay.url()).await.unwrap();
    connect(&echo).await;
    let mut notifications = echo.notifications();
    echo.subscribe(Filter::new().kind(Kind::GiftWrap).pubkey(nobody.public_key()), None).await.unwrap();
    tokio::spawn(async move {
        while let Ok(notification) = notifications.recv().await {
            let RelayPoolNotification::Event { event, .. } = notification else { continue };
            let (echo, answer) = (echo.clone(), ready.remove(&event.id).unwrap());
            tokio::spawn(async move { echo.send_event(&answer).await.map(|_| ()) });
        }
    });
    acceptances(&clients, many, askers).await
}

async fn measure(askers: usize, burst: usize) -> (Duration, Duration, Duration) {
    let relay = TestRelay::start().await;
    let home = Home::with(&[relay.url()], "[search]\ndevice = \"cpu\"\nthreads = 1\n");
    let (bot, clients) = (home.spawn().await, Askers::gather(&relay).await);
    let vault = vault_of(bot.pid());
    // The first request includes work that is done only once.
    let first = requests(&relay, &clients, bot.public_key, 1).await;
    acceptances(&clients, first, 1).await;
    let took = without_the_bot(askers).await;
    let of = |took: &[Duration]| (took[took.len() / 2], took[took.len() * 99 / 100]);
    println!("{askers} askers at once and no bot: median and 99th percentile {:?}", of(&took));
    let many = requests(&relay, &clients, bot.public_key, askers).await;
    let (test_before, bot_before) = (usage::of(std::process::id()).0, usage::seconds_beside_search(bot.pid()));
    let took = acceptances(&clients, many, askers).await;
    let (test_used, bot_used) =
        (usage::of(std::process::id()).0 - test_before, usage::seconds_beside_search(bot.pid()) - bot_before);
    let (median, slowest) = of(&took);
    println!("{askers} askers at once: {median:?} median, {slowest:?} at the 99th percentile");
    println!("processor time: {test_used:.2} s relay and askers, {bot_used:.2} s bot");
    // Ten requests per second. Above about 20 per second, the embedded relay holds a request back
    // until its preceding OK is acknowledged.
    let mut alone = Vec::new();
    let mut pace = tokio::time::interval(Duration::from_millis(100));
    for request in requests(&relay, &clients, bot.public_key, 30).await {
        pace.tick().await;
        alone.extend(acceptances(&clients, vec![request], 1).await);
    }
    alone.sort();
    println!("one asker after the other: {:?} median", alone[alone.len() / 2]);
    let many = requests(&relay, &clients, bot.public_key, burst).await;
    let began = Instant::now();
    let took = acceptances(&clients, many, burst).await;
    let all = began.elapsed();
    println!("a burst of {burst}: all accepted in {all:?}; {:.1} MB resident", usage::of(bot.pid()).1 as f64 / 1e6);
    assert_eq!(took.len(), burst);
    assert_eq!(vault_of(bot.pid()), vault, "the vault was started again");
    (alone[alone.len() / 2], slowest, all)
}

async fn many_askers_at_once_are_accepted_and_no_request_is_lost() {
    let (_, _, all) = measure(20, 100).await;
    judge("a burst of 100", all, Duration::from_secs(30));
}

async fn many_askers_at_once_are_accepted_within_the_time_limits() {
    let (median, slowest, all) = measure(100, 1000).await;
    assert!(median < Duration::from_millis(20), "{median:?}");
    assert!(slowest < Duration::from_millis(100), "{slowest:?}");
    assert!(all < Duration::from_secs(10), "{all:?}");
}

async fn an_idle_bot_uses_almost_no_processor_time() {
    let relay = TestRelay::start().await;
    let home = Home::new(&[relay.url()]);
    let bot = home.spawn().await;
    // The sleeps wait for nothing. Usage is measured over the second one.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (before, began) = (usage::of(bot.pid()).0, Instant::now());
    tokio::time::sleep(Duration::from_secs(30)).await;
    let (after, memory) = usage::of(bot.pid());
    let share = (after - before) / began.elapsed().as_secs_f64();
    let (_, of_vault) = usage::of(vault_of(bot.pid()).expect("a vault process"));
    let mb = |bytes: u64| bytes as f64 / 1e6;
    println!("idle: {:.2} % of a core, {:.1} and {:.1} MB resident", 100.0 * share, mb(memory), mb(of_vault));
    assert!(share < 0.01, "{share}");
    // The two processes share the pages of the program, and both figures include them.
    assert!(memory + of_vault < 40_000_000, "{memory} + {of_vault}");
}
