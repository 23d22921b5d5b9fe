//! Where answers go (NIP-17): to the asker's own DM relays, found and kept fresh; else where they read and where they wrote.
//! And that nobody waits for somebody else's relay.

mod common;

use common::bot::Home;
use common::forger::Forger;
use common::raw_relay::{Manner, RawRelay};
use common::{publish, until};
use nostr_sdk::prelude::*;
use std::time::{Duration, Instant};

/// Publishes somebody's DM relay list at `at`, dated so many seconds from now.
async fn lists(somebody: &Forger, relays: &[&RawRelay], at: &RawRelay, later: u64) {
    let list = EventBuilder::new(Kind::InboxRelays, "").tags(relays.iter().map(|relay| Tag::relay(relay.url())));
    let list = list.custom_created_at(Timestamp::now() + later).sign_with_keys(&somebody.author).unwrap();
    publish(&at.url(), &list).await;
}

async fn letters(relay: &RawRelay, to: &Forger, count: usize) {
    let there = || async { (relay.wraps_to(to.author.public_key()).len() >= count).then_some(()) };
    until("letters", there).await;
    assert_eq!(relay.wraps_to(to.author.public_key()).len(), count);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_has_changed_is_followed() {
    let (good, mut old, new) = (
        RawRelay::start(Manner::Honest).await,
        RawRelay::start(Manner::Honest).await,
        RawRelay::start(Manner::Honest).await,
    );
    let running = Home::new(&[good.url()]).start().await;
    let asker = Forger::new(running.public_key);
    lists(&asker, &[&old], &good, 0).await;
    publish(&good.url(), &asker.honest("help", 0)).await;
    letters(&old, &asker, 1).await;
    // They move: the bot believes the list it knows until that does not work any more.
    old.stop();
    lists(&asker, &[&new], &good, 1).await;
    publish(&good.url(), &asker.honest("status", 0)).await;
    letters(&new, &asker, 1).await;
    assert!(good.wraps_to(asker.author.public_key()).is_empty(), "nothing goes where they do not listen");
    running.service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_found_on_a_discovery_relay_that_takes_no_messages() {
    let (inbox, discovery, theirs) = (
        RawRelay::start(Manner::Honest).await,
        RawRelay::start(Manner::Honest).await,
        RawRelay::start(Manner::Honest).await,
    );
    let text = format!(
        "[search]\ndevice = \"cpu\"\nthreads = 1\n[[relays]]\nurl = \"{}\"\nroles = [\"discovery\"]\n",
        discovery.url()
    );
    let running = Home::with(&[inbox.url()], &text).start().await;
    let asker = Forger::new(running.public_key);
    lists(&asker, &[&theirs], &discovery, 0).await;
    publish(&inbox.url(), &asker.honest("help", 0)).await;
    letters(&theirs, &asker, 1).await;
    assert!(!discovery.is_subscribed(), "no messages are looked for there");
    assert!(inbox.wraps_to(asker.author.public_key()).is_empty());
    running.service.stop().await;
}

/// The list is looked for where the question breaks off, and where an answer to it would look like no list.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_breaks_off_is_no_missing_list() {
    let (inbox, theirs) = (RawRelay::start(Manner::Cutting).await, RawRelay::start(Manner::Honest).await);
    let running = Home::new(&[inbox.url()]).start().await;
    let asker = Forger::new(running.public_key);
    lists(&asker, &[&theirs], &inbox, 0).await;
    publish(&inbox.url(), &asker.honest("help", 0)).await;
    letters(&theirs, &asker, 1).await;
    assert!(inbox.wraps_to(asker.author.public_key()).is_empty(), "nothing goes where they do not listen");
    running.service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_lists_no_dm_relays_is_answered_where_they_read_and_where_they_wrote() {
    let (wrote, reads, writes) = (
        RawRelay::start(Manner::Honest).await,
        RawRelay::start(Manner::Honest).await,
        RawRelay::start(Manner::Honest).await,
    );
    let running = Home::new(&[wrote.url()]).start().await;
    let asker = Forger::new(running.public_key);
    let list = EventBuilder::new(Kind::RelayList, "").tags([
        Tag::relay_metadata(reads.url(), Some(RelayMetadata::Read)),
        Tag::relay_metadata(writes.url(), Some(RelayMetadata::Write)),
    ]);
    publish(&wrote.url(), &list.sign_with_keys(&asker.author).unwrap()).await;
    publish(&wrote.url(), &asker.honest("help", 0)).await;
    letters(&reads, &asker, 1).await;
    letters(&wrote, &asker, 1).await;
    assert!(writes.wraps_to(asker.author.public_key()).is_empty(), "they do not read there");
    running.service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_who_visits_nobody_answers_through_the_relays_of_their_own() {
    let (ours, theirs) = (RawRelay::start(Manner::Honest).await, RawRelay::start(Manner::Honest).await);
    let running = Home::with(&[ours.url()], "[bot]\nvisit_askers_relays = false\n").start().await;
    let (far, near) = (Forger::new(running.public_key), Forger::new(running.public_key));
    lists(&far, &[&theirs], &ours, 0).await;
    lists(&near, &[&theirs, &ours], &ours, 0).await;
    for asker in [&far, &near] {
        publish(&ours.url(), &asker.honest("help", 0)).await;
        letters(&ours, asker, 1).await;
    }
    assert_eq!(theirs.connections(), 0, "nobody there sees the bot's address");
    running.service.stop().await;
}

/// More letters for a relay that says nothing than the bot has under way at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_says_nothing_holds_up_only_its_own() {
    let (good, silent) = (RawRelay::start(Manner::Honest).await, RawRelay::start(Manner::Silent).await);
    let running = Home::new(&[good.url()]).start().await;
    let client = Client::default();
    client.add_relay(good.url()).await.unwrap();
    client.connect().await;
    let write = |asker: Forger, relay: RelayUrl| {
        let client = client.clone();
        async move {
            let list = EventBuilder::new(Kind::InboxRelays, "").tag(Tag::relay(relay));
            client.send_event(&list.sign_with_keys(&asker.author).unwrap()).await.unwrap();
            client.send_event(&asker.honest("help", 0)).await.unwrap();
            asker
        }
    };
    for _ in 0..200 {
        write(Forger::new(running.public_key), silent.url()).await;
    }
    until("all are answered, if not heard", || async {
        let sealed: i64 = running.service.ledger().due_mail(1000).map(|due| due.len() as i64).unwrap_or(0);
        (sealed > 0).then_some(())
    })
    .await;
    let began = Instant::now();
    for _ in 0..3 {
        let other = write(Forger::new(running.public_key), good.url()).await;
        letters(&good, &other, 1).await;
    }
    println!("beside 200 letters to a relay that says nothing, three answers take {:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    client.shutdown().await;
    running.service.stop().await;
}
