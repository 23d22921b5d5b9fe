//! Conventions of Nostr: old clients (NIP-04), silence and deletion on request, and public events.

use crate::support::asker::Asker;
use crate::support::bot::{Home, Met, at_relay, met};
use crate::support::harness::{Test, figure, test};
use crate::support::relay::{Manner, TestRelay};
use crate::support::{until, wait_for};
use nostr::nips::nip04;
use nostr_sdk::prelude::*;
use npubbot::clock::Clock;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(a_nip04_client_gets_one_answer_a_day_in_its_language),
    test!(stop_silences_the_bot_and_delete_erases_the_askers_data),
    test!(a_request_that_is_deleted_is_cancelled_also_if_it_comes_after_its_deletion),
    test!(an_asker_who_asks_relays_to_vanish_is_erased_here_too),
    test!(timed_work_does_not_wait_for_silent_relays).slow().measures("latency"),
];

/// Sends a message of kind 4.
async fn send_old(asker: &Asker, text: &str) {
    let content = nip04::encrypt(asker.keys.secret_key(), &asker.bot, text).unwrap();
    let builder = EventBuilder::new(Kind::EncryptedDirectMessage, content).tag(Tag::public_key(asker.bot));
    let event = builder.sign_with_keys(&asker.keys).unwrap();
    asker.publish(&event).await;
}

/// The bot's messages of kind 4 to this asker.
async fn old_answers(relay: &TestRelay, asker: &Asker) -> Vec<String> {
    let filter = Filter::new().kind(Kind::EncryptedDirectMessage).author(asker.bot).pubkey(asker.keys.public_key());
    let read = |event: Event| nip04::decrypt(asker.keys.secret_key(), &asker.bot, &event.content).unwrap();
    relay.events(&filter).into_iter().map(read).collect()
}

/// The answer is the same whatever is asked, also after a restart of the bot, and no list of relays
/// is looked up for it.
async fn a_nip04_client_gets_one_answer_a_day_in_its_language() {
    let Met { relay, home, bot: running, mut asker } = met("[web]\npublic_url = \"https://bot.example/\"").await;
    for text in ["[//]: # (nip18)\nayuda", "dad", "stop"] {
        send_old(&asker, text).await;
    }
    let other = Asker::connect_without_relay_list(&relay.url(), running.public_key).await;
    send_old(&other, "dad").await;
    for (asker, part) in [(&asker, "Tu cliente"), (&other, "Your client")] {
        let answers = until("an answer of kind 4", || async {
            Some(old_answers(&relay, asker).await).filter(|answers| !answers.is_empty())
        })
        .await;
        assert!(answers[0].starts_with(part) && answers[0].contains("https://bot.example/"), "{answers:?}");
    }
    running.service.stop().await;
    let running = home.start().await;
    send_old(&asker, "help").await;
    // The answer to the later message shows that the earlier one was read. It is in Spanish too.
    assert!(asker.ask("dad").await.contains("npub1dad"));
    asker.next_key().await.assert_starts_with("dad");
    running.service.stop().await;
    for asker in [&asker, &other] {
        assert_eq!(old_answers(&relay, asker).await.len(), 1);
    }
}

async fn stop_silences_the_bot_and_delete_erases_the_askers_data() {
    let Met { relay: _relay, home: _home, bot: running, mut asker } = met("").await;
    assert!(asker.ask("qqqqqqqq").await.contains("#1"));
    assert!(asker.ask("stop").await.contains("start"));
    assert_eq!(running.service.totals().unwrap().cancelled, 1);
    asker.send("status").await;
    // The next message is the answer to `start`, so `status` was not answered.
    assert!(asker.ask("start").await.contains("Here I am"));
    assert!(asker.ask("qqqqqqqp").await.contains("#2"));
    assert!(asker.ask("delete").await.contains("gone"));
    let totals = running.service.totals().unwrap();
    assert_eq!((totals.accepted, totals.cancelled), (0, 0));
    assert!(asker.ask("qqqqqqqz").await.contains("#3"), "no job number is used twice");
}

