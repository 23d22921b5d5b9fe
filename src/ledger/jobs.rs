//! T2, and what can be asked about jobs.

use super::open::seconds;
use super::outbox::queue;
use super::rows::{JOB_COLUMNS, jobs, unsigned};
use super::{AskerView, Job, JobState, Ledger, LedgerError, Totals};
use crate::fault::{self, Step};
use crate::job::{Asker, JobId};
use crate::message::GiftWrap;
use rusqlite::{OptionalExtension, params};

/// Seconds.
const DAY: i64 = 86_400;

/// The query of [`Ledger::overdue_jobs`]. The indices are named: left to itself SQLite reads every accepted job.
pub(super) fn overdue() -> String {
    format!(
        "SELECT {JOB_COLUMNS} FROM job INDEXED BY job_by_expiry WHERE state = 'accepted' AND expires_at <= ?1 ORDER BY id"
    )
}

/// The query of [`Ledger::late_jobs`].
pub(super) fn late() -> String {
    format!(
        "SELECT {JOB_COLUMNS} FROM job INDEXED BY job_by_notice WHERE state = 'accepted' AND notice_at <= ?1 ORDER BY id"
    )
}

impl Ledger {
    /// T2: `false` when the job was no longer accepted; then nothing was changed.
    ///
    /// Errors: [`LedgerError::Misaddressed`] if the result is sealed to another than the job's asker.
    pub fn found(&self, job: JobId, result: &GiftWrap) -> Result<bool, LedgerError> {
        self.end(job, JobState::Found, result)
    }

    /// Gives an accepted job up: `false` when it was no longer accepted; then nothing was changed.
    ///
    /// Errors: [`LedgerError::Misaddressed`] if the notice is sealed to another than the job's asker.
    pub fn expire(&self, job: JobId, notice: &GiftWrap) -> Result<bool, LedgerError> {
        self.end(job, JobState::Expired, notice)
    }

