//! Budgets: bounds on the ledger's size, however many keys write to the bot.

use super::error::LedgerError;
use super::rows::{read_meta, record_last_job, unsigned, write_meta};
use crate::job::Asker;
use rusqlite::{Connection, Transaction, params};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Largest sizes of the ledger's tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Bytes of unsent answers other than results. Above this, answers to first-time askers are
    /// dropped, oldest first; then those to askers with a job. Results are never dropped.
    pub answers: u64,
    /// Bytes of results that are kept to be sent again. Above this, the oldest delivered ones are
    /// deleted.
    pub results: u64,
    /// Number of answered messages whose ids are kept, in rows of at most 300 bytes. When it is
    /// reached, new askers get no answer.
    pub seen: u64,
    /// Number of ended jobs. Above this, the oldest are deleted.
    pub ended_jobs: u64,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { answers: 256 << 20, results: 1 << 30, seen: 10_000_000, ended_jobs: 1_000_000 }
    }
}

/// Current sizes of the ledger's tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sizes {
    /// Bytes of unsent answers other than results.
    pub answers: u64,
    /// Bytes of results.
    pub results: u64,
    /// Number of answered messages whose ids are kept.
    pub seen: u64,
    /// Answers dropped since the ledger was made.
    pub dropped: u64,
}

/// Time between two warnings about one budget.
const WARN_EVERY: Duration = Duration::from_secs(60);
/// The most answers that one query selects to be dropped.
const ANSWERS_SELECTED: usize = 256;

/// The budget of an open ledger, and when each warning was last logged.
pub(super) struct Bounds {
    pub budget: Budget,
    warned: Mutex<[Option<Instant>; 2]>,
}

impl Bounds {
    pub fn new(budget: Budget) -> Bounds {
        Bounds { budget, warned: Mutex::default() }
    }

    /// Whether this warning is due. Each is logged at most once a minute.
    fn is_due(&self, which: usize) -> bool {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = warned[which].is_none_or(|at| at.elapsed() >= WARN_EVERY);
        if is_due {
            warned[which] = Some(Instant::now());
        }
        is_due
    }

    /// Whether a message of this asker is left unanswered, because the table of seen ids is full.
    /// Askers with a job are always answered.
    pub fn refuses(&self, transaction: &Transaction<'_>, asker: Asker) -> Result<bool, LedgerError> {
        if number(transaction, "seen_rows")? < self.budget.seen || has_job(transaction, asker)? {
            return Ok(false);
        }
        if self.is_due(0) {
            tracing::warn!(
                messages = self.budget.seen,
                "the ledger is full; new askers get no answer until ids expire"
            );
        }
        Ok(true)
    }

    /// If the budget for answers is exceeded, drops answers until an eighth of it is free again.
    pub fn drop_answers(&self, transaction: &Transaction<'_>) -> Result<(), LedgerError> {
        let mut bytes = number(transaction, "answer_bytes")?;
        if bytes <= self.budget.answers {
            return Ok(());
        }
        let enough = self.budget.answers - self.budget.answers / 8;
        let mut dropped = 0;
        for query in [
            "SELECT id FROM outbox AS m WHERE result_of IS NULL AND NOT EXISTS
                 (SELECT 1 FROM job WHERE job.asker = m.asker) ORDER BY id LIMIT ?1",
            "SELECT id FROM outbox WHERE result_of IS NULL ORDER BY id LIMIT ?1",
        ] {
            while bytes > enough {
                let oldest = transaction
                    .prepare_cached(query)?
                    .query_map([ANSWERS_SELECTED as i64], |row| row.get(0))?
                    .collect::<rusqlite::Result<Vec<i64>>>()?;
                if oldest.is_empty() {
                    break;
                }
                for message in oldest {
                    if bytes <= enough {
                        break;
                    }
                    transaction.prepare_cached("DELETE FROM outbox WHERE id = ?1")?.execute([message])?;
                    dropped += 1;
                    bytes = number(transaction, "answer_bytes")?;
                }
            }
        }
        write_meta(transaction, "answers_dropped", read_meta(transaction, "answers_dropped")?.unwrap_or(0) + dropped)?;
        if self.is_due(1) {
            tracing::warn!(
                dropped,
                budget = self.budget.answers,
                "the ledger is at its budget for unsent answers; the oldest are dropped, those of first-time askers first"
            );
        }
        Ok(())
    }

    /// Deletes the oldest delivered results and the oldest ended jobs beyond the budget.
    pub fn delete_old(&self, transaction: &Transaction<'_>) -> Result<(), LedgerError> {
        while number(transaction, "result_bytes")? > self.budget.results {
            let deleted = transaction
                .prepare_cached(
                    "DELETE FROM outbox WHERE id IN (SELECT id FROM outbox WHERE finished = 1 AND result_of IS NOT NULL
                                                   ORDER BY id LIMIT 64)",
                )?
                .execute([])?;
            if deleted == 0 {
                break;
            }
        }
        let ended: i64 =
            transaction.query_row("SELECT count(*) FROM job WHERE state <> 'accepted'", [], |row| row.get(0))?;
        let over = unsigned(ended).saturating_sub(self.budget.ended_jobs);
        if over > 0 {
            record_last_job(transaction)?;
            transaction.execute(
                "DELETE FROM job WHERE id IN
                     (SELECT id FROM job WHERE state <> 'accepted' AND NOT EXISTS
                          (SELECT 1 FROM outbox WHERE outbox.result_of = job.id) ORDER BY id LIMIT ?1)",
                params![i64::try_from(over).unwrap_or(i64::MAX)],
            )?;
        }
        Ok(())
    }
}

/// Sizes of a ledger.
pub(super) fn sizes(connection: &Connection) -> Result<Sizes, LedgerError> {
    Ok(Sizes {
        answers: number(connection, "answer_bytes")?,
        results: number(connection, "result_bytes")?,
        seen: number(connection, "seen_rows")?,
        dropped: number(connection, "answers_dropped")?,
    })
}

/// A size in the table `meta`; 0 if it is missing.
fn number(connection: &Connection, name: &str) -> Result<u64, LedgerError> {
    Ok(read_meta(connection, name)?.map_or(0, unsigned))
}

/// Whether the ledger has a job of this asker, in any state.
fn has_job(connection: &Connection, asker: Asker) -> Result<bool, LedgerError> {
    Ok(connection.prepare_cached("SELECT 1 FROM job WHERE asker = ?1")?.exists([asker.0])?)
}
