//! T1: a message and all that follows from it, at once or not at all.

use super::open::seconds;
use super::outbox::queue;
use super::rows::{read_relays, write_channel, write_patterns, write_relays};
use super::{Answer, Effect, JobState, Ledger, LedgerError, Recorded};
use crate::fault::{self, Step};
use crate::job::{Asker, JobId, JobSpec, RumorId};
use rusqlite::{OptionalExtension, Transaction, params};

impl Ledger {
    /// The number the next accepted job will have. Only one caller may be between this and its T1.
    pub fn next_job(&self) -> Result<JobId, LedgerError> {
        let connection = self.read();
        let mut statement = connection.prepare_cached(
            "SELECT max(coalesce((SELECT max(id) FROM job), 0),
                        coalesce((SELECT value FROM note WHERE name = 'last_job'), 0)) + 1",
        )?;
        Ok(JobId(statement.query_row([], |row| row.get(0))?))
    }

    /// Whether this message of this asker was answered before (as long as it is remembered: [`Ledger::clean`]).
    pub fn has_seen(&self, asker: Asker, rumor: RumorId) -> Result<bool, LedgerError> {
        let connection = self.read();
        let mut statement = connection.prepare_cached("SELECT 1 FROM seen WHERE asker = ?1 AND rumor = ?2")?;
        Ok(statement.exists(params![asker.0, rumor.0])?)
    }

    /// T1. A second answer to the same rumor of the same asker changes nothing and says [`Recorded::Before`].
    ///
    /// Errors: [`LedgerError::Misaddressed`] if the reply is sealed to somebody else; [`LedgerError::Database`] also if
    /// the number of an accepted job is taken. Nothing is recorded then, not even that the message was seen.
    pub fn answer(&self, answer: &Answer) -> Result<Recorded, LedgerError> {
        let recorded = self.answer_all(std::slice::from_ref(answer))?;
        Ok(recorded.first().copied().unwrap_or(Recorded::Before))
    }

    /// T1 of several messages at once, with one wait for the disk: all of them are recorded or none.
    ///
    /// Errors: as [`Ledger::answer`].
    pub fn answer_all(&self, answers: &[Answer]) -> Result<Vec<Recorded>, LedgerError> {
        let now = self.now();
        let done = self.write(|transaction| {
            let recorded: Vec<Recorded> =
                answers.iter().map(|answer| record(transaction, answer, now)).collect::<Result<_, _>>()?;
            fault::before(Step::Answer);
            Ok(recorded.contains(&Recorded::Now).then_some(recorded))
        })?;
        fault::after(Step::Answer);
        Ok(done.unwrap_or_else(|| vec![Recorded::Before; answers.len()]))
    }
}

fn record(transaction: &Transaction<'_>, answer: &Answer, now: i64) -> Result<Recorded, LedgerError> {
    let age = super::clean::age(transaction)?;
    let first = transaction
        .prepare_cached("INSERT OR IGNORE INTO seen (asker, rumor, age) VALUES (?1, ?2, ?3)")?
        .execute(params![answer.asker.0, answer.rumor.0, age])?;
    if first == 0 {
        return Ok(Recorded::Before);
    }
    apply(transaction, answer, now)?;
    if let Some(reply) = &answer.reply {
        if reply.to != answer.asker {
            return Err(LedgerError::Misaddressed);
        }
        queue(transaction, reply, None, &write_relays(&answer.seen_on), now)?;
    }
    Ok(Recorded::Now)
}

fn apply(transaction: &Transaction<'_>, answer: &Answer, now: i64) -> Result<(), LedgerError> {
    match &answer.effect {
        Effect::Nothing => Ok(()),
        Effect::Accept(id, spec) => {
            accept(transaction, *id, spec, answer, now)?;
            super::days::count(transaction, now, "accepted")
        }
        Effect::Cancel(jobs) => {
            let mut cancel = transaction.prepare_cached(
                "UPDATE job SET state = 'cancelled' WHERE id = ?1 AND asker = ?2 AND state = 'accepted'",
            )?;
            for job in jobs {
                cancel.execute(params![job.0, answer.asker.0])?;
            }
            Ok(())
        }
        Effect::Resend(job) => resend(transaction, *job, answer, now),
        Effect::Stop => super::asker::silence(transaction, answer.asker, now),
        Effect::Start => super::asker::hear_again(transaction, answer.asker),
        Effect::Forget => super::asker::forget(transaction, answer.asker, i64::MAX, now).map(|_| ()),
    }
}

fn accept(
    transaction: &Transaction<'_>,
    id: JobId,
    spec: &JobSpec,
    answer: &Answer,
    now: i64,
) -> Result<(), LedgerError> {
    if spec.asker != answer.asker {
        return Err(LedgerError::Misaddressed);
    }
    transaction
        .prepare_cached(
            "INSERT INTO job (id, asker, rumor, subject, patterns, state, accepted_at, expires_at, seen_on,
                              split_point, half_family, notice_at, channel)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?
        .execute(params![
            id.0,
            answer.asker.0,
            answer.rumor.0,
            spec.subject,
            write_patterns(&spec.patterns),
            JobState::Accepted.word(),
            now,
            seconds(spec.expires_at),
            write_relays(&answer.seen_on),
            spec.half.map(|point| point.serialize()),
            spec.half.map(|point| point.family()),
            spec.notice_at.map(seconds),
            write_channel(spec.channel),
        ])?;
    Ok(())
}

/// Makes the kept wrap of a result due again, as if it had just been queued: the relays that had it may have lost it,
/// and the asker may be found on other relays by now. Somebody else's job, or one without a wrap, is left alone.
fn resend(transaction: &Transaction<'_>, job: JobId, answer: &Answer, now: i64) -> Result<(), LedgerError> {
    let kept: Option<(i64, String)> = transaction
        .prepare_cached("SELECT id, seen_on FROM mail WHERE result_of = ?1 AND asker = ?2 AND expires_at > ?3")?
        .query_row(params![job.0, answer.asker.0, now], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((mail, seen_on)) = kept else {
        return Ok(());
    };
    let mut relays = answer.seen_on.clone();
    let before = read_relays(&seen_on).ok_or_else(|| LedgerError::Corrupt(format!("mail {mail}, column seen_on")))?;
    relays.extend(before.into_iter().filter(|relay| !answer.seen_on.contains(relay)));
    relays.truncate(RELAYS_A_LETTER);
    transaction
        .prepare_cached(
            "UPDATE mail SET finished = 0, attempts = 0, queued_at = ?2, due_at = ?2, due_set_at = ?2, seen_on = ?3
             WHERE id = ?1",
        )?
        .execute(params![mail, now, write_relays(&relays)])?;
    transaction.prepare_cached("DELETE FROM acknowledged WHERE mail = ?1")?.execute([mail])?;
    Ok(())
}

/// Repeated requests to send again must not make a row grow.
const RELAYS_A_LETTER: usize = 16;