    /// Compare and set: whoever is first to end an accepted job queues its letter, and nobody after.
    fn end(&self, job: JobId, state: JobState, letter: &GiftWrap) -> Result<bool, LedgerError> {
        let now = self.now();
        let done = self.write(|transaction| {
            let ended: Option<([u8; 32], String, Option<[u8; 32]>)> = transaction
                .prepare_cached(
                    "UPDATE job SET state = ?2 WHERE id = ?1 AND state = 'accepted' RETURNING asker, seen_on, half_family",
                )?
                .query_row(params![job.0, state.word()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()?;
            let Some((asker, seen_on, family)) = ended else {
                return Ok(None);
            };
            if letter.to.0 != asker {
                return Err(LedgerError::Misaddressed);
            }
            if let Some(family) = family.filter(|_| state == JobState::Found) {
                super::halves::spend(transaction, &family)?;
            }
            let result_of = (state == JobState::Found).then_some(job);
            queue(transaction, letter, result_of, &seen_on, now)?;
            fault::before(Step::Found);
            Ok(Some(()))
        })?;
        fault::after(Step::Found);
        Ok(done.is_some())
    }

    /// Accepted jobs whose askers are to be told that it takes longer than promised, oldest first.
    pub fn late_jobs(&self) -> Result<Vec<Job>, LedgerError> {
        jobs(&self.read(), &late(), [self.now()])
    }

    /// Accepted jobs whose time is over at `now` (Unix seconds), oldest first.
    pub fn overdue_jobs(&self, now: u64) -> Result<Vec<Job>, LedgerError> {
        jobs(&self.read(), &overdue(), [seconds(now)])
    }

    /// Queues the one notice that a job takes longer than promised: `false` when there was one, or the job has ended.
    ///
    /// Errors: [`LedgerError::Misaddressed`] if the notice is sealed to another than the job's asker.
    pub fn tell_late(&self, job: JobId, notice: &GiftWrap) -> Result<bool, LedgerError> {
        let now = self.now();
        let done = self.write(|transaction| {
            let told: Option<([u8; 32], String)> = transaction
                .prepare_cached(
                    "UPDATE job SET notice_at = NULL WHERE id = ?1 AND state = 'accepted' AND notice_at IS NOT NULL
                     RETURNING asker, seen_on",
                )?
                .query_row([job.0], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some((asker, seen_on)) = told else {
                return Ok(None);
            };
            if notice.to.0 != asker {
                return Err(LedgerError::Misaddressed);
            }
            queue(transaction, notice, None, &seen_on, now)?;
            Ok(Some(()))
        })?;
        Ok(done.is_some())
    }

    /// All accepted jobs, oldest first.
    pub fn open_jobs(&self) -> Result<Vec<Job>, LedgerError> {
        let query = format!("SELECT {JOB_COLUMNS} FROM job WHERE state = 'accepted' ORDER BY id");
        jobs(&self.read(), &query, [])
    }

    /// One job, if it is still accepted.
    pub fn open_job(&self, job: JobId) -> Result<Option<Job>, LedgerError> {
        let query = format!("SELECT {JOB_COLUMNS} FROM job WHERE id = ?1 AND state = 'accepted'");
        Ok(jobs(&self.read(), &query, [job.0])?.pop())
    }

    /// What the bot's decisions about this asker's next message rest on.
    pub fn asker_view(&self, asker: Asker) -> Result<AskerView, LedgerError> {
        let now = self.now();
        let connection = self.read();
        let open = format!("SELECT {JOB_COLUMNS} FROM job WHERE asker = ?1 AND state = 'accepted' ORDER BY id");
        let results = format!(
            "SELECT {JOB_COLUMNS} FROM job JOIN mail ON mail.result_of = job.id
             WHERE job.asker = ?1 AND job.state IN ('found', 'delivered') AND mail.expires_at > ?2 ORDER BY job.id DESC"
        );
        // A clock that has gone back leaves times in the future. Those of a day count as just now, so that a small step
        // opens no second quota; those of a year do not, so that a great one locks nobody out.
        let mut last_day = connection.prepare_cached(
            "SELECT min(at, ?2) FROM (SELECT accepted_at AS at FROM job WHERE asker = ?1
                                      UNION ALL SELECT at FROM started WHERE asker = ?1)
             WHERE at > ?2 - ?3 AND at <= ?2 + ?3 ORDER BY at",
        )?;
        let accepted_last_day = last_day
            .query_map(params![asker.0, now, DAY], |row| row.get(0).map(unsigned))?
            .collect::<rusqlite::Result<Vec<u64>>>()?;
        Ok(AskerView {
            open: jobs(&connection, &open, [asker.0])?,
            results: jobs(&connection, &results, params![asker.0, now])?,
            accepted_last_day,
            silent: super::asker::is_silent(&connection, asker)?,
            known: connection
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM job WHERE asker = ?1)")?
                .query_row([asker.0], |row| row.get(0))?,
        })
    }

    /// How many jobs are in each state, and how many letters are not finished.
    pub fn totals(&self) -> Result<Totals, LedgerError> {
        let connection = self.read();
        let mut totals = Totals::default();
        let mut statement = connection.prepare_cached("SELECT state, count(*) FROM job GROUP BY state")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (state, count): (String, i64) = (row.get(0)?, row.get(1)?);
            let place = match JobState::parse(&state) {
                Some(JobState::Accepted) => &mut totals.accepted,
                Some(JobState::Found) => &mut totals.found,
                Some(JobState::Delivered) => &mut totals.delivered,
                Some(JobState::Cancelled) => &mut totals.cancelled,
                Some(JobState::Expired) => &mut totals.expired,
                None => return Err(LedgerError::Corrupt(format!("{count} jobs in a state of no known name"))),
            };
            *place = unsigned(count);
        }
        let unsent: i64 = connection.query_row("SELECT count(*) FROM mail WHERE finished = 0", [], |row| row.get(0))?;
        totals.unsent_messages = unsigned(unsent);
        Ok(totals)
    }
}
