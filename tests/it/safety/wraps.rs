//! S6: whatever a wrap contains, at worst it is ignored, and the next asker is answered.

use crate::support::asker::Asker;
use crate::support::bot::{Home, Met, met_process};
use crate::support::forger::{Forger, altered, other_signature};
use crate::support::harness::{Test, figure, test};
use crate::support::relay::TestRelay;
use crate::support::{dm_list, publish, until, wait_for};
use nostr_sdk::prelude::*;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(hostile_wraps_have_no_effect_and_an_honest_one_is_accepted).measures("latency"),
    test!(unsolicited_events_of_an_external_relay_are_ignored),
];

const DAY: u64 = 86_400;

/// What every wrap asks for. If one is accepted by mistake, it is answered, which the test sees. It
/// is not found during the test.
const REQUEST: &str = "m0ctaneq";

type Hostile = Vec<(&'static str, String)>;

fn wraps_that_are_wrong(forger: &Forger) -> Hostile {
    let seal = forger.seal_of(&forger.rumor(REQUEST).as_json()).as_json();
    let good = forger.wrap_of(&seal);
    let us = Tag::public_key(forger.bot);
    let once = Keys::generate();
    let to_another = Tag::public_key(Keys::generate().public_key());
    let content = forger.encrypt(&once, &seal);
    let wrap = |content: &str| forger.wrap_with(&once, content.to_owned(), [us.clone()]).as_json();
    let changed = |at: usize| {
        let mut bytes = content.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        wrap(&String::from_utf8(bytes).unwrap())
    };
    let expired = Tag::expiration(Timestamp::from_secs(forger.now - DAY));
    let many: Vec<Tag> = (0..3000).map(|_| us.clone()).collect();
    vec![
        ("wrap: wrong id", altered(&good, "id", "00".repeat(32))),
        ("wrap: somebody else's signature", altered(&good, "sig", other_signature(&good))),
        ("wrap: no signature", altered(&good, "sig", Value::Null)),
        ("wrap: date changed after signing", altered(&good, "created_at", 1_700_000_000)),
        ("wrap: author changed after signing", altered(&good, "pubkey", once.public_key().to_hex())),
        ("wrap: author is no point", altered(&good, "pubkey", "ff".repeat(32))),
        ("wrap: content changed after signing", altered(&good, "content", content.clone())),
        ("wrap: no JSON", "{\"id\":".to_owned()),
        ("wrap: an array", "[]".to_owned()),
        ("wrap: deep JSON", format!("{}{}", "[".repeat(20_000), "]".repeat(20_000))),
        ("wrap: deep tags", altered(&good, "tags", json!([[[[[[[["p"]]]]]]]]))),
        ("wrap: oversize", wrap(&"A".repeat(200 * 1024))),
        ("wrap: 3,000 receivers", forger.wrap_with(&once, content.clone(), many).as_json()),
        ("wrap: to another", forger.wrap_with(&once, content.clone(), [to_another]).as_json()),
        ("wrap: to nobody", forger.wrap_with(&once, content.clone(), []).as_json()),
        ("wrap: expired", forger.wrap_with(&once, content.clone(), [us.clone(), expired]).as_json()),
        ("content: empty", wrap("")),
        ("content: not base64", wrap("ü🚀")),
        ("content: short", wrap("AgAAAAAAAAAA")),
        ("content: unknown version", changed(0)),
        ("content: changed nonce", changed(20)),
        ("content: changed text", changed(100)),
        ("content: changed MAC", changed(content.len() - 6)),
    ]
}

fn seals_that_are_wrong(forger: &Forger) -> Hostile {
    let good = forger.seal_of(&forger.rumor(REQUEST).as_json());
    let other = Keys::generate();
    let of_kind = |kind: u16| {
        let seal = EventBuilder::new(Kind::from(kind), good.content.clone()).sign_with_keys(&forger.author);
        seal.unwrap().as_json()
    };
    let stolen = EventBuilder::new(Kind::Seal, good.content.clone()).sign_with_keys(&other).unwrap();
    let foreign = nip44::encrypt(forger.author.secret_key(), &other.public_key(), REQUEST, nip44::Version::V2).unwrap();
    let foreign = EventBuilder::new(Kind::Seal, foreign).sign_with_keys(&forger.author).unwrap();
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let seals = vec![
        ("seal: no JSON", "x".to_owned()),
        ("seal: deep JSON", deep.clone()),
        ("seal: deep tags", format!(r#"{{"tags":{deep}}}"#)),
        ("seal: kind 1", of_kind(1)),
        ("seal: kind 14", of_kind(14)),
        ("seal: kind 1059", of_kind(1059)),
        ("seal: wrong id", altered(&good, "id", "00".repeat(32))),
        ("seal: somebody else's signature", altered(&good, "sig", other_signature(&good))),
        ("seal: no signature", altered(&good, "sig", Value::Null)),
        ("seal: date changed after signing", altered(&good, "created_at", 1)),
        ("seal: somebody else's content", stolen.as_json()),
        ("seal: to somebody else", foreign.as_json()),
        ("seal: a wrap", forger.with_rumor(forger.rumor(REQUEST).as_json()).as_json()),
        ("seal: a bare rumor", forger.rumor(REQUEST).as_json()),
    ];
    seals.into_iter().map(|(name, seal)| (name, forger.wrap_of(&seal).as_json())).collect()
}

fn rumors_that_are_wrong(forger: &Forger) -> Hostile {
    let good = serde_json::to_value(forger.rumor(REQUEST)).unwrap();
    let with = |name: &str, value: Value| {
        let mut rumor = good.clone();
        // The id is omitted if only another field should be wrong.
        rumor.as_object_mut().unwrap().remove("id");
        rumor[name] = value;
        rumor.to_string()
    };
    let victim = Keys::generate().public_key().to_hex();
    let mut other = forger.rumor("help");
    other.id = forger.rumor(REQUEST).id;
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let rumors = vec![
        ("rumor: no JSON", REQUEST.to_owned()),
        ("rumor: empty", "{}".to_owned()),
        ("rumor: deep JSON", deep),
        ("rumor: of another author", with("pubkey", json!(victim))),
        ("rumor: of the bot itself", with("pubkey", json!(forger.bot.to_hex()))),
        ("rumor: lies about its id", other.as_json()),
        ("rumor: id of zeros", with("id", json!("00".repeat(32)))),
        ("rumor: no content", with("content", Value::Null)),
        ("rumor: kind below zero", with("kind", json!(-14))),
        ("rumor: kind as a text", with("kind", json!("14"))),
        ("rumor: a reaction", with("kind", json!(7))),
        ("rumor: a public note", with("kind", json!(1))),
        ("rumor: half a character", good.to_string().replace(REQUEST, "\\ud800")),
        ("rumor: two hours ahead", with("created_at", json!(forger.now + 7200))),
        ("rumor: a year ahead", with("created_at", json!(forger.now + 365 * DAY))),
        ("rumor: at the end of time", with("created_at", json!(u64::MAX))),
        ("rumor: at the beginning of time", with("created_at", json!(0))),
        ("rumor: eight days old", with("created_at", json!(forger.now - 8 * DAY))),
        ("rumor: a broken date", with("created_at", json!(1.5))),
    ];
    rumors.into_iter().map(|(name, rumor)| (name, forger.with_rumor(rumor).as_json())).collect()
}

async fn hostile_wraps_have_no_effect_and_an_honest_one_is_accepted() {
    let Met { relay, home, bot: process, mut asker } = met_process("").await;
    // The answer shows that the bot is subscribed. From here on it receives everything that is
    // pushed.
    asker.ask("help").await;

    let forger = Forger::new(process.public_key);
    let mut hostile = wraps_that_are_wrong(&forger);
    hostile.extend(seals_that_are_wrong(&forger));
    hostile.extend(rumors_that_are_wrong(&forger));
    for (_, json) in hostile.iter().chain(&hostile) {
        relay.push(json);
    }
    // Each has only one fault: the same wrap without it is accepted.
    let began = Instant::now();
    let honest = forger.author.public_key();
    relay.push(&forger.with_rumor(forger.rumor(REQUEST).as_json()).as_json());
    wait_for("the honest request is accepted", || !relay.wraps_to(honest).is_empty()).await;
    let took = began.elapsed();

    // Two messages were seen, one became a job, and nobody else got a message.
    assert_eq!(home.count("SELECT count(*) FROM job"), Some(1));
    assert_eq!(home.count("SELECT count(*) FROM seen"), Some(2));
    assert_eq!(home.count("SELECT max(seq) FROM sqlite_sequence WHERE name = 'outbox'"), Some(2));
    process.stop(&home).await;
    assert!(!home.log().contains("panicked"), "{}", home.log());
    figure("the acceptance beside hostile wraps", took, Duration::from_secs(2));
}

/// A relay that an asker's list names sends events that the bot did not ask for, under the name of
/// the bot's own subscription.
async fn unsolicited_events_of_an_external_relay_are_ignored() {
    let (ours, theirs) = (TestRelay::start().await, TestRelay::start().await);
    let running = Home::new(&[ours.url()]).start().await;
    let forger = Forger::new(running.public_key);
    publish(&ours.url(), &dm_list(&forger.author, &[theirs.url()])).await;
    publish(&ours.url(), &forger.honest("help", 0)).await;
    // The bot delivers the answer there, and stays connected for a while.
    let answered = || async { (!theirs.wraps_to(forger.author.public_key()).is_empty()).then_some(()) };
    until("the bot visits the asker's relay", answered).await;
    let request = forger.honest("qqqqqqqq", 0);
    theirs.blurt(&format!(r#"["EVENT","inbox",{}]"#, request.as_json()));
    theirs.blurt(r#"["CLOSED","inbox","error: go away"]"#);
    wait_for("the bot has read it", || theirs.counts().pongs >= 2).await;
    let mut asker = Asker::connect(&ours.url(), running.public_key).await;
    asker.ask("help").await;
    assert_eq!(running.service.totals().unwrap().accepted, 0, "the request is not accepted");
    // The same events are still accepted from one of the bot's own relays.
    publish(&ours.url(), &request).await;
    wait_for("heard", || running.service.totals().unwrap().accepted == 1).await;
}
