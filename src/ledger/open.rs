//! Opening: the folder, the lock, the file, the schema, and whether this ledger is the latest one.

use super::budget::{LedgerBudget, Sizes, sizes};
use super::restore::{Family, History, HistoryVerdict, UsedHalves, check, judge, read_history};
use super::rows::{self, LedgerError, Quarantined, query_all, read_meta, seconds, unsigned, write_meta};
use crate::clock::Clock;
use crate::os::files;
use crate::os::files::free_bytes;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Name of the ledger's folder in the data folder. The process that talks to strangers may use no
/// other folder, so nothing else lies there.
const FOLDER: &str = "ledger";
/// Name of the lock of a running bot in its data folder.
const BOT_LOCK_FILE: &str = "npubbot.lock";
/// Name of the lock in the ledger's folder.
const LOCK_FILE: &str = "ledger.lock";
/// Longest wait for the network process of a killed bot: on a busy machine its threads, which have
/// a low priority, take seconds to end.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);
/// Pause between two attempts to take a lock.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Name of the file in the ledger's folder.
pub(super) const LEDGER_FILE: &str = "ledger.sqlite";

/// Longest wait of a statement for another process that reads the file, such as a backup or
/// `sqlite3`.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Free pages of 4 KiB that stay in the file, for the next rows.
const FREE_PAGES: i64 = 1024;
/// Size to which the write-ahead log is cut back, bytes.
const LARGEST_WAL: i64 = 8 << 20;
/// The value of `PRAGMA auto_vacuum` for a file that shrinks on request.
const INCREMENTAL_VACUUM: i64 = 2;
/// Number of prepared statements that are cached. The program has fewer.
const CACHED_STATEMENTS: usize = 128;

/// The folder of the ledger in a bot's data folder.
pub fn folder(data: &Path) -> PathBuf {
    data.join(FOLDER)
}

/// Takes the lock of a bot in its data folder, and makes the folder and that of the ledger. Waits
/// until the ledger is free, which a process of a killed bot may still have.
///
/// Errors: [`LedgerError::InUse`], [`LedgerError::Folder`].
pub fn lock(data: &Path) -> Result<FolderLock, LedgerError> {
    let ledger = folder(data);
    files::create_folder(&ledger).map_err(|error| LedgerError::folder(&ledger, error))?;
    let lock = FolderLock::take(data, BOT_LOCK_FILE)?;
    let until = Instant::now() + LOCK_TIMEOUT;
    loop {
        match FolderLock::take(&ledger, LOCK_FILE) {
            Err(LedgerError::InUse { .. }) if Instant::now() < until => std::thread::sleep(LOCK_PAUSE),
            free => return free.map(|_| lock),
        }
    }
}

/// An open ledger. Cheap to clone; clones share one connection, so there is one writer.
#[derive(Clone)]
pub struct Ledger {
    shared: Arc<OpenLedger>,
}

struct OpenLedger {
    // Declared before the lock, so that the connection is closed before the lock is released.
    connection: Mutex<Connection>,
    used_halves: Mutex<UsedHalves>,
    budget: LedgerBudget,
    /// The first damage found.
    damage: OnceLock<String>,
    clock: Clock,
    /// The lock of the folder; `None` once the ledger is closed.
    lock: Mutex<Option<FolderLock>>,
}

impl Ledger {
    /// Locks the ledger's folder, and opens or makes its `ledger.sqlite`. A missing folder is made
    /// with permissions 0700, a missing file with 0600.
    ///
    /// Errors: [`LedgerError::InUse`], [`LedgerError::TooNew`] (the file is left as it is),
    /// [`LedgerError::Folder`], [`LedgerError::Corrupt`] if the file is not a SQLite file,
    /// [`LedgerError::Database`] for the rest.
    pub fn open(folder: &Path, clock: Clock) -> Result<Ledger, LedgerError> {
        Ledger::open_with(folder, clock, LedgerBudget::default())
    }

