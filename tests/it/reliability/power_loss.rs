//! Power loss and failing disks, at every write of T1, T2 and T3: no accepted job is lost, and no
//! result is doubled.

use crate::support::disk::{self, Survives, Trouble};
use crate::support::harness::{Test, test};
use npubbot::clock::Clock;
use npubbot::job::{Asker, JobId, JobSpec, RumorId, Ticket};
use npubbot::key::HalfPoint;
use npubbot::ledger::{AnsweredMessage, Attempt, Effect, Ledger, LedgerError, MessageId, Recorded};
use npubbot::message::GiftWrap;
use npubbot::pattern::Pattern;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

pub const TESTS: &[Test] = &[
    test!(power_may_go_at_every_write).slow(),
    test!(every_write_may_fail_and_the_next_attempt_succeeds),
    test!(power_may_go_after_writes_that_failed),
    test!(a_start_that_cannot_copy_a_used_half_fails),
];

const NOW: u64 = 1_800_000_000;
/// Jobs that a life adds. Every other one is a split job.
const JOBS: i64 = 2;
/// Jobs of an earlier life: so many that a line of the file of used halves lies across two sectors.
const EARLIER: i64 = 13;
/// Number of pages in the write-ahead log at which SQLite copies them into the database.
const CHECKPOINT_AT: u64 = 1000;
/// Bytes that a page takes in the write-ahead log.
const FRAME: u64 = 4096 + 24;
/// The most attempts at one transaction. A failure lasts for fewer changes than this.
const ATTEMPTS: usize = 8;

const ASKER: Asker = Asker([1; 32]);

/// The jobs that the ledger has confirmed.
#[derive(Clone, Default, Debug)]
struct Told {
    accepted: BTreeSet<i64>,
    found: BTreeSet<i64>,
    delivered: BTreeSet<i64>,
}

