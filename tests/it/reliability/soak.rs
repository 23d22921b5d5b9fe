//! S14: a long time in miniature. One life of the real program under mixed load and faults: requests, split requests, refused
//! ones, stops, deletions, junk, and a relay that dies now and then. Its memory, open files and threads do not grow, and
//! at the end nothing is left undone. In full, 20 minutes:
//! `cargo test --test it reliability::soak -- --ignored --nocapture --test-threads 1`
use crate::support::bot::{BotProcess, Home};
use crate::support::forger::Forger;
use crate::support::harness::{Test, test};
use crate::support::relay::TestRelay;
use crate::support::usage::status;
use nostr_sdk::prelude::{Client, EventBuilder, Keys, Kind, Tag};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::fs;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    test!(two_hundred_mixed_messages_leave_nothing_undone_and_nothing_grows),
    test!(twenty_minutes_of_mixed_load_leave_nothing_undone_and_nothing_grows).long("20 minutes: the full form of S14"),
    test!(once_every_table_of_ids_is_full_the_heap_stays_as_it_is)
        .long("two minutes: every table of ids filled, for S14"),
];

const GENEROUS: &str = "[limits]\nopen_jobs_per_asker = 100\njobs_per_day = 100000\n";
/// Events the relay keeps, so that a backfill has an end.
const KEPT: usize = 2_000;
const ASKERS: usize = 40;
/// Wraps of junk that are sent at once: fewer than may wait in a queue of the inbox.
const BATCH: usize = 1_000;
/// What a message leaves on the heap for long: the library's note that its id was verified, one of 128,000. (The other ids
/// have their room since the warm-up.)
const A_MESSAGE: u64 = 48;
/// What is remembered of ids when there is no room for more: 128,000 notes; 100,000 ids dealt with and 16,384 let in, of 32 bytes,
/// each in a set (a byte more, in twice the power of two that holds them, for places that are left) and in a row.
const TABLES: u64 = 128_000 * A_MESSAGE + 33 * ((1 << 18) + (1 << 16)) + 32 * ((1 << 17) + (1 << 15));
/// What the least of the heap in a fifth of the time may differ by with the jobs and messages that are just open.
const HEAP_SLACK: u64 = 256 << 10;
/// What memory may grow by beside the heap that is counted and the room that a burst needs: SQLite's cache of 2,000 KiB, and
/// the allocator's gaps.
const SLACK: u64 = 3 << 20;
/// A connection or a thread that is there at one time and not at another. The full form has some 25 deaths of a relay to
/// tell that from a leak.
const A_FEW: u64 = 3;

/// What the program holds at one moment.
#[derive(Clone, Copy, Debug)]
struct Usage {
    /// Memory of its own: pages of its file, which come as the code is used, are not counted.
    resident: u64,
    files: u64,
    threads: u64,
}

fn usage(pid: u32) -> Usage {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count() as u64;
    Usage { resident: status(pid, "RssAnon") * 1024, files, threads: status(pid, "Threads") }
}

/// One message of the mix.
fn message(rng: &mut StdRng, forger: &Forger, number: usize) -> nostr_sdk::Event {
    let character = |rng: &mut StdRng| char::from(npubbot::pattern::ALPHABET[rng.random_range(0..32)]);
    let request: String = (0..rng.random_range(2..4)).map(|_| character(rng)).collect();
    let back = rng.random_range(0..2 * 86_400);
    match number % 10 {
        0..4 => forger.honest(&request, back),
        4 => forger.honest(&format!("split {} {request}", point()), back),
        5 => forger.honest("bob io1", back),
        6 => forger.honest(["stop", "start", "status"][rng.random_range(0..3)], back),
        7 => forger.honest("delete", back),
        8 => forger.with_rumor("{\"junk\": "),
        _ => forger.wrap_of(&"x".repeat(rng.random_range(1..20_000))),
    }
}

/// A half that never served: y is even for every key of Nostr.
fn point() -> String {
    format!("02{}", Keys::generate().public_key().to_hex())
}

/// The bytes of the heap in use, as the log notes them with everything that happens.
fn heap(home: &Home) -> Vec<u64> {
    home.log().lines().filter_map(|line| line.split_once("memory heap=")?.1.trim().parse().ok()).collect()
}

/// A relay, a bot that serves, and a client of the askers'.
async fn start() -> (TestRelay, Home, BotProcess, Client) {
    let relay = TestRelay::start_forgetful(KEPT).await;
    let home = Home::with(&[relay.url()], GENEROUS);
    let process = home.spawn_logged().await;
    let writer = Client::default();
    writer.add_relay(relay.url()).await.unwrap();
    writer.connect().await;
    writer.wait_for_connection(crate::support::PATIENCE).await;
    let serves = || async { home.log().contains("serving").then_some(()) };
    crate::support::until("all threads of the bot are there", serves).await;
    (relay, home, process, writer)
}

/// Junk, batch by batch, numbered from 1 on. It is dealt with when this returns.
async fn junk(batches: RangeInclusive<usize>, writer: &Client, asker: &Forger, home: &Home) {
    let once = Keys::generate();
    for batch in batches {
        for number in 0..BATCH {
            let junk = asker.wrap_with(&once, format!("{batch} {number}"), [Tag::public_key(asker.bot)]);
            writer.send_event(&junk).await.unwrap();
        }
        // It is attended to after all that came before.
        writer.send_event(&asker.honest(&format!("hello {batch}"), 0)).await.unwrap();
        let is_done = || async { (home.count("SELECT count(*) FROM seen") == Some(batch as i64)).then_some(()) };
        crate::support::until("the junk is dealt with", is_done).await;
    }
}

