//! What may be forgotten, and the two numbers that say how far the bot has come.
//!
//! Seen ids are what keeps a replayed message from starting a second job, so they must outlive every wrap a relay may
//! still give us. A wall clock is no safe measure of that: one that jumps a year ahead and back would make us forget
//! everything, and then answer everything again. So the ledger counts its own *age*: each cleaning adds the time since
//! the last one, but never more than a day.

use super::open::seconds;
use super::rows::unsigned;
use super::{Ledger, LedgerError};
use rusqlite::{Connection, OptionalExtension, Transaction, params};

pub(super) const DAY: i64 = 86_400;

/// Age in seconds at which a seen id may go: 15 days, and one more because an id recorded just before a cleaning gets
/// the age of the cleaning before. The inbox takes rumors of the last week, in wraps dated two days back.
const SEEN_FOR: i64 = 16 * DAY;

impl Ledger {
    /// Forgets what nobody will ask for again: finished wraps past their expiry, seen ids older than a replay can be.
    /// Jobs are kept. To be called at least daily.
    pub fn clean(&self) -> Result<(), LedgerError> {
        let now = self.now();
        self.write(|transaction| {
            let last = read_note(transaction, "cleaned_at")?.unwrap_or(now);
            let age = age(transaction)? + (now - last).clamp(0, DAY);
            write_note(transaction, "age", age)?;
            write_note(transaction, "cleaned_at", now)?;
            transaction.execute("DELETE FROM seen WHERE age < ?1", [age - SEEN_FOR])?;
            transaction.execute("DELETE FROM mail WHERE finished = 1 AND expires_at <= ?1", [now])?;
            transaction.execute("DELETE FROM post WHERE expires_at <= ?1", [now])?;
            transaction.execute("DELETE FROM started WHERE at <= ?1 - ?2 OR at > ?1 + ?2", [now, DAY])?;
            Ok(Some(()))
        })?;
        Ok(())
    }

    /// When this bot last was in contact with its relays, by its own clock; `None` at the first start.
    /// Never later than now: a clock that was ahead must not make us miss messages.
    pub fn last_contact(&self) -> Result<Option<u64>, LedgerError> {
        let now = self.now();
        Ok(read_note(&self.read(), "last_contact")?.map(|at| unsigned(at.min(now))))
    }

    /// Notes that every message up to `at` (at most now) was fetched. It only moves back if it was in the future.
    pub fn set_last_contact(&self, at: u64) -> Result<(), LedgerError> {
        let now = self.now();
        let at = seconds(at).min(now);
        self.write(|transaction| {
            let known = read_note(transaction, "last_contact")?.filter(|&known| known <= now);
            write_note(transaction, "last_contact", known.map_or(at, |known| known.max(at)))?;
            Ok(Some(()))
        })?;
        Ok(())
    }
}

/// The ledger's own count of time, seconds.
pub(super) fn age(transaction: &Transaction<'_>) -> Result<i64, LedgerError> {
    Ok(read_note(transaction, "age")?.unwrap_or(0))
}

pub(super) fn read_note(connection: &Connection, name: &str) -> Result<Option<i64>, LedgerError> {
    let mut statement = connection.prepare_cached("SELECT value FROM note WHERE name = ?1")?;
    Ok(statement.query_row([name], |row| row.get(0)).optional()?)
}

pub(super) fn write_note(transaction: &Transaction<'_>, name: &str, value: i64) -> Result<(), LedgerError> {
    transaction
        .prepare_cached("INSERT INTO note (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2")?
        .execute(params![name, value])?;
    Ok(())
}
