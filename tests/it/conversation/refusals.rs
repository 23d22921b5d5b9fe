//! Every message gets one answer (R3), and a refusal says what would work.

use crate::support::asker::{Asker, DeliveredKey, explains_a_result, is_late_notice, is_result};
use crate::support::bot::{Met, met};
use crate::support::harness::{Test, figure, test};
use crate::support::until;
use nostr_sdk::prelude::{EventBuilder, EventId, UnwrappedGift};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(limits_are_named_when_they_are_reached),
    test!(a_result_is_sent_again_as_the_same_event),
    test!(an_asker_who_asks_too_often_gets_one_notice_and_then_silence),
    test!(random_texts_get_an_answer_each).measures("latency"),
];

const LIMITS: &str = "[limits]\nopen_jobs_per_asker = 2\njobs_per_day = 4\n";

async fn limits_are_named_when_they_are_reached() {
    // Eight characters take hours on a CPU: these jobs stay open.
    let Met { relay, home: _home, bot: running, mut asker } = met(LIMITS).await;
    assert!(asker.ask("qqqqqqqq").await.contains("#1"));
    // Spelled differently: the same text within the same second would be the same message.
    let again = asker.ask("npub1qqqqqqqq").await;
    assert!(again.contains("#1") && !again.contains("#2"), "the same request is no second job: {again}");
    assert!(asker.ask("pppppppp").await.contains("#2"));
    let full = asker.ask("zzzzzzzz").await;
    assert!(!full.contains("#3") && full.contains("cancel"), "{full}");
    let status = asker.ask("status").await;
    assert!(status.contains("#1") && status.contains("#2"), "{status}");

    assert!(asker.ask("cancel 1").await.contains("#1"));
    assert!(asker.ask("npub1zzzzzzzz").await.contains("#3"));
    asker.ask("cancel").await;
    assert!(asker.ask("rrrrrrrr").await.contains("#4"));
    asker.ask("cancel 4").await;
    let spent = asker.ask("yyyyyyyy").await;
    assert!(!spent.contains("#5"), "four a day: {spent}");
    assert_eq!(running.service.totals().unwrap().accepted, 0);

    // Another asker has limits of their own, and cannot affect these jobs.
    let mut other = Asker::connect(&relay.url(), running.public_key).await;
    assert!(other.ask("yyyyyyyy").await.contains("#5"));
    asker.ask("cancel 5").await;
    assert_eq!(running.service.totals().unwrap().accepted, 1);
}

async fn a_result_is_sent_again_as_the_same_event() {
    let Met { relay, home: _home, bot: _running, mut asker } = met("").await;
    asker.ask("cat").await;
    asker.next_key().await.assert_starts_with("cat");
    let answer = asker.ask("resend").await;
    assert!(answer.contains("#1"), "{answer}");
    assert!(DeliveredKey::read(&answer).is_none(), "{answer}");
    // Only the answer is a new event: the result was sent again under its old id.
    let last = asker.ask("help").await;
    assert!(DeliveredKey::read(&last).is_none(), "{last}");
    let mail = asker.mail_on(&relay).await;
    assert_eq!((mail.texts.len(), mail.keys.len()), (3, 1), "an acceptance, two answers, one key: {:?}", mail.texts);
}

async fn an_asker_who_asks_too_often_gets_one_notice_and_then_silence() {
    let Met { relay, home, bot: running, mut asker } = met("[limits]\nanswers_per_hour = 3\n").await;
    assert!(asker.ask("qqqqqqqq").await.contains("#1"));
    // Not the same text twice: within one second that would be the same message.
    for text in ["help", "help "] {
        assert!(asker.ask(text).await.contains("m0ctane"));
    }
    let notice = asker.ask("pppppppp").await;
    assert!(notice.contains("I answer again at") && notice.contains("UTC"), "{notice}");
    for text in ["help  ", "rrrrrrrr", "cancel"] {
        asker.send(text).await;
    }
    let all_seen = || async { (home.count("SELECT count(*) FROM seen") == Some(7)).then_some(()) };
    until("every message is dealt with", all_seen).await;
    assert_eq!(
        home.count("SELECT max(seq) FROM sqlite_sequence WHERE name = 'outbox'"),
        Some(4),
        "three answers and the notice"
    );
    assert_eq!(home.count("SELECT count(*) FROM job"), Some(1), "no job was started");
    assert_eq!(
        home.count("SELECT count(*) FROM job WHERE state = 'accepted'"),
        Some(0),
        "cancel works without an answer"
    );
    let mut other = Asker::connect(&relay.url(), running.public_key).await;
    assert!(other.ask("help").await.contains("m0ctane"), "other askers are still answered");
}

