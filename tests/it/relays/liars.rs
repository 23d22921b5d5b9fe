//! R5: relays that fail or lie delay an answer, but do nothing worse.

use crate::support::asker::{DeliveredKey, is_late_notice};
use crate::support::bot::Home;
use crate::support::forger::Forger;
use crate::support::harness::{Test, figure, gate, test};
use crate::support::relay::{Manner, TestRelay};
use crate::support::{dm_list, publish, until, wait_for};
use ::rand::rngs::StdRng;
use ::rand::{Rng, SeedableRng};
use nostr_sdk::prelude::*;
use std::collections::HashMap;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] =
    &[test!(failing_and_lying_relays_only_cause_a_delay).holding("launch:before").slow().measures("latency")];

async fn failing_and_lying_relays_only_cause_a_delay() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let mut liars = Vec::new();
    for manner in [Manner::Refusing, Manner::Silent, Manner::Forbidding, Manner::Repeating] {
        liars.push(TestRelay::start_with(manner).await);
    }
    let mut good = Vec::new();
    for _ in 0..3 {
        good.push(TestRelay::start().await);
    }
    let urls: Vec<RelayUrl> = liars.iter().chain(&good).map(TestRelay::url).collect();
    let running = Home::new(&urls).start().await;
    let forger = Forger::new(running.public_key);
    let asker = &forger.author;
    // The asker's DM relays: three that lie, and three honest ones that will fail.
    let listed: Vec<Tag> = liars[..3].iter().chain(&good).map(|relay| Tag::relay(relay.url())).collect();
    let list = EventBuilder::new(Kind::InboxRelays, "").tags(listed).sign_with_keys(asker).unwrap();
    for relay in &good {
        publish(&relay.url(), &list).await;
    }

    // The request arrives through a relay that repeats it a thousand times.
    let began = Instant::now();
    publish(&liars[3].url(), &forger.honest("cats", 0)).await;
    let messages =
        |good: &[TestRelay]| good.iter().flat_map(|relay| relay.wraps_to(asker.public_key())).collect::<Vec<_>>();
    wait_for("the request is accepted", || !messages(&good).is_empty()).await;
    let acceptance = began.elapsed();
    for relay in &mut good {
        relay.stop().await;
    }
    gate::open();
    wait_for("the key is found", || running.service.totals().unwrap().accepted == 0).await;

    // The honest relays return and stop again at random, each for a moment.
    for _ in 0..10 {
        let relay = &mut good[rng.random_range(0..3)];
        relay.start_again().await;
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..300))).await;
        relay.stop().await;
    }
    let returning = rng.random_range(0..3);
    good[returning].start_again().await;
    let began = Instant::now();
    let key = until("the key is delivered", || async {
        for wrap in messages(&good) {
            let text = UnwrappedGift::from_gift_wrap(asker, &wrap).await.unwrap().rumor.content;
            if let Some(key) = DeliveredKey::read(&text) {
                return Some(key);
            }
        }
        None
    })
    .await;
    let delivery = began.elapsed();
    key.assert_starts_with("cats");

    // The request repeated a thousand times is one job, and its result is one event on every relay.
    // While its relays were away the job may have become late.
    let mut events: HashMap<EventId, String> = HashMap::new();
    for wrap in messages(&good) {
        let text = UnwrappedGift::from_gift_wrap(asker, &wrap).await.unwrap().rumor.content;
        events.insert(wrap.id, text);
    }
    events.retain(|_, text| !is_late_notice(text));
    assert_eq!(events.len(), 3, "one acceptance, one result of two messages: {events:?}");
    // A relay has the event before the relay's OK reaches the bot.
    until("the bot knows of the delivery", || async {
        let totals = running.service.totals().unwrap();
        ((totals.accepted, totals.found, totals.delivered) == (0, 0, 1)).then_some(())
    })
    .await;

    // The honest relays return. From here on only the lying ones can delay an answer.
    for relay in &mut good {
        relay.start_again().await;
    }
    wait_for("the bot is back on every good relay", || good.iter().all(TestRelay::is_subscribed)).await;
    let second = Forger::new(running.public_key);
    publish(&good[0].url(), &dm_list(&second.author, &[good[0].url()])).await;
    let began = Instant::now();
    publish(&good[0].url(), &second.honest("help", 0)).await;
    let answered = || async { (!good[0].wraps_to(second.author.public_key()).is_empty()).then_some(()) };
    until("the second is answered", answered).await;
    let answer = began.elapsed();
    running.service.stop().await;
    figure("the acceptance beside silent relays", acceptance, Duration::from_secs(8));
    figure("the delivery after a good relay has returned", delivery, Duration::from_secs(60));
    figure("an answer beside lying relays", answer, Duration::from_secs(8));
}
