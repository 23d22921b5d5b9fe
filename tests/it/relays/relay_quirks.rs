//! Relays with unusual behaviour: every form of AUTH, subscriptions that go silent, idle timeouts,
//! rate and size limits; and relays behind a SOCKS5 proxy such as Tor's. (Relays that lie: `liars.rs`.)

use crate::support::asker::{Asker, DeliveredKey};
use crate::support::bot::{Home, at_relay};
use crate::support::forger::Forger;
use crate::support::harness::{Test, figure, test};
use crate::support::relay::{Challenge, Manner, TestRelay};
use crate::support::socks::Socks;
use crate::support::{connected, dm_list, publish, publish_with, until, wait_for};
use nostr_sdk::prelude::*;
use npubbot::clock::Clock;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(the_bot_authenticates_however_a_relay_asks_for_it),
    test!(a_subscription_that_went_silent_is_noticed_and_renewed).slow(),
    test!(a_subscription_that_was_closed_before_the_relay_went_is_made_again).slow(),
    test!(messages_pass_both_ways_through_a_relay_that_closes_idle_connections).slow().measures("latency"),
    test!(a_relay_that_limits_the_rate_gets_everything_a_little_later).slow().measures("latency"),
    test!(a_relay_that_will_never_accept_a_message_is_skipped_and_logged),
    test!(behind_a_proxy_every_relay_is_named_to_it_and_none_is_looked_up),
];

async fn the_bot_authenticates_however_a_relay_asks_for_it() {
    for challenge in [Challenge::AtOnce, Challenge::BeforeRefusal, Challenge::AfterRefusal] {
        let relay = TestRelay::start_with(Manner::Asking(challenge)).await;
        let running = Home::new(&[relay.url()]).start().await;
        wait_for("the bot proves who it is", || relay.counts().proofs > 0).await;
        let mut asker = Asker::connect(&relay.url(), running.public_key).await;
        let acceptance = asker.ask("dad").await;
        assert!(acceptance.contains("npub1dad"), "{challenge:?}: {acceptance}");
        asker.next_key().await.assert_starts_with("dad");
        running.service.stop().await;
    }
}

async fn a_subscription_that_went_silent_is_noticed_and_renewed() {
    let relay = TestRelay::start().await;
    let home = Home::new(&[relay.url()]);
    let mut config = home.config();
    // More often than the configuration file allows.
    config.bot.try_relays_every = Duration::from_secs(5);
    let running = home.start_with(config, Clock::System).await;
    let mut asker = Asker::connect(&relay.url(), running.public_key).await;
    assert!(asker.ask("dad").await.contains("#1"));
    asker.next_key().await;
    let before = relay.counts().connections;
    relay.go_deaf();
    // The watchdog sends a message to the bot itself. It does not arrive, so the bot connects
    // again.
    wait_for("a new connection", || relay.counts().connections > before).await;
    let mut later = Asker::connect(&relay.url(), running.public_key).await;
    assert!(later.ask("ham").await.contains("#2"));
}

