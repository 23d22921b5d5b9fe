//! Every message gets an answer (R3), and the jobs of old ledgers are finished (R12). The long form
//! of R3: `cargo test --release --test it reliability::answers -- --ignored --nocapture`

use super::upgrade::keep_open;
use crate::support::asker::{Asker, DeliveredKey, is_late_notice};
use crate::support::bot::Home;
use crate::support::harness::{Test, judge, test};
use crate::support::raw_relay::{Manner, RawRelay};
use crate::support::relay::TestRelay;
use crate::support::{PATIENCE, until};
use nostr_sdk::prelude::{EventBuilder, EventId, RelayPoolNotification, UnwrappedGift};
use npubbot::clock::Clock;
use npubbot::job::Asker as AskerKey;
use npubbot::message::{Channel, OutgoingMessage};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(three_hundred_random_texts_get_an_answer_each_within_two_seconds).timed(),
    test!(a_thousand_random_texts_get_an_answer_each_within_two_seconds).long("the full form of R3"),
    test!(the_bot_finishes_the_jobs_of_a_ledger_of_every_schema),
];

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
    let relay = RawRelay::start(Manner::Honest).await;
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
        if DeliveredKey::read(&rumor.content).is_none() && !is_late_notice(&rumor.content) {
            let answered = *rumor.tags.event_ids().next().expect("an answer names what it answers");
            *answers.get_mut(&answered).expect("an answer to a message of ours") += 1;
        }
    }
    assert!(answers.values().all(|&count| count == 1), "one answer each");
    println!("{} different texts, {} answers", answers.len(), answers.len());
    running.service.stop().await;
    judge("the slowest answer", longest, Duration::from_secs(2));
}

async fn three_hundred_random_texts_get_an_answer_each_within_two_seconds() {
    every_text_is_answered(300).await;
}

async fn a_thousand_random_texts_get_an_answer_each_within_two_seconds() {
    every_text_is_answered(1000).await;
}

/// R12. Jobs accepted under an old schema are found, and results stored under one are sent
/// unchanged.
async fn the_bot_finishes_the_jobs_of_a_ledger_of_every_schema() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");
    let mut tried = 0;
    for number in 1.. {
        let Ok(dump) = std::fs::read_to_string(format!("{fixtures}/ledger-v{number}.sql")) else { break };
        let relay = TestRelay::start().await;
        let home = Home::new(&[relay.url()]);
        home.make_older_than_tickets();
        let vault = home.vault();
        let mut asker = Asker::connect(&relay.url(), vault.public_key()).await;
        let key = asker.keys.public_key().to_bytes();
        let message = OutgoingMessage {
            to: AskerKey(key),
            channel: Channel::Sealed,
            encryption_key: None,
            text: format!("Sealed under schema {number}."),
            in_reply_to: None,
            subject: None,
            expires_at: Clock::System.now() + 86_400,
            not_before: 0,
        };
        let sealed = vault.seal(&message).unwrap();
        let ledger = rusqlite::Connection::open(home.data().join("ledger.sqlite")).unwrap();
        ledger.execute_batch(&dump).unwrap();
        if number > 3 {
            ledger.execute("DELETE FROM owner", []).unwrap();
        }
        // Nobody has the keys of the fixture's askers. The asker of the open job and of the waiting
        // result is replaced by ours.
        ledger.execute("UPDATE job SET asker = ?1, patterns = 'cat dad' WHERE state = 'accepted'", [key]).unwrap();
        let waiting = "UPDATE mail SET asker = ?1, wrap = ?2, json = ?3, expires_at = ?4
                       WHERE result_of = (SELECT id FROM job WHERE state = 'found')";
        let changed = ledger.execute(
            waiting,
            rusqlite::params![key, sealed.id, sealed.json, i64::try_from(sealed.expires_at).unwrap()],
        );
        assert_eq!(changed.unwrap(), 1, "schema {number} has a result that waits");
        ledger.execute("UPDATE job SET asker = ?1 WHERE state = 'found'", [key]).unwrap();
        if number > 1 {
            // The open job is a split job. Here it becomes an ordinary one, so that it ends with a
            // key (`conversation::split` tests split jobs).
            ledger
                .execute("UPDATE job SET split_point = NULL, half_family = NULL WHERE state = 'accepted'", [])
                .unwrap();
        }
        if number > 5 {
            // This asker reads with the key of their identity.
            ledger.execute("UPDATE job SET encryption_key = NULL", []).unwrap();
        }
        if number > 9 {
            // The job's ticket names the asker in the fixture. Without a ticket the job counts as
            // older than tickets.
            ledger.execute("UPDATE job SET ticket = NULL", []).unwrap();
        }
        keep_open(&ledger);
        drop((ledger, vault));

        let running = home.start().await;
        // Older ledgers may also hold notices, such as that a job is late.
        let (mut sealed_before, mut found) = (false, None);
        while !sealed_before || found.is_none() {
            let text = asker.next_text().await;
            sealed_before |= text == message.text;
            found = found.or(DeliveredKey::read(&text));
        }
        let found = found.expect("a key");
        assert!(["cat", "dad"].iter().any(|prefix| found.npub.starts_with(&format!("npub1{prefix}"))));
        until("all is delivered", || async {
            let totals = running.service.totals().unwrap();
            (totals.accepted == 0 && totals.found == 0 && totals.delivered == 3).then_some(())
        })
        .await;
        running.service.stop().await;
        home.assert_sound();
        tried += 1;
    }
    println!("{tried} schemas");
    assert!(tried >= 1);
}
