//! Totals per day, for the daily post.

use super::error::LedgerError;
use super::meta::{DAY, unsigned};
use super::open::Ledger;
use rusqlite::{OptionalExtension, Transaction, params};

/// Number of days that are kept.
const KEPT: i64 = 30;

/// Totals of one day (UTC).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DayFigures {
    /// Candidates tested.
    pub candidates: u64,
    /// Jobs accepted.
    pub accepted: u64,
    /// Results delivered.
    pub delivered: u64,
}

impl Ledger {
    /// Adds tested candidates to today's total.
    pub fn count_candidates(&self, candidates: u64) -> Result<(), LedgerError> {
        let today = self.now() / DAY;
        self.write(|transaction| {
            transaction
                .prepare_cached(
                    "INSERT INTO day (day, candidates) VALUES (?1, ?2)
                     ON CONFLICT (day) DO UPDATE SET candidates = candidates + ?2",
                )?
                .execute(params![today, i64::try_from(candidates).unwrap_or(i64::MAX)])?;
            transaction.execute("DELETE FROM day WHERE day < ?1", [today - KEPT])?;
            Ok(Some(()))
        })?;
        Ok(())
    }

    /// The kept days up to today, the oldest first: their beginning in Unix seconds, and their
    /// totals. Days on which nothing happened have zeros.
    pub fn days(&self) -> Result<Vec<(u64, DayFigures)>, LedgerError> {
        let today = unsigned(self.now() / DAY);
        let first = self.reading(|connection| {
            Ok(connection.query_row("SELECT min(day) FROM day", [], |row| row.get::<_, Option<i64>>(0))?)
        })?;
        let first = first.map_or(today, unsigned).max(today.saturating_sub(unsigned(KEPT)));
        (first..=today).map(|day| Ok((day * unsigned(DAY), self.day(day)?))).collect()
    }

    /// Totals of a day, in days since 1970-01-01 (UTC); zeros for an unknown day.
    pub fn day(&self, day: u64) -> Result<DayFigures, LedgerError> {
        let day = i64::try_from(day).unwrap_or(i64::MAX);
        let query = "SELECT candidates, accepted, delivered FROM day WHERE day = ?1";
        let figures = self.reading(|connection| {
            let mut statement = connection.prepare_cached(query)?;
            let figures = statement.query_row([day], |row| {
                Ok(DayFigures {
                    candidates: unsigned(row.get(0)?),
                    accepted: unsigned(row.get(1)?),
                    delivered: unsigned(row.get(2)?),
                })
            });
            Ok(figures.optional()?)
        })?;
        Ok(figures.unwrap_or_default())
    }
}

/// Adds one to today's column `what`: `accepted` or `delivered`.
pub(super) fn count(transaction: &Transaction<'_>, now: i64, what: &'static str) -> Result<(), LedgerError> {
    transaction
        .prepare_cached(&format!(
            "INSERT INTO day (day, {what}) VALUES (?1, 1) ON CONFLICT (day) DO UPDATE SET {what} = {what} + 1"
        ))?
        .execute([now / DAY])?;
    Ok(())
}
