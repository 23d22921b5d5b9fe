//! Restored backups, and ledgers of other bots.

use super::*;
use crate::ledger::restore::USED_HALVES_FILE;
use crate::ledger::{Inspection, inspect};
use nostr::Keys;
use std::fs;
use std::path::Path;

impl Bench {
    /// Accepts a split job for the half `byte`.
    fn accept_split(&self, rumor: u8, byte: u8) -> JobId {
        self.accept_with(1, rumor, |job| job.half = Some(half(byte)))
    }

    /// A backup of the ledger, without the file of used halves.
    fn back_up(&self) {
        let path = self.folder.path().join("backup");
        self.sql(&format!("VACUUM INTO '{}'", path.display()));
    }

    /// Replaces the ledger by the backup. `is_clean` says whether the process had ended cleanly.
    fn restored(self, is_clean: bool) -> Bench {
        let Bench { folder, clock, ledger } = self;
        if is_clean {
            ledger.close();
        }
        drop(ledger);
        fs::rename(folder.path().join("backup"), folder.path().join("ledger.sqlite")).unwrap();
        let ledger = Ledger::open(folder.path(), clock.clone()).unwrap();
        Bench { folder, clock, ledger }
    }

    fn lost(&self) -> Vec<i64> {
        ids(&self.ledger.lost_jobs().unwrap())
    }
}

#[test]
fn a_half_that_was_used_after_the_backup_stays_used() {
    for is_clean in [true, false] {
        let bench = bench();
        let (used, open) = (bench.accept_split(1, 5), bench.accept_split(2, 6));
        let pool = bench.accept(1, 3);
        bench.back_up();
        bench.found(used, 1, 100);
        bench.clock.set(NOW + 60);
        let bench = bench.restored(is_clean);
        assert_eq!(bench.ledger.half_use(&half(5)).unwrap(), Some(HalfUse::Spent));
        assert!(!bench.ledger.found(used, &wrap(1, 101)).unwrap(), "no second key of this half");
        // After a kill, the last use in the file may be that of an interrupted T2; then only its
        // job is given up. Otherwise all split jobs are.
        let (lost, left) = if is_clean { (vec![used, open], vec![pool]) } else { (vec![used], vec![open, pool]) };
        assert_eq!(bench.lost(), lost.iter().map(|job| job.0).collect::<Vec<_>>());
        assert_eq!(ids(&bench.ledger.open_jobs().unwrap()), left.iter().map(|job| job.0).collect::<Vec<_>>());
        assert_eq!(bench.ledger.restored_at().unwrap(), is_clean.then_some(NOW + 60));
        // Each asker is told once, also after a restart.
        let bench = bench.reopened();
        assert!(matches!(bench.ledger.tell_lost(used, &wrap(2, 110)), Err(LedgerError::Misaddressed)));
        assert!(bench.ledger.tell_lost(used, &wrap(1, 110)).unwrap());
        assert!(!bench.ledger.tell_lost(used, &wrap(1, 111)).unwrap());
        assert_eq!(bench.lost().len(), lost.len() - 1);
    }
}

#[test]
fn two_halves_used_after_the_backup_are_a_restore_after_a_kill_too() {
    let bench = bench();
    let jobs = [bench.accept_split(1, 5), bench.accept_split(2, 6), bench.accept_split(3, 7)];
    bench.back_up();
    bench.found(jobs[0], 1, 100);
    bench.found(jobs[1], 1, 101);
    let bench = bench.restored(false);
    assert_eq!(bench.lost(), jobs.map(|job| job.0));
    assert_eq!(bench.ledger.restored_at().unwrap(), Some(NOW));
}

/// A file that is gone, emptied, or cut at any line that lost a used half.
#[test]
fn a_ledger_without_its_whole_file_of_used_halves_is_a_restore() {
    for lines in [None, Some(0), Some(1), Some(2), Some(3)] {
        let bench = bench();
        let job = bench.accept_split(1, 5);
        let used = bench.accept_split(2, 6);
        bench.found(used, 1, 100);
        let path = bench.folder.path().join(USED_HALVES_FILE);
        let Bench { folder, clock, ledger } = bench;
        drop(ledger);
        match lines {
            None => fs::remove_file(&path).unwrap(),
            Some(lines) => {
                let whole = fs::read_to_string(&path).unwrap();
                assert_eq!(whole.lines().count(), 4, "{whole}");
                fs::write(&path, whole.split_inclusive('\n').take(lines).collect::<String>()).unwrap();
            }
        }
        let is_older = |folder: &Path| matches!(inspect(folder), Ok(Inspection::Sound { is_older: true, .. }));
        assert!(is_older(folder.path()), "{lines:?}");
        let ledger = Ledger::open(folder.path(), clock.clone()).unwrap();
        let bench = Bench { folder, clock, ledger };
        assert_eq!(bench.lost(), [job.0], "{lines:?}");
        assert_eq!(bench.ledger.restored_at().unwrap(), Some(NOW), "{lines:?}");
        // The file has the halves that the ledger knows again.
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("npubbot used halves 1\n"), "{text}");
        assert_eq!(text.lines().skip(1).filter(|line| line.split(' ').nth(1) == Some("used")).count(), 1, "{text}");
        let Bench { folder, ledger, .. } = bench;
        drop(ledger);
        assert!(!is_older(folder.path()), "{lines:?}");
    }
}

