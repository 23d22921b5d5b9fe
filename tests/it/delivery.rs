//! The relays that answers are sent to (NIP-17): the asker's DM relays, which the bot finds and
//! keeps up to date; otherwise the relays where the asker reads, or where they wrote. An
//! unresponsive relay does not delay answers to others.

use crate::support::asker::DeliveredKey;
use crate::support::bot::Home;
use crate::support::forger::Forger;
use crate::support::harness::{Test, figure, test};
use crate::support::relay::{Manner, TestRelay};
use crate::support::{connected, dm_list, publish, publish_with, until, wait_for};
use nostr_sdk::prelude::*;
use npubbot::clock::Clock;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(answers_follow_a_list_that_has_changed),
    test!(a_query_that_breaks_off_does_not_count_as_no_list),
    test!(the_newest_list_counts_although_an_older_one_comes_first),
    test!(a_list_is_found_on_a_discovery_relay_and_used_after_that_is_gone),
    test!(dead_relays_do_not_delay_an_asker_without_a_list_for_ever),
    test!(an_asker_who_needs_a_list_is_answered_once_there_is_one),
    test!(an_asker_without_dm_relays_is_answered_where_they_read_and_where_they_wrote).measures("latency"),
    test!(with_external_relays_switched_off_answers_go_through_our_own_relays),
    test!(a_silent_relay_delays_only_its_own_messages).measures("latency"),
];

/// The only relay with the list breaks off the first query. The bot asks again and does not take
/// this for "no list".
async fn a_query_that_breaks_off_does_not_count_as_no_list() {
    let (inbox, theirs) = (TestRelay::start_with(Manner::Cutting).await, TestRelay::start().await);
    let running = Home::new(&[inbox.url()]).start().await;
    let asker = Forger::new(running.public_key);
    asker.lists(&[&theirs], &inbox, 0).await;
    publish(&inbox.url(), &asker.honest("help", 0)).await;
    theirs.has(1, &asker.author).await;
    assert!(inbox.wraps_to(asker.author.public_key()).is_empty(), "nothing is sent to a relay where they do not read");
}

/// While the old relay still works, a key has the list looked up again, and other answers use the
/// list that the bot knows until sending there fails.
async fn answers_follow_a_list_that_has_changed() {
    let (good, old, new) = (TestRelay::start().await, TestRelay::start().await, TestRelay::start().await);
    let home = Home::new(&[good.url()]);
    let running = home.start().await;
    // If no relay answers within four seconds, the bot uses the list that it knows. On a busy machine
    // that may happen to an asker.
    let mut follows = false;
    for delivered in 1..10 {
        let asker = Forger::new(running.public_key);
        asker.lists(&[&old], &good, 0).await;
        publish(&good.url(), &asker.honest("help", 0)).await;
        old.has(1, &asker.author).await;
        asker.lists(&[&new], &good, 1).await;
        publish(&good.url(), &asker.honest("dad", 0)).await;
        home.has_delivered(delivered).await;
        let is_key = |text: &String| DeliveredKey::read(text).is_some();
        follows = new.texts_to(&asker.author).await.iter().any(is_key)
            && !old.texts_to(&asker.author).await.iter().any(is_key);
        if follows {
            break;
        }
    }
    assert!(follows, "the key is on the relay where they read now only");
    let asker = Forger::new(running.public_key);
    asker.lists(&[&old], &good, 0).await;
    publish(&good.url(), &asker.honest("help", 0)).await;
    old.has(1, &asker.author).await;
    wait_for("it is done", || home.count("SELECT count(*) FROM outbox WHERE finished = 0") == Some(0)).await;
    old.stop().await;
    asker.lists(&[&new], &good, 1).await;
    publish(&good.url(), &asker.honest("status", 0)).await;
    new.has(1, &asker.author).await;
    assert!(good.wraps_to(asker.author.public_key()).is_empty(), "nothing is sent to a relay where they do not read");
}

