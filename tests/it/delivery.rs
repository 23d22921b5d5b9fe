//! Where answers go (NIP-17): to the asker's own DM relays, found and kept fresh; else where they
//! read and where they wrote. And that nobody waits for somebody else's relay.

use crate::support::asker::DeliveredKey;
use crate::support::bot::Home;
use crate::support::forger::Forger;
use crate::support::harness::{Test, test};
use crate::support::raw_relay::{Manner, RawRelay};
use crate::support::{publish, until};
use nostr_sdk::prelude::*;
use npubbot::clock::Clock;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(a_list_that_has_changed_is_followed),
    test!(a_list_is_found_on_a_discovery_relay_that_takes_no_messages),
    test!(a_query_that_breaks_off_is_no_missing_list),
    test!(a_key_follows_a_list_that_has_changed_while_the_old_relay_still_works),
    test!(the_newest_list_counts_although_an_older_one_comes_first),
    test!(a_list_does_not_vanish_with_the_relay_that_has_it),
    test!(dead_relays_do_not_keep_somebody_without_a_list_waiting_for_ever),
    test!(who_must_have_a_list_is_answered_once_there_is_one),
    test!(who_lists_no_dm_relays_is_answered_where_they_read_and_else_where_they_wrote),
    test!(an_operator_who_visits_nobody_answers_through_the_relays_of_their_own),
    test!(a_relay_that_says_nothing_holds_up_only_its_own),
];

/// Publishes somebody's DM relay list at `at`, dated so many seconds from now.
async fn lists(somebody: &Forger, relays: &[&RawRelay], at: &RawRelay, later: u64) {
    let list = EventBuilder::new(Kind::InboxRelays, "").tags(relays.iter().map(|relay| Tag::relay(relay.url())));
    let list = list.custom_created_at(Timestamp::now() + later).sign_with_keys(&somebody.author).unwrap();
    publish(&at.url(), &list).await;
}

async fn messages(relay: &RawRelay, to: &Forger, count: usize) {
    let there = || async { (relay.wraps_to(to.author.public_key()).len() >= count).then_some(()) };
    until("messages", there).await;
    assert_eq!(relay.wraps_to(to.author.public_key()).len(), count);
}

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
    messages(&old, &asker, 1).await;
    // They move: the bot believes the list it knows until that does not work any more.
    old.stop();
    lists(&asker, &[&new], &good, 1).await;
    publish(&good.url(), &asker.honest("status", 0)).await;
    messages(&new, &asker, 1).await;
    assert!(good.wraps_to(asker.author.public_key()).is_empty(), "nothing goes where they do not listen");
    running.service.stop().await;
}

async fn a_list_is_found_on_a_discovery_relay_that_takes_no_messages() {
    let (inbox, discovery, theirs) = (
        RawRelay::start(Manner::Honest).await,
        RawRelay::start(Manner::Honest).await,
        RawRelay::start(Manner::Honest).await,
    );
    let running = Home::with(&[inbox.url()], &discovers(&[discovery.url()])).start().await;
    let asker = Forger::new(running.public_key);
    lists(&asker, &[&theirs], &discovery, 0).await;
    publish(&inbox.url(), &asker.honest("help", 0)).await;
    messages(&theirs, &asker, 1).await;
    assert!(!discovery.is_subscribed(), "no messages are looked for there");
    assert!(inbox.wraps_to(asker.author.public_key()).is_empty());
    running.service.stop().await;
}

/// The list is looked for where the query breaks off, and where an answer to it would look like no
/// list.
async fn a_query_that_breaks_off_is_no_missing_list() {
    let (inbox, theirs) = (RawRelay::start(Manner::Cutting).await, RawRelay::start(Manner::Honest).await);
    let running = Home::new(&[inbox.url()]).start().await;
    let asker = Forger::new(running.public_key);
    lists(&asker, &[&theirs], &inbox, 0).await;
    publish(&inbox.url(), &asker.honest("help", 0)).await;
    messages(&theirs, &asker, 1).await;
    assert!(inbox.wraps_to(asker.author.public_key()).is_empty(), "nothing goes where they do not listen");
    running.service.stop().await;
}

