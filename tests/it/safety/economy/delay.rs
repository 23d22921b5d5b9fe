//! How long honest people wait while strangers name relays that say nothing.
//!
//! Every stranger's relay list names six different hosts. Every two seconds one honest person
//! writes, alternately an asker with an open job, a newcomer who wants help, and a newcomer whose
//! request is found at once. Each newcomer reads at a relay that the bot has never visited.
//!
//! The full form takes eleven minutes:
//! `cargo test --release --test it economy::delay -- --ignored --nocapture --test-threads 1`

use super::attack::{self, Budget, Sort};
use super::relays::{HostileRelay, Manner};
use crate::support::asker::Asker;
use crate::support::bot::Home;
use crate::support::harness::{Test, judge, test};
use crate::support::raw_relay::{self, RawRelay};
use crate::support::until;
use futures_util::stream::{self, StreamExt};
use nostr_sdk::prelude::*;
use std::future::Future;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

pub const TESTS: &[Test] = &[
    test!(relays_that_say_nothing_delay_nobody_else).timed().slow(),
    test!(help_for_relays_without_a_handshake_delays_nobody_else).long("three minutes: part of the full form"),
    test!(help_for_relays_without_an_answer_delays_nobody_else).long("three minutes: part of the full form"),
    test!(jobs_for_relays_without_a_handshake_delay_nobody_else).long("three minutes: part of the full form"),
    test!(jobs_for_relays_without_an_answer_delay_nobody_else).long("three minutes: part of the full form"),
];

/// The longest that an honest person may wait.
const BOUND: Duration = Duration::from_secs(5);
/// Time after which the test stops waiting. It exceeds the bound, to see by how much the bound is
/// missed.
const PATIENCE: Duration = Duration::from_secs(20);
/// The time between two honest messages.
const PAUSE: Duration = Duration::from_secs(2);
/// Proof of work that newcomers do for a request in a flood, in bits.
const WORK: u8 = 8;

/// Somebody honest, who reads at a relay of their own.
struct Person {
    asker: Asker,
    _relay: RawRelay,
}

impl Person {
    /// Somebody whose relay list is at `ours`.
    async fn new(ours: &RawRelay, bot: PublicKey) -> Person {
        let relay = RawRelay::start(raw_relay::Manner::Honest).await;
        let asker = Asker::connect_without_relay_list(&relay.url(), bot).await;
        let list = EventBuilder::new(Kind::InboxRelays, "").tag(Tag::relay(relay.url()));
        ours.pour(&list.sign_with_keys(&asker.keys).unwrap());
        Person { asker, _relay: relay }
    }

    /// A message to the bot with the work that a flood asks for.
    async fn message(&self, text: &str) -> Event {
        let Asker { keys, bot, .. } = &self.asker;
        let rumor = EventBuilder::private_msg_rumor(*bot, text).build(keys.public_key());
        let seal = EventBuilder::seal(keys, bot, rumor).await.unwrap().sign_with_keys(keys).unwrap();
        let once = Keys::generate();
        let content = nip44::encrypt(once.secret_key(), bot, seal.as_json(), nip44::Version::V2).unwrap();
        let wrap = EventBuilder::new(Kind::GiftWrap, content).tag(Tag::public_key(*bot));
        wrap.pow(WORK).sign_with_keys(&once).unwrap()
    }

    async fn next_text(&mut self) -> String {
        self.asker.next_text().await
    }

    async fn next_key(&mut self) {
        self.asker.next_key().await;
    }
}

/// The waits of one kind of people; `None` if nothing came within [`PATIENCE`].
#[derive(Default)]
struct Waits(Vec<Option<Duration>>);

impl Waits {
    fn late(&self) -> usize {
        self.0.iter().filter(|wait| wait.is_none_or(|wait| wait > BOUND)).count()
    }

    /// The column of the table: number of waits, late ones, and the longest.
    fn column(&self) -> String {
        let longest = if self.0.contains(&None) { None } else { self.0.iter().flatten().max() };
        let longest = longest.map_or("never".to_owned(), |wait| format!("{:.2} s", wait.as_secs_f64()));
        format!("{:2} of {:2} late, {longest:>7}", self.late(), self.0.len())
    }
}

/// The waits of all honest people during one attack.
#[derive(Default)]
struct Row {
    /// Time to the answer for an asker with an open job.
    known: Waits,
    /// Time to the answer for a newcomer.
    help: Waits,
    /// The time from a newcomer's request to the key.
    key: Waits,
}

async fn timed(what: impl Future<Output = ()>) -> Option<Duration> {
    let began = Instant::now();
    tokio::time::timeout(PATIENCE, what).await.ok().map(|()| began.elapsed())
}

