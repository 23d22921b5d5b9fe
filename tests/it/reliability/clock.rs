//! Days in seconds: downtime (R4), relays that are gone for days (R6), and clocks that jump (R8).

use crate::support::asker::{Asker, DeliveredKey};
use crate::support::bot::{Home, at_relay};
use crate::support::forger::Forger;
use crate::support::harness::{Test, figure, gate, test};
use crate::support::log::Log;
use crate::support::relay::TestRelay;
use crate::support::{connected, dm_list, publish_with, until, wait_for};
use ::rand::rngs::StdRng;
use ::rand::{Rng, SeedableRng};
use nostr_sdk::prelude::*;
use npubbot::clock::Clock;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(three_days_offline_lose_no_message).measures("latency"),
    test!(a_relay_gone_for_six_days_gets_the_same_event_and_after_fourteen_days_it_is_given_up),
    test!(a_clock_that_jumps_during_a_job_loses_and_doubles_nothing).holding("launch:before"),
    test!(a_clock_thirty_years_ahead_does_not_end_jobs),
];

const HOUR: u64 = 3600;
const DAY: u64 = 86_400;

/// R4. The bot is offline for three days. Meanwhile twenty first-time askers write, with wraps
/// dated up to two days back.
async fn three_days_offline_lose_no_message() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let (relay, home) = at_relay("").await;
    let back = Clock::System.now();
    let left = back - 3 * DAY;
    let running = home.start_at(Clock::at(left)).await;
    let bot = running.public_key;
    until("the last contact is noted", || async {
        home.count("SELECT value FROM meta WHERE name = 'last_contact'").filter(|at| *at == left as i64)
    })
    .await;
    running.service.stop().await;

    let courier = Asker::connect(&relay.url(), bot).await;
    let mut askers = Vec::new();
    for number in 0..20 {
        // The hardest case: written a minute after the bot stopped, and dated two days before that.
        let first = number == 0;
        let written = left + 60 + if first { 0 } else { rng.random_range(0..3 * DAY - 120) };
        let dated_back = if first { 2 * DAY } else { rng.random_range(0..=2 * DAY) };
        askers.push(new_asker_writes(&courier, written, "help", dated_back).await.author.public_key());
    }

    let began = Instant::now();
    let running = home.start_at(Clock::at(back)).await;
    answered(&relay, &askers, 1).await;
    let took = began.elapsed();
    running.service.stop().await;
    figure(&format!("{} answers after the start", askers.len()), took, Duration::from_secs(10));
}

/// Publishes a first-time asker's request, written at `written` and wrapped with an earlier date.
async fn new_asker_writes(courier: &Asker, written: u64, text: &str, dated_back: u64) -> Forger {
    let mut asker = Forger::new(courier.bot);
    asker.now = written;
    courier.publish(&asker.honest(text, dated_back)).await;
    asker
}

/// Waits until each asker has `messages` messages, and checks that nobody has more.
async fn answered(relay: &TestRelay, askers: &[PublicKey], messages: usize) {
    for asker in askers {
        until("all are answered", || async { (relay.wraps_to(*asker).len() >= messages).then_some(()) }).await;
    }
    for asker in askers {
        assert_eq!(relay.wraps_to(*asker).len(), messages, "no more and no less");
    }
}

/// Advances the clock by `step` seconds at a time until the query gives 1. Before each step the bot
/// attempts whatever is due.
async fn turn_until(clock: &Clock, step: u64, home: &Home, what: &str, query: &str) {
    until(what, || async {
        let due = format!("SELECT count(*) FROM outbox WHERE finished = 0 AND due_at <= {}", clock.now());
        if home.count(query) == Some(1) {
            return Some(());
        }
        if home.count(&due) == Some(0) {
            clock.set(clock.now() + step);
        }
        None
    })
    .await;
}

/// Sends the request of an asker whose only DM relay is gone. The request goes through a living
/// relay, which the asker then leaves. Returns the asker's keys.
async fn request_of_somebody_out_of_reach(living: &TestRelay, gone: &RelayUrl, bot: PublicKey, now: u64) -> Keys {
    let mut forger = Forger::new(bot);
    forger.now = now;
    let client = connected(&living.url()).await;
    publish_with(&client, &dm_list(&forger.author, std::slice::from_ref(gone))).await;
    publish_with(&client, &forger.honest("cat", 0)).await;
    client.shutdown().await;
    forger.author
}

