//! Conversion between rows and types, single numbers in the table `meta`, and rows that cannot be
//! read: each is logged once and skipped, and the other rows still work.
//! Errors of the ledger.

use super::jobs::{Job, JobState};
use crate::job::{Asker, BestSearch, EncryptionKey, JobId, JobSpec, Priority, RumorId, Ticket, TimeClass};
use crate::key::HalfPoint;
use crate::language::Language;
use crate::pattern::Pattern;
use rusqlite::types::FromSql;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Params, Row, Transaction, params};
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

impl JobState {
    /// The word for the state in the column `state`.
    pub fn word(self) -> &'static str {
        match self {
            JobState::Accepted => "accepted",
            JobState::Found => "found",
            JobState::Delivered => "delivered",
            JobState::Cancelled => "cancelled",
            JobState::Expired => "expired",
        }
    }

    /// Reads the column `state`; `None` for an unknown word.
    pub(super) fn parse(word: &str) -> Option<JobState> {
        use JobState::{Accepted, Cancelled, Delivered, Expired, Found};
        [Accepted, Found, Delivered, Cancelled, Expired].into_iter().find(|state| state.word() == word)
    }
}

/// Columns that [`jobs`] reads, in the order in which it reads them.
pub(super) const JOB_COLUMNS: &str = "job.id, job.asker, job.rumor, job.subject, job.patterns, job.state, \
     job.accepted_at, job.expires_at, job.seen_on, job.split_point, job.notice_at, \
     (SELECT code FROM language WHERE language.asker = job.asker), job.encryption_key, job.best, \
     (SELECT searched FROM best WHERE best.job = job.id), (SELECT pattern FROM best WHERE best.job = job.id), \
     job.ticket, job.time_class, job.priority";

/// Reads all jobs of a query that selects [`JOB_COLUMNS`]. Unreadable rows are set aside.
pub(super) fn jobs(
    connection: &Connection,
    query: &str,
    values: impl Params,
    now: i64,
) -> Result<Vec<Job>, LedgerError> {
    let (mut jobs, mut unreadable) = (Vec::new(), Vec::new());
    {
        let mut statement = connection.prepare_cached(query)?;
        let mut rows = statement.query(values)?;
        while let Some(row) = rows.next()? {
            match job(row) {
                Ok(job) => jobs.push(job),
                Err(column) => unreadable.push((row.get(0)?, column)),
            }
        }
    }
    set_aside(connection, "job", &unreadable, now);
    Ok(jobs)
}

/// Reads a column; the error names it.
pub(super) fn column<T: FromSql>(row: &Row<'_>, index: usize, name: &str) -> Result<T, String> {
    row.get(index).map_err(|_| unreadable(name))
}

/// The error text for a column that cannot be read.
pub(super) fn unreadable(name: &str) -> String {
    format!("column {name}")
}

/// Reads one job. The error names the column.
fn job(row: &Row<'_>) -> Result<Job, String> {
    let patterns: String = column(row, 4, "patterns")?;
    let state: String = column(row, 5, "state")?;
    let seen_on: String = column(row, 8, "seen_on")?;
    let split: Option<[u8; 33]> = column(row, 9, "split_point")?;
    let notice_at: Option<i64> = column(row, 10, "notice_at")?;
    let encryption_key: Option<[u8; 32]> = column(row, 12, "encryption_key")?;
    let best: Option<String> = column(row, 13, "best")?;
    let read_point = |bytes: [u8; 33]| HalfPoint::from_bytes(&bytes).ok_or_else(|| unreadable("split_point"));
    Ok(Job {
        id: JobId(column(row, 0, "id")?),
        rumor: RumorId(column(row, 2, "rumor")?),
        state: JobState::parse(&state).ok_or_else(|| unreadable("state"))?,
        accepted_at: unsigned(column(row, 6, "accepted_at")?),
        seen_on: read_relays(&seen_on).ok_or_else(|| unreadable("seen_on"))?,
        ticket: Ticket(column(row, 16, "ticket")?),
        spec: JobSpec {
            asker: Asker(column(row, 1, "asker")?),
            patterns: read_patterns(&patterns).ok_or_else(|| unreadable("patterns"))?,
            best: best.map(|text| best_search(row, &text).map(Box::new)).transpose()?,
            half: split.map(read_point).transpose()?,
            encryption_key: encryption_key.map(EncryptionKey),
            subject: column(row, 3, "subject")?,
            expires_at: unsigned(column(row, 7, "expires_at")?),
            notice_at: notice_at.map(unsigned),
            class: one_of(TimeClass::EVERY, row, 17, "time_class")?,
            priority: one_of(Priority::EVERY, row, 18, "priority")?,
        },
        language: read_language(column(row, 11, "code")?),
    })
}

