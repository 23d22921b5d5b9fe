//! The folder, the lock and the schema.

use super::*;
use crate::os::files::is_open_to_others;
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
