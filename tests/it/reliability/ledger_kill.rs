//! Killing the process at any moment loses nothing that the ledger has confirmed, and the file
//! stays sound.

use crate::support::harness::{Test, child, test};
use npubbot::clock::Clock;
use npubbot::job::{Asker, JobSpec, RumorId, Ticket};
use npubbot::ledger::{AnsweredMessage, Attempt, Effect, Ledger, MessageId, NextAttempt, Recorded};
use npubbot::message::GiftWrap;
use npubbot::pattern::Pattern;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

pub const TESTS: &[Test] = &[test!(work_until_killed).part(), test!(a_killed_process_loses_nothing_it_confirmed)];

const ROUNDS: usize = 25;

fn numbered(kind: u8, number: i64) -> [u8; 32] {
    let mut bytes = [kind; 32];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn wrap(kind: u8, number: i64) -> GiftWrap {
    let json = format!("wrap {kind} {number} {}", "x".repeat(2_000));
    GiftWrap { id: numbered(kind, number), to: Asker([1; 32]), json, expires_at: u64::MAX >> 1 }
}

/// Records that a message needs no further attempt to send it.
fn finish(ledger: &Ledger, message: MessageId) {
    let ended = Attempt { message, reached: Vec::new(), next: NextAttempt::Finished };
    ledger.record_attempts(&[ended]).unwrap();
}

/// Runs in the child process: accepts, finds and delivers jobs without end, and prints each step
/// once it is recorded.
fn work_until_killed() {
    let folder = std::env::var("TEST_FOLDER").unwrap();
    let ledger = Ledger::open(Path::new(&folder), Clock::System).unwrap();
    loop {
        let id = ledger.next_job().unwrap();
        let patterns = vec![Pattern::parse("m0ctane").unwrap()];
        let answer = AnsweredMessage {
            seen_on: vec!["wss://one.example".to_owned()],
            ticket: Some(Ticket(vec![1])),
            effect: Effect::Accept(
                id,
                JobSpec { asker: Asker([1; 32]), expires_at: u64::MAX >> 1, ..JobSpec::local(patterns) },
            ),
            reply: Some(wrap(2, id.0)),
            ..AnsweredMessage::ignored(Asker([1; 32]), RumorId(numbered(0, id.0)), Clock::System.now())
        };
        assert_eq!(ledger.answer(&answer).unwrap(), Recorded::Now);
        println!("\naccepted {}", id.0);
        assert!(ledger.found(id, &wrap(3, id.0)).unwrap());
        println!("\nfound {}", id.0);
        for queued in ledger.due_messages(16).unwrap() {
            ledger.acknowledge(queued.id, "wss://one.example").unwrap();
            finish(&ledger, queued.id);
            if let Some(job) = queued.result_of {
                println!("\ndelivered {}", job.0);
            }
        }
        ledger.delete_expired().unwrap();
    }
}

fn a_killed_process_loses_nothing_it_confirmed() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let folder = tempfile::TempDir::new().unwrap();
    let (mut accepted, mut found, mut delivered) = (0, 0, 0);
    for round in 0..ROUNDS {
        let mut child = child("reliability::ledger_kill::work_until_killed")
            .env("TEST_FOLDER", folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let until = rng.random_range(1..120);
        // A random delay, so that the kill also comes between two lines.
        let more = rng.random_range(0..200_000u32);
        let mut said = Vec::new();
        let mut line = String::new();
        while said.len() < until && output.read_line(&mut line).unwrap() > 0 {
            said.push(std::mem::take(&mut line));
        }
        (0..more).for_each(|step| _ = std::hint::black_box(step));
        child.kill().unwrap();
        said.extend(output.lines().map(|line| line.unwrap()));
        child.wait().unwrap();
        for line in &said {
            let mut words = line.split_whitespace();
            let count = match words.next() {
                Some("accepted") => &mut accepted,
                Some("found") => &mut found,
                Some("delivered") => &mut delivered,
                _ => continue,
            };
            if let Some(number) = words.next().and_then(|word| word.parse::<i64>().ok()) {
                *count = number.max(*count);
            }
        }

        let ledger = Ledger::open(folder.path(), Clock::System).unwrap();
        let totals = ledger.totals().unwrap();
        let all = totals.accepted + totals.found + totals.delivered;
        assert!(all as i64 >= accepted, "round {round}: {totals:?}, said {accepted}");
        assert!(totals.delivered as i64 >= delivered, "round {round}: {totals:?}, said {delivered}");
        for number in 1..=accepted {
            assert!(ledger.has_seen(Asker([1; 32]), RumorId(numbered(0, number))).unwrap());
        }
        // Jobs left unfinished are finished after the restart, with one result each.
        for job in ledger.open_jobs().unwrap() {
            assert!(job.id.0 > found, "{} was found before", job.id);
            assert!(ledger.found(job.id, &wrap(3, job.id.0)).unwrap());
        }
        for queued in ledger.due_messages(usize::MAX).unwrap() {
            let kind = if queued.result_of.is_some() { 3 } else { 2 };
            let number = i64::from_be_bytes(queued.wrap.id[..8].try_into().unwrap());
            assert_eq!(queued.wrap.id, numbered(kind, number));
            ledger.acknowledge(queued.id, "wss://one.example").unwrap();
            finish(&ledger, queued.id);
        }
        let totals = ledger.totals().unwrap();
        assert_eq!((totals.delivered, totals.accepted, totals.found, totals.unsent_messages), (all, 0, 0, 0));
        drop(ledger);
        let file = rusqlite::Connection::open(folder.path().join("ledger.sqlite")).unwrap();
        let sound: String = file.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        let results: i64 =
            file.query_row("SELECT count(*) FROM outbox WHERE result_of IS NOT NULL", [], |row| row.get(0)).unwrap();
        assert_eq!((sound.as_str(), results), ("ok", all as i64));
    }
    assert!(accepted > 0 && found > 0);
}
