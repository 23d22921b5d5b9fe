//! Unknown senders cannot exhaust the bot: a matrix of what strangers send from fresh keys, whose
//! lists name relays of every behaviour, and of who writes meanwhile. Everything that strangers can
//! make the bot keep, dial or log has a bound, and nobody is locked out.

mod relays;

use crate::support::asker::{Asker, explains_a_result, is_result};
use crate::support::bot::Home;
use crate::support::forger::Forger;
use crate::support::harness::{Test, figure, test};
use crate::support::relay::TestRelay;
use crate::support::vault::{network_of, next_vault};
use crate::support::{dm_list, usage, wait_for};
use futures_util::stream::{self, StreamExt};
use nostr_sdk::prelude::*;
use relays::{HostileRelay, Manner};
use std::time::{Duration, Instant};
use strum::VariantArray;

pub const TESTS: &[Test] = &[
    test!(every_verb_from_fresh_keys_costs_what_the_table_allows_and_locks_nobody_out).slow(),
    test!(every_verb_at_thirty_keys_a_second_delays_the_known_little)
        .long("eight minutes alone on a machine, where nothing delays the search: `just economy`")
        .measures("economy"),
    test!(relays_that_say_nothing_delay_nobody_else).long("a quarter of an hour: `just latency`").measures("latency"),
];

/// What strangers send: a name, and a text in which `POINT` is a fresh point.
const VERBS: [(&str, &str); 14] = [
    ("help", "help"),
    ("explain", "explain ~m0ctane *cafe words:8"),
    ("prefix", "qqqqqqqq"),
    ("ends", "*qqqqqqq *ppppppp *zzzzzzz *rrrrrrr *yyyyyyy *9999999 *xxxxxxx *8888888"),
    ("start and part", "x0ct*cafe x1ct*cafe x2ct*cafe x3ct*cafe"),
    ("wide", "??m0c7a"),
    ("best", "best 10m"),
    ("surprise", "surprise"),
    ("split", "split POINT qqqqqqqq"),
    ("split best", "split POINT best 10m"),
    ("resend", "resend"),
    ("status", "status"),
    ("junk", "x"),
    ("the rest", "cancel"),
];

/// A message of a stranger.
fn message((verb, text): (&str, &str), number: usize, from: &Forger) -> Event {
    let of_kind = |kind: u16, content: &str, tag: Tag| {
        let mut rumor = EventBuilder::new(Kind::from(kind), content).tag(tag).build(from.author.public_key());
        rumor.ensure_id();
        from.with_rumor(rumor.as_json())
    };
    let signed = |kind: Kind, content: String, tag: Tag| {
        EventBuilder::new(kind, content).tag(tag).sign_with_keys(&from.author).unwrap()
    };
    let us = Tag::public_key(from.bot);
    match (verb, number % 6) {
        ("junk", _) => from.wrap_of(&text.repeat(20_000)),
        ("the rest", 1) => from.honest("delete", 0),
        ("the rest", 2) => of_kind(15, "https://files.example/cat.png", us),
        ("the rest", 3) => of_kind(5, "", Tag::event(EventId::all_zeros())),
        ("the rest", 4) => signed(Kind::RequestToVanish, String::new(), Tag::custom(TagKind::Relay, ["ALL_RELAYS"])),
        ("the rest", 5) => {
            let content = nip04::encrypt(from.author.secret_key(), &from.bot, "help").unwrap();
            signed(Kind::EncryptedDirectMessage, content, us)
        }
        _ => from.honest(&text.replace("POINT", &point()), 0),
    }
}

fn point() -> String {
    format!("02{}", Keys::generate().public_key().to_hex())
}

/// Who writes beside the strangers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, VariantArray)]
enum Victim {
    /// A fresh key with a client.
    Newcomer,
    /// A fresh key on the page, which asks for a split key.
    OnThePage,
    /// Somebody whose job is searched.
    Known,
    /// Somebody whom the operator made a friend.
    Friend,
}

/// A person, whose list at `ours` names a relay that the bot has never visited.
struct Person {
    asker: Asker,
    _relay: TestRelay,
}

impl Person {
    async fn new(ours: &TestRelay, bot: PublicKey) -> Person {
        let relay = TestRelay::start().await;
        let asker = Asker::connect_without_relay_list(&relay.url(), bot).await;
        ours.pour(&dm_list(&asker.keys, &[relay.url()]));
        Person { asker, _relay: relay }
    }

    /// Sends a request and waits for its result. Returns the time that took; `None` if the request
    /// is refused, or costs work.
    async fn ask(&mut self, ours: &TestRelay, text: &str) -> Option<Duration> {
        let began = Instant::now();
        ours.pour(&self.asker.wrap(text).await);
        loop {
            let text = self.asker.next_text().await;
            match () {
                () if is_result(&text) => return Some(began.elapsed()),
                () if explains_a_result(&text) || text.contains("earching for") => {}
                () => {
                    println!("refused: {text}");
                    assert!(text.contains("work"), "who is refused is told what to pay: {text}");
                    return None;
                }
            }
        }
    }
}

