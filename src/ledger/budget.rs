//! Bounds of what strangers can make the ledger keep, the deletion of old rows and finished jobs, and
//! the cursor of the inbox.
//!
//! The id of a message keeps a replay of it from starting a second job, so it must be kept as long
//! as the message is accepted. Ids are deleted by the date that the author signed, the oldest first,
//! and after each deletion `seen_from` says from which date on messages are accepted: no message
//! whose id may be gone is. Usually that is behind the week that the inbox accepts. When the table
//! is full, `seen_from` moves on: older messages are refused, newer ones are served.
//!
//! A wall clock that jumps a year ahead must not delete all ids, so cleaning trusts it only to a day
//! after the last cleaning.

use super::open::Ledger;
use super::rows::{DAY, LedgerError, execute, read_meta, seconds, set_aside, unsigned, write_meta};
use crate::duration::humanize;
use crate::job::Asker;
use crate::log_writer::LogLimit;
use rusqlite::{Connection, Transaction, params};
use std::time::{Duration, Instant};

/// Largest sizes of the ledger's tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LedgerBudget {
    /// Bytes of unsent answers other than results. Above this, answers to first-time askers are
    /// dropped, oldest first; then those to askers with a job. Results are never dropped.
    pub answers: u64,
    /// Bytes of results that no relay of their askers has. None is deleted before it is given up.
    /// From a half of it, askers who never took a result owe work for a job; beyond it they get
    /// none, and beyond twice as much the others get none either.
    pub undelivered: u64,
    /// Bytes of delivered results that are kept to be sent again. Above this, the oldest are
    /// deleted.
    pub results: u64,
    /// Number of answered messages whose ids are kept, in rows of at most 300 bytes. When it is
    /// reached, the oldest are deleted, and messages as old are refused.
    pub seen: u64,
    /// Number of ended jobs. Above this, the oldest are deleted.
    pub ended_jobs: u64,
}

impl Default for LedgerBudget {
    fn default() -> LedgerBudget {
        LedgerBudget {
            answers: 256 << 20,
            undelivered: 512 << 20,
            results: 1 << 30,
            seen: 10_000_000,
            ended_jobs: 1_000_000,
        }
    }
}

/// Current sizes of the ledger's tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sizes {
    /// Bytes of unsent answers other than results.
    pub answers: u64,
    /// Bytes of results that no relay has.
    pub undelivered: u64,
    /// Bytes of delivered results.
    pub results: u64,
    /// Number of answered messages whose ids are kept.
    pub seen: u64,
    /// Date from which messages are accepted, Unix seconds; 0 for any.
    pub seen_from: u64,
    /// Answers dropped since the ledger was made.
    pub dropped: u64,
    /// The largest sizes.
    pub budget: LedgerBudget,
}

impl Sizes {
    /// Part of the budget that undelivered results take, from 0; 1 is all of it.
    pub fn undelivered_part(&self) -> f64 {
        self.undelivered as f64 / self.budget.undelivered.max(1) as f64
    }

    /// The bounds that are reached at `now` (Unix seconds), and what follows from each.
    pub fn bounds_reached(&self, now: u64) -> Vec<String> {
        let accepted = now.saturating_sub(self.seen_from);
        let ids = (accepted < FULL_WINDOW).then(|| {
            format!(
                "the table of message ids is full: messages of the last {} are answered, older ones are refused",
                humanize(Duration::from_secs(accepted))
            )
        });
        let part = self.undelivered_part();
        let results = (part >= 0.5).then(|| {
            let what = match part {
                ..1.0 => "askers who never took a result owe work for a job",
                ..2.0 => "askers who never took a result get no job",
                _ => "only friends get a job",
            };
            format!("results that nobody takes fill {:.0} % of their budget: {what}", 100.0 * part)
        });
        ids.into_iter().chain(results).collect()
    }
}

/// This and the next limit the warnings about full tables.
static IDS_FULL: LogLimit = LogLimit::new();
static ANSWERS_FULL: LogLimit = LogLimit::new();
/// Ids deleted at a time when the table is full.
const IDS_DELETED: u64 = 4096;
/// The shortest time of which messages are accepted, however many ids there are, seconds. If more
/// ids come within it than the table holds, their messages have to wait.
const LEAST_WINDOW: i64 = 3600;
/// The time of which messages are accepted while the table has room, seconds.
const FULL_WINDOW: u64 = 7 * 86_400;

