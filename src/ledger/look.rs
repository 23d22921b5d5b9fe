//! Inspecting a ledger without changing it, for `npubbot doctor`.

use super::align::missing_families;
use super::budget::{Sizes, sizes};
use super::error::LedgerError;
use super::lock::FolderLock;
use super::meta::{read_meta, unsigned};
use super::open::FILE;
use super::quarantine::{self, Quarantined};
use super::schema;
use super::used_halves::{Verdict, judge, read_history};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// State of a data folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Look {
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
pub fn look(folder: &Path) -> Result<Look, LedgerError> {
    let path = folder.join(FILE);
    if !path.exists() {
        return Ok(Look::Absent);
    }
    let _lock = match FolderLock::take(folder) {
        Ok(lock) => lock,
        Err(LedgerError::InUse { .. }) => return Ok(Look::InUse),
        Err(error) => return Err(error),
    };
    let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    schema::refuse_newer(&connection, folder)?;
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Err(LedgerError::Corrupt(format!("{}: {verdict}", path.display())));
    }
    let schema = schema::version(&connection)?;
    if schema == 0 {
        // The start that would have made the tables did not end.
        return Ok(Look::Absent);
    }
    let count = "SELECT count(*) FROM job WHERE state = 'accepted'";
    let open_jobs = connection.query_row(count, [], |row| row.get::<_, i64>(0))?;
    let history = read_history(folder)?;
    Ok(Look::Sound {
        schema,
        open_jobs: unsigned(open_jobs),
        quarantined: quarantine::list(&connection)?,
        sizes: sizes(&connection)?,
        restored_at: read_meta(&connection, "restored_at")?.map(unsigned),
        is_older: {
            let lacks_some = !missing_families(&connection, &history)?.is_empty();
            judge(&history, read_meta(&connection, "generation")?, lacks_some) == Verdict::Restored
        },
    })
}
