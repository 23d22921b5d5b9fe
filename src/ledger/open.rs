//! Opening: the folder, the lock, the file, the schema.

use super::error::LedgerError;
use super::lock::FolderLock;
use super::schema;
use crate::clock::Clock;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Name of the file in the data folder.
pub(super) const FILE: &str = "ledger.sqlite";

/// Longest wait of a statement for another process that reads the file, such as a backup or
/// `sqlite3`.
const BUSY: Duration = Duration::from_secs(5);
/// Size of the cache of prepared statements: more than there are.
const STATEMENTS: usize = 128;

/// An open ledger. Cheap to clone; clones share one connection, so there is one writer.
#[derive(Clone)]
pub struct Ledger {
    shared: Arc<Shared>,
}

struct Shared {
    // Declared before the lock, so that it is closed before the lock is released.
    connection: Mutex<Connection>,
    clock: Clock,
    _lock: FolderLock,
}

impl Ledger {
    /// Locks a data folder, opens or makes its `ledger.sqlite`, and brings the schema up to date. A
    /// missing folder is made with permissions 0700, a missing file with 0600.
    ///
    /// Errors: [`LedgerError::InUse`], [`LedgerError::TooNew`] (the file is left as it is),
    /// [`LedgerError::Folder`], [`LedgerError::Corrupt`] if the file is no SQLite file,
    /// [`LedgerError::Database`] for the rest.
    pub fn open(folder: &Path, clock: Clock) -> Result<Ledger, LedgerError> {
        let unusable = |reason: std::io::Error| LedgerError::Folder {
            folder: folder.display().to_string(),
            reason: reason.to_string(),
        };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(unusable)?;
        let lock = FolderLock::take(folder)?;
        let path = folder.join(FILE);
        // SQLite would make it with the permissions of the umask. Its WAL copies the permissions of
        // the file.
        OpenOptions::new().create(true).append(true).mode(0o600).open(&path).map_err(unusable)?;
        let connection = connect(&path, folder).map_err(|error| foreign(error, &path))?;
        let shared = Shared { connection: Mutex::new(connection), clock, _lock: lock };
        Ok(Ledger { shared: Arc::new(shared) })
    }

    /// The time by the ledger's clock, Unix seconds.
    pub(super) fn now(&self) -> i64 {
        seconds(self.shared.clock.now())
    }

    /// The connection, for reading. A poisoned lock is fine: a panic rolls its transaction back.
    pub(super) fn read(&self) -> MutexGuard<'_, Connection> {
        self.shared.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` in one immediate transaction. If it returns `Some`, the transaction is
    /// committed; if it returns `None` or an error, nothing is recorded.
    pub(super) fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<Option<T>, LedgerError>,
    ) -> Result<Option<T>, LedgerError> {
        let mut connection = self.read();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&transaction)?;
        if done.is_some() {
            transaction.commit()?;
        }
        Ok(done)
    }

    /// Closes the file, also for all clones: later transactions fail. The lock stays until the last
    /// clone is dropped.
    pub fn close(&self) {
        let closed = Connection::open_in_memory().and_then(|nothing| {
            let connection = std::mem::replace(&mut *self.read(), nothing);
            connection.close().map_err(|(_, error)| error)
        });
        if let Err(error) = closed {
            tracing::warn!(%error, "the ledger could not be closed; the next start recovers it");
        }
    }

    /// Limits the file to this many pages of 4 KiB, but not below its size: for tests of a full
    /// disk.
    #[cfg(any(test, feature = "test-util"))]
    pub fn limit_pages(&self, pages: u32) -> Result<(), LedgerError> {
        let connection = self.read();
        connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
        Ok(())
    }
}

/// Opens the file with our settings and brings its schema up to date.
fn connect(path: &Path, folder: &Path) -> Result<Connection, LedgerError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    schema::refuse_newer(&connection, folder)?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(LedgerError::Folder {
            folder: folder.display().to_string(),
            reason: "its file system cannot keep a write-ahead log; choose a folder on a local disk".to_owned(),
        });
    }
    // NORMAL may lose the last commits at a power failure.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    schema::upgrade(&mut connection)?;
    Ok(connection)
}

/// Maps the error for a file of another format.
fn foreign(error: LedgerError, path: &Path) -> LedgerError {
    match error {
        LedgerError::Database(rusqlite::Error::SqliteFailure(failure, _))
            if failure.code == ErrorCode::NotADatabase =>
        {
            LedgerError::Corrupt(format!("{} is not an SQLite file; move it away or restore a copy", path.display()))
        }
        other => other,
    }
}

/// Unix seconds as SQLite stores them.
pub(super) fn seconds(unix: u64) -> i64 {
    i64::try_from(unix).unwrap_or(i64::MAX)
}
