//! What an asker may want of us beside keys: to be left alone, and to be forgotten.

use super::clean::{DAY, read_note, write_note};
use super::open::seconds;
use super::{Ledger, LedgerError};
use crate::job::{Asker, JobId};
use rusqlite::{Connection, Transaction, params};

impl Ledger {
    /// Forgets of an asker what is not newer than `until` (Unix seconds), without an answer, as their vanish request
    /// (NIP-62) wants. Returns the accepted jobs that went; `None` where there was nothing to forget.
    pub fn forget(&self, asker: Asker, until: u64) -> Result<Option<Vec<JobId>>, LedgerError> {
        let now = self.now();
        self.write(|transaction| {
            let open = transaction
                .prepare_cached(
                    "SELECT id FROM job WHERE asker = ?1 AND accepted_at <= ?2 AND state = 'accepted' ORDER BY id",
                )?
                .query_map(params![asker.0, seconds(until)], |row| row.get(0).map(JobId))?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            let gone = forget(transaction, asker, seconds(until), now)?;
            Ok((gone > 0).then_some(open))
        })
    }

    /// Askers of whom anything is kept.
    pub fn askers(&self) -> Result<Vec<Asker>, LedgerError> {
        let connection = self.read();
        let mut statement = connection.prepare_cached(
            "SELECT asker FROM job UNION SELECT asker FROM mail UNION SELECT asker FROM silent ORDER BY asker",
        )?;
        let askers = statement.query_map([], |row| row.get(0).map(Asker))?.collect::<rusqlite::Result<Vec<_>>>()?;
        Ok(askers)
    }
}

pub(super) fn is_silent(connection: &Connection, asker: Asker) -> Result<bool, LedgerError> {
    Ok(connection.prepare_cached("SELECT 1 FROM silent WHERE asker = ?1")?.exists([asker.0])?)
}

pub(super) fn silence(transaction: &Transaction<'_>, asker: Asker, now: i64) -> Result<(), LedgerError> {
    transaction.execute("INSERT OR IGNORE INTO silent (asker, since) VALUES (?1, ?2)", params![asker.0, now])?;
    transaction.execute("UPDATE job SET state = 'cancelled' WHERE asker = ?1 AND state = 'accepted'", [asker.0])?;
    Ok(())
}

pub(super) fn hear_again(transaction: &Transaction<'_>, asker: Asker) -> Result<(), LedgerError> {
    transaction.execute("DELETE FROM silent WHERE asker = ?1", [asker.0])?;
    Ok(())
}

/// Removes jobs and letters that are not newer than `until`; returns how many rows went. No number is given twice, the ids
/// of messages stay until no relay can replay them (without those an old request would come to life again), and the times of
/// the last day's jobs stay for that day: forgetting opens no second quota.
pub(super) fn forget(transaction: &Transaction<'_>, asker: Asker, until: i64, now: i64) -> Result<usize, LedgerError> {
    let last: Option<i64> = transaction.query_row("SELECT max(id) FROM job", [], |row| row.get(0))?;
    let noted = read_note(transaction, "last_job")?;
    if let Some(last) = last.max(noted).filter(|last| noted != Some(*last)) {
        write_note(transaction, "last_job", last)?;
    }
    let mut gone = 0;
    for statement in [
        // A result goes with its job, however late it was found.
        "DELETE FROM mail WHERE asker = ?1 AND (queued_at <= ?2 OR result_of IN
             (SELECT id FROM job WHERE asker = ?1 AND accepted_at <= ?2))",
        "DELETE FROM silent WHERE asker = ?1 AND since <= ?2",
    ] {
        gone += transaction.prepare_cached(statement)?.execute(params![asker.0, until])?;
    }
    transaction
        .prepare_cached(
            "INSERT INTO started (asker, at) SELECT asker, accepted_at FROM job
             WHERE asker = ?1 AND accepted_at <= ?2 AND accepted_at > ?3",
        )?
        .execute(params![asker.0, until, now - DAY])?;
    gone += transaction
        .prepare_cached("DELETE FROM job WHERE asker = ?1 AND accepted_at <= ?2")?
        .execute(params![asker.0, until])?;
    Ok(gone)
}
