//! The outbox: messages that are due, and T3; then the public posts, and the totals of a day.

use super::budget::LedgerBudget;
use super::open::Ledger;
use super::rows::{
    DAY, LedgerError, column, execute, parsed, query_all, query_first, read_meta, read_relays, readable, seconds,
    unsigned, write_meta, write_relays,
};
use crate::fault;
use crate::hours::date;
use crate::job::{Asker, JobId};
use crate::message::GiftWrap;
use rusqlite::{Connection, Row, Transaction, params};
use serde::{Deserialize, Serialize};

/// Number of a message in the outbox.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct MessageId(pub i64);

/// A message that is due to be sent.
#[derive(Clone, Debug)]
pub struct DueMessage {
    /// The message's number.
    pub id: MessageId,
    /// The job whose result it is; `None` for other messages.
    pub result_of: Option<JobId>,
    /// Whether the message is a result, or its asker has an open job.
    pub urgent: bool,
    /// The sealed message.
    pub wrap: GiftWrap,
    /// When the message was queued or last asked for again, Unix seconds.
    pub queued_at: u64,
    /// Earlier attempts.
    pub attempts: u32,
    /// Relays where the asker's message was seen.
    pub seen_on: Vec<String>,
    /// Relays that said OK already.
    pub acknowledged_by: Vec<String>,
}

/// Outcome of one attempt to send a message.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The message.
    pub message: MessageId,
    /// Relays that said OK now.
    pub reached: Vec<String>,
    /// When there is another attempt, Unix seconds. `None` if every relay that should have the message
    /// has it, or it is given up.
    pub again_at: Option<u64>,
}

/// Condition for a message to be due at ?1. `due_set_at` is the time at which `due_at` was chosen.
/// If the clock was set back since then, the message is due now; otherwise it could wait for a
/// year.
const DUE: &str = "finished = 0 AND (due_at <= ?1 OR due_set_at > ?1)";

impl Ledger {
    /// Messages that are due: first at most `limit` urgent ones, then at most `limit` others. In
    /// both groups new messages come before repeated ones, and the longest due first.
    pub fn due_messages(&self, limit: usize) -> Result<Vec<DueMessage>, LedgerError> {
        self.due_messages_except(limit, |_| false)
    }

    /// Like [`Ledger::due_messages`], without messages for which `is_under_way` is true. Those are
    /// not read and do not count towards `limit`.
    pub fn due_messages_except(
        &self,
        limit: usize,
        is_under_way: impl Fn(MessageId) -> bool,
    ) -> Result<Vec<DueMessage>, LedgerError> {
        let now = self.now();
        self.reading(|connection| read_due_messages(connection, limit, &is_under_way, now))
    }

    /// Time at which the next message is due, Unix seconds; `None` if no message waits. A time in
    /// the past means now.
    pub fn next_due(&self) -> Result<Option<u64>, LedgerError> {
        let now = self.now();
        let query = "SELECT (SELECT min(due_at) FROM outbox WHERE finished = 0),
                            (SELECT max(due_set_at) FROM outbox WHERE finished = 0)";
        let read = |row: &Row<'_>| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?));
        let found = self.reading(|connection| query_first(connection, query, [], read))?;
        let (due, set) = found.unwrap_or_default();
        Ok(due.map(|due| unsigned(if set > Some(now) { due.min(now) } else { due })))
    }

    /// Records the outcomes of several attempts (T3) in one transaction, which waits for the disk
    /// only once.
    pub fn record_attempts(&self, attempts: &[Attempt]) -> Result<(), LedgerError> {
        let now = self.now();
        let delivers = self.write(|transaction| {
            let mut delivers = false;
            for attempt in attempts {
                for relay in &attempt.reached {
                    delivers |= acknowledge(transaction, attempt.message, relay, now)?;
                }
                let message = attempt.message.0;
                match attempt.again_at.map(seconds) {
                    Some(at) => execute(
                        transaction,
                        "UPDATE outbox SET attempts = attempts + 1, due_at = ?2, due_set_at = ?3 WHERE id = ?1",
                        params![message, at, now],
                    )?,
                    // A result is kept for `Effect::Resend` until it expires.
                    None => {
                        execute(transaction, "DELETE FROM outbox WHERE id = ?1 AND result_of IS NULL", [message])?;
                        execute(transaction, "UPDATE outbox SET finished = 1 WHERE id = ?1", [message])?
                    }
                };
            }
            Ok((!attempts.is_empty()).then_some(delivers))
        })?;
        if delivers == Some(true) {
            fault::after("deliver");
        }
        Ok(())
    }