/// The texts of messages at a relay.
async fn texts(relay: &RawRelay, to: &Forger) -> Vec<String> {
    let mut texts = Vec::new();
    for wrap in relay.wraps_to(to.author.public_key()) {
        texts.push(UnwrappedGift::from_gift_wrap(&to.author, &wrap).await.unwrap().rumor.content);
    }
    texts
}

async fn a_key_follows_a_list_that_has_changed_while_the_old_relay_still_works() {
    let (good, old, new) = (
        RawRelay::start(Manner::Honest).await,
        RawRelay::start(Manner::Honest).await,
        RawRelay::start(Manner::Honest).await,
    );
    let home = Home::new(&[good.url()]);
    let running = home.start().await;
    let asker = Forger::new(running.public_key);
    lists(&asker, &[&old], &good, 0).await;
    publish(&good.url(), &asker.honest("help", 0)).await;
    messages(&old, &asker, 1).await;
    // They move, and the old relay goes on taking whatever it gets.
    lists(&asker, &[&new], &good, 1).await;
    publish(&good.url(), &asker.honest("dad", 0)).await;
    let delivered = || async { (running.service.totals().unwrap().delivered == 1).then_some(()) };
    until("the key is delivered", delivered).await;
    let is_key = |text: &String| DeliveredKey::read(text).is_some();
    assert!(texts(&new, &asker).await.iter().any(is_key), "the key is where they read now");
    assert!(!texts(&old, &asker).await.iter().any(is_key), "and not where they read before");
    running.service.stop().await;
}

async fn the_newest_list_counts_although_an_older_one_comes_first() {
    let (quick, late, old, new) = (
        RawRelay::start(Manner::Honest).await,
        RawRelay::start(Manner::Late(Duration::from_millis(150))).await,
        RawRelay::start(Manner::Honest).await,
        RawRelay::start(Manner::Honest).await,
    );
    let home = Home::new(&[quick.url(), late.url()]);
    let running = home.start().await;
    until("both are heard", || async { (quick.is_subscribed() && late.is_subscribed()).then_some(()) }).await;
    let asker = Forger::new(running.public_key);
    lists(&asker, &[&old], &quick, 0).await;
    lists(&asker, &[&new], &late, 1).await;
    publish(&quick.url(), &asker.honest("help", 0)).await;
    messages(&new, &asker, 1).await;
    until("it is done", || async { (home.count("SELECT count(*) FROM mail") == Some(0)).then_some(()) }).await;
    assert!(old.wraps_to(asker.author.public_key()).is_empty(), "they do not read there any more");
    running.service.stop().await;
}

async fn a_list_does_not_vanish_with_the_relay_that_has_it() {
    let (inbox, mut discovery, theirs) = (
        RawRelay::start(Manner::Honest).await,
        RawRelay::start(Manner::Honest).await,
        RawRelay::start(Manner::Honest).await,
    );
    let running = Home::with(&[inbox.url()], &discovers(&[discovery.url()])).start().await;
    let asker = Forger::new(running.public_key);
    lists(&asker, &[&theirs], &discovery, 0).await;
    publish(&inbox.url(), &asker.honest("help", 0)).await;
    messages(&theirs, &asker, 1).await;
    // The one relay left has no list of theirs; what was known still is.
    discovery.stop();
    publish(&inbox.url(), &asker.honest("dad", 0)).await;
    messages(&theirs, &asker, 3).await;
    assert!(inbox.wraps_to(asker.author.public_key()).is_empty());
    running.service.stop().await;
}

/// Two relays of three are dead for good, and the third has no list: that is all there is to know.
async fn dead_relays_do_not_keep_somebody_without_a_list_waiting_for_ever() {
    let living = RawRelay::start(Manner::Honest).await;
    let mut dead = [RawRelay::start(Manner::Honest).await, RawRelay::start(Manner::Honest).await];
    dead.iter_mut().for_each(RawRelay::stop);
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
    // Two attempts came before, 3 and 10 seconds apart.
    assert!(waited >= 13, "first it is looked again, for the list may come: {waited} s");
    running.service.stop().await;
}

