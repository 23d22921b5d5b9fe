//! S14: months in miniature. One run of the real program under mixed load and faults: requests,
//! split requests, refused ones, stops, deletions, junk, and a relay that sometimes goes down.
//! Memory, open files and threads do not grow, and at the end nothing is left undone. The long
//! form, 20 minutes: `cargo test --test it reliability::soak -- --ignored --nocapture
//! --test-threads 1`
use crate::support::bot::{BotProcess, Home};
use crate::support::forger::Forger;
use crate::support::harness::{Test, test};
use crate::support::relay::{Manner, TestRelay};
use crate::support::usage::status;
use crate::support::vault::network_of;
use crate::support::{connected, dm_list, publish_with, wait_for};
use nostr_sdk::prelude::{Client, Event, EventBuilder, Keys, Kind, Tag, Timestamp};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::HashSet;
use std::fs;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(two_hundred_mixed_messages_leave_nothing_undone_and_nothing_grows).slow(),
    test!(twenty_minutes_of_mixed_load_leave_nothing_undone_and_nothing_grows).long("20 minutes: the full form of S14"),
    test!(once_every_table_of_ids_is_full_the_heap_stays_as_it_is)
        .long("two minutes: every table of ids filled, for S14"),
];

const GENEROUS: &str = "[limits]\nopen_jobs_per_asker = 100\njobs_per_day = 100000\n";
/// Events that the relay keeps for each message of the load: the message and what the bot publishes
/// because of it. The junk, which is older, goes first.
const KEPT: usize = 10;
/// Seconds by which a wrap may be older than its message (NIP-59).
const BACKDATED: u64 = 2 * 86_400;
/// Age of junk in seconds: older than the messages, and young enough to be received.
const JUNK_AGE: u64 = BACKDATED + 1800;
const ASKERS: usize = 40;
/// Wraps of junk that are sent at once. A queue of the inbox has room for more.
const BATCH: usize = 1_000;
/// Messages after the load, one by one.
const AT_REST: usize = 5;
/// Heap bytes that each message keeps for long: the library notes that its id was verified, in one
/// of up to 128,000 entries. (The tables of other ids have their full size after the warm-up.)
const A_MESSAGE: u64 = 48;
/// Heap bytes of all tables of ids when they are full: 128,000 entries in the library; 100,000
/// processed and 16,384 accepted ids of 32 bytes. Each of these ids is in a hash set, which has one
/// more byte per place and twice the power of two that holds them, and in a queue.
const TABLES: u64 = 128_000 * A_MESSAGE + 33 * ((1 << 18) + (1 << 16)) + 32 * ((1 << 17) + (1 << 15));
/// How much the smallest heap in a fifth of the run may vary because of the jobs and messages that
/// happen to be open.
const HEAP_SLACK: u64 = 256 << 10;
/// How much memory may grow beside the counted heap and the space for a burst: SQLite's cache of
/// 2,000 KiB, and gaps of the allocator.
const SLACK: u64 = 3 << 20;
/// Number of connections or threads that may exist at one time and not at another. In the long form
/// the relay goes down about 25 times, so a leak would exceed this number.
const A_FEW: u64 = 3;
/// Bytes of the ledger that a message may leave behind: its id, a job and the sealed result, which
/// is kept for `resend`.
const ROWS_A_MESSAGE: u64 = 8 << 10;
/// Bytes of the ledger's schema and of the free pages that stay in it.
const EMPTY_LEDGER: u64 = 5 << 20;
/// The most bytes of the write-ahead log. It is cut back to 8 MiB, and a transaction comes on top.
const LONGEST_WAL: u64 = 9 << 20;
/// Bytes of log per message, at the debug level.
const LOG_A_MESSAGE: u64 = 2 << 10;

/// Resources that the program uses at one moment.
#[derive(Clone, Copy, Debug)]
struct Usage {
    /// Private memory. Pages of the program file are not counted, because they are loaded as the
    /// code is used.
    resident: u64,
    files: u64,
    threads: u64,
}

fn usage(pid: u32) -> Usage {
    let pid = network_of(pid);
    let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() as u64;
    Usage { resident: status(pid, "RssAnon") * 1024, files, threads: status(pid, "Threads") }
}

/// Bytes of a file in the bot's folders; 0 if there is none.
fn size(home: &Home, name: &str) -> u64 {
    fs::metadata(home.folder.path().join(name)).map_or(0, |file| file.len())
}