/// R6. The relays of two askers are gone. One returns after six days and gets the event that was
/// sealed six days ago. The other one's message is given up after fourteen, and the operator is told.
async fn a_relay_gone_for_six_days_gets_the_same_event_and_after_fourteen_days_it_is_given_up() {
    let log = Log::of_warnings();
    let living = TestRelay::start().await;
    let (mut returning, gone) = (TestRelay::start().await, TestRelay::start().await);
    returning.stop().await;
    gone.stop().await;
    let home = Home::new(&[living.url()]);
    let start = Clock::System.now();
    let clock = Clock::at(start);
    let running = home.start_at(clock.clone()).await;
    let totals = || running.service.totals().unwrap();
    let asker = request_of_somebody_out_of_reach(&living, &returning.url(), running.public_key, start).await;
    wait_for("a key is found", || totals().found == 1).await;
    request_of_somebody_out_of_reach(&living, &gone.url(), running.public_key, start).await;
    wait_for("the other key is found", || totals().found == 2).await;
    let ledger = home.sql();
    let result = |job: i64| -> Vec<u8> {
        ledger.query_row("SELECT wrap FROM outbox WHERE result_of = ?1", [job], |row| row.get(0)).unwrap()
    };
    let sealed = result(1);
    let tried = |job: i64, days: u64| {
        let due = start + days * DAY;
        format!("SELECT count(*) FROM outbox WHERE result_of = {job} AND attempts > 0 AND due_at > {due}")
    };
    turn_until(&clock, 12 * HOUR, &home, "six days of attempts", &tried(1, 6)).await;
    assert_eq!(totals().delivered, 0);

    returning.start_again().await;
    turn_until(&clock, HOUR, &home, "delivered", "SELECT count(*) FROM job WHERE state = 'delivered'").await;
    let wraps = returning.wraps_to(asker.public_key());
    let found: Vec<_> = wraps.iter().filter(|wrap| wrap.id.as_bytes().as_slice() == sealed).collect();
    assert_eq!(found.len(), 1, "the very event that was sealed, once, of {} messages", wraps.len());
    let gift = UnwrappedGift::from_gift_wrap(&asker, found[0]).await.unwrap();
    DeliveredKey::read(&gift.rumor.content).unwrap().assert_starts_with("cat");
    assert_eq!(result(1), sealed, "sealed once");

    let given_up = "SELECT count(*) FROM outbox WHERE result_of = 2 AND finished = 1";
    clock.set(start + 13 * DAY);
    turn_until(&clock, 60, &home, "a try on the thirteenth day", &tried(2, 13)).await;
    assert_eq!(home.count(given_up), Some(0), "not before its time");
    // Fourteen days have about three hundred attempts. The clock skipped them here, so they are
    // entered in the ledger.
    assert_eq!(ledger.execute("UPDATE outbox SET attempts = 300 WHERE result_of = 2", []).unwrap(), 1);
    turn_until(&clock, 6 * HOUR, &home, "given up", given_up).await;
    assert!(clock.now() > start + 14 * DAY && totals().delivered == 1);
    let told = log.text();
    assert!(told.contains("given up") && told.contains("14 days"), "{told}");
}

/// R8. During a job the clock jumps and stays wrong until the key is delivered; then it is set
/// right.
async fn a_clock_that_jumps_during_a_job_loses_and_doubles_nothing() {
    let (relay, home) = at_relay("[limits]\njobs_per_day = 1000\n").await;
    let right = Clock::System.now();
    let clock = Clock::at(right);
    let running = home.start_at(clock.clone()).await;
    let mut asker = Asker::connect(&relay.url(), running.public_key).await;
    let jumps = [365 * DAY as i64, -365 * DAY as i64, -(HOUR as i64)];
    for (number, jump) in jumps.into_iter().enumerate() {
        // With different spaces each time: the same text in the same second is the same message.
        let request = format!("{}cats", " ".repeat(number));
        asker.send(&request).await;
        let acceptance = asker.next_text().await;
        assert!(acceptance.contains(&format!("#{}", number + 1)), "{acceptance}");
        clock.set(right.saturating_add_signed(jump));
        gate::open();
        let text = asker.next_text().await;
        DeliveredKey::read(&text).expect("a key").assert_starts_with("cats");
        clock.set(right);
        gate::close();
    }
    gate::open();
    // One restart with each wrong clock, and one with the right one: nothing is sent twice.
    let mut running = running;
    for jump in jumps {
        running.service.stop().await;
        running = home.start_at(Clock::at(right.saturating_add_signed(jump))).await;
    }
    running.service.stop().await;
    let _running = home.start_at(Clock::at(right)).await;
    asker.send("help").await;
    asker.next_text().await;
    // The bot may have stopped between the arrival of the last key and recording it. While its
    // clock was a year ahead, it may have deleted delivered jobs, so only undelivered ones are
    // counted.
    let undelivered = "SELECT count(*) FROM job WHERE state <> 'delivered'";
    until("all is noted", || async { home.count(undelivered).filter(|left| *left == 0) }).await;
    let wraps = relay.wraps_to(asker.keys.public_key());
    let mail = asker.mail_on(&relay).await;
    assert!(mail.late_notices <= jumps.len(), "each job is late once: {}", mail.late_notices);
    let counts = (mail.keys.len(), mail.texts.len());
    assert_eq!(counts, (jumps.len(), jumps.len() + 1), "a key and an acceptance a job, and this answer");
    let expired = wraps.iter().filter(|wrap| wrap.is_expired()).count();
    assert_eq!(expired, 0, "a message sealed under a wrong clock is still good");
}

/// R8: jobs may stay open for 3,000 days. If the clock is thirty years ahead while the bot looks
/// for expired jobs, they do not end. With such a clock every job is late, even for a slow search.
async fn a_clock_thirty_years_ahead_does_not_end_jobs() {
    let limits = "[limits]\nlongest_expected_time = \"3000 days\"\ngive_up_after = \"3000 days\"\n";
    let (relay, home) = at_relay(limits).await;
    let right = Clock::System.now();
    let clock = Clock::at(right);
    let running = home.start_at(clock.clone()).await;
    let mut asker = Asker::connect(&relay.url(), running.public_key).await;
    assert!(asker.ask("qqqqqqqq").await.contains("#1"));
    clock.set(right + 30 * 365 * DAY);
    // Once the bot has written that the job takes long, it has read the clock.
    let messages = "SELECT max(seq) FROM sqlite_sequence WHERE name = 'outbox'";
    wait_for("the notice", || home.count(messages) == Some(2)).await;
    clock.set(right);
    let totals = running.service.totals().unwrap();
    assert_eq!((totals.accepted, totals.expired), (1, 0));
}