    /// Records that `relay` has the message (T3). If the message is the result of a found job, the
    /// job becomes delivered. A deleted message or a repeated OK changes nothing.
    pub fn acknowledge(&self, message: MessageId, relay: &str) -> Result<(), LedgerError> {
        let now = self.now();
        if self.change(|transaction| acknowledge(transaction, message, relay, now))? {
            fault::after("deliver");
        }
        Ok(())
    }
}

/// Records an OK of a relay. Returns whether a job became delivered.
fn acknowledge(transaction: &Transaction<'_>, message: MessageId, relay: &str, now: i64) -> Result<bool, LedgerError> {
    let insert = "INSERT OR IGNORE INTO acknowledged (message, relay) SELECT id, ?2 FROM outbox WHERE id = ?1";
    execute(transaction, insert, params![message.0, relay])?;
    let update = "UPDATE job SET state = 'delivered'
                  WHERE id = (SELECT result_of FROM outbox WHERE id = ?1) AND state = 'found'";
    let delivers = execute(transaction, update, [message.0])? > 0;
    if delivers {
        count_today(transaction, now, "delivered")?;
        fault::before("deliver");
    }
    Ok(delivers)
}

/// Puts a wrap into the outbox, due now, within the budget. Called by T1, T2 and the notices.
pub(super) fn queue(
    transaction: &Transaction<'_>,
    budget: &LedgerBudget,
    wrap: &GiftWrap,
    result_of: Option<JobId>,
    seen_on: &str,
    now: i64,
) -> Result<(), LedgerError> {
    let insert = "INSERT INTO outbox (wrap, asker, result_of, json, expires_at, queued_at, due_at, due_set_at, seen_on)
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?6, ?7)";
    let (job, expires_at) = (result_of.map(|job| job.0), seconds(wrap.expires_at));
    execute(transaction, insert, params![wrap.id, wrap.to.0, job, wrap.json, expires_at, now, seen_on])?;
    if result_of.is_none() { budget.drop_answers(transaction) } else { Ok(()) }
}

/// Puts a wrap about a job into the outbox, with the relays where its asker's message was seen.
pub(super) fn queue_about(
    transaction: &Transaction<'_>,
    budget: &LedgerBudget,
    job: JobId,
    wrap: &GiftWrap,
    result_of: Option<JobId>,
    now: i64,
) -> Result<(), LedgerError> {
    let query = "SELECT asker, seen_on FROM job WHERE id = ?1";
    let (asker, seen_on): ([u8; 32], String) =
        transaction.prepare_cached(query)?.query_row([job.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if wrap.to.0 != asker {
        return Err(LedgerError::Misaddressed);
    }
    queue(transaction, budget, wrap, result_of, &seen_on, now)
}

/// Messages that are due, in the order of [`Ledger::due_messages`]. Unreadable rows are set aside.
fn read_due_messages(
    connection: &Connection,
    limit: usize,
    is_under_way: &dyn Fn(MessageId) -> bool,
    now: i64,
) -> Result<Vec<DueMessage>, LedgerError> {
    let mut messages = Vec::new();
    for (id, urgent) in choose_due(connection, limit, is_under_way, now)?.into_iter().flatten() {
        messages.extend(query_first(connection, "SELECT * FROM outbox WHERE id = ?1", [id], |row| {
            Ok(due_message(row, urgent).map_err(|column| (id, column)))
        })?);
    }
    let mut messages = readable(connection, "message", messages, now)?;
    for message in &mut messages {
        let relays = "SELECT relay FROM acknowledged WHERE message = ?1 ORDER BY relay";
        message.acknowledged_by = query_all(connection, relays, [message.id.0], |row| row.get(0))?;
    }
    Ok(messages)
}

/// The ids of due messages, and whether each is urgent: at most `limit` urgent ones, then at most
/// as many others. Only indexes are read.
fn choose_due(
    connection: &Connection,
    limit: usize,
    is_under_way: &dyn Fn(MessageId) -> bool,
    now: i64,
) -> Result<[Vec<(i64, bool)>; 2], LedgerError> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT id, result_of IS NOT NULL OR EXISTS (
             SELECT 1 FROM job WHERE job.asker = outbox.asker AND job.state = 'accepted')
         FROM outbox INDEXED BY outbox_waiting
         WHERE {DUE} AND id NOT IN (SELECT row FROM quarantine WHERE kind = 'message')
         ORDER BY attempts > 0, due_at, id"
    ))?;
    let mut rows = statement.query([now])?;
    let [mut urgent, mut others] = [Vec::new(), Vec::new()];
    while let Some(row) = rows.next()? {
        let (id, is_urgent) = (row.get(0)?, row.get(1)?);
        let of_class = if is_urgent { &mut urgent } else { &mut others };
        if of_class.len() < limit && !is_under_way(MessageId(id)) {
            of_class.push((id, is_urgent));
        }
    }
    Ok([urgent, others])
}