fn numbered(kind: u8, number: i64) -> [u8; 32] {
    let mut bytes = [kind; 32];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn rumor(job: i64) -> RumorId {
    RumorId(numbered(0, job))
}

/// A wrap. `kind` is 2 for an answer, 3 for a result of the first life, 4 for one of the second
/// life.
fn wrap(kind: u8, job: i64) -> GiftWrap {
    let json = format!("wrap {kind} {job} {}", "x".repeat(1_500));
    GiftWrap { id: numbered(kind, job), to: ASKER, json, expires_at: NOW + 1_000_000 }
}

fn half(job: i64) -> Option<HalfPoint> {
    let secret = secp256k1::SecretKey::from_slice(&numbered(7, job)).unwrap();
    let point = secp256k1::PublicKey::from_secret_key(secp256k1::SECP256K1, &secret);
    (job % 2 == 0).then(|| HalfPoint::new(point))
}

fn request(job: i64) -> AnsweredMessage {
    let patterns = vec![Pattern::parse("m0ctane").unwrap()];
    let spec = JobSpec { asker: ASKER, half: half(job), expires_at: NOW + 9_000, ..JobSpec::local(patterns) };
    let effect = Effect::Accept(JobId(job), spec);
    let seen_on = vec!["wss://one.example".to_owned()];
    let (ticket, reply) = (Some(Ticket(vec![1])), Some(wrap(2, job)));
    AnsweredMessage { seen_on, ticket, effect, reply, ..AnsweredMessage::ignored(ASKER, rumor(job), NOW) }
}

fn open(folder: &Path) -> Result<Ledger, LedgerError> {
    Ledger::open(folder, Clock::at(NOW))
}

/// Tries until it succeeds, as the service does with transient errors.
fn persist<T>(attempts: usize, mut call: impl FnMut() -> Result<T, LedgerError>) -> Result<T, LedgerError> {
    let mut left = attempts;
    loop {
        left -= 1;
        match call() {
            Err(error) if left > 0 => {
                let is_clear = error.is_transient() || matches!(error, LedgerError::Folder { .. });
                assert!(is_clear && !error.to_string().is_empty(), "{error:?}");
            }
            outcome => return outcome,
        }
    }
}

/// The attempt that delivered a message.
fn sent(message: MessageId) -> Attempt {
    Attempt { message, reached: vec!["wss://one.example".to_owned()], again_at: None }
}

/// A life: start, T1, T2 and T3 of some jobs, cleaning, stop. Ends early at an error that stays.
fn live(folder: &Path, told: &mut Told, attempts: usize) -> Result<(), LedgerError> {
    let ledger = persist(attempts, || open(folder))?;
    let jobs = EARLIER + 1..=EARLIER + JOBS;
    for job in jobs.clone() {
        let recorded = persist(attempts, || ledger.answer(&request(job)))?;
        assert_eq!(recorded, Recorded::Now);
        told.accepted.insert(job);
    }
    for job in jobs {
        assert!(persist(attempts, || ledger.found(JobId(job), &wrap(3, job)))?);
        told.found.insert(job);
        for message in ledger.due_messages(usize::MAX)? {
            let sent = sent(message.id);
            persist(attempts, || ledger.record_attempts(std::slice::from_ref(&sent)))?;
            told.delivered.extend(message.result_of.map(|job| job.0));
        }
    }
    persist(attempts, || ledger.delete_expired())?;
    ledger.close();
    Ok(())
}

/// A folder in memory where there is such a file system.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

/// Records that every message reached its receiver.
fn deliver_all(ledger: &Ledger) {
    let sent: Vec<Attempt> = ledger.due_messages(usize::MAX).unwrap().iter().map(|message| sent(message.id)).collect();
    ledger.record_attempts(&sent).unwrap();
}

/// The files of a bot that was killed shortly before a checkpoint, and what its ledger confirmed.
fn earlier_life() -> (BTreeMap<String, Vec<u8>>, Told) {
    let (folder, mut told) = (folder(), Told::default());
    let ledger = open(folder.path()).unwrap();
    for job in 1..=EARLIER {
        ledger.answer(&request(job)).unwrap();
        ledger.found(JobId(job), &wrap(3, job)).unwrap();
        deliver_all(&ledger);
        told.accepted.insert(job);
        told.found.insert(job);
        told.delivered.insert(job);
    }
    let log = folder.path().join("ledger.sqlite-wal");
    for at in 1.. {
        ledger.set_last_contact(NOW - 100_000 + at).unwrap();
        if fs::metadata(&log).unwrap().len() / FRAME + 12 > CHECKPOINT_AT {
            break;
        }
    }
    let names = ["ledger.sqlite", "ledger.sqlite-wal", "used-halves"];
    let files = names.map(|name| (name.to_owned(), fs::read(folder.path().join(name)).unwrap()));
    (files.into(), told)
}

/// A new folder with these files.
fn with(files: &BTreeMap<String, Vec<u8>>) -> TempDir {
    let folder = folder();
    for (name, content) in files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

/// Opens the remaining files, checks them against what the ledger confirmed, and ends all jobs as
/// the next start does.
fn check(folder: &Path, told: &Told) {
    let used = fs::read_to_string(folder.join("used-halves")).unwrap_or_default();
    let ledger = open(folder).unwrap();
    assert_eq!(ledger.restored_at().unwrap(), None, "a power loss is no restore");
    let open_jobs: Vec<i64> = ledger.open_jobs().unwrap().iter().map(|job| job.id.0).collect();
    let lost: Vec<i64> = ledger.lost_jobs().unwrap().iter().map(|job| job.id.0).collect();
    for job in &told.accepted {
        assert!(ledger.has_seen(ASKER, rumor(*job)).unwrap(), "job {job} would be accepted again");
    }
    for job in 1..=EARLIER + JOBS {
        if let (true, Some(half)) = (told.found.contains(&job), half(job)) {
            let family: String = half.family().iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(used.contains(&family), "the used half of job {job} is in no file");
            assert!(ledger.half_use(&half).unwrap().is_some());
        }
    }
    // Only the job whose T2 was under way may be given up, and its asker is told.
    assert!(lost.len() <= 1 && lost.iter().all(|job| !told.found.contains(job) && half(*job).is_some()), "{lost:?}");
    for job in lost.iter().copied() {
        assert!(ledger.tell_lost(JobId(job), &wrap(5, job)).unwrap());
    }
    for job in &open_jobs {
        assert!(!told.found.contains(job), "job {job} has a result");
        assert!(ledger.found(JobId(*job), &wrap(4, *job)).unwrap());
    }
    drop(ledger);
    let file = rusqlite::Connection::open(folder.join("ledger.sqlite")).unwrap();
    let list = |query: &str| -> Vec<(i64, String)> {
        let mut statement = file.prepare(query).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<rusqlite::Result<_>>().unwrap()
    };
    assert_eq!(list("SELECT 0, integrity_check FROM pragma_integrity_check"), [(0, "ok".to_owned())]);
    assert!(list("SELECT parent, \"table\" FROM pragma_foreign_key_check").is_empty());
    let jobs: BTreeMap<i64, String> = list("SELECT id, state FROM job").into_iter().collect();
    for job in &told.accepted {
        let state = jobs.get(job).unwrap_or_else(|| panic!("the accepted job {job} is lost"));
        let expected: &[&str] = match () {
            () if told.delivered.contains(job) => &["delivered"],
            () if lost.contains(job) => &["expired"],
            () => &["found", "delivered"],
        };
        assert!(expected.contains(&state.as_str()), "job {job} is {state}, not {expected:?}");
    }
    let results = list("SELECT result_of, hex(wrap) FROM outbox WHERE result_of IS NOT NULL");
    let of: BTreeSet<i64> = results.iter().map(|(job, _)| *job).collect();
    assert_eq!(of.len(), results.len(), "a job has two results");
    let expected = jobs.keys().filter(|job| !lost.contains(job)).count();
    assert_eq!(results.len(), expected, "a result for each job");
    for (job, wrap) in results.iter().filter(|(job, _)| told.found.contains(job)) {
        let first: String = numbered(3, *job).iter().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(*wrap, first, "job {job} has another result than the one that was sent");
    }
    // T1 is recorded as a whole or not at all.
    let rumors = list("SELECT count(*), '' FROM seen")[0].0;
    assert_eq!(rumors, jobs.len() as i64);
}

/// Runs a life with this trouble. Returns its folder, what the ledger confirmed and what the disk
/// saw.
fn run(files: &BTreeMap<String, Vec<u8>>, before: &Told, trouble: Trouble) -> (TempDir, Told, disk::Seen) {
    let (folder, mut told) = (with(files), before.clone());
    disk::watch(folder.path(), trouble);
    let outcome = live(folder.path(), &mut told, if trouble.fails.is_some() { ATTEMPTS } else { 1 });
    let seen = disk::unwatch();
    assert!(outcome.is_ok() || seen.left.is_some(), "{outcome:?}");
    (folder, told, seen)
}

/// Runs a life without trouble. Returns all its changes.
fn changes(files: &BTreeMap<String, Vec<u8>>, before: &Told) -> Vec<String> {
    let (folder, told, seen) = run(files, before, Trouble::default());
    check(folder.path(), &told);
    let kinds: BTreeMap<&String, usize> = seen.changes.iter().fold(BTreeMap::new(), |mut kinds, change| {
        *kinds.entry(change).or_default() += 1;
        kinds
    });
    println!("{} changes: {kinds:?}", seen.changes.len());
    seen.changes
}

/// At each change the seed chooses what survives of the unsynced: nothing, a part, or all of it as
/// after a kill.
fn power_may_go_at_every_write() {
    let seed = crate::support::seed();
    let (files, before) = earlier_life();
    let changes = changes(&files, &before);
    for (at, change) in changes.iter().enumerate() {
        let mixed = seed.wrapping_add(at as u64);
        let survives = [Survives::Nothing, Survives::Some(mixed), Survives::Everything][(mixed % 3) as usize];
        println!("power goes at change {at}, {change}; {survives:?}");
        let (_, told, seen) = run(&files, &before, Trouble { power: Some((at, survives)), fails: None });
        check(with(&seen.left.unwrap()).path(), &told);
    }
    for expected in ["ledger.sqlite write", "ledger.sqlite-wal write", "ledger.sqlite sync", "used-halves sync"] {
        assert!(changes.iter().any(|change| change == expected), "no {expected}");
    }
}

const FAILURES: [Errno; 3] = [Errno::IO, Errno::NOSPC, Errno::ROFS];

fn every_write_may_fail_and_the_next_attempt_succeeds() {
    let (files, before) = earlier_life();
    for (at, change) in changes(&files, &before).iter().enumerate() {
        let (failure, count) = (FAILURES[at % 3], 1 + at % (ATTEMPTS - 2));
        println!("{failure:?} at change {at} and {} more, {change}", count - 1);
        let (folder, told, _) = run(&files, &before, Trouble { fails: Some((at, count, failure)), power: None });
        assert_eq!(told.delivered.len() as i64, EARLIER + JOBS, "the work is done after all");
        check(folder.path(), &told);
    }
}

fn power_may_go_after_writes_that_failed() {
    let mut rng = StdRng::seed_from_u64(crate::support::seed());
    let (files, before) = earlier_life();
    let most = changes(&files, &before).len();
    for round in 0..50 {
        let from = rng.random_range(0..most);
        let failure = FAILURES[rng.random_range(0..3)];
        let at = rng.random_range(from..most + 4);
        let survives = [Survives::Nothing, Survives::Everything, Survives::Some(rng.random())][rng.random_range(0..3)];
        let fails = Some((from, rng.random_range(1..ATTEMPTS - 1), failure));
        let trouble = Trouble { fails, power: Some((at, survives)) };
        println!("round {round}: {trouble:?}");
        let (folder, told, seen) = run(&files, &before, trouble);
        match seen.left {
            Some(left) => check(with(&left).path(), &told),
            None => check(folder.path(), &told),
        }
    }
}

/// The file is lost, so the start copies the used halves of the ledger into a new one.
fn a_start_that_cannot_copy_a_used_half_fails() {
    let (mut files, _) = earlier_life();
    files.remove("used-halves");
    let start = |trouble| {
        let folder = with(&files);
        disk::watch(folder.path(), trouble);
        let opened = open(folder.path()).map(drop);
        (opened, disk::unwatch(), folder)
    };
    let (opened, seen, _) = start(Trouble::default());
    opened.unwrap();
    let copies = seen.changes.iter().filter(|change| *change == "used-halves sync").count();
    assert!(copies as i64 >= EARLIER / 2, "{:?}", seen.changes);
    let mut failed = 0;
    for at in 0..seen.changes.len() {
        let (opened, _, folder) = start(Trouble { fails: Some((at, 1, FAILURES[at % 3])), power: None });
        failed += i32::from(opened.is_err());
        if opened.is_err() {
            open(folder.path()).unwrap();
        }
        let text = fs::read_to_string(folder.path().join("used-halves")).unwrap();
        for half in (1..=EARLIER).filter_map(half) {
            let family: String = half.family().iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(text.contains(&family), "change {at}, {opened:?}: a used half is not in the file");
        }
    }
    assert!(failed > copies as i32, "{failed} starts failed");
}
