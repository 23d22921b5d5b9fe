//! The relays that answers are sent to (NIP-17): the asker's DM relays, which the bot finds and
//! keeps up to date; otherwise the relays where the asker reads, or where they wrote. An
//! unresponsive relay does not delay answers to others.

use crate::support::asker::DeliveredKey;
use crate::support::bot::Home;
use crate::support::forger::Forger;
use crate::support::harness::{Test, figure, test};
use crate::support::relay::{Manner, TestRelay};
use crate::support::{connect, dm_list, publish, publish_with, until, wait_for};
use nostr_sdk::prelude::*;
use npubbot::clock::Clock;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(answers_go_to_the_relays_of_a_changed_list),
    test!(a_query_that_breaks_off_does_not_count_as_no_list),
    test!(a_key_follows_a_list_that_has_changed_while_the_old_relay_still_works).measures("latency"),
    test!(the_newest_list_counts_although_an_older_one_comes_first).measures("latency"),
    test!(a_list_is_found_on_a_discovery_relay_and_used_after_that_is_gone),
    test!(dead_relays_do_not_delay_an_asker_without_a_list_for_ever),
    test!(an_asker_who_needs_a_list_is_answered_once_there_is_one),
    test!(an_asker_without_dm_relays_is_answered_where_they_read_and_where_they_wrote).measures("latency"),
    test!(with_external_relays_switched_off_answers_go_through_our_own_relays),
    test!(a_silent_relay_delays_only_its_own_messages).measures("latency"),
];

/// Publishes an asker's DM relay list at relay `at`, dated `later` seconds from now.
async fn lists(somebody: &Forger, relays: &[&TestRelay], at: &TestRelay, later: u64) {
    let list = EventBuilder::new(Kind::InboxRelays, "").tags(relays.iter().map(|relay| Tag::relay(relay.url())));
    let list = list.custom_created_at(Timestamp::now() + later).sign_with_keys(&somebody.author).unwrap();
    publish(&at.url(), &list).await;
}

async fn messages(relay: &TestRelay, to: &Forger, count: usize) {
    let there = || async { (relay.wraps_to(to.author.public_key()).len() >= count).then_some(()) };
    until("messages", there).await;
    assert_eq!(relay.wraps_to(to.author.public_key()).len(), count);
}

async fn answers_go_to_the_relays_of_a_changed_list() {
    let (good, old, new) = (TestRelay::start().await, TestRelay::start().await, TestRelay::start().await);
    let home = Home::new(&[good.url()]);
    let running = home.start().await;
    let asker = Forger::new(running.public_key);
    lists(&asker, &[&old], &good, 0).await;
    publish(&good.url(), &asker.honest("help", 0)).await;
    messages(&old, &asker, 1).await;
    wait_for("it is done", || home.count("SELECT count(*) FROM outbox") == Some(0)).await;
    // The asker moves to other relays. The bot uses the list it knows until sending there fails.
    old.stop().await;
    lists(&asker, &[&new], &good, 1).await;
    publish(&good.url(), &asker.honest("status", 0)).await;
    messages(&new, &asker, 1).await;
    assert!(good.wraps_to(asker.author.public_key()).is_empty(), "nothing is sent to a relay where they do not read");
}

/// The only relay with the list breaks off the first query. The bot asks again and does not take
/// this for "no list".
async fn a_query_that_breaks_off_does_not_count_as_no_list() {
    let (inbox, theirs) = (TestRelay::start_with(Manner::Cutting).await, TestRelay::start().await);
    let running = Home::new(&[inbox.url()]).start().await;
    let asker = Forger::new(running.public_key);
    lists(&asker, &[&theirs], &inbox, 0).await;
    publish(&inbox.url(), &asker.honest("help", 0)).await;
    messages(&theirs, &asker, 1).await;
    assert!(inbox.wraps_to(asker.author.public_key()).is_empty(), "nothing is sent to a relay where they do not read");
}

/// The texts of the messages to an asker at a relay.
async fn texts(relay: &TestRelay, to: &Forger) -> Vec<String> {
    let mut texts = Vec::new();
    for wrap in relay.wraps_to(to.author.public_key()) {
        texts.push(UnwrappedGift::from_gift_wrap(&to.author, &wrap).await.unwrap().rumor.content);
    }
    texts
}