/// A random message of the mixed load in a wrap, and its text; `None` for junk.
fn message(rng: &mut StdRng, forger: &Forger, number: usize) -> (Event, Option<String>) {
    let character = |rng: &mut StdRng| char::from(npubbot::pattern::ALPHABET[rng.random_range(0..32)]);
    let request: String = (0..rng.random_range(2..4)).map(|_| character(rng)).collect();
    let back = rng.random_range(0..BACKDATED);
    let text = match number % 10 {
        0..4 => request,
        4 => format!("split {} {request}", point()),
        5 => "bob io1".to_owned(),
        6 => ["stop", "start", "status"][rng.random_range(0..3)].to_owned(),
        7 => "delete".to_owned(),
        8 => return (forger.with_rumor("{\"junk\": "), None),
        _ => return (forger.wrap_of(&"x".repeat(rng.random_range(1..20_000))), None),
    };
    (forger.honest(&text, back), Some(text))
}

/// The point of a half that was never used: a random x-coordinate with its even y.
fn point() -> String {
    format!("02{}", Keys::generate().public_key().to_hex())
}

/// Heap bytes in use, as noted in the log with each batch of messages.
fn heap(home: &Home) -> Vec<u64> {
    home.log().lines().filter_map(|line| line.split_once("memory heap=")?.1.trim().parse().ok()).collect()
}

/// A relay that keeps the newest `kept` events of a kind, a running bot, and a client for the askers.
async fn start(kept: usize) -> (TestRelay, Home, BotProcess, Client) {
    let relay = TestRelay::start_with(Manner::Forgetful(kept)).await;
    let home = Home::with(&[relay.url()], GENEROUS);
    let process = home.spawn().await;
    let writer = connected(&relay.url()).await;
    (relay, home, process, writer)
}

/// Sends numbered batches of junk, and returns when all of it is processed.
async fn junk(batches: RangeInclusive<usize>, writer: &Client, asker: &Forger, home: &Home) {
    let once = Keys::generate();
    for batch in batches {
        for number in 0..BATCH {
            let junk = EventBuilder::new(Kind::GiftWrap, format!("{batch} {number}"))
                .tag(Tag::public_key(asker.bot))
                .custom_created_at(Timestamp::now() - JUNK_AGE);
            publish_with(writer, &junk.sign_with_keys(&once).unwrap()).await;
        }
        // The bot processes this message after everything that came before.
        publish_with(writer, &asker.honest(&format!("hello {batch}"), 0)).await;
        let is_done = || async { (home.count("SELECT count(*) FROM seen") == Some(batch as i64)).then_some(()) };
        crate::support::until("the junk is dealt with", is_done).await;
    }
}

