//! Many askers at once: the time until a request is accepted, and the cost of a burst of requests
//! and of an idle bot. `just load` and `just economy` measure.

use crate::support::bot::at_relay;
use crate::support::dm_list;
use crate::support::harness::{Test, figure, test};
use crate::support::relay::TestRelay;
use crate::support::usage;
use crate::support::vault::vault_of;
use crate::support::{PATIENCE, connect, publish_with};
use nostr_sdk::prelude::*;
use std::collections::HashMap;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(a_hundred_askers_and_a_burst_of_a_thousand_are_accepted_in_time).long("`just load`").measures("load"),
    test!(an_idle_bot_uses_almost_no_processor_time).long("`just economy`").measures("economy"),
];

/// A request that is accepted but not found during the test, different for each asker.
fn request(number: usize) -> String {
    let alphabet = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    let tail: String = (0..4).map(|at| char::from(alphabet[number >> (3 * at) & 31])).collect();
    format!("qqqq{tail}")
}

/// Publishes the DM relay lists of `askers` new askers. Returns one wrapped request of each.
async fn requests(relay: &TestRelay, client: &Client, bot: PublicKey, askers: usize) -> Vec<(PublicKey, Event)> {
    let mut requests = Vec::new();
    for number in 0..askers {
        let keys = Keys::generate();
        publish_with(client, &dm_list(&keys, &[relay.url()])).await;
        requests.push((keys.public_key(), EventBuilder::private_msg(&keys, bot, request(number), []).await.unwrap()));
    }
    requests
}

/// Sends all requests, `at_once` at a time. Returns the sorted times from sending a request to its
/// acceptance.
async fn acceptances(client: &Client, requests: Vec<(PublicKey, Event)>, at_once: usize) -> Vec<Duration> {
    let mut notifications = client.notifications();
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
            tokio::spawn(async move { publish_with(&client, &event).await });
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

/// The client of all askers.
async fn client_of_all(relay: &TestRelay) -> Client {
    let pool = RelayPoolOptions::new().notification_channel_size(65_536);
    let client = Client::builder().opts(ClientOptions::new().pool(pool)).build();
    client.add_relay(relay.url()).await.unwrap();
    connect(&client).await;
    client.subscribe(Filter::new().kind(Kind::GiftWrap).limit(0), None).await.unwrap();
    client
}

async fn measure(askers: usize, paced: usize, burst: usize) -> (Duration, Duration, Duration) {
    let (relay, home) = at_relay("[search]\ndevice = \"cpu\"\nthreads = 1\n").await;
    let (bot, client) = (home.spawn().await, client_of_all(&relay).await);
    let vault = vault_of(bot.pid());
    // The first request includes work that is done only once.
    let first = requests(&relay, &client, bot.public_key, 1).await;
    acceptances(&client, first, 1).await;
    let many = requests(&relay, &client, bot.public_key, askers).await;
    let used = usage::seconds_beside_search(bot.pid());
    let took = acceptances(&client, many, askers).await;
    println!("{:.2} s of processor time for {askers} askers", usage::seconds_beside_search(bot.pid()) - used);
    let slowest = took[took.len() * 99 / 100];
    // Ten requests per second.
    let mut alone = Vec::new();
    let mut pace = tokio::time::interval(Duration::from_millis(100));
    for request in requests(&relay, &client, bot.public_key, paced).await {
        pace.tick().await;
        alone.extend(acceptances(&client, vec![request], 1).await);
    }
    alone.sort();
    let many = requests(&relay, &client, bot.public_key, burst).await;
    let began = Instant::now();
    let took = acceptances(&client, many, burst).await;
    let all = began.elapsed();
    println!("a burst of {burst}: all accepted in {all:?}; {:.1} MB resident", usage::of(bot.pid()).1 as f64 / 1e6);
    assert_eq!(took.len(), burst);
    assert_eq!(vault_of(bot.pid()), vault, "the vault was started again");
    (alone[alone.len() / 2], slowest, all)
}

async fn a_hundred_askers_and_a_burst_of_a_thousand_are_accepted_in_time() {
    let (median, slowest, all) = measure(100, 30, 1000).await;
    figure("ten requests a second, median", median, Duration::from_millis(20));
    figure("a hundred at once, 99th percentile", slowest, Duration::from_millis(100));
    figure("a burst of a thousand", all, Duration::from_secs(10));
}

async fn an_idle_bot_uses_almost_no_processor_time() {
    let (_relay, home) = at_relay("").await;
    let bot = home.spawn().await;
    // The sleeps wait for nothing. Usage is measured over the second one.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (before, began) = (usage::of(bot.pid()).0, Instant::now());
    tokio::time::sleep(Duration::from_secs(30)).await;
    let (after, memory) = usage::of(bot.pid());
    let share = (after - before) / began.elapsed().as_secs_f64();
    let (_, of_vault) = usage::of(vault_of(bot.pid()).expect("a vault process"));
    figure("an idle bot's part of a core", share, 0.01);
    // The two processes share the pages of the program, and both figures include them.
    figure("bytes of memory of bot and vault", memory + of_vault, 40_000_000);
}