async fn a_key_follows_a_list_that_has_changed_while_the_old_relay_still_works() {
    let (good, old, new) = (TestRelay::start().await, TestRelay::start().await, TestRelay::start().await);
    let home = Home::new(&[good.url()]);
    let running = home.start().await;
    let asker = Forger::new(running.public_key);
    lists(&asker, &[&old], &good, 0).await;
    publish(&good.url(), &asker.honest("help", 0)).await;
    messages(&old, &asker, 1).await;
    // The asker moves to another relay, and the old relay still accepts everything.
    lists(&asker, &[&new], &good, 1).await;
    publish(&good.url(), &asker.honest("dad", 0)).await;
    let delivered = || async { (running.service.totals().unwrap().delivered == 1).then_some(()) };
    until("the key is delivered", delivered).await;
    let is_key = |text: &String| DeliveredKey::read(text).is_some();
    // If no relay answers within four seconds, the bot uses the list it knows.
    assert!(texts(&new, &asker).await.iter().any(is_key), "the key is on the relay where they read now");
    assert!(!texts(&old, &asker).await.iter().any(is_key), "the key is not on the relay where they read before");
}

async fn the_newest_list_counts_although_an_older_one_comes_first() {
    let (quick, late, old, new) = (
        TestRelay::start().await,
        TestRelay::start_with(Manner::Late(Duration::from_millis(30))).await,
        TestRelay::start().await,
        TestRelay::start().await,
    );
    let home = Home::new(&[quick.url(), late.url()]);
    let running = home.start().await;
    wait_for("both are heard", || quick.is_subscribed() && late.is_subscribed()).await;
    let asker = Forger::new(running.public_key);
    lists(&asker, &[&old], &quick, 0).await;
    lists(&asker, &[&new], &late, 1).await;
    publish(&quick.url(), &asker.honest("help", 0)).await;
    let answers = |relay: &TestRelay| relay.wraps_to(asker.author.public_key()).len();
    wait_for("an answer", || answers(&new) + answers(&old) > 0).await;
    wait_for("it is done", || home.count("SELECT count(*) FROM outbox") == Some(0)).await;
    assert_eq!(answers(&old), 0, "they do not read there any more");
    assert_eq!(answers(&new), 1);
}

async fn a_list_is_found_on_a_discovery_relay_and_used_after_that_is_gone() {
    let (inbox, discovery, theirs) = (TestRelay::start().await, TestRelay::start().await, TestRelay::start().await);
    let running = Home::with(&[inbox.url()], &discovers(&[discovery.url()])).start().await;
    let asker = Forger::new(running.public_key);
    wait_for("the bot reads there", || discovery.counts().connections > 0).await;
    lists(&asker, &[&theirs], &discovery, 0).await;
    publish(&inbox.url(), &asker.honest("help", 0)).await;
    messages(&theirs, &asker, 1).await;
    assert!(!discovery.is_subscribed(), "the bot does not subscribe there");
    // The remaining relay does not have the asker's list. The bot still uses the list it knows.
    discovery.stop().await;
    publish(&inbox.url(), &asker.honest("dad", 0)).await;
    messages(&theirs, &asker, 4).await;
    assert!(inbox.wraps_to(asker.author.public_key()).is_empty());
}

/// Two of three relays are dead for good, and the third has no list. The bot answers although it
/// can never be sure that there is no list.
async fn dead_relays_do_not_delay_an_asker_without_a_list_for_ever() {
    let living = TestRelay::start().await;
    let mut dead = [TestRelay::start().await, TestRelay::start().await];
    for relay in &mut dead {
        relay.stop().await;
    }
    let home = Home::with(&[living.url()], &discovers(&[dead[0].url(), dead[1].url()]));
    let clock = Clock::at(Timestamp::now().as_secs());
    let running = home.start_at(clock.clone()).await;
    let asker = Forger::new(running.public_key);
    publish(&living.url(), &asker.honest("help", 0)).await;
    let began = clock.now();
    until("an answer where they wrote", || async {
        clock.set(clock.now() + 1);
        (!living.wraps_to(asker.author.public_key()).is_empty()).then_some(())
    })
    .await;
    let waited = clock.now() - began;
    println!("answered {waited} s later, by the clock");
    // There were two attempts before, after 3 and after 10 seconds.
    assert!(waited >= 13, "the bot looks for the list again before it gives up: {waited} s");
}

async fn an_asker_who_needs_a_list_is_answered_once_there_is_one() {
    let (wrote, theirs) = (TestRelay::start().await, TestRelay::start().await);
    let home = Home::with(&[wrote.url()], "[bot]\nanswer_without_relay_list = false\n");
    let clock = Clock::at(Timestamp::now().as_secs());
    let running = home.start_at(clock.clone()).await;
    let asker = Forger::new(running.public_key);
    publish(&wrote.url(), &asker.honest("help", 0)).await;
    wait_for("a try", || home.count("SELECT attempts FROM outbox") == Some(1)).await;
    lists(&asker, &[&theirs], &wrote, 0).await;
    until("an answer", || async {
        clock.set(clock.now() + 1);
        (!theirs.wraps_to(asker.author.public_key()).is_empty()).then_some(())
    })
    .await;
    assert!(wrote.wraps_to(asker.author.public_key()).is_empty(), "not where they do not say that they read");
}