/// A message from its row, without the relays that said OK. The error names the column.
fn due_message(row: &Row<'_>, urgent: bool) -> Result<DueMessage, String> {
    Ok(DueMessage {
        id: MessageId(column(row, "id")?),
        result_of: column::<Option<_>>(row, "result_of")?.map(JobId),
        urgent,
        wrap: GiftWrap {
            id: column(row, "wrap")?,
            to: Asker(column(row, "asker")?),
            json: column(row, "json")?,
            expires_at: parsed(row, "expires_at", |at| Some(unsigned(at)))?,
        },
        queued_at: parsed(row, "queued_at", |at| Some(unsigned(at)))?,
        attempts: column(row, "attempts")?,
        seen_on: parsed(row, "seen_on", read_relays)?,
        acknowledged_by: Vec::new(),
    })
}

/// A public event to send.
#[derive(Clone, Debug)]
pub struct Post {
    /// The event's topic. One event is kept per topic.
    pub topic: String,
    /// The signed event.
    pub json: String,
    /// Relays that should have the event.
    pub relays: Vec<String>,
    /// When the event becomes useless, Unix seconds.
    pub expires_at: Option<u64>,
}

/// A public event that at least one relay does not have yet.
#[derive(Clone, Debug)]
pub struct DuePost {
    /// The number of the event in the ledger.
    pub id: i64,
    /// The event's topic.
    pub topic: String,
    /// The signed event.
    pub json: String,
    /// Relays that do not have the event yet.
    pub left: Vec<String>,
}

impl Ledger {
    /// Queues an event. It replaces the earlier event of its topic.
    pub fn post(&self, post: &Post) -> Result<(), LedgerError> {
        let now = self.now();
        self.change(|transaction| replace_post(transaction, post, now))
    }

    /// Queues the daily post of a day. Returns `false` and changes nothing if that day or a later
    /// one has had its post already.
    pub fn post_of_day(&self, day: u64, post: &Post) -> Result<bool, LedgerError> {
        let (now, day) = (self.now(), seconds(day));
        let done = self.write(|transaction| {
            if read_meta(transaction, "posted_day")?.is_some_and(|posted| posted >= day) {
                return Ok(None);
            }
            write_meta(transaction, "posted_day", day)?;
            replace_post(transaction, post, now).map(Some)
        })?;
        Ok(done.is_some())
    }

    /// The last day that had its daily post, in days since 1970-01-01 (UTC).
    pub fn posted_day(&self) -> Result<Option<u64>, LedgerError> {
        Ok(self.reading(|connection| read_meta(connection, "posted_day"))?.map(unsigned))
    }

    /// The current event of a topic, and when it was queued, Unix seconds.
    pub fn posted(&self, topic: &str) -> Result<Option<(String, u64)>, LedgerError> {
        let query = "SELECT json, queued_at FROM post WHERE topic = ?1";
        self.reading(|connection| {
            query_first(connection, query, [topic], |row| Ok((row.get(0)?, unsigned(row.get(1)?))))
        })
    }

    /// Events that are not expired and that at least one relay does not have yet.
    pub fn due_posts(&self) -> Result<Vec<DuePost>, LedgerError> {
        let now = self.now();
        self.reading(|connection| read_due_posts(connection, now))
    }

    /// Records that a relay has the event.
    pub fn post_reached(&self, post: i64, relay: &str) -> Result<(), LedgerError> {
        let insert = "INSERT OR IGNORE INTO posted (post, relay) SELECT id, ?2 FROM post WHERE id = ?1";
        self.change(|transaction| Ok(execute(transaction, insert, params![post, relay])?)).map(drop)
    }
}

/// Replaces the event of a topic.
fn replace_post(transaction: &Transaction<'_>, post: &Post, now: i64) -> Result<(), LedgerError> {
    let (relays, expires_at) = (write_relays(&post.relays), post.expires_at.map(seconds));
    execute(transaction, "DELETE FROM post WHERE topic = ?1", [&post.topic])?;
    execute(
        transaction,
        "INSERT INTO post (topic, json, relays, queued_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![post.topic, post.json, relays, now, expires_at],
    )?;
    Ok(())
}

