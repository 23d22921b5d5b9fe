//! Looking at a ledger without changing it, for `npubbot doctor`.

use super::lock::FolderLock;
use super::open::FILE;
use super::{LedgerError, schema};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// What a data folder holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Look {
    /// No ledger yet: the first start makes it.
    Absent,
    /// An npubbot runs on it.
    InUse,
    Sound {
        schema: i64,
        open_jobs: u64,
    },
}

/// Looks at the ledger in `folder`, checks the file's integrity, and leaves everything as it is.
///
/// Errors: as [`super::Ledger::open`], and [`LedgerError::Corrupt`] if the check finds damage.
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
        return Err(LedgerError::Corrupt(format!("{}: {verdict}; restore a copy", path.display())));
    }
    let schema = schema::version(&connection)?;
    let count = "SELECT count(*) FROM job WHERE state = 'accepted'";
    let open_jobs = if schema == 0 { 0 } else { connection.query_row(count, [], |row| row.get::<_, i64>(0))? };
    Ok(Look::Sound { schema, open_jobs: super::rows::unsigned(open_jobs) })
}
