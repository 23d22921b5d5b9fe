//! Every message gets an answer (R3).

use crate::support::asker::{explains_a_result, is_late_notice, is_result};
use crate::support::bot::{Met, met};
use crate::support::harness::{Test, figure, test};
use nostr_sdk::prelude::{EventBuilder, EventId, UnwrappedGift};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[test!(random_texts_get_an_answer_each).measures("latency")];

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
