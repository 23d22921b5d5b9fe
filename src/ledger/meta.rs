//! Single numbers in the table `meta`, and conversions of numbers.

use super::error::LedgerError;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

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

/// Stores the highest job number before rows of jobs are deleted, so that no number is given twice.
pub(super) fn record_last_job(transaction: &Transaction<'_>) -> Result<(), LedgerError> {
    let last: Option<i64> = transaction.query_row("SELECT max(id) FROM job", [], |row| row.get(0))?;
    let recorded = read_meta(transaction, "last_job")?;
    if let Some(last) = last.max(recorded).filter(|last| recorded != Some(*last)) {
        write_meta(transaction, "last_job", last)?;
    }
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