impl LedgerBudget {
    /// Makes room for the id of one message. Returns `false` if there is none.
    pub(super) fn make_room(&self, transaction: &Transaction<'_>, now: i64) -> Result<bool, LedgerError> {
        if number(transaction, "seen_rows")? < self.seen {
            return Ok(true);
        }
        let delete = "DELETE FROM seen WHERE (asker, rumor) IN
            (SELECT asker, rumor FROM seen WHERE dated < ?1 ORDER BY dated LIMIT ?2)";
        let some = self.seen.div_ceil(8).min(IDS_DELETED) as i64;
        // Many ids can have one date, so some of those that are not needed may be left.
        if execute(transaction, delete, params![seen_from(transaction)?, some])? == 0 {
            let next = "SELECT dated FROM seen ORDER BY dated LIMIT 1 OFFSET ?1";
            let next: i64 = transaction.query_row(next, [some - 1], |row| row.get(0))?;
            let from = next.saturating_add(1).min(now - LEAST_WINDOW);
            accept_from(transaction, from)?;
            if execute(transaction, delete, params![from, some])? == 0 {
                return Ok(false);
            }
            if let Some(skipped) = IDS_FULL.next(Instant::now()) {
                tracing::warn!(
                    skipped,
                    messages = self.seen,
                    minutes = (now - from) / 60,
                    "the table of message ids is full; only messages of this time are answered"
                );
            }
        }
        Ok(true)
    }

    /// If the budget for answers is exceeded, drops answers until an eighth of it is free again.
    pub(super) fn drop_answers(&self, transaction: &Transaction<'_>) -> Result<(), LedgerError> {
        let bytes = number(transaction, "answer_bytes")?;
        if bytes <= self.answers {
            return Ok(());
        }
        // Each with the bytes of those that go before it.
        let drop = "
            DELETE FROM outbox WHERE id IN (
                SELECT id FROM (
                    SELECT id, sum(bytes) OVER (ORDER BY is_known, id) - bytes AS before FROM (
                        SELECT id, octet_length(json) + 1000 AS bytes,
                               EXISTS (SELECT 1 FROM job WHERE job.asker = outbox.asker) AS is_known
                        FROM outbox WHERE result_of IS NULL))
                WHERE before < ?1)";
        let excess = bytes - (self.answers - self.answers / 8);
        let dropped = execute(transaction, drop, [seconds(excess)])? as i64;
        write_meta(transaction, "answers_dropped", read_meta(transaction, "answers_dropped")?.unwrap_or(0) + dropped)?;
        if let Some(skipped) = ANSWERS_FULL.next(Instant::now()) {
            tracing::warn!(
                skipped,
                dropped,
                budget = self.answers,
                "the ledger is at its budget for unsent answers; the oldest are dropped, those of first-time askers first"
            );
        }
        Ok(())
    }

    /// Deletes the oldest delivered results and the oldest ended jobs beyond the budget.
    pub(super) fn delete_old(&self, transaction: &Transaction<'_>) -> Result<(), LedgerError> {
        let results = "DELETE FROM outbox WHERE id IN (
                           SELECT outbox.id FROM outbox JOIN job ON job.id = result_of
                           WHERE finished = 1 AND state = 'delivered' ORDER BY outbox.id LIMIT 64)";
        while number(transaction, "result_bytes")? > self.results && execute(transaction, results, [])? > 0 {}
        // Results that were given up, once there are many.
        if number(transaction, "undelivered_bytes")? > self.undelivered / 2 {
            let given_up =
                "DELETE FROM outbox WHERE finished = 1 AND result_of IN (SELECT id FROM job WHERE state = 'found')";
            execute(transaction, given_up, [])?;
        }
        let ended =
            transaction.query_row("SELECT count(*) FROM job WHERE state <> 'accepted'", [], |row| row.get(0))?;
        let over = unsigned(ended).saturating_sub(self.ended_jobs);
        if over > 0 {
            execute(
                transaction,
                "DELETE FROM job WHERE id IN
                     (SELECT id FROM job WHERE state <> 'accepted' AND NOT EXISTS
                          (SELECT 1 FROM outbox WHERE outbox.result_of = job.id) ORDER BY id LIMIT ?1)",
                [seconds(over)],
            )?;
        }
        Ok(())
    }
}

/// Proofs of work that are remembered. Beyond it the oldest can be spent again.
const SPENT_KEPT: i64 = 1_000_000;
/// Time for which they are remembered, seconds. The work of a day counts for 31 hours.
const SPENT_FOR: i64 = 2 * DAY;

/// Remembers that an asker's work is spent.
pub(super) fn spend(transaction: &Transaction<'_>, asker: Asker, number: u64, now: i64) -> Result<(), LedgerError> {
    let insert = "INSERT OR IGNORE INTO spent (asker, number, at) VALUES (?1, ?2, ?3)";
    execute(transaction, insert, params![asker.0, number as i64, now])?;
    execute(transaction, "DELETE FROM spent WHERE rowid <= (SELECT max(rowid) FROM spent) - ?1", [SPENT_KEPT])?;
    Ok(())
}

