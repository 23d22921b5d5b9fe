//! The condition of a ledger, open or not, for the log and for operators.

use super::budget::{self, Sizes, sizes};
use super::error::LedgerError;
use super::open;
use super::open::{FILE, FolderLock, Ledger, missing_families};
use super::restore::check;
use super::rows::{self, Quarantined, read_meta, unsigned};
use super::used_halves::{Verdict, judge, read_history};
use crate::os::files::free_bytes;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// State of a data folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Inspection {
    /// No ledger; the first start makes one.
    Absent,
    /// A running npubbot uses the ledger.
    InUse,
    /// An intact ledger.
    Sound {
        /// Schema of the file.
        schema: i64,
        /// Number of accepted jobs.
        open_jobs: u64,
        /// Rows that cannot be read and are skipped, at most 100.
        quarantined: Vec<Quarantined>,
        /// Sizes of its tables.
        sizes: Sizes,
        /// When a restore was noticed, Unix seconds.
        restored_at: Option<u64>,
        /// Whether the ledger is older than the file of used halves, or that file was cut. If so,
        /// the next start notices a restore.
        is_older: bool,
    },
}

/// Checks the integrity of the ledger in `folder` without changing it.
///
/// Errors: as `Ledger::open`, and [`LedgerError::Corrupt`] if the file is damaged.
pub fn inspect(folder: &Path) -> Result<Inspection, LedgerError> {
    let path = folder.join(FILE);
    if !path.exists() {
        return Ok(Inspection::Absent);
    }
    let _lock = match FolderLock::take(folder) {
        Ok(lock) => lock,
        Err(LedgerError::InUse { .. }) => return Ok(Inspection::InUse),
        Err(error) => return Err(error),
    };
    let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    open::refuse_newer(&connection, folder)?;
    check(&connection, &path)?;
    let schema = open::version(&connection)?;
    if schema == 0 {
        // The start that would have made the tables did not end.
        return Ok(Inspection::Absent);
    }
    let count = "SELECT count(*) FROM job WHERE state = 'accepted'";
    let open_jobs = connection.query_row(count, [], |row| row.get::<_, i64>(0))?;
    let history = read_history(folder)?;
    Ok(Inspection::Sound {
        schema,
        open_jobs: unsigned(open_jobs),
        quarantined: rows::list_quarantined(&connection)?,
        sizes: sizes(&connection)?,
        restored_at: read_meta(&connection, "restored_at")?.map(unsigned),
        is_older: {
            let lacks_some = !missing_families(&connection, &history)?.is_empty();
            judge(&history, read_meta(&connection, "generation")?, lacks_some) == Verdict::Restored
        },
    })
}

impl Ledger {
    /// Sizes of the ledger.
    ///
    /// Errors: [`LedgerError`].
    pub fn sizes(&self) -> Result<Sizes, LedgerError> {
        self.reading(budget::sizes)
    }

    /// Rows that were set aside, oldest first, at most 100.
    ///
    /// Errors: [`LedgerError`].
    pub fn quarantined(&self) -> Result<Vec<Quarantined>, LedgerError> {
        self.reading(rows::list_quarantined)
    }
}

impl Ledger {
    /// Bytes that an ordinary user can still write on the disk of this ledger. `None` if the system
    /// does not say.
    pub fn free_bytes(&self) -> Option<u64> {
        let folder = |connection: &Connection| {
            Ok(connection.path().and_then(|path| Path::new(path).parent().and_then(free_bytes)))
        };
        self.reading(folder).ok()?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_room_and_a_missing_one_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert!(free_bytes(folder.path()).is_some_and(|bytes| bytes > 0 && bytes < 1 << 60));
        assert_eq!(free_bytes(&folder.path().join("missing")), None);
        let ledger = Ledger::open(folder.path(), crate::clock::Clock::System).unwrap();
        assert!(ledger.free_bytes().is_some_and(|bytes| bytes > 0));
    }
}
