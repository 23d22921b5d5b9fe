//! T1: a message and all its effects, recorded together or not at all.

use super::budget::{LedgerBudget, seen_from};
use super::open::Ledger;
use super::outbox::queue;
use super::rows::{LedgerError, execute, exists, query_first, read_relays, seconds, write_patterns, write_relays};
use crate::fault;
use crate::job::{Asker, JobId, JobSpec, RumorId, Ticket};
use crate::language::Language;
use crate::message::GiftWrap;
use rusqlite::{Transaction, params};

/// One message with its effect and its answer.
#[derive(Clone, Debug)]
pub struct AnsweredMessage {
    /// Author of the message.
    pub asker: Asker,
    /// Id of the message.
    pub rumor: RumorId,
    /// Date of the message, as its author signed it, Unix seconds.
    pub dated: u64,
    /// Relays where the message was seen.
    pub seen_on: Vec<String>,
    /// The vault's ticket for the request in the message, kept with the job. A job without one is
    /// not recorded.
    pub ticket: Option<Ticket>,
    /// The change that the message causes, besides the answer.
    pub effect: Effect,
    /// The one answer. `None` for messages that are ignored.
    pub reply: Option<GiftWrap>,
    /// Language of the asker from now on; `None` leaves it unchanged.
    pub language: Option<Language>,
    /// The number of the proof of work that the job of this message cost ([`crate::key::Work`]). It
    /// is spent then.
    pub work: Option<u64>,
    /// Messages that this one deletes. They count as answered, because relays do not keep the order:
    /// a request may arrive after its own deletion.
    pub deletes: Vec<RumorId>,
}

impl AnsweredMessage {
    /// The record of a message that is ignored.
    pub fn ignored(asker: Asker, rumor: RumorId, dated: u64) -> AnsweredMessage {
        AnsweredMessage {
            asker,
            rumor,
            dated,
            seen_on: Vec::new(),
            ticket: None,
            effect: Effect::Nothing,
            reply: None,
            language: None,
            work: None,
            deletes: Vec::new(),
        }
    }
}

/// The effect of a message, besides its answer. Its `Debug` output shows no pattern.
#[derive(Clone, PartialEq, Debug)]
pub enum Effect {
    /// No effect.
    Nothing,
    /// A new job under the number from [`Ledger::next_job`]. It has the asker of the
    /// [`AnsweredMessage`] and at least one pattern.
    Accept(JobId, JobSpec),
    /// Cancels accepted jobs of this asker. Jobs in other states or of other askers stay as they
    /// are.
    Cancel(Vec<JobId>),
    /// Sends the wrap of a found or delivered job of this asker again.
    Resend(JobId),
    /// The message came by NIP-04, and its answer is the only one to such messages for a day.
    Redirect,
    /// Cancels all jobs of this asker. They get no more messages until [`Effect::Start`].
    Stop,
    /// The asker gets messages again: ends [`Effect::Stop`].
    Start,
    /// Deletes everything about this asker, except ids of their messages, as long as a relay can
    /// replay them; spent work, while it counts; the times of the last day's jobs, as long as they
    /// count towards the daily limit; and the reply to this message.
    Forget,
}

/// Outcome of T1 for one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recorded {
    /// The answer is recorded now.
    Now,
    /// Recorded before, under the same asker and id. Nothing was changed.
    Before,
    /// Not recorded and not answered: the table of ids is full, and the message as old as the ids
    /// that had to go.
    TooOld,
    /// Not recorded and not answered yet: the table is full of ids of the last hour.
    Full,
}