async fn who_must_have_a_list_is_answered_once_there_is_one() {
    let (wrote, theirs) = (RawRelay::start(Manner::Honest).await, RawRelay::start(Manner::Honest).await);
    let home = Home::with(&[wrote.url()], "[bot]\nanswer_without_relay_list = false\n");
    let clock = Clock::at(Timestamp::now().as_secs());
    let running = home.start_at(clock.clone()).await;
    let asker = Forger::new(running.public_key);
    publish(&wrote.url(), &asker.honest("help", 0)).await;
    until("a try", || async { (home.count("SELECT attempts FROM mail") == Some(1)).then_some(()) }).await;
    lists(&asker, &[&theirs], &wrote, 0).await;
    until("an answer", || async {
        clock.set(clock.now() + 1);
        (!theirs.wraps_to(asker.author.public_key()).is_empty()).then_some(())
    })
    .await;
    assert!(wrote.wraps_to(asker.author.public_key()).is_empty(), "not where they do not say that they read");
    running.service.stop().await;
}

/// Configuration for relays on which only lists are looked for.
fn discovers(urls: &[RelayUrl]) -> String {
    let entry = |url: &RelayUrl| format!("[[relays]]\nurl = \"{url}\"\nroles = [\"discovery\"]\n");
    format!("[search]\ndevice = \"cpu\"\nthreads = 1\n{}", urls.iter().map(entry).collect::<String>())
}

async fn who_lists_no_dm_relays_is_answered_where_they_read_and_else_where_they_wrote() {
    let (wrote, reads, writes, mut dead) = (
        RawRelay::start(Manner::Honest).await,
        RawRelay::start(Manner::Honest).await,
        RawRelay::start(Manner::Honest).await,
        RawRelay::start(Manner::Honest).await,
    );
    dead.stop();
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
    until("it is done", || async { (home.count("SELECT count(*) FROM mail") == Some(0)).then_some(()) }).await;
    assert!(wrote.wraps_to(asker.author.public_key()).is_empty(), "who reads elsewhere is answered there");
    assert!(writes.wraps_to(asker.author.public_key()).is_empty(), "they do not read there");

    // Their read relay takes nothing: where they wrote is the next best, and soon.
    let began = Instant::now();
    let asker = writes_from(dead.url()).await;
    messages(&wrote, &asker, 1).await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(writes.wraps_to(asker.author.public_key()).is_empty());
    running.service.stop().await;
}

async fn an_operator_who_visits_nobody_answers_through_the_relays_of_their_own() {
    let (ours, theirs) = (RawRelay::start(Manner::Honest).await, RawRelay::start(Manner::Honest).await);
    let running = Home::with(&[ours.url()], "[bot]\nvisit_askers_relays = false\n").start().await;
    let (far, near) = (Forger::new(running.public_key), Forger::new(running.public_key));
    lists(&far, &[&theirs], &ours, 0).await;
    lists(&near, &[&theirs, &ours], &ours, 0).await;
    for asker in [&far, &near] {
        publish(&ours.url(), &asker.honest("help", 0)).await;
        messages(&ours, asker, 1).await;
    }
    assert_eq!(theirs.connections(), 0, "nobody there sees the bot's address");
    running.service.stop().await;
}

/// More messages for a relay that says nothing than the bot has under way at once.
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
        let sealed: i64 = running.service.ledger().due_messages(1000).map(|due| due.len() as i64).unwrap_or(0);
        (sealed > 0).then_some(())
    })
    .await;
    let began = Instant::now();
    for _ in 0..3 {
        let other = write(Forger::new(running.public_key), good.url()).await;
        messages(&good, &other, 1).await;
    }
    println!("beside 200 messages to a relay that says nothing, three answers take {:?}", began.elapsed());
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    client.shutdown().await;
    running.service.stop().await;
}