#[test]
fn starts_and_kills_without_a_restore_are_no_restore() {
    let mut bench = bench();
    for round in 0..6 {
        let job = bench.accept_split(round, 20 + round);
        bench.found(job, 1, 100 + round);
        if round % 2 == 0 {
            bench.ledger.close();
        }
        bench = bench.reopened();
        assert!(bench.lost().is_empty() && bench.ledger.restored_at().unwrap().is_none(), "round {round}");
    }
}

#[test]
fn a_full_disk_between_the_file_and_t2_costs_at_most_that_job() {
    let large = GiftWrap { json: "x".repeat(20_000), ..wrap(1, 50) };
    let bench = bench();
    let (job, other) = (bench.accept_split(1, 5), bench.accept_split(2, 6));
    bench.ledger.limit_pages(1).unwrap();
    for _ in 0..3 {
        assert!(bench.ledger.found(job, &large).is_err());
    }
    bench.ledger.limit_pages(u32::MAX).unwrap();
    assert_eq!(bench.ledger.half_use(&half(5)).unwrap(), Some(HalfUse::Open));
    assert!(bench.ledger.found(job, &large).unwrap(), "it is recorded when there is room");
    let bench = bench.reopened();
    assert!(bench.lost().is_empty());
    // T2 fails after the file was written, so it is uncertain whether the half was used.
    bench.ledger.used_halves().spend(&half(6).family()).unwrap();
    let last = bench.accept_split(3, 7);
    bench.ledger.close();
    let bench = bench.reopened();
    assert_eq!((bench.lost(), ids(&bench.ledger.open_jobs().unwrap())), (vec![other.0], vec![last.0]));
    assert_eq!(bench.ledger.restored_at().unwrap(), None);
}

#[test]
fn a_torn_line_is_cut_off_and_a_wrong_one_stops_the_start() {
    let bench = bench();
    let job = bench.accept_split(1, 5);
    bench.found(job, 1, 100);
    let path = bench.folder.path().join(USED_HALVES_FILE);
    let whole = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{whole}3 used 0123")).unwrap();
    let bench = bench.reopened();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with(&whole) && text.lines().count() == whole.lines().count() + 1, "{text}");
    // The line lies across two sectors, and only the second sector was written.
    fs::write(&path, format!("{text}4 used \0\0\0\0cd\n")).unwrap();
    let bench = bench.reopened();
    assert!(fs::read_to_string(&path).unwrap().starts_with(&text) && bench.lost().is_empty());
    let Bench { folder, clock, ledger } = bench;
    drop(ledger);
    let torn_before = format!("{whole}4 used \0cd\n5 start\n");
    // A first line that is not the header, whatever follows it, and however a cut left it.
    let first = whole.lines().next().unwrap();
    let body = &whole[first.len()..];
    let mut wrong: Vec<String> = ["hello", "hello\n", "\n", "\0", "\0\0\0\n"].map(str::to_owned).into();
    wrong.extend([first.to_owned(), first[..7].to_owned(), format!("{first} {body}"), format!("\n{whole}")]);
    wrong.extend(
        ["xyz".to_owned(), "0123".to_owned(), "0".repeat(66), "\u{e9}".repeat(32)]
            .map(|digits| format!("{whole}4 used {digits}\n")),
    );
    wrong.extend([format!("{whole}4 usd\n"), torn_before]);
    for wrong in wrong {
        fs::write(&path, &wrong).unwrap();
        let error = Ledger::open(folder.path(), clock.clone()).err().unwrap();
        assert!(matches!(&error, LedgerError::Corrupt(what) if what.contains(USED_HALVES_FILE)), "{wrong:?}: {error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), wrong, "nothing is overwritten");
    }
    // A file that cannot be read is not a missing one.
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let error = Ledger::open(folder.path(), clock).err().unwrap();
    assert!(matches!(error, LedgerError::UsedHalves(_)), "{error}");
}

#[test]
fn a_ledger_belongs_to_one_bot() {
    let bench = bench();
    let (own, other) = (Keys::generate().public_key(), Keys::generate().public_key());
    bench.ledger.claim(&own).unwrap();
    let bench = bench.reopened();
    bench.ledger.claim(&own).unwrap();
    let error = bench.ledger.claim(&other).unwrap_err();
    assert!(
        matches!(error, LedgerError::OtherBot { .. }) && error.to_string().matches("npub1").count() == 2,
        "{error}"
    );
}