/// Number of messages.
const TEXTS: usize = 60;

/// A random text of the kinds that people, programs and cats on keyboards write.
fn random_text(rng: &mut StdRng) -> String {
    let word = |rng: &mut StdRng| -> String {
        let characters: Vec<char> = "qpzry9x8gf2tvdw0s3jn54khce6mua7lbio1QZ".chars().collect();
        (0..rng.random_range(1..12)).map(|_| *characters.choose(rng).unwrap()).collect()
    };
    match rng.random_range(0..10) {
        0 => word(rng),
        1 => (0..rng.random_range(1..80)).map(|_| word(rng)).collect::<Vec<_>>().join(" "),
        2 => {
            let command = ["help", "status", "cancel", "resend", "cancel 1", "resend #2", "/start", "find", "HELP?"];
            let gap = " ".repeat(rng.random_range(0..30));
            format!("{gap}{}{}", command.choose(rng).unwrap(), "!".repeat(rng.random_range(0..3)))
        }
        3 => format!("{} {}", ["cancel", "resend", "find", "status"].choose(rng).unwrap(), word(rng)),
        4 => format!("npub1{}", word(rng)),
        5 => (0..rng.random_range(0..200)).map(|_| rng.random::<char>()).collect(),
        6 => (0..rng.random_range(0..200)).map(|_| char::from(rng.random_range(0..32u8))).collect(),
        7 => "🚀\u{202e}\u{200b}ß\u{301}".repeat(rng.random_range(1..50)),
        8 => format!(r#"{{"content":"{}","tags":[["p"]]}}"#, word(rng)),
        _ => word(rng).repeat(rng.random_range(1..3_000)),
    }
}

async fn random_texts_get_an_answer_each() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    // A relay without a limit of events per minute.
    let Met { relay, home: _home, bot: running, mut asker } = met("").await;
    let mut texts: HashMap<EventId, String> = HashMap::new();
    let mut longest = Duration::ZERO;
    for _ in 0..TEXTS {
        let mut text = random_text(&mut rng);
        // A seal in a wrap has room for 40,000 bytes.
        while text.len() > 39_000 {
            text.pop();
        }
        let mut rumor = EventBuilder::private_msg_rumor(running.public_key, &text).build(asker.keys.public_key());
        let id = rumor.id();
        println!("{:?}", text.chars().take(100).collect::<String>());
        // The same text twice within a second is the same message.
        if texts.insert(id, text).is_some() {
            continue;
        }
        let began = Instant::now();
        asker.publish(&EventBuilder::gift_wrap(&asker.keys, &running.public_key, rumor, []).await.unwrap()).await;
        while asker.next_answer().await.tags.event_ids().all(|answered| *answered != id) {}
        longest = longest.max(began.elapsed());
    }
    running.service.stop().await;
    for wrap in relay.wraps_to(asker.keys.public_key()) {
        let rumor = UnwrappedGift::from_gift_wrap(&asker.keys, &wrap).await.unwrap().rumor;
        let text = &rumor.content;
        assert!(!text.trim().is_empty());
        if !is_result(text) && !explains_a_result(text) && !is_late_notice(text) {
            let answered = rumor.tags.event_ids().next().expect("an answer names what it answers");
            assert!(texts.remove(answered).is_some(), "one answer to each message: {text}");
        }
    }
    assert!(texts.is_empty(), "{texts:?}");
    figure("the slowest answer", longest, Duration::from_secs(2));
}
