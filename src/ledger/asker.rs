//! Askers who want no more messages, and askers who want their data deleted.

use super::error::LedgerError;
use super::job::JobState;
use super::meta::{DAY, record_last_job, seconds};
use super::open::Ledger;
use super::rows::read_language;
use crate::job::{Asker, JobId};
use crate::language::Language;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

impl Ledger {
    /// Deletes everything about an asker up to the time `until` (Unix seconds), as a vanish request
    /// (NIP-62) asks. They get no answer. Returns the accepted jobs that were deleted; `None` if
    /// nothing was deleted.
    pub fn forget(&self, asker: Asker, until: u64) -> Result<Option<Vec<JobId>>, LedgerError> {
        let now = self.now();
        self.write(|transaction| {
            let (gone, ended) = forget(transaction, asker, seconds(until), now)?;
            Ok((gone > 0).then_some(ended))
        })
    }

    /// All askers with a job, a message in the outbox, a stop, or a language.
    pub fn askers(&self) -> Result<Vec<Asker>, LedgerError> {
        let query = "SELECT asker FROM job UNION SELECT asker FROM outbox UNION SELECT asker FROM silent
                     UNION SELECT asker FROM language ORDER BY asker";
        self.reading(|connection| {
            let mut statement = connection.prepare_cached(query)?;
            Ok(statement.query_map([], |row| row.get(0).map(Asker))?.collect::<rusqlite::Result<Vec<_>>>()?)
        })
    }
}

/// Whether an asker sent `stop` and has not sent `start` since.
pub(super) fn is_silent(connection: &Connection, asker: Asker) -> Result<bool, LedgerError> {
    Ok(connection.prepare_cached("SELECT 1 FROM silent WHERE asker = ?1")?.exists([asker.0])?)
}

/// Whether a message of an asker by NIP-04 was answered in the last day.
pub(super) fn is_redirected(connection: &Connection, asker: Asker, now: i64) -> Result<bool, LedgerError> {
    let query = "SELECT 1 FROM redirected WHERE asker = ?1 AND at > ?2 - ?3 AND at <= ?2 + ?3";
    Ok(connection.prepare_cached(query)?.exists(params![asker.0, now, DAY])?)
}

/// Records that a message of an asker by NIP-04 is answered.
pub(super) fn redirect(transaction: &Transaction<'_>, asker: Asker, now: i64) -> Result<(), LedgerError> {
    transaction
        .prepare_cached("INSERT OR REPLACE INTO redirected (asker, at) VALUES (?1, ?2)")?
        .execute(params![asker.0, now])?;
    Ok(())
}

/// Records a stop and cancels the asker's jobs, which are returned.
pub(super) fn opt_out(transaction: &Transaction<'_>, asker: Asker, now: i64) -> Result<Vec<JobId>, LedgerError> {
    transaction.execute("INSERT OR IGNORE INTO silent (asker, since) VALUES (?1, ?2)", params![asker.0, now])?;
    cancel_all(transaction, asker)
}

/// Cancels all accepted jobs of an asker, which are returned.
pub(super) fn cancel_all(transaction: &Transaction<'_>, asker: Asker) -> Result<Vec<JobId>, LedgerError> {
    let mut cancel = transaction
        .prepare_cached("UPDATE job SET state = 'cancelled' WHERE asker = ?1 AND state = 'accepted' RETURNING id")?;
    Ok(cancel.query_map([asker.0], |row| row.get(0).map(JobId))?.collect::<rusqlite::Result<_>>()?)
}

/// Lets an asker who sent `stop` get messages again.
pub(super) fn opt_in(transaction: &Transaction<'_>, asker: Asker) -> Result<(), LedgerError> {
    transaction.execute("DELETE FROM silent WHERE asker = ?1", [asker.0])?;
    Ok(())
}

/// Number of the newest language rows, which are always kept. Older rows are kept only for askers
/// with a job.
const LANGUAGES_KEPT: i64 = 100_000;

/// The language of an asker; English if none is kept.
pub(super) fn language(connection: &Connection, asker: Asker) -> Result<Language, LedgerError> {
    let code: Option<String> = connection
        .prepare_cached("SELECT code FROM language WHERE asker = ?1")?
        .query_row([asker.0], |row| row.get(0))
        .optional()?;
    Ok(read_language(code))
}

/// Sets the language of an asker. English takes no row.
pub(super) fn set_language(
    transaction: &Transaction<'_>,
    asker: Asker,
    language: Language,
    now: i64,
) -> Result<(), LedgerError> {
    if language == Language::default() {
        transaction.prepare_cached("DELETE FROM language WHERE asker = ?1")?.execute([asker.0])?;
        return Ok(());
    }
    transaction
        .prepare_cached("INSERT OR REPLACE INTO language (asker, code, since) VALUES (?1, ?2, ?3)")?
        .execute(params![asker.0, language.code(), now])?;
    Ok(())
}

/// Deletes the language rows beyond the newest [`LANGUAGES_KEPT`], except those of askers with a
/// job.
pub(super) fn delete_old_languages(transaction: &Transaction<'_>) -> Result<(), LedgerError> {
    transaction.execute(
        "DELETE FROM language WHERE rowid <= (SELECT max(rowid) FROM language) - ?1
             AND NOT EXISTS (SELECT 1 FROM job WHERE job.asker = language.asker)",
        [LANGUAGES_KEPT],
    )?;
    Ok(())
}

/// Deletes jobs and messages up to the time `until`. Returns the number of rows deleted, and the
/// accepted jobs among them.
///
/// Three things stay. The highest job number, so that none is given twice. The ids of messages,
/// until no relay can replay them; otherwise an old request would become a new job. The times of
/// the last day's jobs, for that day, so that a deletion does not open a second quota.
pub(super) fn forget(
    transaction: &Transaction<'_>,
    asker: Asker,
    until: i64,
    now: i64,
) -> Result<(usize, Vec<JobId>), LedgerError> {
    record_last_job(transaction)?;
    let mut gone = 0;
    for statement in [
        // A result is deleted with its job, even if it was found after `until`.
        "DELETE FROM outbox WHERE asker = ?1 AND (queued_at <= ?2 OR result_of IN
             (SELECT id FROM job WHERE asker = ?1 AND accepted_at <= ?2))",
        "DELETE FROM silent WHERE asker = ?1 AND since <= ?2",
        "DELETE FROM language WHERE asker = ?1 AND since <= ?2",
        "DELETE FROM redirected WHERE asker = ?1 AND at <= ?2",
    ] {
        gone += transaction.prepare_cached(statement)?.execute(params![asker.0, until])?;
    }
    transaction
        .prepare_cached(
            "INSERT INTO started (asker, at) SELECT asker, accepted_at FROM job
             WHERE asker = ?1 AND accepted_at <= ?2 AND accepted_at > ?3",
        )?
        .execute(params![asker.0, until, now - DAY])?;
    let mut delete =
        transaction.prepare_cached("DELETE FROM job WHERE asker = ?1 AND accepted_at <= ?2 RETURNING id, state")?;
    let deleted = delete
        .query_map(params![asker.0, until], |row| Ok((JobId(row.get(0)?), row.get::<_, String>(1)?)))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let is_open = |(_, state): &&(JobId, String)| state == JobState::Accepted.word();
    let mut ended: Vec<JobId> = deleted.iter().filter(is_open).map(|(job, _)| *job).collect();
    ended.sort_unstable();
    Ok((gone + deleted.len(), ended))
}