/// Sizes of a ledger.
pub(super) fn sizes(connection: &Connection, budget: LedgerBudget) -> Result<Sizes, LedgerError> {
    Ok(Sizes {
        answers: number(connection, "answer_bytes")?,
        undelivered: number(connection, "undelivered_bytes")?,
        results: number(connection, "result_bytes")?,
        seen: number(connection, "seen_rows")?,
        seen_from: number(connection, "seen_from")?,
        dropped: number(connection, "answers_dropped")?,
        budget,
    })
}

/// A size in the table `meta`; 0 if it is missing.
fn number(connection: &Connection, name: &str) -> Result<u64, LedgerError> {
    Ok(read_meta(connection, name)?.map_or(0, unsigned))
}

/// The date from which messages are accepted, Unix seconds.
pub(super) fn seen_from(connection: &Connection) -> Result<i64, LedgerError> {
    Ok(read_meta(connection, "seen_from")?.unwrap_or(0))
}

/// Accepts no messages before `from` any more.
fn accept_from(transaction: &Transaction<'_>, from: i64) -> Result<(), LedgerError> {
    write_meta(transaction, "seen_from", from.max(seen_from(transaction)?))
}

/// Time after a message's date at which its id is deleted, seconds. The inbox accepts messages of
/// the last 7 days.
const SEEN_FOR: i64 = 8 * DAY;

impl Ledger {
    /// Deletes finished wraps past their expiry, seen ids that can no longer be replayed, and other
    /// rows that are no longer needed. Jobs are kept, except the oldest ended ones beyond the
    /// budget. Call it at least daily.
    pub fn delete_expired(&self) -> Result<(), LedgerError> {
        let now = self.now();
        self.change(|transaction| {
            let last = read_meta(transaction, "cleaned_at")?.unwrap_or(now);
            let trusted = now.min(last.saturating_add(DAY));
            write_meta(transaction, "cleaned_at", trusted)?;
            let newest = "SELECT max(dated) FROM seen WHERE dated < ?1";
            let newest: Option<i64> = transaction.query_row(newest, [trusted - SEEN_FOR], |row| row.get(0))?;
            if let Some(newest) = newest {
                accept_from(transaction, newest + 1)?;
                transaction.execute("DELETE FROM seen WHERE dated <= ?1", [newest])?;
            }
            transaction.execute("DELETE FROM outbox WHERE finished = 1 AND expires_at <= ?1", [now])?;
            self.budget().delete_old(transaction)?;
            super::askers::delete_old_languages(transaction)?;
            transaction.execute("DELETE FROM post WHERE expires_at <= ?1", [now])?;
            transaction.execute("DELETE FROM spent WHERE at <= ?1", [trusted - SPENT_FOR])?;
            for table in ["started", "redirected"] {
                let old = format!("DELETE FROM {table} WHERE at <= ?1 - ?2 OR at > ?1 + ?2");
                transaction.execute(&old, [now, DAY])?;
            }
            Ok(())
        })?;
        self.vacuum()
    }

    /// Time of the last contact with the relays, Unix seconds; `None` at the first start. Never
    /// later than now, so that a clock that was ahead does not make the bot miss messages.
    pub fn last_contact(&self) -> Result<Option<u64>, LedgerError> {
        let now = self.now();
        let last = self.reading(|connection| read_meta(connection, "last_contact"))?;
        if let Some(at @ ..0) = last {
            // We never write such a value. Treat it as a first start, so that no message is missed.
            set_aside(&self.read(), "cursor", 0, &format!("value {at}"), now);
        }
        Ok(last.filter(|&at| at >= 0).map(|at| unsigned(at.min(now))))
    }

    /// Records that every message up to `at` was fetched. A time in the future counts as now. The
    /// cursor moves back only if it was in the future.
    pub fn set_last_contact(&self, at: u64) -> Result<(), LedgerError> {
        let now = self.now();
        let at = seconds(at).min(now);
        self.change(|transaction| {
            let known = read_meta(transaction, "last_contact")?.filter(|&known| known <= now);
            write_meta(transaction, "last_contact", known.map_or(at, |known| known.max(at)))
        })
    }
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
        let delete = "DELETE FROM job WHERE id IN
                          (SELECT id FROM job WHERE state <> 'accepted' AND accepted_at <= ?1
                               AND (state <> 'expired' OR expires_at <= ?1)
                               AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.result_of = job.id)
                               AND NOT EXISTS (SELECT 1 FROM lost_job WHERE lost_job.job = job.id)
                           ORDER BY id LIMIT ?2)";
        self.change(|transaction| Ok(execute(transaction, delete, [before, MAX_JOBS_DELETED])?))
    }
}