/// What a victim asks for: a start, or an end every second time. It is found at once.
fn wish(victim: Victim, number: usize) -> String {
    let letter = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l"[number % 32] as char;
    let wish = if number % 2 == 1 { format!("d{letter}") } else { format!("*d{letter}") };
    if victim == Victim::OnThePage { format!("split {} {wish}", point()) } else { wish }
}

/// Strangers' messages. Each comes from a fresh key, whose list names six addresses.
#[derive(Clone, Copy, Debug)]
struct Flood {
    messages: usize,
    a_second: usize,
    /// How often each victim asks.
    turns: usize,
}

const SHORT: Flood = Flood { messages: 40, a_second: 20, turns: 1 };
const LONG: Flood = Flood { messages: 900, a_second: 30, turns: 4 };

/// Memory of one flood, bytes.
const MEMORY: u64 = 64 << 20;
/// Ledger pages in use, in bytes a message, and a key kept for a job without a target, before
/// anything is cleaned up.
const DISK: u64 = 8 << 10;
/// Bytes of pages for what the bot publishes meanwhile, and for the victims' own jobs.
const OWN_DISK: u64 = 64 << 10;
/// Rows that a message may add to all tables: its id, a job and its answer, with its relays.
const ROWS: u64 = 6;
/// Bytes of log a message, at the default level.
const LOG: u64 = 2 << 10;
/// The slots of external relays (`nostr/relay/slots.rs`), and the connections to our own.
const SOCKETS: u64 = 202;
/// The longest that a newcomer may wait for a key at a slow fair rate.
const NEWCOMER_WAIT: Duration = Duration::from_secs(60);
/// What a known asker and a friend may wait beyond twice the calm time.
const ALLOWANCE: Duration = Duration::from_secs(2);

/// The cost of one flood.
#[derive(Debug)]
struct Cost {
    verb: &'static str,
    manner: Manner,
    memory: u64,
    disk: u64,
    rows: u64,
    /// Keys kept for jobs without a target. How many there are depends on the time of the search.
    kept: u64,
    log: u64,
    sockets: u64,
    redirects: usize,
    /// For each victim: the time in calm, the longest in the flood, and how many were refused.
    waits: [(Duration, Duration, usize); 4],
}

/// Bytes of the ledger's pages that are in use, its rows, and the best keys in them.
fn ledger_size(home: &Home) -> (u64, u64, u64) {
    let pages = "SELECT (page_count - freelist_count) * page_size
                 FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()";
    let rows = "SELECT (SELECT count(*) FROM seen) + (SELECT count(*) FROM job) + (SELECT count(*) FROM outbox)
                     + (SELECT count(*) FROM acknowledged) + (SELECT count(*) FROM language)
                     + (SELECT count(*) FROM best)";
    let kept = "SELECT count(*) FROM best WHERE json IS NOT NULL";
    let count = |query| home.count(query).expect("the ledger can be read").unsigned_abs();
    (count(pages), count(rows), count(kept))
}

fn open_sockets(pid: u32) -> u64 {
    let files = std::fs::read_dir(format!("/proc/{}/fd", network_of(pid))).unwrap().flatten();
    let is_socket = |path: std::path::PathBuf| path.to_string_lossy().starts_with("socket:");
    files.filter(|file| std::fs::read_link(file.path()).is_ok_and(is_socket)).count() as u64
}

