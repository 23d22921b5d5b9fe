//! Conversion between rows and types, single numbers in the table `meta`, and rows that cannot be
//! read: each is logged once and skipped, and the other rows still work.
//! Errors of the ledger.

use super::jobs::{Job, JobState};
use crate::job::{Asker, BestSearch, EncryptionKey, JobId, JobSpec, Priority, RumorId, Ticket, TimeClass};
use crate::key::HalfPoint;
use crate::language::Language;
use crate::pattern::{Best, Pattern};
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

/// Runs a statement. Its preparation is cached, as for the following. Returns the number of rows that
/// it changes.
pub(super) fn execute(connection: &Connection, sql: &str, values: impl Params) -> rusqlite::Result<usize> {
    connection.prepare_cached(sql)?.execute(values)
}

/// All rows of a query.
pub(super) fn query_all<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(values, read)?.collect()
}

/// The first row of a query; `None` if there is none.
pub(super) fn query_first<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    connection.prepare_cached(sql)?.query_row(values, read).optional()
}

/// Whether a query has a row.
pub(super) fn exists(connection: &Connection, sql: &str, values: impl Params) -> rusqlite::Result<bool> {
    connection.prepare_cached(sql)?.exists(values)
}

/// Columns that [`jobs`] reads.
pub(super) const JOB_COLUMNS: &str = "job.*, (SELECT code FROM language WHERE language.asker = job.asker) AS code, \
     (SELECT searched FROM best WHERE best.job = job.id) AS searched, \
     (SELECT pattern FROM best WHERE best.job = job.id) AS kept";

/// Reads all jobs of a query that selects [`JOB_COLUMNS`]. Unreadable rows are set aside.
pub(super) fn jobs(
    connection: &Connection,
    query: &str,
    values: impl Params,
    now: i64,
) -> Result<Vec<Job>, LedgerError> {
    let read = |row: &Row<'_>| {
        let id = row.get("id")?;
        Ok(job(row).map_err(|column| (id, column)))
    };
    readable(connection, "job", query_all(connection, query, values, read)?, now)
}

/// A row, or its number and the column that cannot be read.
pub(super) type RowRead<T> = Result<T, (i64, String)>;

/// The rows that could be read. The others are set aside, and each is logged once. `kind`: `job`,
/// `message` or `post`.
pub(super) fn readable<T>(
    connection: &Connection,
    kind: &str,
    rows: Vec<RowRead<T>>,
    now: i64,
) -> Result<Vec<T>, LedgerError> {
    let mut readable = Vec::with_capacity(rows.len());
    for row in rows {
        match row {
            Ok(row) => readable.push(row),
            Err((number, column)) => set_aside(connection, kind, number, &column, now),
        }
    }
    Ok(readable)
}

/// Reads a column. The error names it.
pub(super) fn column<T: FromSql>(row: &Row<'_>, name: &str) -> Result<T, String> {
    parsed(row, name, Some)
}

/// Reads a column and converts its value. The error names the column.
pub(super) fn parsed<C: FromSql, T>(
    row: &Row<'_>,
    name: &str,
    convert: impl FnOnce(C) -> Option<T>,
) -> Result<T, String> {
    row.get(name).ok().and_then(convert).ok_or_else(|| format!("column {name}"))
}

/// Reads a column that may be NULL and converts its value.
fn parsed_option<C: FromSql, T>(
    row: &Row<'_>,
    name: &str,
    convert: impl FnOnce(C) -> Option<T>,
) -> Result<Option<T>, String> {
    parsed(row, name, |value: Option<C>| value.map_or(Some(None), |value| convert(value).map(Some)))
}