/// A bot may receive a deletion before the request that it deletes, because wraps have random
/// dates. For example, it was offline when both were sent.
async fn a_request_that_is_deleted_is_cancelled_also_if_it_comes_after_its_deletion() {
    let Met { relay, home: _home, bot: running, mut asker } = met("").await;
    let mut request = EventBuilder::private_msg_rumor(running.public_key, "qqqqqqqq").build(asker.keys.public_key());
    let deletion =
        EventBuilder::new(Kind::EventDeletion, "").tag(Tag::event(request.id())).build(asker.keys.public_key());
    // A deletion by somebody else has no effect.
    let other_asker = Asker::connect(&relay.url(), running.public_key).await;
    let theirs = EventBuilder::new(Kind::EventDeletion, "").tag(Tag::event(request.id()));
    let theirs = theirs.build(other_asker.keys.public_key());
    other_asker
        .publish(&EventBuilder::gift_wrap(&other_asker.keys, &running.public_key, theirs, []).await.unwrap())
        .await;
    let mut kept = EventBuilder::private_msg_rumor(running.public_key, "qqqqqqqp").build(asker.keys.public_key());
    for rumor in [deletion, request.clone(), kept.clone()] {
        asker.publish(&EventBuilder::gift_wrap(&asker.keys, &running.public_key, rumor, []).await.unwrap()).await;
    }
    let acceptance = asker.next_message().await;
    assert!(acceptance.content.contains("#1") && acceptance.content.contains("qqqqqqqp"), "{}", acceptance.content);
    assert_eq!(acceptance.tags.event_ids().copied().collect::<Vec<_>>(), [kept.id()]);
    assert_eq!(running.service.totals().unwrap().accepted, 1);
    let deletion = EventBuilder::new(Kind::EventDeletion, "").tag(Tag::event(kept.id())).build(asker.keys.public_key());
    asker.publish(&EventBuilder::gift_wrap(&asker.keys, &running.public_key, deletion, []).await.unwrap()).await;
    wait_for("the job is cancelled", || running.service.totals().unwrap().cancelled == 1).await;
}

async fn an_asker_who_asks_relays_to_vanish_is_erased_here_too() {
    let (relay, home) = at_relay("").await;
    let running = home.start().await;
    let (mut gone, mut stays) = (
        Asker::connect(&relay.url(), running.public_key).await,
        Asker::connect(&relay.url(), running.public_key).await,
    );
    gone.ask("qqqqqqqq").await;
    stays.ask("qqqqqqqp").await;
    running.service.stop().await;
    let later = Timestamp::now() + Duration::from_secs(2);
    let vanish = EventBuilder::new(Kind::RequestToVanish, "bye")
        .tag(Tag::custom(TagKind::Relay, ["ALL_RELAYS"]))
        .custom_created_at(later);
    gone.publish(&vanish.sign_with_keys(&gone.keys).unwrap()).await;
    // The bot looks up requests to vanish at its start.
    let running = home.start().await;
    wait_for("one is forgotten", || running.service.totals().unwrap().accepted == 1).await;
    assert!(stays.ask("status").await.contains("qqqqqqqp"));
}

/// The bot makes a lookup every hour, and waits ten seconds for each relay that does not answer.
/// Other timed work goes on meanwhile.
async fn timed_work_does_not_wait_for_silent_relays() {
    let relay = TestRelay::start().await;
    let (one, two, three) = tokio::join!(
        TestRelay::start_with(Manner::Silent),
        TestRelay::start_with(Manner::Silent),
        TestRelay::start_with(Manner::Silent)
    );
    let home = Home::new(&[relay.url(), one.url(), two.url(), three.url()]);
    let clock = Clock::at(Timestamp::now().as_secs());
    let running = home.start_at(clock.clone()).await;
    let mut asker = Asker::connect(&relay.url(), running.public_key).await;
    asker.ask("qqqqqqqq").await;
    running.service.stop().await;
    clock.set(clock.now() + 120);
    let running = home.start_at(clock.clone()).await;
    let began = Instant::now();
    asker.ask("qqqqqqqp").await;
    // Two statuses are at least five minutes apart.
    clock.set(clock.now() + 301);
    until("the status tells of both jobs", || async {
        let statuses = relay.events(&Filter::new().kind(Kind::from(30315)).author(running.public_key));
        statuses.into_iter().find(|status| status.content.contains("searching for 2 requests"))
    })
    .await;
    let took = began.elapsed();
    running.service.stop().await;
    figure("a status beside silent relays", took, Duration::from_secs(15));
}
