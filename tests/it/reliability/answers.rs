//! Every message gets an answer (R3).

use crate::support::PATIENCE;
use crate::support::asker::{Asker, explains_a_result, is_late_notice, is_result};
use crate::support::bot::Home;
use crate::support::harness::{Test, figure, test};
use crate::support::raw_relay::RawRelay;
use nostr_sdk::prelude::{EventBuilder, EventId, RelayPoolNotification, UnwrappedGift};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[test!(random_texts_get_an_answer_each).measures("latency")];

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

async fn every_text_is_answered(count: usize) {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    // A relay without a limit of events per minute.
    let relay = RawRelay::honest().await;
    let running = Home::new(&[relay.url()]).start().await;
    let asker = Asker::connect(&relay.url(), running.public_key).await;
    let mut answers: HashMap<EventId, usize> = HashMap::new();
    let mut longest = Duration::ZERO;
    for _ in 0..count {
        let mut text = random_text(&mut rng);
        // A seal in a wrap has room for 40,000 bytes.
        while text.len() > 39_000 {
            text.pop();
        }
        let mut rumor = EventBuilder::private_msg_rumor(running.public_key, &text).build(asker.keys.public_key());
        let id = rumor.id();
        // The same text twice within a second is the same message.
        if answers.insert(id, 0).is_some() {
            continue;
        }
        let wrap = EventBuilder::gift_wrap(&asker.keys, &running.public_key, rumor, []).await.unwrap();
        let mut heard = asker.client.notifications();
        let began = Instant::now();
        asker.publish(&wrap).await;
        let wait = async {
            loop {
                let Ok(RelayPoolNotification::Event { event, .. }) = heard.recv().await else { continue };
                let Ok(gift) = UnwrappedGift::from_gift_wrap(&asker.keys, &event).await else { continue };
                if gift.rumor.tags.event_ids().any(|answered| *answered == id) {
                    assert!(!gift.rumor.content.trim().is_empty());
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("no answer to {text:?}"));
        let took = began.elapsed();
        if took > longest {
            longest = took;
            println!("{took:?} for {:?}", text.chars().take(100).collect::<String>());
        }
    }
    for wrap in relay.wraps_to(asker.keys.public_key()) {
        let rumor = UnwrappedGift::from_gift_wrap(&asker.keys, &wrap).await.unwrap().rumor;
        let text = &rumor.content;
        if !is_result(text) && !explains_a_result(text) && !is_late_notice(text) {
            let answered = *rumor.tags.event_ids().next().expect("an answer names what it answers");
            *answers.get_mut(&answered).expect("an answer to a message of ours") += 1;
        }
    }
    assert!(answers.values().all(|&count| count == 1), "one answer each");
    println!("{} different texts, {} answers", answers.len(), answers.len());
    running.service.stop().await;
    figure("the slowest answer", longest, Duration::from_secs(2));
}

async fn random_texts_get_an_answer_each() {
    every_text_is_answered(150).await;
}
