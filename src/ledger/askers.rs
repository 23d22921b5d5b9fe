//! Askers: those who want no more messages or their data deleted, their languages, the operator's
//! rules for single ones, and the list that an operator sees.

use super::open::Ledger;
use super::rows::{
    DAY, LedgerError, execute, query_all, query_first, read_language, read_meta, seconds, unsigned, write_meta,
};
use crate::job::{Asker, JobId};
use crate::key::Npub;
use crate::language::Language;
use rusqlite::{Connection, Row, Transaction, params};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

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

    /// [`Ledger::forget`] for the operator: everything so far, and overwritten in the file.
    pub fn erase(&self, asker: Asker) -> Result<Option<Vec<JobId>>, LedgerError> {
        let secure = |is_on: bool| self.reading(|connection| connection.pragma_update(None, "secure_delete", is_on));
        secure(true)?;
        let erased = self.forget(asker, u64::MAX);
        // The log of writes holds earlier copies of the pages.
        let emptied =
            self.reading(|connection| connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        secure(false)?;
        emptied.and(erased)
    }

    /// All askers with a job, a message in the outbox, a stop, or a language.
    pub fn askers(&self) -> Result<Vec<Asker>, LedgerError> {
        let query = "SELECT asker FROM job UNION SELECT asker FROM outbox UNION SELECT asker FROM silent
                     UNION SELECT asker FROM language ORDER BY asker";
        self.reading(|connection| query_all(connection, query, [], |row| row.get(0).map(Asker)))
    }
}

/// Cancels all accepted jobs of an asker, which are returned.
pub(super) fn cancel_all(transaction: &Transaction<'_>, asker: Asker) -> Result<Vec<JobId>, LedgerError> {
    let cancel = "UPDATE job SET state = 'cancelled' WHERE asker = ?1 AND state = 'accepted' RETURNING id";
    Ok(query_all(transaction, cancel, [asker.0], |row| row.get(0).map(JobId))?)
}

/// Number of the newest language rows, which are always kept. Older rows are kept only for askers
/// with a job.
const LANGUAGES_KEPT: i64 = 100_000;

/// The language of an asker; English if none is kept.
pub(super) fn language(connection: &Connection, asker: Asker) -> Result<Language, LedgerError> {
    let query = "SELECT code FROM language WHERE asker = ?1";
    Ok(read_language(query_first(connection, query, [asker.0], |row| row.get(0))?))
}

/// Sets the language of an asker. English takes no row.
pub(super) fn set_language(
    transaction: &Transaction<'_>,
    asker: Asker,
    language: Language,
    now: i64,
) -> Result<(), LedgerError> {
    let insert = "INSERT OR REPLACE INTO language (asker, code, since) VALUES (?1, ?2, ?3)";
    match language == Language::default() {
        true => execute(transaction, "DELETE FROM language WHERE asker = ?1", [asker.0])?,
        false => execute(transaction, insert, params![asker.0, language.code(), now])?,
    };
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
/// What stays: the ids of messages, until no relay can replay them; otherwise an old request would
/// become a new job. Spent work, while it counts. The times of the last day's jobs, for that day, so
/// that a deletion does not open a second quota.
pub(super) fn forget(
    transaction: &Transaction<'_>,
    asker: Asker,
    until: i64,
    now: i64,
) -> Result<(usize, Vec<JobId>), LedgerError> {
    let mut gone = 0;
    for statement in [
        // A result is deleted with its job, even if it was found after `until`.
        "DELETE FROM outbox WHERE asker = ?1 AND (queued_at <= ?2 OR result_of IN
             (SELECT id FROM job WHERE asker = ?1 AND accepted_at <= ?2))",
        "DELETE FROM silent WHERE asker = ?1 AND since <= ?2",
        "DELETE FROM language WHERE asker = ?1 AND since <= ?2",
        "DELETE FROM redirected WHERE asker = ?1 AND at <= ?2",
    ] {
        gone += execute(transaction, statement, params![asker.0, until])?;
    }
    execute(
        transaction,
        "INSERT INTO started (asker, at) SELECT asker, accepted_at FROM job
         WHERE asker = ?1 AND accepted_at <= ?2 AND accepted_at > ?3",
        params![asker.0, until, now - DAY],
    )?;
    let delete = "DELETE FROM job WHERE asker = ?1 AND accepted_at <= ?2 RETURNING id, state = 'accepted'";
    let values = params![asker.0, until];
    let deleted = query_all(transaction, delete, values, |row| Ok((JobId(row.get(0)?), row.get::<_, bool>(1)?)))?;
    let mut ended: Vec<JobId> = deleted.iter().filter(|(_, is_open)| *is_open).map(|(job, _)| *job).collect();
    ended.sort_unstable();
    Ok((gone + deleted.len(), ended))
}

/// How an asker is treated. One whom the operator's people follow is a friend, unless there is a
/// rule.
pub(super) fn standing(connection: &Connection, asker: Asker) -> Result<Standing, LedgerError> {
    let query = "SELECT coalesce((SELECT rule FROM rule WHERE asker = ?1),
                                 (SELECT 'friend' FROM followed WHERE asker = ?1))";
    Ok(read_standing(connection.query_row(query, [asker.0], |row| row.get(0))?))
}