async fn attack(sort: Sort, manner: Manner, budget: Budget) -> Row {
    let (ours, theirs) = (RawRelay::start(raw_relay::Manner::Honest).await, HostileRelay::start(manner).await);
    let home = Home::with(&[ours.url()], &format!("[limits]\nflood_work_bits = {WORK}\n"));
    let bot = home.spawn_at_level("info").await;
    until("the bot listens", || async { ours.is_subscribed().then_some(()) }).await;
    let mut known = Person::new(&ours, bot.public_key).await;
    ours.pour(&known.message("qqqqqqqq").await);
    assert!(known.next_text().await.contains("#1"));
    let turns = budget.messages / budget.a_second / (3 * PAUSE.as_secs() as usize);
    let mut newcomers = Vec::new();
    for _ in 0..2 * turns.max(1) {
        let person = Person::new(&ours, bot.public_key).await;
        let text = if newcomers.len() % 2 == 0 { "help" } else { "pz" };
        let message = person.message(text).await;
        newcomers.push((person, message));
    }
    let events = attack::events(sort, budget, bot.public_key, &theirs);

    let pour = async {
        let mut pace = tokio::time::interval(Duration::from_secs(1) / budget.a_second as u32);
        for [list, message] in &events {
            pace.tick().await;
            ours.pour(list);
            ours.pour(message);
        }
    };
    let write = async {
        let mut pace = tokio::time::interval(PAUSE);
        // The attack begins first.
        pace.tick().await;
        let (mut row, mut waiting) = (Row::default(), JoinSet::new());
        for (number, (mut person, message)) in newcomers.into_iter().enumerate() {
            if number % 2 == 0 {
                pace.tick().await;
                let status = known.message("status").await;
                let answered = timed(async {
                    ours.pour(&status);
                    known.next_text().await;
                });
                row.known.0.push(answered.await);
            }
            pace.tick().await;
            ours.pour(&message);
            waiting.spawn(async move {
                let wants_key = number % 2 == 1;
                let wait = if wants_key {
                    timed(person.next_key()).await
                } else {
                    timed(async { _ = person.next_text().await }).await
                };
                (wants_key, wait)
            });
        }
        while let Some(waited) = waiting.join_next().await {
            let (wants_key, wait) = waited.unwrap();
            let waits = if wants_key { &mut row.key } else { &mut row.help };
            waits.0.push(wait);
        }
        row
    };
    tokio::join!(pour, write).1
}

/// Runs the attacks, `at_once` at a time, each against a new bot. Prints the table, and fails if
/// anybody waited too long.
async fn table(at_once: usize, attacks: impl IntoIterator<Item = (Sort, Manner, Budget)>) {
    println!("message  relay   a second  status, with a job      help                    a key");
    let mut longest = Duration::ZERO;
    let attacks = attacks
        .into_iter()
        .map(|(sort, manner, budget)| async move { ((sort, manner, budget), attack(sort, manner, budget).await) });
    let mut rows = stream::iter(attacks).buffered(at_once);
    while let Some(((sort, manner, budget), row)) = rows.next().await {
        let waits = [&row.known, &row.help, &row.key];
        let columns = waits.map(Waits::column).join("  ");
        let (sort, manner) = (format!("{sort:?}"), format!("{manner:?}"));
        let line = format!("{sort:8} {manner:7} {:8}  {columns}", budget.a_second);
        println!("{line}");
        let all = waits.into_iter().flat_map(|waits| &waits.0);
        longest = all.map(|wait| wait.unwrap_or(PATIENCE)).max().unwrap_or_default().max(longest);
    }
    judge("the longest wait", longest, BOUND);
}

fn budget(a_second: usize, seconds: usize) -> Budget {
    Budget { messages: seconds * a_second, a_second, addresses: 6 }
}

async fn relays_that_say_nothing_delay_nobody_else() {
    table(2, [Manner::Mute, Manner::Silent].map(|manner| (Sort::Help, manner, budget(20, 8)))).await;
}

/// Attacks for half a minute at each rate.
async fn at_every_rate(sort: Sort, manner: Manner) {
    table(1, [2, 20, 50, 200].map(|a_second| (sort, manner, budget(a_second, 30)))).await;
}

async fn help_for_relays_without_a_handshake_delays_nobody_else() {
    at_every_rate(Sort::Help, Manner::Mute).await;
}

async fn help_for_relays_without_an_answer_delays_nobody_else() {
    at_every_rate(Sort::Help, Manner::Silent).await;
}

async fn jobs_for_relays_without_a_handshake_delay_nobody_else() {
    at_every_rate(Sort::Request, Manner::Mute).await;
}

async fn jobs_for_relays_without_an_answer_delay_nobody_else() {
    at_every_rate(Sort::Request, Manner::Silent).await;
}
