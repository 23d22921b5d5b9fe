//! Rows that cannot be read. Each is logged once and skipped, and the other rows still work.

use super::error::LedgerError;
use super::meta::unsigned;
use rusqlite::{Connection, params};

/// The table of an unreadable row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A row of the table `job`.
    Job,
    /// A row of the table `outbox`.
    Message,
    /// A row of the table `post`.
    Post,
    /// The cursor of the inbox in `meta`.
    Cursor,
}

impl Kind {
    /// The word in the column `kind`.
    fn word(self) -> &'static str {
        match self {
            Kind::Job => "job",
            Kind::Message => "message",
            Kind::Post => "post",
            Kind::Cursor => "cursor",
        }
    }
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
pub(super) fn list(connection: &Connection) -> Result<Vec<Quarantined>, LedgerError> {
    let query = "SELECT kind, row, reason, at FROM quarantine ORDER BY at, kind, row LIMIT 100";
    let mut statement = connection.prepare(query)?;
    let rows = statement.query_map([], |row| {
        let (kind, number): (String, i64) = (row.get(0)?, row.get(1)?);
        Ok(Quarantined { place: format!("{kind} {number}"), reason: row.get(2)?, at: unsigned(row.get(3)?) })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Sets rows aside, and logs each once.
pub(super) fn set_aside(connection: &Connection, kind: Kind, rows: &[(i64, String)], now: i64) {
    for (row, reason) in rows {
        let added = connection
            .prepare_cached("INSERT OR IGNORE INTO quarantine (kind, row, reason, at) VALUES (?1, ?2, ?3, ?4)")
            .and_then(|mut insert| insert.execute(params![kind.word(), row, reason, now]));
        // On a full disk the row cannot be recorded. It is then logged each time, and still
        // skipped.
        if !matches!(added, Ok(0)) {
            tracing::error!(row = %format!("{} {row}", kind.word()), reason, "a row cannot be read and is set aside");
        }
    }
}