/// A relay closes the subscription and disconnects before the bot can subscribe again. The library
/// then forgets the subscription, and accepts no new one for a relay that is often unreachable. The
/// bot subscribes again all the same.
async fn a_subscription_that_was_closed_before_the_relay_went_is_made_again() {
    let (mut relay, home) = at_relay("").await;
    let _bot = home.spawn().await;
    until("subscribed", || async { relay.is_subscribed().then_some(()) }).await;
    let told = |what: &str| home.log().matches(what).count();
    let (nobody, all) = ("inbox relays connected: 0 of 1", "inbox relays connected: 1 of 1");
    wait_for("the operator is told that it is connected", || told(all) > 0).await;
    // The bot may log both lines before its first connection, so the lines so far are counted.
    let (nobody_before, all_before) = (told(nobody), told(all));
    relay.stop().await;
    wait_for("the operator is told", || told(nobody) > nobody_before).await;
    // One attempt to connect fails.
    let address = relay.url().to_string().replace("ws://", "");
    let address = address.trim_end_matches('/');
    let bind = || async { tokio::net::TcpListener::bind(address).await.ok() };
    drop(until("the relay's port is free", bind).await.accept().await.unwrap());
    relay.start_again().await;
    until("subscribed again", || async { relay.is_subscribed().then_some(()) }).await;
    wait_for("the operator is told again", || told(all) > all_before).await;
    relay.blurt(r#"["CLOSED","inbox","shutting down"]"#);
    wait_for("the bot has read it", || relay.counts().pongs > 0).await;
    relay.stop().await;
    wait_for("gone", || !relay.is_subscribed()).await;
    relay.start_again().await;
    until("subscribed once more", || async { relay.is_subscribed().then_some(()) }).await;
}

async fn messages_pass_both_ways_through_a_relay_that_closes_idle_connections() {
    let (idle, good) =
        (TestRelay::start_with(Manner::Impatient(Duration::from_secs(1))).await, TestRelay::start().await);
    let running = Home::new(&[idle.url(), good.url()]).start().await;
    wait_for("the bot came back", || idle.counts().connections > 1).await;
    // A request, and its answers, go through the relay that closes idle connections.
    let asker = Forger::new(running.public_key);
    asker.lists(&[&idle], &idle, 0).await;
    publish(&idle.url(), &asker.honest("dad", 0)).await;
    let texts_of = idle.has(3, &asker.author).await;
    assert!(texts_of.iter().any(|text| DeliveredKey::read(text).is_some()), "{texts_of:?}");

    // A message that is due while the connection is closed is sent as soon as there is a new one.
    let asker = Forger::new(running.public_key);
    asker.lists(&[&idle], &good, 0).await;
    let request = asker.honest("help", 0);
    wait_for("the connection is closed", || !idle.is_subscribed()).await;
    let began = Instant::now();
    publish(&good.url(), &request).await;
    idle.has(1, &asker.author).await;
    let took = began.elapsed();
    running.service.stop().await;
    figure("a message to a relay that had closed the connection", took, Duration::from_secs(10));
}

async fn a_relay_that_limits_the_rate_gets_everything_a_little_later() {
    for manner in [Manner::Limiting(3), Manner::HangingUp(3)] {
        let (limiting, good) = (TestRelay::start_with(manner).await, TestRelay::start().await);
        let running = Home::new(&[good.url()]).start().await;
        let askers: Vec<Forger> = (0..16).map(|_| Forger::new(running.public_key)).collect();
        for asker in &askers {
            asker.lists(&[&limiting], &good, 0).await;
        }
        let client = connected(&good.url()).await;
        let began = Instant::now();
        for asker in &askers {
            publish_with(&client, &asker.honest("help", 0)).await;
        }
        for asker in &askers {
            limiting.has(1, &asker.author).await;
        }
        let took = began.elapsed();
        println!("{manner:?}: {} messages were refused", limiting.counts().refusals);
        client.shutdown().await;
        running.service.stop().await;
        let refusals = limiting.counts().refusals;
        // On a busy machine the messages may come so slowly that no limit is reached.
        assert!(refusals < 50, "{refusals} refusals are too many");
        figure("16 messages to a relay that limits the rate", took, Duration::from_secs(50));
    }
}

async fn a_relay_that_will_never_accept_a_message_is_skipped_and_logged() {
    for manner in [Manner::Fresh(Duration::from_secs(5)), Manner::Small(600)] {
        let (bad, good) = (TestRelay::start_with(manner).await, TestRelay::start().await);
        let home = Home::new(&[good.url()]);
        let bot = home.spawn().await;
        let asker = Forger::new(bot.public_key);
        asker.lists(&[&bad, &good], &good, 0).await;
        publish(&good.url(), &asker.honest("help", 0)).await;
        good.has(1, &asker.author).await;
        let finished = "SELECT (SELECT max(seq) FROM sqlite_sequence WHERE name = 'outbox') = 1 AND NOT EXISTS (SELECT 1 FROM outbox)";
        wait_for("it is done", || home.count(finished) == Some(1)).await;
        assert_eq!(bad.counts().refusals, 1, "asked once");
        let log = home.log();
        assert!(log.contains("is left out") && log.contains(&bad.url().to_string()), "{log}");
    }
}

fn onion(letter: &str) -> String {
    format!("{}.onion", letter.repeat(56))
}

async fn behind_a_proxy_every_relay_is_named_to_it_and_none_is_looked_up() {
    let relay = TestRelay::start().await;
    let port = Url::parse(relay.url().as_str()).unwrap().port().unwrap();
    let proxy = Socks::start(([127, 0, 0, 1], port).into()).await;
    // Neither name exists, so a lookup fails.
    let (ours, theirs) = (onion("a"), onion("b"));
    let home = Home::with(
        &[RelayUrl::parse(&format!("ws://{ours}")).unwrap()],
        &format!("[network]\nproxy = \"{}\"\n", proxy.address),
    );
    let running = home.start().await;
    let mut asker = Asker::connect_without_relay_list(&relay.url(), running.public_key).await;
    let list = RelayUrl::parse(&format!("ws://{theirs}")).unwrap();
    asker.publish(&dm_list(&asker.keys, &[list])).await;
    asker.send("cat").await;
    assert!(DeliveredKey::read(&asker.next_result().await).unwrap().npub.starts_with("npub1cat"));
    let asked = proxy.asked();
    for host in [&ours, &theirs] {
        let one = asked.iter().find(|asked| asked.host == *host).unwrap_or_else(|| panic!("{host}: {asked:?}"));
        assert!(one.is_name && one.port == 80, "{one:?}");
        // The host is the user name, because Tor gives streams of different users different
        // circuits.
        assert_eq!(one.user, *host);
    }
    assert!(asked.iter().all(|asked| asked.is_name), "{asked:?}");
}