/// Configuration that uses these relays only to look up lists.
fn discovers(urls: &[RelayUrl]) -> String {
    let entry = |url: &RelayUrl| format!("[[relays]]\nurl = \"{url}\"\nroles = [\"discovery\"]\n");
    format!("[search]\ndevice = \"cpu\"\nthreads = 1\n{}", urls.iter().map(entry).collect::<String>())
}

async fn an_asker_without_dm_relays_is_answered_where_they_read_and_where_they_wrote() {
    let (wrote, reads, writes, dead) =
        (TestRelay::start().await, TestRelay::start().await, TestRelay::start().await, TestRelay::start().await);
    dead.stop().await;
    let home = Home::new(&[wrote.url()]);
    let running = home.start().await;
    let writes_from = |reads: RelayUrl| {
        let (asker, bot_relay, writes) = (Forger::new(running.public_key), wrote.url(), writes.url());
        async move {
            let list = EventBuilder::new(Kind::RelayList, "").tags([
                Tag::relay_metadata(writes, Some(RelayMetadata::Write)),
                Tag::relay_metadata(reads, Some(RelayMetadata::Read)),
            ]);
            publish(&bot_relay, &list.sign_with_keys(&asker.author).unwrap()).await;
            publish(&bot_relay, &asker.honest("help", 0)).await;
            asker
        }
    };
    let asker = writes_from(reads.url()).await;
    messages(&reads, &asker, 1).await;
    messages(&wrote, &asker, 1).await;
    wait_for("it is done", || home.count("SELECT count(*) FROM outbox") == Some(0)).await;
    assert!(writes.wraps_to(asker.author.public_key()).is_empty(), "they do not read there");

    // The asker's read relay is dead.
    let began = Instant::now();
    let asker = writes_from(dead.url()).await;
    messages(&wrote, &asker, 1).await;
    let took = began.elapsed();
    assert!(writes.wraps_to(asker.author.public_key()).is_empty());
    running.service.stop().await;
    figure("an answer where the asker wrote, because their read relay is dead", took, Duration::from_secs(10));
}

async fn with_external_relays_switched_off_answers_go_through_our_own_relays() {
    let (ours, theirs) = (TestRelay::start().await, TestRelay::start().await);
    let running = Home::with(&[ours.url()], "[bot]\nvisit_askers_relays = false\n").start().await;
    let (far, near) = (Forger::new(running.public_key), Forger::new(running.public_key));
    lists(&far, &[&theirs], &ours, 0).await;
    lists(&near, &[&theirs, &ours], &ours, 0).await;
    for asker in [&far, &near] {
        publish(&ours.url(), &asker.honest("help", 0)).await;
        messages(&ours, asker, 1).await;
    }
    assert_eq!(theirs.counts().connections, 0, "no external relay sees the bot's address");
}

/// The silent relay gets more messages than the bot sends at the same time.
async fn a_silent_relay_delays_only_its_own_messages() {
    let (good, silent) = (TestRelay::start().await, TestRelay::start_with(Manner::Silent).await);
    let running = Home::new(&[good.url()]).start().await;
    let client = Client::default();
    client.add_relay(good.url()).await.unwrap();
    connect(&client).await;
    let write = |asker: Forger, relay: RelayUrl| {
        let client = client.clone();
        async move {
            publish_with(&client, &dm_list(&asker.author, &[relay])).await;
            publish_with(&client, &asker.honest("help", 0)).await;
            asker
        }
    };
    for _ in 0..200 {
        write(Forger::new(running.public_key), silent.url()).await;
    }
    until("all are answered, if not heard", || async {
        let sealed: i64 = running.service.ledger().due_messages(1000).map(|due| due.len() as i64).unwrap_or(0);
        (sealed > 0).then_some(())
    })
    .await;
    let began = Instant::now();
    for _ in 0..3 {
        let other = write(Forger::new(running.public_key), good.url()).await;
        messages(&good, &other, 1).await;
    }
    let took = began.elapsed();
    client.shutdown().await;
    running.service.stop().await;
    figure("three answers beside 200 messages to a silent relay", took, Duration::from_secs(8));
}