/// Reads the column `rule`. No row, or an unknown word of a later version, is ordinary.
fn read_standing(word: Option<String>) -> Standing {
    match word.as_deref() {
        Some("denied") => Standing::Denied,
        Some("friend") => Standing::Friend,
        _ => Standing::Ordinary,
    }
}

/// Number of the newest jobs whose askers are listed, besides the askers with open jobs.
const JOBS_LOOKED_THROUGH: i64 = 10_000;

/// How the operator wants an asker to be treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Messages of the asker are ignored.
    Denied,
    /// The limits of everybody. The ledger has no row for such an asker.
    #[default]
    Ordinary,
    /// Higher limits, and no proof of work.
    Friend,
}

/// One asker with totals, for the operator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AskerTotals {
    /// The asker's npub.
    pub asker: String,
    /// Accepted jobs.
    pub open_jobs: u64,
    /// Found and delivered jobs whose rows are kept.
    pub done: u64,
    /// Answered messages of the last 8 days.
    pub messages: u64,
    /// When their last job was accepted, Unix seconds.
    pub last_job_at: Option<u64>,
    /// How the asker is treated.
    pub standing: Standing,
}

impl Ledger {
    /// How an asker is treated.
    pub fn standing(&self, asker: Asker) -> Result<Standing, LedgerError> {
        self.reading(|connection| standing(connection, asker))
    }

    /// The askers whom the operator's people follow, as last looked up.
    pub fn followed(&self) -> Result<HashSet<Asker>, LedgerError> {
        let query = "SELECT asker FROM followed";
        let followed = self.reading(|connection| query_all(connection, query, [], |row| row.get(0).map(Asker)))?;
        Ok(followed.into_iter().collect())
    }

    /// Replaces the askers whom the operator's people follow.
    pub fn set_followed(&self, followed: &HashSet<Asker>) -> Result<(), LedgerError> {
        self.change(|transaction| {
            execute(transaction, "DELETE FROM followed", [])?;
            for asker in followed {
                execute(transaction, "INSERT INTO followed (asker) VALUES (?1)", [asker.0])?;
            }
            Ok(())
        })
    }

    /// Records until when the operator paused the search, Unix seconds; 0 for not at all.
    pub fn set_paused(&self, until: u64) -> Result<(), LedgerError> {
        self.change(|transaction| write_meta(transaction, "paused_until", seconds(until)))
    }

    /// Until when the operator paused the search, Unix seconds; `None` if it is not paused now.
    pub fn paused_until(&self) -> Result<Option<u64>, LedgerError> {
        let until = self.reading(|connection| read_meta(connection, "paused_until"))?;
        Ok(until.filter(|&until| until > self.now()).map(unsigned))
    }

    /// Sets how an asker is treated. A denial cancels the asker's accepted jobs; returns their
    /// numbers. A result that was found is still sent.
    pub fn set_standing(&self, asker: Asker, standing: Standing) -> Result<Vec<JobId>, LedgerError> {
        let now = self.now();
        let set = "INSERT OR REPLACE INTO rule (asker, rule, since) VALUES (?1, ?2, ?3)";
        self.change(|transaction| {
            match standing {
                Standing::Ordinary => execute(transaction, "DELETE FROM rule WHERE asker = ?1", [asker.0])?,
                Standing::Friend => execute(transaction, set, params![asker.0, "friend", now])?,
                Standing::Denied => {
                    execute(transaction, set, params![asker.0, "denied", now])?;
                    return cancel_all(transaction, asker);
                }
            };
            Ok(Vec::new())
        })
    }

    /// Askers with an open job, a rule, or one of the 10,000 newest jobs. Returns at most `most`:
    /// those with the most open jobs first, then those with the latest job.
    pub fn list_askers(&self, most: usize) -> Result<Vec<AskerTotals>, LedgerError> {
        let query = "
            WITH listed (asker) AS (
                SELECT asker FROM job WHERE state = 'accepted'
                UNION SELECT asker FROM (SELECT asker FROM job ORDER BY id DESC LIMIT ?2)
                UNION SELECT asker FROM rule)
            SELECT asker,
                   (SELECT count(*) FROM job WHERE job.asker = listed.asker AND state = 'accepted') AS open,
                   (SELECT count(*) FROM job WHERE job.asker = listed.asker AND state IN ('found', 'delivered')),
                   (SELECT count(*) FROM seen WHERE seen.asker = listed.asker),
                   (SELECT max(accepted_at) FROM job WHERE job.asker = listed.asker) AS last,
                   (SELECT rule FROM rule WHERE rule.asker = listed.asker)
            FROM listed ORDER BY open DESC, last DESC, asker LIMIT ?1";
        let read = |row: &Row<'_>| {
            Ok(AskerTotals {
                asker: Npub(row.get(0)?).to_string(),
                open_jobs: unsigned(row.get(1)?),
                done: unsigned(row.get(2)?),
                messages: unsigned(row.get(3)?),
                last_job_at: row.get::<_, Option<_>>(4)?.map(unsigned),
                standing: read_standing(row.get(5)?),
            })
        };
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.reading(|connection| query_all(connection, query, params![most, JOBS_LOOKED_THROUGH], read))
    }
}