/// `batches`: of junk before, so many that the tables of ids need not double meanwhile, and that nearly every page of the
/// library's table of ids (1,088 pages, set aside at once) has been used.
///
/// `pace`: between two messages. The relay dies once in 40 to 120 paces.
async fn soak(time: Duration, pace: Duration, batches: usize) {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let (mut relay, home, process, writer) = start().await;
    let askers: Vec<Forger> = (0..ASKERS).map(|_| Forger::new(process.public_key)).collect();
    for asker in &askers {
        let list = EventBuilder::new(Kind::InboxRelays, "").tag(Tag::relay(relay.url()));
        writer.send_event(&list.sign_with_keys(&asker.author).unwrap()).await.unwrap();
    }
    let at_start = usage(process.pid()).threads;
    junk(1..=batches, &writer, &askers[0], &home).await;
    let heap_before = heap(&home).len();
    let began = Instant::now();
    let (mut used, mut sent, mut deaths) = (Vec::new(), 0, 0);
    let between = pace;
    let mut pace = tokio::time::interval(between);
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut dies_at = between * rng.random_range(40..120);
    while began.elapsed() < time {
        pace.tick().await;
        let asker = &askers[rng.random_range(0..ASKERS)];
        let event = message(&mut rng, asker, sent);
        // While the relay is away a message is lost with its sender, as anywhere.
        let _ = tokio::time::timeout(Duration::from_secs(1), writer.send_event(&event)).await;
        sent += 1;
        used.push(usage(process.pid()));
        if began.elapsed() > dies_at {
            relay.stop();
            // The time it is away is the fault.
            tokio::time::sleep(between * rng.random_range(1..12)).await;
            relay.start_again().await;
            deaths += 1;
            dies_at = began.elapsed() + between * rng.random_range(120..240);
        }
    }
    let heap = heap(&home).split_off(heap_before);
    // Everything comes to its end: messages that met no relay are due again within a minute or two.
    let undone = "SELECT (SELECT count(*) FROM job WHERE state IN ('accepted', 'found'))
                       + (SELECT count(*) FROM mail WHERE finished = 0)";
    let ends = Instant::now() + Duration::from_secs(240);
    // The last messages are still on their way to the ledger: it is done when it stays so.
    let mut quiet = 0;
    while quiet < 30 && Instant::now() < ends {
        quiet = if home.count(undone) == Some(0) { quiet + 1 } else { 0 };
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(quiet, 30, "jobs and messages are left undone: {:?}", home.count(undone));
    let delivered = home.count("SELECT sum(delivered) FROM day").unwrap_or(0);
    assert!(delivered as usize > sent / 10, "{delivered} of {sent} messages led to a key");
    assert!(!home.log().contains("panicked"), "{}", home.log());

    // The second fifth of the time against the last. All of it comes and goes, so it is the least that counts.
    let least = |what: fn(&Usage) -> u64| second_and_last_fifth(&used).map(|some| some.iter().map(what).min().unwrap());
    let (resident, files, threads) = (least(|one| one.resident), least(|one| one.files), least(|one| one.threads));
    // The hits of easy requests come in bursts, and what one took is kept for the next.
    let burst = heap.iter().max().unwrap() - heap.iter().min().unwrap();
    let heap = second_and_last_fifth(&heap).map(|some| *some.iter().min().unwrap());
    println!(
        "{:?}: {sent} messages, {delivered} keys, the relay died {deaths} times; second and last fifth: {heap:?} bytes of the \
         heap in use (for a moment up to {burst} more), {resident:?} resident, {files:?} files, {threads:?} threads",
        began.elapsed(),
    );
    let between = (sent - sent / 5) as u64;
    assert!(heap[1] <= heap[0] + between * A_MESSAGE + HEAP_SLACK, "the heap");
    assert!(resident[1] <= resident[0] + burst + between * A_MESSAGE + SLACK, "memory");
    assert!(files[1] <= files[0] + A_FEW, "open files");
    // Threads for what blocks are made when there is work for them, and end ten seconds after their last.
    let at_rest = || async { (usage(process.pid()).threads <= at_start + A_FEW).then_some(()) };
    crate::support::until("the threads that are not needed end", at_rest).await;
    process.kill();
    home.assert_sound();
}

/// The times that are compared.
fn second_and_last_fifth<T>(all: &[T]) -> [&[T]; 2] {
    let fifth = all.len() / 5;
    [&all[fifth..2 * fifth], &all[all.len() - fifth..]]
}

async fn two_hundred_mixed_messages_leave_nothing_undone_and_nothing_grows() {
    soak(Duration::from_secs(12), Duration::from_millis(60), 5).await;
}

async fn twenty_minutes_of_mixed_load_leave_nothing_undone_and_nothing_grows() {
    soak(Duration::from_secs(1_200), Duration::from_millis(250), 9).await;
}

/// What is remembered of events has an end.
async fn once_every_table_of_ids_is_full_the_heap_stays_as_it_is() {
    let (_relay, home, process, writer) = start().await;
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