/// Reads a column that holds a place in this array.
fn one_of<T: Copy, const N: usize>(every: [T; N], row: &Row<'_>, index: usize, name: &str) -> Result<T, String> {
    let place = usize::try_from(column::<i64>(row, index, name)?).ok();
    place.and_then(|place| every.get(place)).copied().ok_or_else(|| unreadable(name))
}

/// Reads a search without a target and its best key so far.
fn best_search(row: &Row<'_>, text: &str) -> Result<BestSearch, String> {
    let searched: Option<i64> = column(row, 14, "best.searched")?;
    let kept: Option<String> = column(row, 15, "best.pattern")?;
    Ok(BestSearch {
        best: text.parse().map_err(|_| unreadable("best"))?,
        searched: Duration::from_millis(unsigned(searched.unwrap_or(0))),
        kept: kept.map(|text| text.parse()).transpose().map_err(|_| unreadable("best.pattern"))?,
    })
}

/// Reads the code of a language. English if there is none, or one that this version does not know.
pub(super) fn read_language(code: Option<String>) -> Language {
    code.and_then(|code| Language::from_code(&code)).unwrap_or_default()
}

/// Writes patterns separated by spaces.
pub(super) fn write_patterns(patterns: &[Pattern]) -> String {
    patterns.iter().map(Pattern::as_str).collect::<Vec<_>>().join(" ")
}

/// Reads the text that [`write_patterns`] writes; `None` unless every word is a pattern in its
/// normal spelling.
fn read_patterns(text: &str) -> Option<Vec<Pattern>> {
    text.split(' ').map(|word| word.parse().ok().filter(|pattern: &Pattern| pattern.as_str() == word)).collect()
}

/// Relays as a JSON array.
pub(super) fn write_relays(relays: &[String]) -> String {
    serde_json::Value::from(relays).to_string()
}

/// Reads what [`write_relays`] writes.
pub(super) fn read_relays(text: &str) -> Option<Vec<String>> {
    serde_json::from_str(text).ok()
}

/// Seconds in a day.
pub(super) const DAY: i64 = 86_400;

/// Reads the number `name`; `None` if it was never set.
pub(super) fn read_meta(connection: &Connection, name: &str) -> Result<Option<i64>, LedgerError> {
    let mut statement = connection.prepare_cached("SELECT value FROM meta WHERE name = ?1")?;
    Ok(statement.query_row([name], |row| row.get(0)).optional()?)
}

/// Sets the number `name`.
pub(super) fn write_meta(transaction: &Transaction<'_>, name: &str, value: i64) -> Result<(), LedgerError> {
    transaction
        .prepare_cached("INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2")?
        .execute(params![name, value])?;
    Ok(())
}

/// Unix seconds as SQLite stores them.
pub(super) fn seconds(unix: u64) -> i64 {
    i64::try_from(unix).unwrap_or(i64::MAX)
}

/// A number of SQLite as an unsigned one. A negative number reads as 0.
pub(super) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// A row that was set aside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quarantined {
    /// The row: `job 3`, `message 17`, `post 2` or `cursor 0`.
    pub place: String,
    /// The unreadable column, without its content.
    pub reason: String,
    /// When the row was first found, Unix seconds.
    pub at: u64,
}

