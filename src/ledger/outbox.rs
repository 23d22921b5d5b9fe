//! The outbox: messages that are due, and T3; then the public posts, and the totals of a day.

use super::budget::LedgerBudget;
use super::open::Ledger;
use super::rows::{
    DAY, LedgerError, column, read_meta, read_relays, seconds, set_aside, unreadable, unsigned, write_meta,
    write_relays,
};
use crate::fault;
use crate::hours::date;
use crate::job::{Asker, JobId};
use crate::message::GiftWrap;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
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
    /// The next step.
    pub next: NextAttempt,
}

/// NextAttempt step after an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextAttempt {
    /// No more attempts: every relay that should have the message has it, or it is given up.
    Finished,
    /// There is another attempt at this time, Unix seconds.
    Again(u64),
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
        let (due, set): (Option<i64>, Option<i64>) = self.reading(|connection| {
            Ok(connection.prepare_cached(query)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?)
        })?;
        Ok(due.map(|due| unsigned(if set > Some(now) { due.min(now) } else { due })))
    }

    /// Records the outcomes of several attempts (T3) in one transaction, which waits for the disk
    /// only once.
    pub fn record_attempts(&self, attempts: &[Attempt]) -> Result<(), LedgerError> {
        let now = self.now();
        let mut delivers = false;
        self.write(|transaction| {
            for attempt in attempts {
                for relay in &attempt.reached {
                    delivers |= acknowledge(transaction, attempt.message, relay, now)?;
                }
                match attempt.next {
                    NextAttempt::Finished => finish(transaction, attempt.message)?,
                    NextAttempt::Again(at) => postpone(transaction, attempt.message, seconds(at), now)?,
                }
            }
            Ok((!attempts.is_empty()).then_some(()))
        })?;
        if delivers {
            fault::after("deliver");
        }
        Ok(())
    }

    /// Records that `relay` has the message (T3). If the message is the result of a found job, the
    /// job becomes delivered. A deleted message or a repeated OK changes nothing.
    pub fn acknowledge(&self, message: MessageId, relay: &str) -> Result<(), LedgerError> {
        let now = self.now();
        if self.write(|transaction| acknowledge(transaction, message, relay, now).map(Some))? == Some(true) {
            fault::after("deliver");
        }
        Ok(())
    }
}

/// Records an OK of a relay. Returns whether a job became delivered.
fn acknowledge(transaction: &Transaction<'_>, message: MessageId, relay: &str, now: i64) -> Result<bool, LedgerError> {
    transaction
        .prepare_cached("INSERT OR IGNORE INTO acknowledged (message, relay) SELECT id, ?2 FROM outbox WHERE id = ?1")?
        .execute(params![message.0, relay])?;
    let delivered = transaction
        .prepare_cached(
            "UPDATE job SET state = 'delivered'
             WHERE id = (SELECT result_of FROM outbox WHERE id = ?1) AND state = 'found'",
        )?
        .execute([message.0])?;
    if delivered > 0 {
        count_today(transaction, now, "delivered")?;
        fault::before("deliver");
    }
    Ok(delivered > 0)
}

/// Counts an attempt and sets the time of the next.
fn postpone(transaction: &Transaction<'_>, message: MessageId, due_at: i64, now: i64) -> Result<(), LedgerError> {
    transaction
        .prepare_cached("UPDATE outbox SET attempts = attempts + 1, due_at = ?2, due_set_at = ?3 WHERE id = ?1")?
        .execute(params![message.0, due_at, now])?;
    Ok(())
}

