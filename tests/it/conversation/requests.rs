//! The bot from an asker's view: the asker has a client of their own and reaches the bot only
//! through a relay. Answers come in the asker's language, also days later.

use crate::support::asker::{Asker, DeliveredKey, is_result};
use crate::support::bot::{Home, Met, met, met_process};
use crate::support::forger::Forger;
use crate::support::harness::{Test, gate, test};
use crate::support::relay::TestRelay;
use crate::support::wait_for;
use nostr_sdk::prelude::*;
use std::collections::HashSet;

pub const TESTS: &[Test] = &[
    test!(a_request_is_accepted_and_its_key_delivered),
    test!(twenty_askers_at_once_each_get_a_key_of_their_own),
    test!(a_replayed_wrap_starts_no_second_job),
    test!(a_rumor_is_understood_however_it_is_written),
    test!(a_result_found_while_the_relay_is_dead_is_delivered_after_a_kill).holding(SEARCH),
    test!(answers_and_results_come_in_the_last_language_even_after_a_restart),
];

async fn a_request_is_accepted_and_its_key_delivered() {
    let relay = TestRelay::start().await;
    let bot = Home::new(&[relay.url()]);
    let running = bot.start().await;
    let mut asker = Asker::connect(&relay.url(), running.public_key).await;

    let request = asker.wrap("NPUB1Cat").await;
    asker.publish(&request).await;
    let acceptance = asker.next_answer().await;
    assert!(acceptance.content.contains("#1"), "{}", acceptance.content);
    assert!(acceptance.content.contains("cat"), "{}", acceptance.content);
    let request = UnwrappedGift::from_gift_wrap(&bot.keys(), &request).await.unwrap().rumor;
    let answered: Vec<_> = acceptance.tags.event_ids().copied().collect();
    assert_eq!(answered, [request.id.unwrap()], "the answer names the request, so that clients thread it");
    assert_hints(&acceptance, &relay.url());
    let result = asker.next_that(is_result).await;
    assert_hints(&result, &relay.url());
    DeliveredKey::read(&result.content).unwrap().assert_starts_with("cat");

    // Relays may delete acceptance and key a month after the date of the wrap (NIP-40). An
    // expiration counted from the true date would reveal that date.
    asker.mail_on(&relay).await.assert_served_once("cat", "at the end");
    for wrap in relay.wraps_to(asker.keys.public_key()) {
        let expires_at = wrap.tags.expiration().expect("it has an end");
        assert_eq!(expires_at.as_secs() - wrap.created_at.as_secs(), 30 * 86_400);
    }

    // Everything on the relay is encrypted: neither the request nor the key can be read.
    for event in relay.events(&Filter::new()) {
        assert!(!event.as_json().contains("nsec1"));
    }
}

/// The step of the flow at which the tests hold the search.
const SEARCH: &str = "launch:before";

/// Checks that a message names a relay beside its receiver and beside its request, where clients
/// find them (NIP-17).
fn assert_hints(message: &UnsignedEvent, relay: &RelayUrl) {
    for name in ["p", "e"] {
        let tag = message.tags.iter().find(|tag| tag.as_slice()[0] == name).unwrap();
        assert_eq!(tag.as_slice().get(2), Some(&relay.to_string()), "{tag:?}");
    }
}

async fn twenty_askers_at_once_each_get_a_key_of_their_own() {
    let relay = TestRelay::start().await;
    let running = Home::new(&[relay.url()]).start().await;
    let (url, bot) = (relay.url(), running.public_key);
    let askers = (0..20).map(|number| {
        let url = url.clone();
        // Some askers send the same request, others different ones.
        let prefix = ["cat", "dad", "ham", "cat"][number % 4];
        tokio::spawn(async move {
            let mut asker = Asker::connect(&url, bot).await;
            // A search that gets little time makes room scarce, and then a request costs work.
            asker.send(prefix).await;
            let key = asker.key_at_any_price(prefix).await;
            key.assert_starts_with(prefix);
            key.npub
        })
    });
    let mut npubs = HashSet::new();
    for asker in askers.collect::<Vec<_>>() {
        assert!(npubs.insert(asker.await.unwrap()), "two askers got the same key");
    }
}

async fn a_replayed_wrap_starts_no_second_job() {
    let Met { relay, home, bot: running, mut asker } = met("").await;
    let rumor = EventBuilder::private_msg_rumor(running.public_key, "cat").build(asker.keys.public_key());
    let wrap = |rumor: UnsignedEvent| EventBuilder::gift_wrap(&asker.keys, &running.public_key, rumor, []);
    let (first, second) = (wrap(rumor.clone()).await.unwrap(), wrap(rumor).await.unwrap());
    asker.publish(&first).await;
    let acceptance = asker.next_answer().await.content;
    assert!(acceptance.contains("#1"), "{acceptance}");
    asker.next_key().await.assert_starts_with("cat");
    // The same message comes in a new wrap; then both wraps come again after a restart.
    asker.publish(&second).await;
    running.service.stop().await;
    let _running = home.start().await;
    asker.publish(&first).await;
    asker.publish(&second).await;
    // The answer to a later request shows that the earlier events were processed.
    let acceptance = asker.ask("dad").await;
    assert!(acceptance.contains("#2"), "{acceptance}");
    asker.next_key().await.assert_starts_with("dad");
    let mail = asker.mail_on(&relay).await;
    assert_eq!((mail.texts.len(), mail.explanations, mail.keys.len()), (2, 2, 2), "{:?}", mail.texts);
}