/// Reads one job. The error names the column.
fn job(row: &Row<'_>) -> Result<Job, String> {
    Ok(Job {
        id: JobId(column(row, "id")?),
        rumor: RumorId(column(row, "rumor")?),
        state: parsed(row, "state", |word: String| JobState::parse(&word))?,
        accepted_at: parsed(row, "accepted_at", |at| Some(unsigned(at)))?,
        seen_on: parsed(row, "seen_on", read_relays)?,
        ticket: Ticket(column(row, "ticket")?),
        spec: JobSpec {
            asker: Asker(column(row, "asker")?),
            patterns: parsed(row, "patterns", read_patterns)?,
            best: parsed_option(row, "best", |text: String| text.parse().ok())?
                .map(|best| best_search(row, best))
                .transpose()?,
            half: parsed_option(row, "split_point", |bytes: [u8; 33]| HalfPoint::from_bytes(&bytes))?,
            encryption_key: column::<Option<_>>(row, "encryption_key")?.map(EncryptionKey),
            subject: column(row, "subject")?,
            expires_at: parsed(row, "expires_at", |at| Some(unsigned(at)))?,
            notice_at: column::<Option<_>>(row, "notice_at")?.map(unsigned),
            class: parsed(row, "time_class", |place: u8| TimeClass::EVERY.get(usize::from(place)).copied())?,
            priority: parsed(row, "priority", |place: u8| Priority::EVERY.get(usize::from(place)).copied())?,
        },
        language: read_language(column(row, "code")?),
    })
}

/// Reads a search without a target and its best key so far.
fn best_search(row: &Row<'_>, best: Best) -> Result<Box<BestSearch>, String> {
    let searched = Duration::from_millis(unsigned(column::<Option<_>>(row, "searched")?.unwrap_or(0)));
    let kept = parsed_option(row, "kept", |text: String| text.parse().ok())?;
    Ok(Box::new(BestSearch { best, searched, kept }))
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
fn read_patterns(text: String) -> Option<Vec<Pattern>> {
    text.split(' ').map(|word| word.parse().ok().filter(|pattern: &Pattern| pattern.as_str() == word)).collect()
}

/// Relays as a JSON array.
pub(super) fn write_relays(relays: &[String]) -> String {
    serde_json::Value::from(relays).to_string()
}

/// Reads what [`write_relays`] writes.
pub(super) fn read_relays(text: String) -> Option<Vec<String>> {
    serde_json::from_str(&text).ok()
}

/// Seconds in a day.
pub(super) const DAY: i64 = 86_400;

/// Reads the number `name`; `None` if it was never set.
pub(super) fn read_meta(connection: &Connection, name: &str) -> Result<Option<i64>, LedgerError> {
    Ok(query_first(connection, "SELECT value FROM meta WHERE name = ?1", [name], |row| row.get(0))?)
}

/// Sets the number `name`.
pub(super) fn write_meta(transaction: &Transaction<'_>, name: &str, value: i64) -> Result<(), LedgerError> {
    let set = "INSERT INTO meta (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2";
    execute(transaction, set, params![name, value])?;
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
    Ok(query_all(connection, query, [], |row| {
        let (kind, number): (String, i64) = (row.get(0)?, row.get(1)?);
        Ok(Quarantined { place: format!("{kind} {number}"), reason: row.get(2)?, at: unsigned(row.get(3)?) })
    })?)
}

/// Sets a row aside, and logs it once. `kind`: `job`, `message`, `post`, or `cursor` for that of the
/// inbox in `meta`.
pub(super) fn set_aside(connection: &Connection, kind: &str, row: i64, reason: &str, now: i64) {
    let insert = "INSERT OR IGNORE INTO quarantine (kind, row, reason, at) VALUES (?1, ?2, ?3, ?4)";
    // On a full disk the row cannot be recorded. It is then logged each time, and still skipped.
    if !matches!(execute(connection, insert, params![kind, row, reason, now]), Ok(0)) {
        tracing::error!(row = %format!("{kind} {row}"), reason, "a row cannot be read and is set aside");
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
        use ErrorCode::{ApiMisuse, ConstraintViolation, SchemaChanged, TooBig, TypeMismatch, Unknown};
        let is_ours =
            |code| matches!(code, ApiMisuse | ConstraintViolation | SchemaChanged | TooBig | TypeMismatch | Unknown);
        match self {
            LedgerError::UsedHalves(_) => true,
            LedgerError::Database(error) => error.sqlite_error_code().is_some_and(|code| !is_ours(code)),
            _ => false,
        }
    }
}
