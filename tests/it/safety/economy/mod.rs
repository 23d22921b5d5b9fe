//! Unknown senders cannot exhaust the bot. One attacker sends messages of every kind from fresh keys,
//! whose lists name relays of every behaviour, while honest people write. Everything that the
//! attacker can make the bot keep, send, dial, compute or log has a bound.

mod relays;

use crate::support::asker::Asker;
use crate::support::bot::Home;
use crate::support::forger::Forger;
use crate::support::harness::{Test, figure, test};
use crate::support::raw_relay::RawRelay;
use crate::support::vault::next_vault;
use crate::support::{dm_list, until, usage};
use futures_util::stream::{self, StreamExt};
use nostr_sdk::prelude::*;
use relays::{HostileRelay, Manner};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

pub const TESTS: &[Test] = &[
    test!(every_kind_of_message_and_every_manner_of_relay_costs_what_the_table_allows).slow(),
    test!(every_kind_through_every_manner_costs_what_the_table_allows)
        .long("a quarter of an hour: `just economy`")
        .measures("economy"),
    test!(relays_that_say_nothing_delay_nobody_else).long("a quarter of an hour: `just latency`").measures("latency"),
];

/// The kind of message that the attacker sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sort {
    Request,
    Split,
    Help,
    Status,
    Cancel,
    Resend,
    Delete,
    Junk,
    File,
    Deletion,
    Vanish,
    Nip04,
}

impl Sort {
    const ALL: [Sort; 12] = [
        Sort::Request,
        Sort::Split,
        Sort::Help,
        Sort::Status,
        Sort::Cancel,
        Sort::Resend,
        Sort::Delete,
        Sort::Junk,
        Sort::File,
        Sort::Deletion,
        Sort::Vanish,
        Sort::Nip04,
    ];

    /// A message of this kind.
    fn event(self, from: &Forger) -> Event {
        let us = Tag::public_key(from.bot);
        let of_kind = |kind: u16, content: &str, tags: Vec<Tag>| {
            let mut rumor = EventBuilder::new(Kind::from(kind), content).tags(tags).build(from.author.public_key());
            rumor.ensure_id();
            from.with_rumor(rumor.as_json())
        };
        let signed = |kind: Kind, content: String, tag: Tag| {
            EventBuilder::new(kind, content).tag(tag).sign_with_keys(&from.author).unwrap()
        };
        match self {
            Sort::Request => from.honest("qqqqqqqq", 0),
            Sort::Split => from.honest(&format!("split 02{} qqqqqqqq", Keys::generate().public_key().to_hex()), 0),
            Sort::Help | Sort::Status | Sort::Cancel | Sort::Resend | Sort::Delete => {
                from.honest(&format!("{self:?}").to_lowercase(), 0)
            }
            Sort::Junk => from.wrap_of(&"x".repeat(20_000)),
            Sort::File => of_kind(15, "https://files.example/cat.png", vec![us]),
            Sort::Deletion => of_kind(5, "", vec![Tag::event(EventId::all_zeros())]),
            Sort::Vanish => signed(Kind::RequestToVanish, String::new(), Tag::custom(TagKind::Relay, ["ALL_RELAYS"])),
            Sort::Nip04 => {
                let content = nip04::encrypt(from.author.secret_key(), &from.bot, "help").unwrap();
                signed(Kind::EncryptedDirectMessage, content, us)
            }
        }
    }
}

/// The attacker's budget. Each message comes from a fresh key, whose list names six addresses.
#[derive(Clone, Copy, Debug)]
struct Budget {
    messages: usize,
    a_second: usize,
}

const SHORT: Budget = Budget { messages: 40, a_second: 20 };
/// Bounds of one attack. Memory in bytes, for the whole attack.
const MEMORY: u64 = 64 << 20;
/// Ledger pages in use, in bytes a message, before anything is cleaned up.
const DISK: u64 = 8 << 10;
/// Bytes of log a message, at the default level.
const LOG: u64 = 2 << 10;
/// The slots of external relays (`nostr/relay/slots.rs`), and the connections to our own.
const SOCKETS: u64 = 202;
/// Processor time besides the search, in milliseconds a message.
const CPU: f64 = 20.0;
/// The longest that an honest person waits.
const WAIT: Duration = Duration::from_secs(5);
/// The time between two honest messages.
const PAUSE: Duration = Duration::from_secs(2);
/// Proof of work that newcomers do for a request in a flood, in bits.
const WORK: u8 = 8;

