//! Unknown senders cannot exhaust the bot. The tests combine every kind of message with every
//! behaviour of a relay, and set one attacker with a budget against one honest asker. Everything
//! that the attacker can make the bot keep, send, dial, compute or log has a bound.
//!
//! The long form, an hour: `cargo test --release --test it safety::economy -- --ignored
//! --nocapture`. With `NPUBBOT_TEST_PART=3/13` it does a thirteenth of the rows, so that a machine
//! with many cores can do the parts at the same time (0/13 to 12/13).

mod attack;
pub mod delay;
mod relays;

use crate::support::asker::Asker;
use crate::support::bot::Home;
use crate::support::harness::{Test, is_beside_others, judge, test};
use crate::support::raw_relay::{self, RawRelay};
use crate::support::vault::next_vault;
use crate::support::{until, usage};
use attack::{Budget, Sort};
use futures_util::stream::{self, StreamExt};
use relays::{HostileRelay, Manner};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(every_kind_of_message_costs_what_the_table_allows).timed().slow(),
    test!(every_manner_of_relay_costs_what_the_table_allows).timed().slow(),
    test!(every_kind_through_every_manner_costs_what_the_table_allows).long("an hour: the full form"),
];

/// The short form: 20 messages per second, each from a key whose list names six addresses.
const SHORT: Budget = Budget { messages: 40, a_second: 20, addresses: 6 };

/// Attacks of the short form at the same time.
fn at_once() -> usize {
    if is_beside_others() { 2 } else { 8 }
}

/// Bounds on the cost of an attack, and on the time an honest asker waits.
struct Bounds {
    /// Bytes of resident memory, for the whole attack.
    memory: u64,
    /// Ledger pages in use, in bytes per message, before anything is cleaned up.
    disk: u64,
    /// Bytes of log per message, at the default level.
    log: u64,
    sockets: u64,
    /// Processor time besides the search, in seconds per message.
    cpu: f64,
    /// Time from an honest message to its answer.
    delay: Duration,
}

const BOUNDS: Bounds = Bounds {
    memory: 64 << 20,
    disk: 8 << 10,
    log: 2 << 10,
    // The slots of external relays (`nostr/relay/slots.rs`), and the connections to our own.
    sockets: 202,
    cpu: if cfg!(debug_assertions) { 0.2 } else { 0.02 },
    delay: Duration::from_secs(5),
};

/// The cost of one attack.
#[derive(Debug)]
struct Row {
    sort: Sort,
    manner: Manner,
    budget: Budget,
    memory: u64,
    disk: u64,
    log: u64,
    sockets: u64,
    cpu: f64,
    /// `None` if there was no answer within the test's time limit.
    delay: Option<Duration>,
    redirects: usize,
}

impl Row {
    const HEAD: &str =
        "message  relay          a second  memory MiB  disk B/msg  log B/msg  sockets  cpu ms/msg  delay s";

    fn line(&self) -> String {
        let messages = self.budget.messages as f64;
        format!(
            "{:8} {:14} {:8} {:11.1} {:11.0} {:10.0} {:8} {:11.2} {:>8}",
            format!("{:?}", self.sort),
            format!("{:?}", self.manner),
            self.budget.a_second,
            self.memory as f64 / f64::from(1 << 20),
            self.disk as f64 / messages,
            self.log as f64 / messages,
            self.sockets,
            1e3 * self.cpu / messages,
            self.delay.map_or("never".to_owned(), |delay| format!("{:.2}", delay.as_secs_f64()))
        )
    }

    /// The measurements that exceed their bounds.
    fn excess(&self) -> Vec<&'static str> {
        let messages = self.budget.messages as u64;
        let over = [
            ("memory", self.memory > BOUNDS.memory),
            ("disk", self.disk > BOUNDS.disk * messages),
            ("log", self.log > BOUNDS.log * messages),
            ("sockets", self.sockets > BOUNDS.sockets),
            ("processor time", self.cpu > BOUNDS.cpu * messages as f64),
            ("redirects", self.redirects > 0),
        ];
        over.into_iter().filter_map(|(what, is_over)| is_over.then_some(what)).collect()
    }
}

/// Bytes of the ledger's pages that are in use.
fn ledger_bytes(home: &Home) -> u64 {
    let pages = "SELECT (page_count - freelist_count) * page_size
                 FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()";
    home.count(pages).expect("the ledger can be read").unsigned_abs()
}

fn open_sockets(pid: u32) -> u64 {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let is_socket = |path: std::path::PathBuf| path.to_string_lossy().starts_with("socket:");
    files.filter(|file| std::fs::read_link(file.path()).is_ok_and(is_socket)).count() as u64
}