    /// Opens a ledger with another budget.
    ///
    /// Errors: as [`Ledger::open`].
    pub fn open_with(folder: &Path, clock: Clock, budget: LedgerBudget) -> Result<Ledger, LedgerError> {
        let unusable = |error: std::io::Error| LedgerError::folder(folder, error);
        files::create_folder(folder).map_err(unusable)?;
        let lock = FolderLock::take(folder, LOCK_FILE)?;
        let path = folder.join(LEDGER_FILE);
        // SQLite would make the file with the permissions of the umask. The WAL gets the
        // permissions of the file.
        files::open(&path).map_err(unusable)?;
        let mut connection = connect(&path, folder).map_err(|error| with_path(error, &path))?;
        let mut history = read_history(folder)?;
        if !history.exists && read_meta(&connection, "generation")?.is_none() {
            // Made before the ledger notes its first start: one that is interrupted is no restore.
            UsedHalves::open(folder, &history)?;
            history = read_history(folder)?;
        }
        let (generation, missing) = align(&mut connection, &history, seconds(clock.now()))?;
        let mut used_halves = UsedHalves::open(folder, &history)?;
        used_halves.start(generation, &missing)?;
        let shared = OpenLedger {
            connection: Mutex::new(connection),
            used_halves: Mutex::new(used_halves),
            budget,
            damage: OnceLock::new(),
            clock,
            lock: Mutex::new(Some(lock)),
        };
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
        let run = || {
            let mut connection = self.read();
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&transaction)?;
            if done.is_some() {
                transaction.commit()?;
            }
            Ok(done)
        };
        self.watch(run())
    }

    /// Runs `work` in one immediate transaction, and commits it.
    pub(super) fn change<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        self.write(|transaction| work(transaction).map(Some)).map(|done| done.expect("it was committed"))
    }

    /// Runs `work` on the connection, for reading.
    pub(super) fn reading<T, E: Into<LedgerError>>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, LedgerError> {
        let done = work(&self.read()).map_err(Into::into);
        self.watch(done)
    }

    /// Remembers damage, for [`Ledger::damage`].
    fn watch<T>(&self, done: Result<T, LedgerError>) -> Result<T, LedgerError> {
        if let Err(error @ LedgerError::Corrupt(_)) = &done {
            self.shared.damage.get_or_init(|| error.to_string());
        }
        done
    }

    /// The first damage of the file that a call found, with the remedy. The process should end
    /// after it.
    pub fn damage(&self) -> Option<&str> {
        self.shared.damage.get().map(String::as_str)
    }

    /// The largest sizes of the tables.
    pub(super) fn budget(&self) -> &LedgerBudget {
        &self.shared.budget
    }

    /// The file of used halves.
    pub(super) fn used_halves(&self) -> MutexGuard<'_, UsedHalves> {
        self.shared.used_halves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives free pages back to the file system.
    pub(super) fn vacuum(&self) -> Result<(), LedgerError> {
        let free: i64 =
            self.reading(|connection| connection.query_row("PRAGMA freelist_count", [], |row| row.get(0)))?;
        if free > FREE_PAGES {
            let vacuum = format!("PRAGMA incremental_vacuum({})", free - FREE_PAGES);
            self.reading(|connection| query_all(connection, &vacuum, [], |_| Ok(())))?;
        }
        Ok(())
    }

    /// Closes the file for all clones and releases the lock. Waits for a transaction in progress;
    /// later ones fail before they write.
    pub fn close(&self) {
        let recorded = self.reading(|connection| read_meta(connection, "generation"));
        // After a failed T2 the file of used halves is ahead of the ledger. The file then gets no
        // closing line, so that the next start does not take the difference for a restore.
        if recorded.is_ok_and(|generation| generation == Some(self.used_halves().generation())) {
            self.used_halves().close();
        }
        let closed = Connection::open_in_memory().and_then(|nothing| {
            let connection = std::mem::replace(&mut *self.read(), nothing);
            connection.close().map_err(|(_, error)| error)
        });
        if let Err(error) = closed {
            tracing::warn!(%error, "the ledger could not be closed; the next start recovers it");
        }
        drop(self.shared.lock.lock().unwrap_or_else(PoisonError::into_inner).take());
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

/// Opens or makes the file, with our settings.
fn connect(path: &Path, folder: &Path) -> Result<Connection, LedgerError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    refuse_newer(&connection, folder)?;
    // Lets the file shrink. Counts only in a file without tables.
    connection.pragma_update(None, "auto_vacuum", INCREMENTAL_VACUUM)?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        let reason = "its file system cannot keep a write-ahead log; choose a folder on a local disk";
        return Err(LedgerError::folder(folder, reason));
    }
    // NORMAL could lose the last commits in a power failure.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "journal_size_limit", LARGEST_WAL)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    make_tables(&mut connection)?;
    Ok(connection)
}

/// Adds the file's name to an error about damage.
fn with_path(error: LedgerError, path: &Path) -> LedgerError {
    match error {
        LedgerError::Corrupt(reason) => LedgerError::Corrupt(format!("{}: {reason}", path.display())),
        other => other,
    }
}

/// Schema that this program writes (`PRAGMA user_version`). No other was ever released.
pub(super) const SCHEMA_VERSION: i64 = 1;

/// Schema of the file; 0 for an empty one.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Refuses a file with a later schema, before anything in it is changed.
fn refuse_newer(connection: &Connection, folder: &Path) -> Result<(), LedgerError> {
    let found = version(connection)?;
    if found > SCHEMA_VERSION {
        return Err(LedgerError::TooNew { folder: folder.display().to_string(), found, known: SCHEMA_VERSION });
    }
    if found < 0 {
        return Err(LedgerError::Corrupt(format!("{}: schema number {found}", folder.display())));
    }
    Ok(())
}

/// Opens a file of `folder`, or for it, that is not changed. Refuses one with a later schema.
pub(super) fn open_to_read(path: &Path, folder: &Path) -> Result<Connection, LedgerError> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    refuse_newer(&connection, folder)?;
    Ok(connection)
}

/// Makes the tables of an empty file.
fn make_tables(connection: &mut Connection) -> Result<(), LedgerError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if version(&transaction)? == 0 {
        transaction.execute_batch(include_str!("schema.sql"))?;
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        transaction.commit()?;
    }
    Ok(())
}

