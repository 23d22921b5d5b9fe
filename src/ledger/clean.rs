//! Deleting old rows and finished jobs, and the cursor of the inbox.
//!
//! Seen ids keep a replayed message from starting a second job, so they must outlive every wrap
//! that a relay can still send. The wall clock cannot measure that: if it jumps a year ahead and
//! back, all ids would be deleted, and every message answered again. So the ledger counts its own
//! *age*: each cleaning adds the time since the last one, at most a day.

use super::error::LedgerError;
use super::open::Ledger;
use super::rows::{DAY, Kind, read_meta, record_last_job, seconds, set_aside, unsigned, write_meta};
use rusqlite::{Transaction, params};
use std::time::Duration;

/// Age at which a seen id is deleted, seconds: 15 days, and one more because an id is stored with
/// the age at the last cleaning. The inbox accepts rumors of the last 7 days, in wraps dated up to
/// 2 days back.
const SEEN_FOR: i64 = 16 * DAY;

impl Ledger {
    /// Deletes finished wraps past their expiry, seen ids that can no longer be replayed, and other
    /// rows that are no longer needed. Jobs are kept, except the oldest ended ones beyond the
    /// budget. Call it at least daily.
    pub fn delete_expired(&self) -> Result<(), LedgerError> {
        let now = self.now();
        self.write(|transaction| {
            let last = read_meta(transaction, "cleaned_at")?.unwrap_or(now);
            let age = age(transaction)? + (now - last).clamp(0, DAY);
            write_meta(transaction, "age", age)?;
            write_meta(transaction, "cleaned_at", now)?;
            transaction.execute("DELETE FROM seen WHERE age < ?1", [age - SEEN_FOR])?;
            transaction.execute("DELETE FROM outbox WHERE finished = 1 AND expires_at <= ?1", [now])?;
            self.bounds().delete_old(transaction)?;
            super::askers::delete_old_languages(transaction)?;
            transaction.execute("DELETE FROM post WHERE expires_at <= ?1", [now])?;
            for table in ["started", "redirected"] {
                let old = format!("DELETE FROM {table} WHERE at <= ?1 - ?2 OR at > ?1 + ?2");
                transaction.execute(&old, [now, DAY])?;
            }
            Ok(Some(()))
        })?;
        self.vacuum()
    }

    /// Time of the last contact with the relays, Unix seconds; `None` at the first start. Never
    /// later than now, so that a clock that was ahead does not make the bot miss messages.
    pub fn last_contact(&self) -> Result<Option<u64>, LedgerError> {
        let now = self.now();
        self.reading(|connection| match read_meta(connection, "last_contact")? {
            // We never write such a value. Treat it as a first start, so that no message is missed.
            Some(at) if at < 0 => {
                set_aside(connection, Kind::Cursor, &[(0, format!("value {at}"))], now);
                Ok(None)
            }
            at => Ok(at.map(|at| unsigned(at.min(now)))),
        })
    }

    /// Records that every message up to `at` was fetched. A time in the future counts as now. The
    /// cursor moves back only if it was in the future.
    pub fn set_last_contact(&self, at: u64) -> Result<(), LedgerError> {
        let now = self.now();
        let at = seconds(at).min(now);
        self.write(|transaction| {
            let known = read_meta(transaction, "last_contact")?.filter(|&known| known <= now);
            write_meta(transaction, "last_contact", known.map_or(at, |known| known.max(at)))?;
            Ok(Some(()))
        })?;
        Ok(())
    }
}

/// Age of the ledger, seconds.
pub(super) fn age(transaction: &Transaction<'_>) -> Result<i64, LedgerError> {
    Ok(read_meta(transaction, "age")?.unwrap_or(0))
}

/// The most jobs that one call deletes, so that the ledger is not locked for long.
const MAX_JOBS_DELETED: i64 = 10_000;

impl Ledger {
    /// Deletes ended jobs that were accepted at least `keep` ago. A job that the bot gave up must
    /// also have reached its time limit that long ago. Deletes the oldest first, at most 10,000,
    /// and returns their number. Call it hourly.
    ///
    /// These stay: jobs whose result is kept to be sent again, jobs whose askers have yet to hear
    /// that a restore ended them, ids of messages, used halves, and the highest job number. So no
    /// message is answered twice, and no half serves twice.
    pub fn delete_old_jobs(&self, keep: Duration) -> Result<usize, LedgerError> {
        let before = self.now().saturating_sub(seconds(keep.as_secs()));
        let deleted = self.write(|transaction| {
            record_last_job(transaction)?;
            let deleted = transaction
                .prepare_cached(
                    "DELETE FROM job WHERE id IN
                         (SELECT id FROM job WHERE state <> 'accepted' AND accepted_at <= ?1
                              AND (state <> 'expired' OR expires_at <= ?1)
                              AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.result_of = job.id)
                              AND NOT EXISTS (SELECT 1 FROM lost_job WHERE lost_job.job = job.id)
                          ORDER BY id LIMIT ?2)",
                )?
                .execute(params![before, MAX_JOBS_DELETED])?;
            Ok((deleted > 0).then_some(deleted))
        })?;
        Ok(deleted.unwrap_or(0))
    }
}