/// Sends `messages` of the mixed load, one every `pace`. The relay goes down after the first 40 to
/// 120 messages, and then every 120 to 240.
///
/// `batches` of junk are sent first, so many that the tables of ids do not grow during the
/// measurement, and that nearly every page of the library's table (1,088 pages, reserved at once)
/// is in use.
async fn soak(messages: usize, pace: Duration, batches: usize) {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let (mut relay, home, process, writer) = start(KEPT * messages).await;
    let askers: Vec<Forger> = (0..ASKERS).map(|_| Forger::new(process.public_key)).collect();
    for asker in &askers {
        publish_with(&writer, &dm_list(&asker.author, &[relay.url()])).await;
    }
    let at_start = usage(process.pid()).threads;
    junk(1..=batches, &writer, &askers[0], &home).await;
    let heap_before = heap(&home).len();
    let began = Instant::now();
    let (mut used, mut sent, mut deaths, mut wal) = (Vec::new(), 0, 0, 0);
    let mut accepted = HashSet::new();
    let between = pace;
    let mut pace = tokio::time::interval(between);
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut dies_at = between * rng.random_range(40..120);
    while sent < messages {
        pace.tick().await;
        let asker = &askers[rng.random_range(0..ASKERS)];
        let (event, text) = message(&mut rng, asker, sent);
        // A message sent while the relay is down is lost, as anywhere.
        let result = tokio::time::timeout(Duration::from_secs(1), writer.send_event(&event)).await;
        if matches!(result, Ok(Ok(output)) if !output.success.is_empty()) {
            accepted.extend(text.map(|text| asker.rumor(&text).id.unwrap().to_hex()));
        }
        sent += 1;
        used.push(usage(process.pid()));
        wal = size(&home, "data/ledger/ledger.sqlite-wal").max(wal);
        if began.elapsed() > dies_at {
            relay.stop().await;
            // The injected fault: the relay stays down for this time.
            tokio::time::sleep(between * rng.random_range(1..12)).await;
            relay.start_again().await;
            deaths += 1;
            dies_at = began.elapsed() + between * rng.random_range(120..240);
        }
    }
    // Whatever the relay accepted arrives, also what the bot missed while it was not connected.
    let ids: Vec<String> = accepted.iter().map(|id| format!("x'{id}'")).collect();
    let seen = format!("SELECT count(DISTINCT rumor) FROM seen WHERE rumor IN ({})", ids.join(", "));
    let all = || async { (home.count(&seen) == Some(accepted.len() as i64)).then_some(()) };
    crate::support::until("every message that the relay accepted arrives", all).await;
    // In the end nothing is open. Messages whose relay was down are due again within a minute or
    // two.
    let undone = "SELECT (SELECT count(*) FROM job WHERE state IN ('accepted', 'found'))
                       + (SELECT count(*) FROM outbox WHERE finished = 0)";
    let ends = Instant::now() + crate::support::PATIENCE;
    // The last messages may still be on their way to the ledger. They are done when the count stays
    // at zero.
    let mut quiet = 0;
    while quiet < 30 && Instant::now() < ends {
        quiet = if home.count(undone) == Some(0) { quiet + 1 } else { 0 };
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(quiet, 30, "jobs and messages are left undone: {:?}", home.count(undone));
    // On a busy machine many messages were under way until now. A few more messages show the heap
    // at rest.
    for _ in 0..AT_REST {
        let noted = heap(&home).len();
        publish_with(&writer, &askers[0].honest("hello", 0)).await;
        wait_for("the bot reads it", || heap(&home).len() > noted).await;
    }
    let heap = heap(&home).split_off(heap_before);
    let delivered = home.count("SELECT sum(delivered) FROM day").unwrap_or(0);
    assert!(delivered as usize > sent / 10, "{delivered} of {sent} messages led to a key");
    assert!(!home.log().contains("panicked"), "{}", home.log());

    // Compares the second fifth of the run with the last. Usage fluctuates, so the minimum of each
    // is compared.
    let least = |what: fn(&Usage) -> u64| second_and_last_fifth(&used).map(|some| some.iter().map(what).min().unwrap());
    let (resident, files, threads) = (least(|one| one.resident), least(|one| one.files), least(|one| one.threads));
    // Hits of easy requests come in bursts, and the allocator keeps the memory of a burst for the
    // next.
    let burst = heap.iter().max().unwrap() - heap.iter().min().unwrap();
    let heap = second_and_last_fifth(&heap).map(|some| *some.iter().min().unwrap());
    println!(
        "{:?}: {sent} messages, {delivered} keys, the relay died {deaths} times; second and last fifth: {heap:?} bytes of the \
         heap in use (for a moment up to {burst} more), {resident:?} resident, {files:?} files, {threads:?} threads",
        began.elapsed(),
    );
    let (ledger, log) = (size(&home, "data/ledger/ledger.sqlite"), size(&home, "log"));
    println!("bytes of the ledger {ledger}, of its write-ahead log at most {wal}, of the log {log}");
    assert!(ledger <= EMPTY_LEDGER + sent as u64 * ROWS_A_MESSAGE, "the ledger");
    assert!(wal <= LONGEST_WAL, "the write-ahead log");
    assert!(log <= (sent + batches * BATCH) as u64 * LOG_A_MESSAGE, "the log");
    let between = (sent - sent / 5) as u64;
    assert!(heap[1] <= heap[0] + between * A_MESSAGE + HEAP_SLACK, "the heap");
    assert!(resident[1] <= resident[0] + burst + between * A_MESSAGE + SLACK, "memory");
    assert!(files[1] <= files[0] + A_FEW, "open files");
    // Threads for blocking work start on demand and end ten seconds after their last use.
    let at_rest = || async { (usage(process.pid()).threads <= at_start + A_FEW).then_some(()) };
    crate::support::until("the threads that are not needed end", at_rest).await;
    process.kill();
    home.assert_sound();
}

/// The two parts of the run that are compared.
fn second_and_last_fifth<T>(all: &[T]) -> [&[T]; 2] {
    let fifth = all.len() / 5;
    [&all[fifth..2 * fifth], &all[all.len() - fifth..]]
}

async fn two_hundred_mixed_messages_leave_nothing_undone_and_nothing_grows() {
    soak(200, Duration::from_millis(60), 2).await;
}

async fn twenty_minutes_of_mixed_load_leave_nothing_undone_and_nothing_grows() {
    soak(4_800, Duration::from_millis(250), 9).await;
}

/// The memory for ids of events is bounded.
async fn once_every_table_of_ids_is_full_the_heap_stays_as_it_is() {
    let (_relay, home, process, writer) = start(2_000).await;
    let asker = Forger::new(process.public_key);
    let at_start = crate::support::until("the first word of the heap", || async { heap(&home).first().copied() }).await;
    let mut held = vec![at_start];
    for fifty in 0..5 {
        let before = heap(&home).len();
        junk(fifty * 50 + 1..=fifty * 50 + 50, &writer, &asker, &home).await;
        held.push(*heap(&home)[before..].last().unwrap());
    }
    println!("bytes of the heap in use after 0, 50,000, … 250,000 wraps: {held:?}; {:?}", usage(process.pid()));
    assert!(held[5] <= held[0] + TABLES + HEAP_SLACK, "the heap");
    process.kill();
}