/// The bot waits half a second for the other relays. On a busy machine a list may come later.
async fn the_newest_list_counts_although_an_older_one_comes_first() {
    let late = Manner::Late(Duration::from_millis(30));
    let (quick, late) = (TestRelay::start().await, TestRelay::start_with(late).await);
    let (old, new) = (TestRelay::start().await, TestRelay::start().await);
    let home = Home::new(&[quick.url(), late.url()]);
    let running = home.start().await;
    wait_for("both are heard", || quick.is_subscribed() && late.is_subscribed()).await;
    for attempt in 1.. {
        let asker = Forger::new(running.public_key);
        asker.lists(&[&old], &quick, 0).await;
        asker.lists(&[&new], &late, 1).await;
        publish(&quick.url(), &asker.honest("help", 0)).await;
        let answers = |relay: &TestRelay| relay.wraps_to(asker.author.public_key()).len();
        wait_for("an answer", || answers(&new) + answers(&old) > 0).await;
        wait_for("it is done", || home.count("SELECT count(*) FROM outbox") == Some(0)).await;
        if (answers(&old), answers(&new)) == (0, 1) {
            break;
        }
        assert!(attempt < 20, "they do not read there any more");
    }
}

async fn a_list_is_found_on_a_discovery_relay_and_used_after_that_is_gone() {
    let (inbox, discovery, theirs) = (TestRelay::start().await, TestRelay::start().await, TestRelay::start().await);
    let running = Home::with(&[inbox.url()], &discovers(&[discovery.url()])).start().await;
    let asker = Forger::new(running.public_key);
    wait_for("the bot reads there", || discovery.counts().connections > 0).await;
    asker.lists(&[&theirs], &discovery, 0).await;
    publish(&inbox.url(), &asker.honest("help", 0)).await;
    theirs.has(1, &asker.author).await;
    assert!(!discovery.is_subscribed(), "the bot does not subscribe there");
    // The remaining relay does not have the asker's list. The bot still uses the list it knows.
    discovery.stop().await;
    publish(&inbox.url(), &asker.honest("dad", 0)).await;
    theirs.has(4, &asker.author).await;
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
    asker.lists(&[&theirs], &wrote, 0).await;
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
    reads.has(1, &asker.author).await;
    wrote.has(1, &asker.author).await;
    wait_for("it is done", || home.count("SELECT count(*) FROM outbox") == Some(0)).await;
    assert!(writes.wraps_to(asker.author.public_key()).is_empty(), "they do not read there");

    // The asker's read relay is dead.
    let began = Instant::now();
    let asker = writes_from(dead.url()).await;
    wrote.has(1, &asker.author).await;
    let took = began.elapsed();
    assert!(writes.wraps_to(asker.author.public_key()).is_empty());
    running.service.stop().await;
    figure("an answer where the asker wrote, because their read relay is dead", took, Duration::from_secs(10));
}

async fn with_external_relays_switched_off_answers_go_through_our_own_relays() {
    let (ours, theirs) = (TestRelay::start().await, TestRelay::start().await);
    let running = Home::with(&[ours.url()], "[bot]\nvisit_askers_relays = false\n").start().await;
    let (far, near) = (Forger::new(running.public_key), Forger::new(running.public_key));
    far.lists(&[&theirs], &ours, 0).await;
    near.lists(&[&theirs, &ours], &ours, 0).await;
    for asker in [&far, &near] {
        publish(&ours.url(), &asker.honest("help", 0)).await;
        ours.has(1, &asker.author).await;
    }
    assert_eq!(theirs.counts().connections, 0, "no external relay sees the bot's address");
}

/// The silent relay gets more messages than the bot sends at the same time.
async fn a_silent_relay_delays_only_its_own_messages() {
    let (good, silent) = (TestRelay::start().await, TestRelay::start_with(Manner::Silent).await);
    let running = Home::new(&[good.url()]).start().await;
    let client = connected(&good.url()).await;
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
        good.has(1, &other.author).await;
    }
    let took = began.elapsed();
    client.shutdown().await;
    running.service.stop().await;
    figure("three answers beside 200 messages to a silent relay", took, Duration::from_secs(8));
}