/// Ends the attempts. A result is kept for `Effect::Resend` until it expires; other messages are
/// deleted.
fn finish(transaction: &Transaction<'_>, message: MessageId) -> Result<(), LedgerError> {
    transaction.prepare_cached("DELETE FROM outbox WHERE id = ?1 AND result_of IS NULL")?.execute([message.0])?;
    transaction.prepare_cached("UPDATE outbox SET finished = 1 WHERE id = ?1")?.execute([message.0])?;
    Ok(())
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
    transaction
        .prepare_cached(
            "INSERT INTO outbox (wrap, asker, result_of, json, expires_at, queued_at, due_at, due_set_at, seen_on)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?6, ?7)",
        )?
        .execute(params![
            wrap.id,
            wrap.to.0,
            result_of.map(|job| job.0),
            wrap.json,
            seconds(wrap.expires_at),
            now,
            seen_on,
        ])?;
    if result_of.is_none() { budget.drop_answers(transaction) } else { Ok(()) }
}

/// Puts a wrap about a job into the outbox, with the relays where its asker's message was seen.
///
/// Errors: [`LedgerError::Misaddressed`] if it is sealed to somebody other than the job's asker.
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
    let [mut due, others] = choose_due(connection, limit, is_under_way, now)?;
    due.extend(others);
    let (mut messages, mut unreadable) = (Vec::with_capacity(due.len()), Vec::new());
    {
        let mut row = connection.prepare_cached(
            "SELECT id, result_of, wrap, asker, json, expires_at, queued_at, attempts, seen_on
             FROM outbox WHERE id = ?1",
        )?;
        let mut relays =
            connection.prepare_cached("SELECT relay FROM acknowledged WHERE message = ?1 ORDER BY relay")?;
        for (id, urgent) in due {
            let mut rows = row.query([id])?;
            let Some(row) = rows.next()? else { continue };
            match due_message(row, urgent) {
                Ok(message) => {
                    let acknowledged_by = relays.query_map([id], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
                    messages.push(DueMessage { acknowledged_by, ..message });
                }
                Err(column) => unreadable.push((id, column)),
            }
        }
    }
    set_aside(connection, "message", &unreadable, now);
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
    let seen_on: String = column(row, 8, "seen_on")?;
    Ok(DueMessage {
        id: MessageId(column(row, 0, "id")?),
        result_of: column::<Option<i64>>(row, 1, "result_of")?.map(JobId),
        urgent,
        wrap: GiftWrap {
            id: column(row, 2, "wrap")?,
            to: Asker(column(row, 3, "asker")?),
            json: column(row, 4, "json")?,
            expires_at: unsigned(column(row, 5, "expires_at")?),
        },
        queued_at: unsigned(column(row, 6, "queued_at")?),
        attempts: u32::try_from(column::<i64>(row, 7, "attempts")?).unwrap_or(u32::MAX),
        seen_on: read_relays(&seen_on).ok_or_else(|| unreadable("seen_on"))?,
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
        self.write(|transaction| replace_post(transaction, post, now).map(Some))?;
        Ok(())
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
        self.reading(|connection| Ok(read_meta(connection, "posted_day")?.map(unsigned)))
    }

    /// The current event of a topic, and when it was queued, Unix seconds.
    pub fn posted(&self, topic: &str) -> Result<Option<(String, u64)>, LedgerError> {
        let query = "SELECT json, queued_at FROM post WHERE topic = ?1";
        let found: Option<(String, i64)> = self.reading(|connection| {
            let mut statement = connection.prepare_cached(query)?;
            Ok(statement.query_row([topic], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
        })?;
        Ok(found.map(|(json, at)| (json, unsigned(at))))
    }

    /// Events that are not expired and that at least one relay does not have yet.
    pub fn due_posts(&self) -> Result<Vec<DuePost>, LedgerError> {
        let now = self.now();
        self.reading(|connection| read_due_posts(connection, now))
    }

    /// Records that a relay has the event.
    pub fn post_reached(&self, post: i64, relay: &str) -> Result<(), LedgerError> {
        self.write(|transaction| {
            transaction
                .prepare_cached("INSERT OR IGNORE INTO posted (post, relay) SELECT id, ?2 FROM post WHERE id = ?1")?
                .execute(params![post, relay])?;
            Ok(Some(()))
        })?;
        Ok(())
    }
}

/// Replaces the event of a topic.
fn replace_post(transaction: &Transaction<'_>, post: &Post, now: i64) -> Result<(), LedgerError> {
    transaction.execute("DELETE FROM post WHERE topic = ?1", [&post.topic])?;
    transaction
        .prepare_cached("INSERT INTO post (topic, json, relays, queued_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![post.topic, post.json, write_relays(&post.relays), now, post.expires_at.map(seconds)])?;
    Ok(())
}

/// Events that at least one relay does not have yet. Unreadable rows are set aside.
fn read_due_posts(connection: &Connection, now: i64) -> Result<Vec<DuePost>, LedgerError> {
    let query = "SELECT id, topic, json, relays FROM post WHERE expires_at IS NULL OR expires_at > ?1 ORDER BY id";
    let (mut due, mut set_asides) = (Vec::new(), Vec::new());
    let mut statement = connection.prepare_cached(query)?;
    let mut rows = statement.query([now])?;
    let mut has = connection.prepare_cached("SELECT 1 FROM posted WHERE post = ?1 AND relay = ?2")?;
    while let Some(row) = rows.next()? {
        let (id, relays): (i64, String) = (row.get(0)?, row.get(3)?);
        let Some(relays) = read_relays(&relays) else {
            set_asides.push((id, unreadable("relays")));
            continue;
        };
        let mut left = Vec::new();
        for relay in relays {
            if !has.exists(params![id, relay])? {
                left.push(relay);
            }
        }
        if !left.is_empty() {
            due.push(DuePost { id, topic: row.get(1)?, json: row.get(2)?, left });
        }
    }
    drop(rows);
    set_aside(connection, "post", &set_asides, now);
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
        self.write(|transaction| {
            transaction
                .prepare_cached(
                    "INSERT INTO day (day, candidates, joules) VALUES (?1, ?2, ?3) ON CONFLICT (day) DO UPDATE
                     SET candidates = candidates + ?2, joules = iif(?3 IS NULL, joules, ifnull(joules, 0) + ?3)",
                )?
                .execute(params![
                    today,
                    i64::try_from(candidates).unwrap_or(i64::MAX),
                    joules.map(|joules| joules as i64)
                ])?;
            transaction.execute("DELETE FROM day WHERE day < ?1", [today - DAYS_KEPT])?;
            Ok(Some(()))
        })?;
        Ok(())
    }

    /// Totals of the kept days up to today, the oldest first. Days on which nothing happened have
    /// zeros.
    pub fn days(&self) -> Result<Vec<DayFigures>, LedgerError> {
        let today = unsigned(self.now() / DAY);
        let first = self.reading(|connection| {
            Ok(connection.query_row("SELECT min(day) FROM day", [], |row| row.get::<_, Option<i64>>(0))?)
        })?;
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
        let figures = self.reading(|connection| {
            let mut statement = connection.prepare_cached(query)?;
            let figures = statement.query_row([day], |row| {
                Ok(DayFigures {
                    candidates: unsigned(row.get(0)?),
                    jobs_accepted: unsigned(row.get(1)?),
                    jobs_delivered: unsigned(row.get(2)?),
                    kwh: row.get::<_, Option<f64>>(3)?.map(|joules| joules / JOULES_A_KWH),
                    ..DayFigures::default()
                })
            });
            Ok(figures.optional()?)
        })?;
        Ok(DayFigures { date, ..figures.unwrap_or_default() })
    }
}

/// Adds one to today's column `what`: `accepted` or `delivered`.
pub(super) fn count_today(transaction: &Transaction<'_>, now: i64, what: &'static str) -> Result<(), LedgerError> {
    transaction
        .prepare_cached(&format!(
            "INSERT INTO day (day, {what}) VALUES (?1, 1) ON CONFLICT (day) DO UPDATE SET {what} = {what} + 1"
        ))?
        .execute([now / DAY])?;
    Ok(())
}