/// Rumors are unsigned events, and clients serialise them in several ways. Each way is understood
/// and answered in its thread, and all ways count as one message.
async fn a_rumor_is_understood_however_it_is_written() {
    let Met { relay, home: _home, bot: running, mut asker } = met("").await;
    let from = Forger { author: asker.keys.clone(), ..Forger::new(running.public_key) };
    let without = |rumor: &UnsignedEvent, name: &str| {
        let mut json = serde_json::to_value(rumor).unwrap();
        json.as_object_mut().unwrap().remove(name);
        json
    };
    let with = |rumor: &UnsignedEvent, name: &str, value: serde_json::Value| {
        let mut json = serde_json::to_value(rumor).unwrap();
        json[name] = value;
        json
    };
    // A `p` tag with the asker's own key beside ours does not make a group. A client may also omit
    // the tag.
    let tagged = |text: &str, tags: Vec<Tag>| {
        let mut rumor = from.rumor(text);
        (rumor.tags, rumor.id) = (Tags::from_list(tags), None);
        rumor.ensure_id();
        rumor
    };
    let (us, them) = (Tag::public_key(running.public_key), Tag::public_key(asker.keys.public_key()));
    let texts = ["help", "status", "cancel", "resend", "cancel 7", "resend 7"].map(|text| from.rumor(text));
    let (both, nobody) = (tagged("cancel 8", vec![us, them]), tagged("resend 8", Vec::new()));
    let written = [
        (&texts[0], without(&texts[0], "id")),
        (&texts[1], with(&texts[1], "sig", serde_json::Value::Null)),
        (&texts[2], with(&texts[2], "id", serde_json::Value::Null)),
        (&texts[3], with(&texts[3], "sig", "".into())),
        (&texts[4], with(&texts[4], "seen_on", "ws://x".into())),
        (&both, serde_json::to_value(&both).unwrap()),
        (&nobody, serde_json::to_value(&nobody).unwrap()),
    ];
    for (rumor, json) in &written {
        asker.publish(&from.with_rumor(json)).await;
        let answer = asker.next_message().await;
        assert_eq!(answer.tags.event_ids().copied().collect::<Vec<_>>(), [rumor.id.unwrap()], "{json}");
        assert!(!answer.content.contains("several people"), "{}", answer.content);
        // The complete form of the same rumor counts as a copy.
        asker.publish(&from.with_rumor(rumor.as_json())).await;
    }
    assert!(asker.ask("dad").await.contains("#1"));
    asker.next_key().await;
    let mail = asker.mail_on(&relay).await;
    assert_eq!((mail.texts.len(), mail.keys.len()), (written.len() + 1, 1), "{:?}", mail.texts);
}

async fn a_result_found_while_the_relay_is_dead_is_delivered_after_a_kill() {
    let Met { mut relay, home, bot: process, mut asker } = met_process("").await;
    asker.ask("cats").await;
    relay.stop().await;
    gate::open();
    let found = "SELECT count(*) FROM job WHERE state = 'found'";
    wait_for("the key is found", || home.count(found) == Some(1)).await;
    process.kill();
    relay.start_again().await;
    let process = home.spawn().await;
    asker.next_key().await.assert_starts_with("cats");
    process.kill();
}

async fn answers_and_results_come_in_the_last_language_even_after_a_restart() {
    let Met { relay, home, bot: running, mut asker } = met("").await;
    let mut other = Asker::connect(&relay.url(), running.public_key).await;
    assert!(asker.ask("m0c を探して").await.contains("を探します"));
    assert!(asker.next_text().await.contains("秘密鍵だけです"), "the key, with Japanese words around it");
    running.service.stop().await;

    let _running = home.start().await;
    assert!(asker.ask("cat").await.contains("npub1catを探します"), "a prefix tells no language");
    let result = asker.next_text().await;
    assert!(result.contains("秘密鍵だけです") && result.contains("\n再送"), "{result}");
    let status = asker.ask("status").await;
    assert!(status.contains("進行中のジョブはありません"), "nor does an English command: {status}");
    assert!(other.ask("status").await.contains("You have no open job"), "other askers have their own language");
    assert!(asker.ask("lang en").await.contains("I answer in English now"));
    // Not "status" again: within a second that would be the same message, with the same id.
    assert!(asker.ask("Status").await.contains("You have no open job"));
}