/// Events that at least one relay does not have yet. Unreadable rows are set aside.
fn read_due_posts(connection: &Connection, now: i64) -> Result<Vec<DuePost>, LedgerError> {
    let query = "SELECT id, topic, json, relays FROM post WHERE expires_at IS NULL OR expires_at > ?1 ORDER BY id";
    let read = |row: &Row<'_>| {
        let (id, topic, json) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let left = parsed(row, "relays", read_relays).map_err(|column| (id, column));
        Ok(left.map(|left| DuePost { id, topic, json, left }))
    };
    let mut due = readable(connection, "post", query_all(connection, query, [now], read)?, now)?;
    for post in &mut due {
        let has: Vec<String> =
            query_all(connection, "SELECT relay FROM posted WHERE post = ?1", [post.id], |row| row.get(0))?;
        post.left.retain(|relay| !has.contains(relay));
    }
    due.retain(|post| !post.left.is_empty());
    Ok(due)
}

const JOULES_A_KWH: f64 = 3.6e6;

/// Number of days that are kept.
const DAYS_KEPT: i64 = 30;

/// Totals of one day (UTC).
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct DayFigures {
    /// The day: `2026-11-23`.
    pub date: String,
    /// Candidates tested.
    pub candidates: u64,
    /// Jobs accepted.
    pub jobs_accepted: u64,
    /// Results delivered.
    pub jobs_delivered: u64,
    /// Energy that devices with a readable counter used, kWh; `null` if none has one.
    pub kwh: Option<f64>,
}

impl Ledger {
    /// Adds tested candidates, and the energy used if it is known, to today's totals.
    pub fn count_searched(&self, candidates: u64, joules: Option<u64>) -> Result<(), LedgerError> {
        let today = self.now() / DAY;
        let (candidates, joules) = (seconds(candidates), joules.map(seconds));
        self.change(|transaction| {
            execute(
                transaction,
                "INSERT INTO day (day, candidates, joules) VALUES (?1, ?2, ?3) ON CONFLICT (day) DO UPDATE
                 SET candidates = candidates + ?2, joules = iif(?3 IS NULL, joules, ifnull(joules, 0) + ?3)",
                params![today, candidates, joules],
            )?;
            execute(transaction, "DELETE FROM day WHERE day < ?1", [today - DAYS_KEPT])?;
            Ok(())
        })
    }

    /// Totals of the kept days up to today, the oldest first. Days on which nothing happened have
    /// zeros.
    pub fn days(&self) -> Result<Vec<DayFigures>, LedgerError> {
        let today = unsigned(self.now() / DAY);
        let query = "SELECT min(day) FROM day";
        let first: Option<i64> = self.reading(|connection| connection.query_row(query, [], |row| row.get(0)))?;
        let first = first.map_or(today, unsigned).max(today.saturating_sub(unsigned(DAYS_KEPT)));
        (first..=today).map(|day| self.day(day)).collect()
    }

    /// Totals of the day so far.
    pub fn today(&self) -> Result<DayFigures, LedgerError> {
        self.day(unsigned(self.now() / DAY))
    }

    /// Totals of a day, in days since 1970-01-01 (UTC); zeros for an unknown day.
    pub fn day(&self, day: u64) -> Result<DayFigures, LedgerError> {
        let date = date(day.saturating_mul(unsigned(DAY)));
        let day = i64::try_from(day).unwrap_or(i64::MAX);
        let query = "SELECT candidates, accepted, delivered, joules FROM day WHERE day = ?1";
        let read = |row: &Row<'_>| {
            Ok(DayFigures {
                date: String::new(),
                candidates: unsigned(row.get(0)?),
                jobs_accepted: unsigned(row.get(1)?),
                jobs_delivered: unsigned(row.get(2)?),
                kwh: row.get::<_, Option<f64>>(3)?.map(|joules| joules / JOULES_A_KWH),
            })
        };
        let figures = self.reading(|connection| query_first(connection, query, [day], read))?;
        Ok(DayFigures { date, ..figures.unwrap_or_default() })
    }
}

/// Adds one to today's column `what`: `accepted` or `delivered`.
pub(super) fn count_today(transaction: &Transaction<'_>, now: i64, what: &'static str) -> Result<(), LedgerError> {
    let count =
        format!("INSERT INTO day (day, {what}) VALUES (?1, 1) ON CONFLICT (day) DO UPDATE SET {what} = {what} + 1");
    execute(transaction, &count, [now / DAY])?;
    Ok(())
}