/// Runs one attack against a new bot.
async fn attack(sort: Sort, manner: Manner, budget: Budget) -> Row {
    let (ours, theirs) = (RawRelay::start(raw_relay::Manner::Honest).await, HostileRelay::start(manner).await);
    let home = Home::new(&[ours.url()]);
    let bot = home.spawn_at_level("info").await;
    until("the bot listens", || async { ours.is_subscribed().then_some(()) }).await;
    // The honest asker is known to the bot: they have an open job.
    let mut honest = Asker::connect(&ours.url(), bot.public_key).await;
    assert!(honest.ask("qqqqqqqq").await.contains("#1"));
    let status = honest.wrap("status").await;
    let events = attack::events(sort, budget, bot.public_key, &theirs);

    // The vault is another process, and counts too.
    let pid = bot.pid();
    let vault = next_vault(pid, None).await;
    let resident = || usage::of(pid).1 + usage::of(vault).1;
    let worked = || usage::seconds_beside_search(pid) + usage::of(vault).0;
    let log_bytes = || home.log().len() as u64;
    let before = (resident(), ledger_bytes(&home), log_bytes(), open_sockets(pid), worked());
    let (mut memory, mut sockets) = (0, 0);
    let half = tokio::sync::Notify::new();
    let pour = async {
        let mut pace = tokio::time::interval(Duration::from_secs(1) / budget.a_second as u32);
        for (number, [list, message]) in events.iter().enumerate() {
            pace.tick().await;
            ours.pour(list);
            ours.pour(message);
            if number == events.len() / 2 {
                half.notify_one();
            }
        }
    };
    let ask = async {
        half.notified().await;
        let began = Instant::now();
        honest.publish(&status).await;
        // Waits longer than the bound, to print how much it is exceeded.
        let answer = tokio::time::timeout(3 * BOUNDS.delay, honest.next_text()).await;
        answer.ok().map(|_| began.elapsed())
    };
    let watch = async {
        let mut look = tokio::time::interval(Duration::from_millis(50));
        loop {
            look.tick().await;
            memory = resident().max(memory);
            sockets = open_sockets(pid).max(sockets);
        }
    };
    let delay = tokio::select! {
        ((), delay) = async { tokio::join!(pour, ask) } => delay,
        () = watch => unreachable!("it watches until the attack is over"),
    };
    Row {
        sort,
        manner,
        budget,
        memory: memory.max(resident()).saturating_sub(before.0),
        disk: ledger_bytes(&home).saturating_sub(before.1),
        log: log_bytes() - before.2,
        sockets: sockets.saturating_sub(before.3),
        cpu: worked() - before.4,
        delay,
        redirects: theirs.redirects_followed(),
    }
}

/// Runs the attacks, `at_once` at a time, each against a new bot. Prints the table, and fails if a
/// row exceeds a bound.
async fn table(at_once: usize, attacks: impl IntoIterator<Item = (Sort, Manner, Budget)>) {
    println!("{}", Row::HEAD);
    let (mut over, mut slowest) = (Vec::new(), Duration::ZERO);
    let attacks = attacks.into_iter().map(|(sort, manner, budget)| attack(sort, manner, budget));
    let mut rows = stream::iter(attacks).buffered(at_once);
    while let Some(row) = rows.next().await {
        println!("{}", row.line());
        slowest = slowest.max(row.delay.unwrap_or(3 * BOUNDS.delay));
        if !row.excess().is_empty() {
            over.push(format!("{}  over: {}", row.line(), row.excess().join(", ")));
        }
    }
    assert!(over.is_empty(), "{} rows are over their bounds:\n{}\n{}", over.len(), Row::HEAD, over.join("\n"));
    judge("the longest wait of the honest asker", slowest, BOUNDS.delay);
}

async fn every_kind_of_message_costs_what_the_table_allows() {
    table(at_once(), Sort::ALL.map(|sort| (sort, Manner::Closing, SHORT))).await;
}

async fn every_manner_of_relay_costs_what_the_table_allows() {
    table(at_once(), Manner::ALL.map(|manner| (Sort::Help, manner, SHORT))).await;
}

async fn every_kind_through_every_manner_costs_what_the_table_allows() {
    let rates = [2, 20, 50, 200];
    let budget = |a_second| Budget { messages: 30 * a_second, a_second, addresses: 6 };
    let pairs = Sort::ALL.into_iter().flat_map(|sort| Manner::ALL.map(|manner| (sort, manner)));
    let pairs = pairs.map(|(sort, manner)| (sort, manner, budget(20)));
    let worst = rates
        .into_iter()
        .flat_map(|a_second| [Manner::Mute, Manner::Silent].map(|manner| (Sort::Help, manner, budget(a_second))));
    let (part, parts) = part_of_the_table();
    table(1, worst.chain(pairs).skip(part).step_by(parts)).await;
}

/// The part of the full table that `NPUBBOT_TEST_PART` names, and the number of parts.
fn part_of_the_table() -> (usize, usize) {
    let Some(text) = std::env::var("NPUBBOT_TEST_PART").ok() else { return (0, 1) };
    let numbers = text.split_once('/').and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)));
    numbers.filter(|(part, parts)| part < parts).expect("NPUBBOT_TEST_PART is like 3/13")
}