/// Floods a new bot with one verb, while each victim asks for keys.
async fn flood(verb: (&'static str, &str), manner: Manner, budget: Flood) -> Cost {
    let (ours, theirs) = (TestRelay::start().await, HostileRelay::start(manner).await);
    let home = Home::new(&[ours.url()]);
    let bot = home.spawn_at_level("info").await;
    wait_for("the bot listens", || ours.is_subscribed()).await;
    // A person for each turn: a newcomer is one only once. The first turn is calm.
    let mut people = Vec::new();
    for &victim in Victim::VARIANTS {
        let fresh = matches!(victim, Victim::Newcomer | Victim::OnThePage);
        let mut persons = Vec::new();
        for _ in 0..if fresh { 1 + budget.turns } else { 1 } {
            persons.push(Person::new(&ours, bot.public_key).await);
        }
        people.push((victim, persons));
    }
    let friend = people[3].1[0].asker.keys.public_key().to_bech32().unwrap();
    assert!(home.operate(&["allow", "--friend", &friend]).status.success());
    let known = &mut people[2].1[0].asker;
    ours.pour(&known.wrap("qqqqqqqq").await);
    assert!(known.next_text().await.contains("#1"));
    let mut calm = Vec::new();
    for (victim, persons) in &mut people {
        let took = persons[0].ask(&ours, &wish(*victim, 31)).await;
        calm.push(took.unwrap_or_else(|| panic!("{victim:?} is refused in calm")));
    }
    let events: Vec<[Event; 2]> = (0..budget.messages)
        .map(|number| {
            let from = Forger::new(bot.public_key);
            let urls = (0..6).map(|at| Tag::relay(theirs.url(number * 6 + at)));
            let list = EventBuilder::new(Kind::InboxRelays, "").tags(urls).sign_with_keys(&from.author).unwrap();
            [list, message(verb, number, &from)]
        })
        .collect();
    // The vault is another process, and counts too.
    let (pid, vault) = (bot.pid(), next_vault(bot.pid(), None).await);
    let resident = || usage::of(pid).1 + usage::of(vault).1;
    let log_bytes = || home.log().len() as u64;
    let before = (resident(), ledger_size(&home), log_bytes(), open_sockets(pid));
    let (mut memory, mut sockets) = (0, 0);
    let pour = async {
        let mut pace = tokio::time::interval(Duration::from_secs(1) / budget.a_second as u32);
        for [list, message] in &events {
            pace.tick().await;
            ours.pour(list);
            ours.pour(message);
        }
    };
    let time = Duration::from_secs(1) * (budget.messages / budget.a_second) as u32;
    let asked = people.into_iter().zip(calm).map(async |((victim, mut persons), calm)| {
        let mut pace = tokio::time::interval(time / (budget.turns as u32 + 1));
        // The flood begins first.
        pace.tick().await;
        let (mut longest, mut refused) = (Duration::ZERO, 0);
        for turn in 1..=budget.turns {
            pace.tick().await;
            let person = turn.min(persons.len() - 1);
            match persons[person].ask(&ours, &wish(victim, turn)).await {
                Some(took) => longest = took.max(longest),
                None => refused += 1,
            }
        }
        (calm, longest, refused)
    });
    let watch = async {
        let mut look = tokio::time::interval(Duration::from_millis(50));
        loop {
            look.tick().await;
            memory = resident().max(memory);
            sockets = open_sockets(pid).max(sockets);
        }
    };
    let waits = tokio::select! {
        ((), waits) = async { tokio::join!(pour, futures_util::future::join_all(asked)) } => waits,
        () = watch => unreachable!("it watches until the flood is over"),
    };
    let (pages, rows, kept) = ledger_size(&home);
    Cost {
        verb: verb.0,
        manner,
        memory: memory.max(resident()).saturating_sub(before.0),
        disk: pages.saturating_sub(before.1.0),
        rows: rows.saturating_sub(before.1.1),
        kept,
        log: log_bytes() - before.2,
        sockets: sockets.saturating_sub(before.3),
        redirects: theirs.redirects_followed(),
        waits: waits.try_into().expect("four victims"),
    }
}

/// Runs floods, `at_once` at a time, each against a new bot. Checks what is counted and who is
/// refused; times are figures.
async fn costs(at_once: usize, floods: impl IntoIterator<Item = ((&'static str, &'static str), Manner, Flood)>) {
    let floods = floods.into_iter().map(async |(verb, manner, budget)| (flood(verb, manner, budget).await, budget));
    let mut costs = stream::iter(floods).buffered(at_once);
    while let Some((cost, budget)) = costs.next().await {
        println!("{} through {:?}: {cost:?}", cost.verb, cost.manner);
        let messages = budget.messages as u64;
        assert!(cost.disk <= OWN_DISK + DISK * (messages + cost.kept), "{cost:?}");
        assert!(cost.rows <= ROWS * messages, "{cost:?}");
        assert!(cost.log <= LOG * messages && cost.sockets <= SOCKETS && cost.redirects == 0, "{cost:?}");
        let [.., known, friend] = cost.waits;
        assert_eq!((known.2, friend.2), (0, 0), "known askers and friends are served: {cost:?}");
        figure(&format!("{}: bytes of memory", cost.verb), cost.memory, MEMORY);
        for (victim, (calm, longest, _)) in Victim::VARIANTS.iter().zip(cost.waits) {
            let is_known = matches!(victim, Victim::Known | Victim::Friend);
            let bar = if is_known { 2 * calm + ALLOWANCE } else { NEWCOMER_WAIT };
            figure(&format!("{}: {victim:?} ({calm:.1?} in calm)", cost.verb), longest, bar);
        }
    }
}

/// The verbs, each with a manner of relay.
fn verbs(budget: Flood) -> impl Iterator<Item = ((&'static str, &'static str), Manner, Flood)> {
    VERBS.into_iter().zip(Manner::VARIANTS.iter().cycle()).map(move |(verb, manner)| (verb, *manner, budget))
}

async fn every_verb_from_fresh_keys_costs_what_the_table_allows_and_locks_nobody_out() {
    costs(3, verbs(SHORT)).await;
}

async fn every_verb_at_thirty_keys_a_second_delays_the_known_little() {
    costs(1, verbs(LONG)).await;
}

/// Floods for half a minute at each rate.
async fn relays_that_say_nothing_delay_nobody_else() {
    for a_second in [2, 20, 50, 200] {
        let budget = Flood { messages: 30 * a_second, a_second, turns: 5 };
        let verbs = [VERBS[0], VERBS[2]].into_iter();
        costs(1, verbs.flat_map(|verb| [Manner::Mute, Manner::Silent].map(|manner| (verb, manner, budget)))).await;
    }
}