impl Ledger {
    /// Number of the next accepted job. No other caller may accept a job between this call and the
    /// T1 that uses the number.
    pub fn next_job(&self) -> Result<JobId, LedgerError> {
        let query = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'job'), 0) + 1";
        self.reading(|connection| connection.query_row(query, [], |row| row.get(0).map(JobId)))
    }

    /// Whether this message of this asker was answered.
    pub fn has_seen(&self, asker: Asker, rumor: RumorId) -> Result<bool, LedgerError> {
        let query = "SELECT 1 FROM seen WHERE asker = ?1 AND rumor = ?2";
        self.reading(|connection| exists(connection, query, params![asker.0, rumor.0]))
    }

    /// Whether a message of this date is too old to be answered: see [`Recorded::TooOld`].
    pub fn is_too_old(&self, dated: u64) -> Result<bool, LedgerError> {
        Ok(seconds(dated) < self.reading(seen_from)?)
    }

    /// Whether an asker's work of this number was spent. Numbers are kept for longer than their work
    /// counts, whatever date the messages have.
    pub fn has_spent(&self, asker: Asker, number: u64) -> Result<bool, LedgerError> {
        let query = "SELECT 1 FROM spent WHERE asker = ?1 AND number = ?2";
        self.reading(|connection| exists(connection, query, params![asker.0, number as i64]))
    }

    /// Records a message with its effect and its answer (T1). A second answer to the same message
    /// changes nothing and returns [`Recorded::Before`].
    ///
    /// Errors: [`LedgerError::Misaddressed`] if the reply is sealed to somebody else;
    /// [`LedgerError::Database`], also if the number of a new job is taken. Nothing is recorded
    /// then, not even that the message was seen.
    pub fn answer(&self, answer: &AnsweredMessage) -> Result<Recorded, LedgerError> {
        let recorded = self.answer_all(std::slice::from_ref(answer))?;
        Ok(recorded.first().map_or(Recorded::Before, |(recorded, _)| *recorded))
    }

    /// Records several messages (T1) in one transaction, which waits for the disk only once. Also
    /// returns the jobs that each message ended.
    ///
    /// Errors: as [`Ledger::answer`].
    pub fn answer_all(&self, answers: &[AnsweredMessage]) -> Result<Vec<(Recorded, Vec<JobId>)>, LedgerError> {
        let now = self.now();
        let mut outcome = Vec::new();
        // A replay alone makes no room for ids.
        self.write(|transaction| {
            let record = |answer| record_answer(transaction, self.budget(), answer, now);
            outcome = answers.iter().map(record).collect::<Result<_, _>>()?;
            fault::before("answer");
            Ok(outcome.iter().any(|(recorded, _)| *recorded == Recorded::Now).then_some(()))
        })?;
        fault::after("answer");
        Ok(outcome)
    }
}

/// Records one message, unless it was recorded before. Also returns the jobs that it ends.
fn record_answer(
    transaction: &Transaction<'_>,
    budget: &LedgerBudget,
    answer: &AnsweredMessage,
    now: i64,
) -> Result<(Recorded, Vec<JobId>), LedgerError> {
    let dated = seconds(answer.dated);
    let has_room = budget.make_room(transaction, now)?;
    if dated < seen_from(transaction)? {
        return Ok((Recorded::TooOld, Vec::new()));
    }
    if !has_room {
        return Ok((Recorded::Full, Vec::new()));
    }
    let mut see = transaction.prepare_cached("INSERT OR IGNORE INTO seen (asker, rumor, dated) VALUES (?1, ?2, ?3)")?;
    if see.execute(params![answer.asker.0, answer.rumor.0, dated])? == 0 {
        return Ok((Recorded::Before, Vec::new()));
    }
    if let Some(number) = answer.work {
        super::budget::spend(transaction, answer.asker, number, now)?;
    }
    // What is deleted is older than its deletion.
    for deleted in &answer.deletes {
        see.execute(params![answer.asker.0, deleted.0, dated])?;
    }
    let ended = apply_effect(transaction, answer, now)?;
    if let Some(language) = answer.language {
        super::askers::set_language(transaction, answer.asker, language, now)?;
    }
    if let Some(reply) = &answer.reply {
        if reply.to != answer.asker {
            return Err(LedgerError::Misaddressed);
        }
        queue(transaction, budget, reply, None, &write_relays(&answer.seen_on), now)?;
    }
    Ok((Recorded::Now, ended))
}