/// Rows that were set aside, oldest first, at most 100.
pub(super) fn list_quarantined(connection: &Connection) -> Result<Vec<Quarantined>, LedgerError> {
    let query = "SELECT kind, row, reason, at FROM quarantine ORDER BY at, kind, row LIMIT 100";
    let mut statement = connection.prepare(query)?;
    let rows = statement.query_map([], |row| {
        let (kind, number): (String, i64) = (row.get(0)?, row.get(1)?);
        Ok(Quarantined { place: format!("{kind} {number}"), reason: row.get(2)?, at: unsigned(row.get(3)?) })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Sets rows aside, and logs each once. `kind`: `job`, `message`, `post`, or `cursor` for that of the
/// inbox in `meta`.
pub(super) fn set_aside(connection: &Connection, kind: &str, rows: &[(i64, String)], now: i64) {
    for (row, reason) in rows {
        let added = connection
            .prepare_cached("INSERT OR IGNORE INTO quarantine (kind, row, reason, at) VALUES (?1, ?2, ?3, ?4)")
            .and_then(|mut insert| insert.execute(params![kind, row, reason, now]));
        // On a full disk the row cannot be recorded. It is then logged each time, and still
        // skipped.
        if !matches!(added, Ok(0)) {
            tracing::error!(row = %format!("{kind} {row}"), reason, "a row cannot be read and is set aside");
        }
    }
}

/// Reason why the ledger refused or failed. Nothing was changed.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// Another process holds the folder's lock.
    #[error("another npubbot uses the folder {folder}; stop it, or give this one its own with --data")]
    InUse {
        /// The data folder.
        folder: String,
    },
    /// The file has a schema of a later version.
    #[error(
        "the ledger in {folder} was written by a newer npubbot (schema {found}, this one knows {known}); upgrade npubbot"
    )]
    TooNew {
        /// The data folder.
        folder: String,
        /// Schema of the file.
        found: i64,
        /// Latest schema of this program.
        known: i64,
    },
    /// The folder or its lock cannot be used.
    #[error("the data folder {folder} cannot be used: {reason}")]
    Folder {
        /// The data folder.
        folder: String,
        /// The problem, and what would work.
        reason: String,
    },
    /// The ledger belongs to another bot.
    #[error(
        "this ledger belongs to the bot {owner}, but the identity is {bot}; give each bot its own folder with --data"
    )]
    OtherBot {
        /// Owner of the ledger, as an npub.
        owner: String,
        /// The bot that was started, as an npub.
        bot: String,
    },
    /// SQLite failed.
    #[error("the ledger failed: {0}")]
    Database(rusqlite::Error),
    /// The file of used halves cannot be read or written, so no half may be used.
    #[error("the file of used halves cannot be used: {0}")]
    UsedHalves(std::io::Error),
    /// A wrap that is sealed to another key than the asker's.
    #[error("the message is sealed to somebody else than the asker; it was not queued")]
    Misaddressed,
    /// The file is damaged.
    #[error(
        "the ledger is damaged: {0}. Stop npubbot and restore a backup of ledger.sqlite, but leave the file \
         used-halves as it is"
    )]
    Corrupt(String),
}

impl From<rusqlite::Error> for LedgerError {
    fn from(error: rusqlite::Error) -> LedgerError {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => LedgerError::Corrupt(error.to_string()),
            _ => LedgerError::Database(error),
        }
    }
}

impl LedgerError {
    /// A folder that cannot be used.
    pub(super) fn folder(folder: &Path, reason: impl ToString) -> LedgerError {
        LedgerError::Folder { folder: folder.display().to_string(), reason: reason.to_string() }
    }

    /// Whether the system refuses the file to this user.
    pub fn is_refused(&self) -> bool {
        use ErrorCode::{CannotOpen, PermissionDenied, ReadOnly};
        let LedgerError::Database(error) = self else { return false };
        matches!(error.sqlite_error_code(), Some(CannotOpen | PermissionDenied | ReadOnly))
    }

    /// Whether the same call can succeed later: the disk is full or read-only, or the file is busy.
    pub fn is_transient(&self) -> bool {
        use ErrorCode::{
            CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, OperationInterrupted, OutOfMemory, PermissionDenied,
            ReadOnly, SystemIoFailure,
        };
        match self {
            LedgerError::UsedHalves(_) => true,
            LedgerError::Database(error) => matches!(
                error.sqlite_error_code(),
                Some(
                    CannotOpen
                        | DatabaseBusy
                        | DatabaseLocked
                        | DiskFull
                        | OperationInterrupted
                        | OutOfMemory
                        | PermissionDenied
                        | ReadOnly
                        | SystemIoFailure
                )
            ),
            _ => false,
        }
    }
}
