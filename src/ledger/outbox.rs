//! The outbox: letters that are due, and T3.

use super::rows::{read_relays, unsigned};
use super::{DueMessage, Ledger, LedgerError, MessageId};
use crate::fault::{self, Step};
use crate::job::{Asker, JobId};
use crate::message::GiftWrap;
use rusqlite::{Connection, Row, Transaction, params};

/// A letter waits for its time by the clock that chose it. If that clock has gone back since, the letter is due now:
/// a clock that was a year ahead must not make an asker wait for a year.
const DUE: &str = "finished = 0 AND (due_at <= ?1 OR due_set_at > ?1)";

impl Ledger {
    /// Letters whose time has come, the longest due first, at most `limit`.
    pub fn due_messages(&self, limit: usize) -> Result<Vec<DueMessage>, LedgerError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let connection = self.read();
        let mut statement = connection.prepare_cached(&format!(
            "SELECT id, result_of, wrap, asker, json, expires_at, queued_at, attempts, seen_on
             FROM mail WHERE {DUE} ORDER BY due_at, id LIMIT ?2"
        ))?;
        let mut rows = statement.query(params![self.now(), limit])?;
        let mut due = Vec::new();
        while let Some(row) = rows.next()? {
            due.push(letter(&connection, row)?);
        }
        Ok(due)
    }

    /// When the next unsent letter is due, Unix seconds; a time that has passed means at once.
    pub fn next_due(&self) -> Result<Option<u64>, LedgerError> {
        let now = self.now();
        let connection = self.read();
        let mut statement = connection.prepare_cached(
            "SELECT (SELECT min(due_at) FROM mail WHERE finished = 0),
                    (SELECT max(due_set_at) FROM mail WHERE finished = 0)",
        )?;
        let (due, set): (Option<i64>, Option<i64>) = statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(due.map(|due| unsigned(if set > Some(now) { due.min(now) } else { due })))
    }

    /// T3 of several attempts at once, with one wait for the disk.
    pub fn note_attempts(&self, attempts: &[Attempt]) -> Result<(), LedgerError> {
        let now = self.now();
        let mut delivers = false;
        self.write(|transaction| {
            for attempt in attempts {
                for relay in &attempt.reached {
                    delivers |= acknowledge(transaction, attempt.mail, relay, now)?;
                }
                match attempt.next {
                    Next::Finished => finish(transaction, attempt.mail)?,
                    Next::Again(at) => postpone(transaction, attempt.mail, super::open::seconds(at), now)?,
                }
            }
            Ok((!attempts.is_empty()).then_some(()))
        })?;
        if delivers {
            fault::after(Step::Deliver);
        }
        Ok(())
    }

    /// T3: `relay` has the letter. A found job whose result it is becomes delivered.
    /// A letter that is not kept any more, or a relay that said so before, changes nothing.
    pub fn acknowledge(&self, mail: MessageId, relay: &str) -> Result<(), LedgerError> {
        let now = self.now();
        if self.write(|transaction| acknowledge(transaction, mail, relay, now).map(Some))? == Some(true) {
            fault::after(Step::Deliver);
        }
        Ok(())
    }

    /// Counts an attempt and tries again at `due_at`.
    pub fn postpone(&self, mail: MessageId, due_at: u64) -> Result<(), LedgerError> {
        let due_at = super::open::seconds(due_at);
        let now = self.now();
        self.write(|transaction| postpone(transaction, mail, due_at, now).map(Some))?;
        Ok(())
    }

    /// No more attempts: every relay that should have it does, or it is given up. The wrap is kept for `resend` until
    /// it expires.
    pub fn finish(&self, mail: MessageId) -> Result<(), LedgerError> {
        self.write(|transaction| finish(transaction, mail).map(Some))?;
        Ok(())
    }
}

/// What came of one attempt to send a letter.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub mail: MessageId,
    /// Relays that said OK now.
    pub reached: Vec<String>,
    pub next: Next,
}

/// What becomes of a letter after an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// No more attempts.
    Finished,
    /// The next attempt, Unix seconds.
    Again(u64),
}

/// Says whether a job becomes delivered by it.
fn acknowledge(transaction: &Transaction<'_>, mail: MessageId, relay: &str, now: i64) -> Result<bool, LedgerError> {
    transaction
        .prepare_cached("INSERT OR IGNORE INTO acknowledged (mail, relay) SELECT id, ?2 FROM mail WHERE id = ?1")?
        .execute(params![mail.0, relay])?;
    let delivered = transaction
        .prepare_cached(
            "UPDATE job SET state = 'delivered'
             WHERE id = (SELECT result_of FROM mail WHERE id = ?1) AND state = 'found'",
        )?
        .execute([mail.0])?;
    if delivered > 0 {
        super::days::count(transaction, now, "delivered")?;
        fault::before(Step::Deliver);
    }
    Ok(delivered > 0)
}

fn postpone(transaction: &Transaction<'_>, mail: MessageId, due_at: i64, now: i64) -> Result<(), LedgerError> {
    transaction
        .prepare_cached("UPDATE mail SET attempts = attempts + 1, due_at = ?2, due_set_at = ?3 WHERE id = ?1")?
        .execute(params![mail.0, due_at, now])?;
    Ok(())
}

fn finish(transaction: &Transaction<'_>, mail: MessageId) -> Result<(), LedgerError> {
    transaction.prepare_cached("UPDATE mail SET finished = 1 WHERE id = ?1")?.execute([mail.0])?;
    Ok(())
}

/// Puts a wrap into the outbox, due at once. Only T1 and T2 do this.
pub(super) fn queue(
    transaction: &Transaction<'_>,
    wrap: &GiftWrap,
    result_of: Option<JobId>,
    seen_on: &str,
    now: i64,
) -> Result<(), LedgerError> {
    transaction
        .prepare_cached(
            "INSERT INTO mail (wrap, asker, result_of, json, expires_at, queued_at, due_at, due_set_at, seen_on)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?6, ?7)",
        )?
        .execute(params![
            wrap.id,
            wrap.to.0,
            result_of.map(|job| job.0),
            wrap.json,
            super::open::seconds(wrap.expires_at),
            now,
            seen_on,
        ])?;
    Ok(())
}

fn letter(connection: &Connection, row: &Row<'_>) -> Result<DueMessage, LedgerError> {
    let id: i64 = row.get(0)?;
    let seen_on: String = row.get(8)?;
    let mut acknowledged =
        connection.prepare_cached("SELECT relay FROM acknowledged WHERE mail = ?1 ORDER BY relay")?;
    let acknowledged_by = acknowledged.query_map([id], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    Ok(DueMessage {
        id: MessageId(id),
        result_of: row.get::<_, Option<i64>>(1)?.map(JobId),
        wrap: GiftWrap {
            id: row.get(2)?,
            to: Asker(row.get(3)?),
            json: row.get(4)?,
            expires_at: unsigned(row.get(5)?),
        },
        queued_at: unsigned(row.get(6)?),
        attempts: u32::try_from(row.get::<_, i64>(7)?).unwrap_or(u32::MAX),
        seen_on: read_relays(&seen_on).ok_or_else(|| LedgerError::Corrupt(format!("mail {id}, column seen_on")))?,
        acknowledged_by,
    })
}
