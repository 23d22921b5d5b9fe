//! Messages that the bot sends on its own: one notice if a job takes long, one if it is given up.
//! Files and groups get a short answer, reactions and receipts none. The operator is told of a DM
//! relay that cannot serve.

use crate::support::asker::Asker;
use crate::support::bot::{Home, Met, at_relay, met};
use crate::support::forger::Forger;
use crate::support::harness::{Test, test};
use crate::support::relay::TestRelay;
use crate::support::until;
use nostr_sdk::prelude::*;
use npubbot::clock::Clock;
use std::io::{Read, Write};
use std::net::TcpListener;

pub const TESTS: &[Test] = &[
    test!(an_asker_is_told_once_that_a_job_takes_long_and_once_that_it_is_given_up),
    test!(files_and_groups_get_a_short_answer_and_reactions_and_receipts_none),
    test!(a_dm_relay_that_says_it_cannot_serve_is_named_to_the_operator),
];

async fn an_asker_is_told_once_that_a_job_takes_long_and_once_that_it_is_given_up() {
    let (relay, home) = at_relay("").await;
    let clock = Clock::at(Timestamp::now().as_secs());
    let running = home.start_at(clock.clone()).await;
    let mut asker = Asker::connect(&relay.url(), running.public_key).await;
    assert!(asker.ask("qqqqqqqq").await.contains("#1"));
    let at = home.count("SELECT notice_at FROM job WHERE id = 1").expect("it is told when");
    running.service.stop().await;
    // The maintenance task looks for late jobs at its start and every half minute.
    clock.set(at as u64 + 1);
    let running = home.start_at(clock.clone()).await;
    let notice = asker.next_late_notice().await;
    assert!(notice.contains("#1 takes longer"), "{notice}");
    // The asker uses the same clock, which is many hours ahead of the system's. Wraps dated by the
    // system's clock would be too old.
    let mut from = Forger { author: asker.keys.clone(), ..Forger::new(running.public_key) };
    from.now = clock.now();
    asker.publish(&from.honest("status", 0)).await;
    assert!(asker.next_text().await.contains("#1"));
    running.service.stop().await;
    let ends = home.count("SELECT expires_at FROM job WHERE id = 1").unwrap();
    clock.set(ends as u64 + 1);
    let running = home.start_at(clock.clone()).await;
    let notice = asker.next_text().await;
    assert!(notice.contains("#1 is given up"), "{notice}");
    running.service.stop().await;
    clock.set(clock.now() + 60);
    let running = home.start_at(clock).await;
    let totals = running.service.totals().unwrap();
    assert_eq!((totals.accepted, totals.expired), (0, 1));
    running.service.stop().await;
    assert_eq!(relay.wraps_to(asker.keys.public_key()).len(), 4, "acceptance, two notices, an answer");
}

/// A wrap around a rumor of any kind and tags.
fn wrapped(from: &Forger, kind: u16, content: &str, tags: Vec<Tag>) -> Event {
    let mut rumor = EventBuilder::new(Kind::from(kind), content).tags(tags).build(from.author.public_key());
    rumor.ensure_id();
    from.with_rumor(rumor.as_json())
}

async fn files_and_groups_get_a_short_answer_and_reactions_and_receipts_none() {
    let Met { relay, home: _home, bot: running, asker } = met("").await;
    let from = Forger { author: asker.keys.clone(), ..Forger::new(running.public_key) };
    let (to_bot, other) = (Tag::public_key(running.public_key), Keys::generate().public_key());
    let text = async |number: usize| relay.has(number, &asker.keys).await.join("\n");

    // A reaction (7), other kinds that need no answer, and unknown kinds are ignored.
    for kind in [7, 16, 10, 1059, 25050, 30078] {
        asker.publish(&wrapped(&from, kind, "+", vec![to_bot.clone()])).await;
    }
    let file = vec![to_bot.clone(), Tag::custom(TagKind::custom("file-type"), ["image/png"])];
    asker.publish(&wrapped(&from, 15, "https://files.example/cat.png", file)).await;
    let said = text(1).await;
    assert!(said.contains("text"), "{said}");

    // In a group, only the author is answered, with the reason.
    let third = Tag::public_key(Keys::generate().public_key());
    asker.publish(&wrapped(&from, 14, "dad", vec![to_bot.clone(), Tag::public_key(other), third])).await;
    let said = text(2).await;
    assert!(said.contains("several people"), "{said}");
    // An invitation to a group of MLS.
    asker.publish(&wrapped(&from, 444, "bWxzIHdlbGNvbWU=", vec![to_bot])).await;
    assert_eq!(text(3).await.matches("several people").count(), 2);
    assert_eq!(running.service.totals().unwrap().accepted, 0);
    assert!(relay.wraps_to(other).is_empty(), "the other members get no message");

    // At last the bot gets an ordinary request. Only its acceptance and its key come after the
    // answers above.
    asker.publish(&from.honest("dad", 0)).await;
    text(6).await;
}

async fn a_dm_relay_that_says_it_cannot_serve_is_named_to_the_operator() {
    // A server that answers NIP-11 and nothing else.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = RelayUrl::parse(&format!("ws://{}", listener.local_addr().unwrap())).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 2048]);
            let body = r#"{"name":"r","limitation":{"payment_required":true,"created_at_lower_limit":900}}"#;
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/nostr+json\r\nConnection: close\r\n";
            let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    let good = TestRelay::start().await;
    let home = Home::new(&[good.url(), url.clone()]);
    let _bot = home.spawn().await;
    let log = until("both faults are named", || async {
        let log = home.log();
        (log.matches("cannot serve").count() >= 2).then_some(log)
    })
    .await;
    let named: Vec<&str> = log.lines().filter(|line| line.contains("cannot serve")).collect();
    assert!(named.iter().all(|line| line.contains(url.as_str()) && line.contains("relays.toml")), "{named:?}");
    assert!(log.contains("requires payment") && log.contains("two days old"), "{named:?}");
}
