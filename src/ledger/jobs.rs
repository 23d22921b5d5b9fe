//! T2, and queries about jobs.

use super::error::LedgerError;
use super::job::{AskerView, Job, JobState, Totals};
use super::meta::{DAY, seconds, unsigned, write_meta};
use super::open::Ledger;
use super::outbox::queue;
use super::rows::{JOB_COLUMNS, jobs};
use crate::fault::{self, Step};
use crate::job::{Asker, JobId};
use crate::message::GiftWrap;
use rusqlite::{Connection, OptionalExtension, Params, Transaction, params};

/// Query of [`Ledger::overdue_jobs`]. It names the index, because otherwise SQLite would read every
/// accepted job.
pub(super) fn overdue() -> String {
    format!(
        "SELECT {JOB_COLUMNS} FROM job INDEXED BY job_by_expiry WHERE state = 'accepted' AND expires_at <= ?1 ORDER BY id"
    )
}

/// Query of [`Ledger::late_jobs`].
pub(super) fn late() -> String {
    format!(
        "SELECT {JOB_COLUMNS} FROM job INDEXED BY job_by_notice WHERE state = 'accepted' AND notice_at <= ?1 ORDER BY id"
    )
}

impl Ledger {
    /// T2: records a result. Returns `false` and changes nothing if the job is no longer accepted.
    ///
    /// Errors: [`LedgerError::Misaddressed`] if the result is sealed to somebody other than the
    /// job's asker.
    pub fn found(&self, job: JobId, result: &GiftWrap) -> Result<bool, LedgerError> {
        self.end(job, JobState::Found, result)
    }

    /// Gives up an accepted job. Returns `false` and changes nothing if it is no longer accepted.
    ///
    /// Errors: [`LedgerError::Misaddressed`] if the notice is sealed to somebody other than the
    /// job's asker.
    pub fn expire(&self, job: JobId, notice: &GiftWrap) -> Result<bool, LedgerError> {
        self.end(job, JobState::Expired, notice)
    }

    /// Ends an accepted job and queues its message. Of several callers only the first succeeds
    /// (compare and set).
    fn end(&self, job: JobId, state: JobState, message: &GiftWrap) -> Result<bool, LedgerError> {
        let now = self.now();
        let done = self.write(|transaction| end(self, transaction, job, state, message, now))?;
        fault::after(Step::Found);
        Ok(done.is_some())
    }

    /// Accepted jobs that take longer than promised and whose askers were not told, oldest first.
    pub fn late_jobs(&self) -> Result<Vec<Job>, LedgerError> {
        self.list(&late(), [self.now()])
    }

    /// Accepted jobs that expire at `now` (Unix seconds) or before, oldest first.
    pub fn overdue_jobs(&self, now: u64) -> Result<Vec<Job>, LedgerError> {
        self.list(&overdue(), [seconds(now)])
    }

    /// Queues the one notice that a job takes longer than promised. Returns `false` if it was
    /// queued before, or the job has ended.
    ///
    /// Errors: [`LedgerError::Misaddressed`] if the notice is sealed to somebody other than the
    /// job's asker.
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
            queue(transaction, self.bounds(), notice, None, &seen_on, now)?;
            Ok(Some(()))
        })?;
        Ok(done.is_some())
    }

    /// All accepted jobs, oldest first.
    pub fn open_jobs(&self) -> Result<Vec<Job>, LedgerError> {
        let query = format!("SELECT {JOB_COLUMNS} FROM job WHERE state = 'accepted' ORDER BY id");
        self.list(&query, [])
    }

    /// One job, if it is still accepted.
    pub fn open_job(&self, job: JobId) -> Result<Option<Job>, LedgerError> {
        let query = format!("SELECT {JOB_COLUMNS} FROM job WHERE id = ?1 AND state = 'accepted'");
        Ok(self.list(&query, [job.0])?.pop())
    }

    /// Facts about an asker, for the decision about their next message.
    pub fn asker_view(&self, asker: Asker) -> Result<AskerView, LedgerError> {
        let now = self.now();
        self.reading(|connection| view(connection, asker, now))
    }

    /// Number of jobs in each state, and of messages not sent yet.
    pub fn totals(&self) -> Result<Totals, LedgerError> {
        self.reading(totals)
    }

    /// All jobs of a query that selects [`JOB_COLUMNS`].
    fn list(&self, query: &str, values: impl Params) -> Result<Vec<Job>, LedgerError> {
        let now = self.now();
        self.reading(|connection| jobs(connection, query, values, now))
    }
}