/// An advisory lock, held until it is dropped. The file stays behind.
pub struct FolderLock {
    file: File,
}

impl FolderLock {
    /// Locks the file `lock` in `folder` without waiting.
    ///
    /// Errors: [`LedgerError::InUse`] if this process or another holds it; [`LedgerError::Folder`]
    /// if the file cannot be made or the file system has no locks.
    fn take(folder: &Path, lock: &str) -> Result<FolderLock, LedgerError> {
        let unusable = |error: std::io::Error| {
            let remedy = "choose a folder on a local disk that you can write";
            LedgerError::folder(folder, format!("{lock} cannot be locked ({error}); {remedy}"))
        };
        let file = files::open(&folder.join(lock)).map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => Ok(FolderLock { file }),
            Err(TryLockError::WouldBlock) => Err(LedgerError::InUse { folder: folder.display().to_string() }),
            Err(TryLockError::Error(error)) => Err(unusable(error)),
        }
    }
}

impl Drop for FolderLock {
    /// Unlocks explicitly. Closing the file is not enough while a child process between `fork` and
    /// `exec` has it open too.
    fn drop(&mut self) {
        // After an error there is still the close, which unlocks the file if no child has it open.
        let _ = self.file.unlock();
    }
}

/// Compares the ledger with the file of used halves, and updates the ledger. Returns the generation
/// of this start, and the used families that the file lacks.
pub(super) fn align(
    connection: &mut Connection,
    history: &History,
    now: i64,
) -> Result<(i64, Vec<Family>), LedgerError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let known = read_meta(&transaction, "generation")?;
    let missing = missing_families(&transaction, history)?;
    let verdict = judge(history, known, !missing.is_empty());
    if verdict != HistoryVerdict::Same {
        let mut insert = transaction.prepare("INSERT OR IGNORE INTO used_half (family) VALUES (?1)")?;
        for family in &history.families {
            insert.execute([family])?;
        }
    }
    let only = match verdict {
        HistoryVerdict::Same => None,
        HistoryVerdict::OneUse(family) => Some(Some(family)),
        HistoryVerdict::Restored => Some(None),
    };
    if let Some(only) = only {
        let lost = transaction.execute(
            "INSERT OR IGNORE INTO lost_job (job) SELECT id FROM job
             WHERE state = 'accepted' AND half_family IS NOT NULL AND (?1 IS NULL OR half_family = ?1)",
            [only],
        )?;
        transaction.execute("UPDATE job SET state = 'expired' WHERE id IN (SELECT job FROM lost_job)", [])?;
        if verdict == HistoryVerdict::Restored {
            write_meta(&transaction, "restored_at", now)?;
            tracing::warn!(
                split_jobs = lost,
                "the ledger is older than its file of used halves, or the file was lost or cut, as after a restored \
                 backup; open split jobs are given up, and requests from before this start are refused"
            );
        }
    }
    let generation = known.unwrap_or(0).max(history.generation) + 1;
    write_meta(&transaction, "generation", generation)?;
    transaction.commit()?;
    Ok((generation, missing))
}

/// The used families of the ledger that the file lacks.
pub(super) fn missing_families(connection: &Connection, history: &History) -> Result<Vec<Family>, LedgerError> {
    let in_file: HashSet<&Family> = history.families.iter().collect();
    let used = query_all(connection, "SELECT family FROM used_half", [], |row| row.get::<_, Family>(0))?;
    Ok(used.into_iter().filter(|family| !in_file.contains(family)).collect())
}

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
    let path = folder.join(LEDGER_FILE);
    if !path.exists() {
        return Ok(Inspection::Absent);
    }
    let _lock = match FolderLock::take(folder, LOCK_FILE) {
        Ok(lock) => lock,
        Err(LedgerError::InUse { .. }) => return Ok(Inspection::InUse),
        Err(error) => return Err(error),
    };
    let connection = open_to_read(&path, folder)?;
    check(&connection, &path)?;
    let schema = version(&connection)?;
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
        sizes: sizes(&connection, LedgerBudget::default())?,
        restored_at: read_meta(&connection, "restored_at")?.map(unsigned),
        is_older: {
            let lacks_some = !missing_families(&connection, &history)?.is_empty();
            judge(&history, read_meta(&connection, "generation")?, lacks_some) == HistoryVerdict::Restored
        },
    })
}

impl Ledger {
    /// Sizes of the ledger.
    pub fn sizes(&self) -> Result<Sizes, LedgerError> {
        self.reading(|connection| sizes(connection, *self.budget()))
    }

    /// Rows that were set aside, oldest first, at most 100.
    pub fn quarantined(&self) -> Result<Vec<Quarantined>, LedgerError> {
        self.reading(rows::list_quarantined)
    }
}

impl Ledger {
    /// Bytes that an ordinary user can still write on the disk of this ledger. `None` if the system
    /// does not say.
    pub fn free_bytes(&self) -> Option<u64> {
        free_bytes(Path::new(self.read().path()?).parent()?)
    }
}
