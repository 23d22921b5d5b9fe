//! Opening: the folder, the lock, the file, the schema.

use super::lock::FolderLock;
use super::{LedgerError, schema};
use crate::clock::Clock;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The file in the data folder.
pub(super) const FILE: &str = "ledger.sqlite";

/// How long a statement waits for a visitor (a backup, somebody's `sqlite3`) to let go of the file.
const BUSY: Duration = Duration::from_secs(5);
/// Statements kept ready: more than there are. One that falls out is parsed anew at each use.
const STATEMENTS: usize = 128;

/// One process's hold on its ledger. Cheap to clone; clones share the one connection, so there is one writer.
#[derive(Clone)]
pub struct Ledger {
    shared: Arc<Shared>,
}

struct Shared {
    // Declared, and so closed, before the lock is given back.
    connection: Mutex<Connection>,
    clock: Clock,
    _lock: FolderLock,
}

impl Ledger {
    /// Opens or makes the ledger of a data folder (`ledger.sqlite`), locks it, and brings its schema up to date.
    /// The folder is made with permissions 0700 if it is missing, the file with 0600.
    ///
    /// Errors: [`LedgerError::InUse`], [`LedgerError::TooNew`] (the file is left as it is), [`LedgerError::Folder`],
    /// [`LedgerError::Corrupt`] if the file is no SQLite file, [`LedgerError::Database`] for the rest.
    pub fn open(folder: &Path, clock: Clock) -> Result<Ledger, LedgerError> {
        let unusable = |reason: std::io::Error| LedgerError::Folder {
            folder: folder.display().to_string(),
            reason: reason.to_string(),
        };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(unusable)?;
        let lock = FolderLock::take(folder)?;
        let path = folder.join(FILE);
        // SQLite would make it readable to all that the umask allows; its WAL takes over the permissions of the file.
        OpenOptions::new().create(true).append(true).mode(0o600).open(&path).map_err(unusable)?;
        let connection = connect(&path, folder).map_err(|error| foreign(error, &path))?;
        let shared = Shared { connection: Mutex::new(connection), clock, _lock: lock };
        Ok(Ledger { shared: Arc::new(shared) })
    }

    /// Seconds since 1970 as the ledger's clock shows them.
    pub(super) fn now(&self) -> i64 {
        seconds(self.shared.clock.now())
    }

    /// The connection, for reading. A panic elsewhere rolled its transaction back, so the connection is sound.
    pub(super) fn read(&self) -> MutexGuard<'_, Connection> {
        self.shared.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `work` in one immediate transaction: all of it is recorded when this returns `Ok`, and nothing otherwise.
    /// `work` says with `None` that there is nothing to record.
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

    /// Folds the log into the file and lets go of it, whoever still holds a clone: nothing is recorded any more, and every
    /// transaction fails. The lock stays until the last clone is gone.
    pub fn close(&self) {
        let closed = Connection::open_in_memory().and_then(|nothing| {
            let connection = std::mem::replace(&mut *self.read(), nothing);
            connection.close().map_err(|(_, error)| error)
        });
        if let Err(error) = closed {
            tracing::warn!(%error, "the ledger could not be closed; the next start takes it up as it is");
        }
    }

    /// For tests of a full disk: at most this many pages of 4 KiB, and no fewer than there are.
    #[doc(hidden)]
    pub fn limit_pages(&self, pages: u32) -> Result<(), LedgerError> {
        let connection = self.read();
        connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
        Ok(())
    }
}

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
    // NORMAL may lose the last commits when the power goes.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    schema::upgrade(&mut connection)?;
    Ok(connection)
}

/// A file that is no ledger is not the database's failure.
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

/// SQLite counts to 2^63; so far a clock does not.
pub(super) fn seconds(unix: u64) -> i64 {
    i64::try_from(unix).unwrap_or(i64::MAX)
}
