//! The folder, the lock and the schema.

use super::*;
use crate::os::files::is_open_to_others;
use rusqlite::Connection;
use std::fs;

#[test]
fn folder_and_files_are_for_their_owner_only() {
    let outer = TempDir::new().unwrap();
    let folder = outer.path().join("some/data");
    let _ledger = Ledger::open(&folder, Clock::at(NOW)).unwrap();
    assert!(!is_open_to_others(&folder).unwrap());
    for file in ["ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm", "ledger.lock"] {
        assert!(!is_open_to_others(&folder.join(file)).unwrap(), "{file}");
    }
}

#[test]
fn a_second_opening_is_refused_and_allowed_after_the_first_ends() {
    let bench = bench();
    let clone = bench.ledger.clone();
    for _ in 0..2 {
        let error = Ledger::open(bench.folder.path(), Clock::System).err().unwrap();
        assert!(matches!(&error, LedgerError::InUse { .. }), "{error}");
        assert!(error.to_string().contains("--data"));
    }
    let Bench { folder, ledger, .. } = bench;
    drop(ledger);
    assert!(Ledger::open(folder.path(), Clock::System).is_err(), "a clone holds it too");
    drop(clone);
    Ledger::open(folder.path(), Clock::System).unwrap();
}

#[test]
fn the_file_is_kept_safely() {
    let bench = bench();
    let connection = bench.ledger.read();
    let pragma = |name: &str| {
        connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, rusqlite::types::Value>(0)).unwrap()
    };
    assert_eq!(pragma("journal_mode"), "wal".to_owned().into());
    assert_eq!(pragma("synchronous"), 2.into());
    assert_eq!(pragma("foreign_keys"), 1.into());
    assert_eq!(pragma("user_version"), open::SCHEMA_VERSION.into());
}

#[test]
fn a_newer_ledger_is_left_as_it_is() {
    let bench = bench();
    bench.sql("PRAGMA user_version = 99");
    let Bench { folder, ledger, .. } = bench;
    drop(ledger);
    let path = folder.path().join("ledger.sqlite");
    let before = fs::read(&path).unwrap();
    let error = Ledger::open(folder.path(), Clock::System).err().unwrap();
    assert!(matches!(error, LedgerError::TooNew { found: 99, known: open::SCHEMA_VERSION, .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_file_or_folder_that_is_no_ledger_is_reported() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("ledger.sqlite"), "hello ".repeat(1000)).unwrap();
    let error = Ledger::open(folder.path(), Clock::System).err().unwrap();
    assert!(matches!(&error, LedgerError::Corrupt(what) if what.contains("ledger.sqlite")), "{error}");
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(Ledger::open(&file, Clock::System), Err(LedgerError::Folder { .. })));
}

/// A file of every released schema opens, keeps its jobs and finishes them. For a new schema, add
/// its dump as `tests/fixtures/ledger-v<number>.sql`.
#[test]
fn a_ledger_of_every_released_schema_finishes_its_jobs() {
    for number in 1..=open::SCHEMA_VERSION {
        let fixture = format!("{}/tests/fixtures/ledger-v{number}.sql", env!("CARGO_MANIFEST_DIR"));
        let dump = fs::read_to_string(&fixture).unwrap();
        let folder = TempDir::new().unwrap();
        let old = Connection::open(folder.path().join("ledger.sqlite")).unwrap();
        old.execute_batch(&dump).unwrap();
        assert_eq!(open::version(&old).unwrap(), number);
        let uses = "SELECT coalesce(group_concat('1 used ' || lower(hex(family)) || char(10), ''), '') FROM used_half";
        let uses: String = old.query_row(uses, [], |row| row.get(0)).unwrap();
        let text = format!("npubbot used halves 1\n{uses}1 closed\n");
        fs::write(folder.path().join("used-halves"), text).unwrap();
        drop(old);

        let ledger = Ledger::open(folder.path(), Clock::at(NOW + 60)).unwrap();
        assert_eq!(open::version(&ledger.read()).unwrap(), open::SCHEMA_VERSION);
        let one_each = Totals { accepted: 1, found: 1, delivered: 1, cancelled: 1, expired: 1, unsent_messages: 2 };
        assert_eq!(ledger.totals().unwrap(), one_each);
        assert!(ledger.has_seen(asker(1), RumorId([10; 32])).unwrap());
        assert_eq!(ledger.last_contact().unwrap(), Some(NOW - 5));
        let [open] = &ledger.open_jobs().unwrap()[..] else { panic!("one open job") };
        assert_eq!((&open.spec.patterns, open.spec.subject.as_deref()), (&patterns("m0ctane qqqq"), Some("vanity")));
        assert!(open.spec.encryption_key.is_some() && open.ticket == Ticket(vec![1, 2, 3, 4, 5]));
        assert_eq!(ledger.standings().unwrap().len(), 1);
        let bench = Bench { folder, clock: Clock::at(NOW), ledger };
        let message = bench.found(open.id, open.spec.asker.0[0], 200);
        bench.ledger.acknowledge(message.id, "wss://a").unwrap();
        let waiting = bench.ledger.due_messages(9).unwrap();
        let waiting = waiting.iter().find(|message| message.result_of == Some(JobId(2))).unwrap();
        bench.ledger.acknowledge(waiting.id, "wss://a").unwrap();
        let totals = bench.ledger.totals().unwrap();
        assert_eq!((totals.accepted, totals.found, totals.delivered), (0, 0, 3));
    }
}