/// Ends an accepted job within a transaction. `None` if it is no longer accepted.
pub(super) fn end(
    ledger: &Ledger,
    transaction: &Transaction<'_>,
    job: JobId,
    state: JobState,
    message: &GiftWrap,
    now: i64,
) -> Result<Option<()>, LedgerError> {
    let ended: Option<([u8; 32], String, Option<[u8; 32]>)> = transaction
        .prepare_cached(
            "UPDATE job SET state = ?2 WHERE id = ?1 AND state = 'accepted' RETURNING asker, seen_on, half_family",
        )?
        .query_row(params![job.0, state.word()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((asker, seen_on, family)) = ended else {
        return Ok(None);
    };
    if message.to.0 != asker {
        return Err(LedgerError::Misaddressed);
    }
    let result_of = (state == JobState::Found).then_some(job);
    queue(transaction, ledger.bounds(), message, result_of, &seen_on, now)?;
    fault::before(Step::Found);
    if let Some(family) = family.filter(|_| state == JobState::Found) {
        super::halves::spend(transaction, &family)?;
        // The file is written before this transaction is committed: a half that is not in the file
        // must not be used.
        let generation = ledger.used_halves().spend(&family)?;
        write_meta(transaction, "generation", generation)?;
    }
    Ok(Some(()))
}

/// Facts about an asker.
fn view(connection: &Connection, asker: Asker, now: i64) -> Result<AskerView, LedgerError> {
    let open = format!("SELECT {JOB_COLUMNS} FROM job WHERE asker = ?1 AND state = 'accepted' ORDER BY id");
    // Only the numbers: reading the patterns of a month's jobs would take time.
    let results = connection
        .prepare_cached(
            "SELECT job.id FROM job JOIN outbox ON outbox.result_of = job.id
             WHERE job.asker = ?1 AND job.state IN ('found', 'delivered') AND outbox.expires_at > ?2 ORDER BY job.id DESC",
        )?
        .query_map(params![asker.0, now], |row| row.get(0).map(JobId))?
        .collect::<rusqlite::Result<Vec<JobId>>>()?;
    // A clock that was set back leaves times in the future. Up to a day ahead they count as
    // now, so that a small step opens no second quota. Further ahead they do not count, so that
    // a large step locks nobody out.
    let mut last_day = connection.prepare_cached(
        "SELECT min(at, ?2) FROM (SELECT accepted_at AS at FROM job WHERE asker = ?1
                                  UNION ALL SELECT at FROM started WHERE asker = ?1)
         WHERE at > ?2 - ?3 AND at <= ?2 + ?3 ORDER BY at",
    )?;
    let accepted_last_day = last_day
        .query_map(params![asker.0, now, DAY], |row| row.get(0).map(unsigned))?
        .collect::<rusqlite::Result<Vec<u64>>>()?;
    Ok(AskerView {
        open: jobs(connection, &open, [asker.0], now)?,
        results,
        accepted_last_day,
        silent: super::asker::is_silent(connection, asker)?,
        redirected: super::asker::is_redirected(connection, asker, now)?,
        language: super::asker::language(connection, asker)?,
        known: connection
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM job WHERE asker = ?1)")?
            .query_row([asker.0], |row| row.get(0))?,
    })
}

/// Number of jobs in each state, and of messages not sent yet.
fn totals(connection: &Connection) -> Result<Totals, LedgerError> {
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
            // The row is set aside when it is read.
            None => continue,
        };
        *place = unsigned(count);
    }
    let unsent = "SELECT count(*) FROM outbox WHERE finished = 0";
    totals.unsent_messages = unsigned(connection.query_row(unsent, [], |row| row.get(0))?);
    Ok(totals)
}