/// The cost of one attack, and the longest waits of honest people: of an asker with an open job for
/// the status, of a newcomer for help, and of a newcomer for a key.
#[derive(Debug)]
struct Cost {
    sort: Sort,
    manner: Manner,
    budget: Budget,
    memory: u64,
    disk: u64,
    log: u64,
    sockets: u64,
    cpu: f64,
    waits: [Duration; 3],
    redirects: usize,
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

/// Somebody honest, whose list at `ours` names a relay that the bot has never visited.
async fn person(ours: &RawRelay, bot: PublicKey) -> (Asker, RawRelay) {
    let relay = RawRelay::honest().await;
    let asker = Asker::connect_without_relay_list(&relay.url(), bot).await;
    ours.pour(&dm_list(&asker.keys, &[relay.url()]));
    (asker, relay)
}

/// Runs one attack against a new bot.
async fn attack(sort: Sort, manner: Manner, budget: Budget) -> Cost {
    let (ours, theirs) = (RawRelay::honest().await, HostileRelay::start(manner).await);
    let home = Home::with(&[ours.url()], &format!("[limits]\nflood_work_bits = {WORK}\n"));
    let bot = home.spawn_at_level("info").await;
    until("the bot listens", || async { ours.is_subscribed().then_some(()) }).await;
    let (mut known, _relay) = person(&ours, bot.public_key).await;
    ours.pour(&known.wrap("qqqqqqqq").await);
    assert!(known.next_text().await.contains("#1"));
    let turns = (budget.messages / budget.a_second / (3 * PAUSE.as_secs() as usize)).max(1);
    let mut newcomers = Vec::new();
    for number in 0..2 * turns {
        let person = person(&ours, bot.public_key).await;
        let message = person.0.wrap_with_work(["help", "pz"][number % 2], WORK);
        newcomers.push((person, message));
    }
    let events: Vec<[Event; 2]> = (0..budget.messages)
        .map(|number| {
            let from = Forger::new(bot.public_key);
            let urls = (0..6).map(|at| Tag::relay(theirs.url(number * 6 + at)));
            let list = EventBuilder::new(Kind::InboxRelays, "").tags(urls).sign_with_keys(&from.author).unwrap();
            [list, sort.event(&from)]
        })
        .collect();
    // The vault is another process, and counts too.
    let (pid, vault) = (bot.pid(), next_vault(bot.pid(), None).await);
    let resident = || usage::of(pid).1 + usage::of(vault).1;
    let worked = || usage::seconds_beside_search(pid) + usage::of(vault).0;
    let log_bytes = || home.log().len() as u64;
    let before = (resident(), ledger_bytes(&home), log_bytes(), open_sockets(pid), worked());
    let (mut memory, mut sockets) = (0, 0);
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
        let (mut waits, mut waiting) = ([Duration::ZERO; 3], JoinSet::new());
        for (number, ((mut asker, relay), message)) in newcomers.into_iter().enumerate() {
            if number % 2 == 0 {
                pace.tick().await;
                let (status, began) = (known.wrap_with_work("status", WORK), Instant::now());
                ours.pour(&status);
                known.next_text().await;
                waits[0] = began.elapsed().max(waits[0]);
            }
            pace.tick().await;
            let began = Instant::now();
            ours.pour(&message);
            waiting.spawn(async move {
                if number % 2 == 0 {
                    drop(asker.next_text().await)
                } else {
                    drop(asker.next_key().await)
                }
                drop(relay);
                (1 + number % 2, began.elapsed())
            });
        }
        for (kind, wait) in waiting.join_all().await {
            waits[kind] = wait.max(waits[kind]);
        }
        waits
    };
    let watch = async {
        let mut look = tokio::time::interval(Duration::from_millis(50));
        loop {
            look.tick().await;
            memory = resident().max(memory);
            sockets = open_sockets(pid).max(sockets);
        }
    };
    let waits = tokio::select! {
        ((), waits) = async { tokio::join!(pour, write) } => waits,
        () = watch => unreachable!("it watches until the attack is over"),
    };
    Cost {
        sort,
        manner,
        budget,
        memory: memory.max(resident()).saturating_sub(before.0),
        disk: ledger_bytes(&home).saturating_sub(before.1),
        log: log_bytes() - before.2,
        sockets: sockets.saturating_sub(before.3),
        cpu: worked() - before.4,
        waits,
        redirects: theirs.redirects_followed(),
    }
}

/// Runs the attacks, `at_once` at a time, each against a new bot. Checks what is counted. Prints the
/// highest of what is measured.
async fn costs(at_once: usize, attacks: impl IntoIterator<Item = (Sort, Manner, Budget)>) {
    let attacks = attacks.into_iter().map(|(sort, manner, budget)| attack(sort, manner, budget));
    let mut costs = stream::iter(attacks).buffered(at_once);
    let (mut memory, mut cpu, mut waits) = (0, 0f64, [Duration::ZERO; 3]);
    while let Some(cost) = costs.next().await {
        println!("{:?} through {:?}: {cost:?}", cost.sort, cost.manner);
        let messages = cost.budget.messages as u64;
        assert!(cost.disk <= DISK * messages && cost.log <= LOG * messages, "disk or log: {cost:?}");
        assert!(cost.sockets <= SOCKETS && cost.redirects == 0, "sockets or redirects: {cost:?}");
        (memory, cpu) = (cost.memory.max(memory), cpu.max(1e3 * cost.cpu / messages as f64));
        for (longest, wait) in waits.iter_mut().zip(cost.waits) {
            *longest = wait.max(*longest);
        }
    }
    figure("bytes of memory", memory, MEMORY);
    figure("processor time of a message, ms", cpu, CPU);
    for (what, wait) in ["the status, with a job", "help", "a key"].into_iter().zip(waits) {
        figure(&format!("the longest wait for {what}"), wait, WAIT);
    }
}

async fn every_kind_of_message_and_every_manner_of_relay_costs_what_the_table_allows() {
    let manners = Manner::ALL.into_iter().cycle();
    costs(3, Sort::ALL.into_iter().zip(manners).map(|(sort, manner)| (sort, manner, SHORT))).await;
}

async fn every_kind_through_every_manner_costs_what_the_table_allows() {
    let pairs = Sort::ALL.into_iter().flat_map(|sort| Manner::ALL.map(|manner| (sort, manner, SHORT)));
    costs(1, pairs).await;
}

/// Attacks for half a minute at each rate.
async fn relays_that_say_nothing_delay_nobody_else() {
    for sort in [Sort::Help, Sort::Request] {
        for a_second in [2, 20, 50, 200] {
            let budget = Budget { messages: 30 * a_second, a_second };
            costs(1, [Manner::Mute, Manner::Silent].map(|manner| (sort, manner, budget))).await;
        }
    }
}