/// Applies the effect of a message. Returns the jobs that it ends.
fn apply_effect(transaction: &Transaction<'_>, answer: &AnsweredMessage, now: i64) -> Result<Vec<JobId>, LedgerError> {
    match &answer.effect {
        Effect::Nothing => {}
        Effect::Accept(id, spec) => {
            insert_job(transaction, *id, spec, answer, now)?;
            super::outbox::count_today(transaction, now, "accepted")?;
        }
        Effect::Cancel(jobs) => {
            let cancel = "UPDATE job SET state = 'cancelled' WHERE id = ?1 AND asker = ?2 AND state = 'accepted'";
            let mut ended = Vec::new();
            for job in jobs {
                if execute(transaction, cancel, params![job.0, answer.asker.0])? > 0 {
                    ended.push(*job);
                }
            }
            return Ok(ended);
        }
        Effect::Resend(job) => make_due_again(transaction, *job, answer, now)?,
        Effect::Redirect => {
            let redirected = "INSERT OR REPLACE INTO redirected (asker, at) VALUES (?1, ?2)";
            execute(transaction, redirected, params![answer.asker.0, now])?;
        }
        Effect::Stop => {
            let silent = "INSERT OR IGNORE INTO silent (asker, since) VALUES (?1, ?2)";
            execute(transaction, silent, params![answer.asker.0, now])?;
            return super::askers::cancel_all(transaction, answer.asker);
        }
        Effect::Start => _ = execute(transaction, "DELETE FROM silent WHERE asker = ?1", [answer.asker.0])?,
        Effect::Forget => return Ok(super::askers::forget(transaction, answer.asker, i64::MAX, now)?.1),
    }
    Ok(Vec::new())
}

/// Inserts the row of a new job.
fn insert_job(
    transaction: &Transaction<'_>,
    id: JobId,
    spec: &JobSpec,
    answer: &AnsweredMessage,
    now: i64,
) -> Result<(), LedgerError> {
    if spec.asker != answer.asker {
        return Err(LedgerError::Misaddressed);
    }
    execute(
        transaction,
        "INSERT INTO job (id, asker, rumor, subject, patterns, state, accepted_at, expires_at, seen_on,
                          split_point, half_family, notice_at, encryption_key, best, ticket, time_class, priority)
         VALUES (?1, ?2, ?3, ?4, ?5, 'accepted', ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        params![
            id.0,
            answer.asker.0,
            answer.rumor.0,
            spec.subject,
            write_patterns(&spec.patterns),
            now,
            seconds(spec.expires_at),
            write_relays(&answer.seen_on),
            spec.half.map(|point| point.serialize()),
            spec.half.map(|point| point.family()),
            spec.notice_at.map(seconds),
            spec.encryption_key.map(|key| key.0),
            spec.best.as_ref().map(|search| search.best.to_string()),
            answer.ticket.as_ref().map(|ticket| &ticket.0),
            spec.class as i64,
            spec.priority as i64,
        ],
    )?;
    Ok(())
}

/// Makes the wrap of a result due again, as if it were new, because its relays may have lost it,
/// and the asker may use other relays now. Does nothing for another asker's job or a job without a
/// wrap.
fn make_due_again(
    transaction: &Transaction<'_>,
    job: JobId,
    answer: &AnsweredMessage,
    now: i64,
) -> Result<(), LedgerError> {
    let query = "SELECT id, seen_on FROM outbox WHERE result_of = ?1 AND asker = ?2 AND expires_at > ?3";
    let values = params![job.0, answer.asker.0, now];
    let kept = query_first(transaction, query, values, |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))?;
    let Some((message, seen_on)) = kept else {
        return Ok(());
    };
    let mut relays = answer.seen_on.clone();
    // If the kept relays are unreadable, only the new ones remain.
    let before = read_relays(seen_on).unwrap_or_default();
    relays.extend(before.into_iter().filter(|relay| !answer.seen_on.contains(relay)));
    relays.truncate(MAX_RELAYS_KEPT);
    let update =
        "UPDATE outbox SET finished = 0, attempts = 0, queued_at = ?2, due_at = ?2, due_set_at = ?2, seen_on = ?3
                  WHERE id = ?1";
    execute(transaction, update, params![message, now, write_relays(&relays)])?;
    execute(transaction, "DELETE FROM acknowledged WHERE message = ?1", [message])?;
    Ok(())
}

/// Relays kept for one message, so that repeated requests to send again cannot make its row grow.
const MAX_RELAYS_KEPT: usize = 16;
