//! Deleting finished jobs after a time.

use super::error::LedgerError;
use super::meta::{record_last_job, seconds};
use super::open::Ledger;
use rusqlite::params;
use std::time::Duration;

/// The most jobs that one call deletes, so that the ledger is not locked for long.
const AT_ONCE: i64 = 10_000;

impl Ledger {
    /// Deletes ended jobs that were accepted at least `keep` ago. A job that the bot gave up must
    /// also have reached its time limit that long ago. Deletes the oldest first, at most 10,000,
    /// and returns their number. Call it hourly.
    ///
    /// These stay: jobs whose result is kept to be sent again, jobs whose askers have yet to hear
    /// that a restore ended them, ids of messages, used halves, and the highest job number. So no
    /// message is answered twice, and no half serves twice.
    pub fn thin(&self, keep: Duration) -> Result<usize, LedgerError> {
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
                .execute(params![before, AT_ONCE])?;
            Ok((deleted > 0).then_some(deleted))
        })?;
        Ok(deleted.unwrap_or(0))
    }
}
