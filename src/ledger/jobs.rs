//! Jobs and askers as the ledger knows them, T2, and queries about jobs.
//!
//! For a job without a target the ledger keeps the sealed result of the best key so far. A rarer
//! key's result replaces it; the last one becomes the job's result when the time is up.

use super::askers::Standing;
use super::open::Ledger;
use super::outbox::queue_about;
use super::rows::{
    DAY, JOB_COLUMNS, LedgerError, execute, exists, jobs, query_all, query_first, seconds, unsigned, write_meta,
};
use crate::fault;
use crate::job::{Asker, JobId, JobSpec, RumorId, Ticket};
use crate::key::HalfPoint;
use crate::language::Language;
use crate::message::GiftWrap;
use crate::pattern::Pattern;
use rusqlite::{Connection, Params, Row, Transaction, params};
use std::fmt;
use std::time::Duration;

/// State of a job.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum JobState {
    /// The job was accepted, and its key is being searched for.
    Accepted,
    /// The sealed result is in the outbox.
    Found,
    /// A relay of the asker has the result.
    Delivered,
    /// Given up by its asker.
    Cancelled,
    /// Given up by the bot.
    Expired,
}

/// An accepted job, as the ledger keeps it.
#[derive(Clone)]
pub struct Job {
    /// The job's number.
    pub id: JobId,
    /// The message that asked.
    pub rumor: RumorId,
    /// The job's state.
    pub state: JobState,
    /// When the job was accepted, Unix seconds.
    pub accepted_at: u64,
    /// Relays where the asker's message was seen: the last choice for the answer.
    pub seen_on: Vec<String>,
    /// The vault's ticket; no key is sealed without it.
    pub ticket: Ticket,
    /// Patterns, asker and time limit of the search.
    pub spec: JobSpec,
    /// The asker's language when this row was read. Messages about the job are in it.
    pub language: Language,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job {}, {:?}, {} patterns", self.id, self.state, self.spec.patterns.len())
    }
}

/// Facts about one asker, for the bot's decisions.
#[derive(Clone, Debug, Default)]
pub struct AskerView {
    /// Accepted jobs, oldest first.
    pub open: Vec<Job>,
    /// Found and delivered jobs whose result is still kept, newest first.
    pub results: Vec<JobId>,
    /// Number of these that no relay has yet.
    pub undelivered: usize,
    /// Whether one of these was refused for some time by all relays of the asker.
    pub untaken: bool,
    /// Whether a relay of the asker has taken a result.
    pub served: bool,
    /// Times when the jobs of the last 24 hours were accepted, Unix seconds, oldest first. Ended
    /// jobs count too.
    pub accepted_last_day: Vec<u64>,
    /// Whether the asker sent `stop` and has not sent `start` since.
    pub silent: bool,
    /// Whether a message by NIP-04 was answered in the last 24 hours ([`Effect::Redirect`]).
    ///
    /// [`Effect::Redirect`]: super::Effect::Redirect
    pub redirected: bool,
    /// Language of the conversation.
    pub language: Language,
    /// How the operator wants the asker to be treated.
    pub standing: Standing,
}

/// Number of jobs in each state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Jobs being searched.
    pub accepted: u64,
    /// Jobs whose result no relay has yet.
    pub found: u64,
    /// Jobs whose result a relay has.
    pub delivered: u64,
    /// Jobs given up by their askers.
    pub cancelled: u64,
    /// Jobs given up by the bot.
    pub expired: u64,
    /// Messages in the outbox that are not sent yet.
    pub unsent_messages: u64,
}

/// Query of [`Ledger::overdue_jobs`]. It names the index, because otherwise SQLite would read every
/// accepted job.
pub(super) fn overdue_query() -> String {
    format!(
        "SELECT {JOB_COLUMNS} FROM job INDEXED BY job_by_expiry WHERE state = 'accepted' AND expires_at <= ?1 ORDER BY id"
    )
}

/// Query of [`Ledger::late_jobs`].
pub(super) fn late_query() -> String {
    format!(
        "SELECT {JOB_COLUMNS} FROM job INDEXED BY job_by_notice WHERE state = 'accepted' AND notice_at <= ?1 ORDER BY id"
    )
}

impl Ledger {
    /// T2: records a result. Returns `false` and changes nothing if the job is no longer accepted.
    pub fn found(&self, job: JobId, result: &GiftWrap) -> Result<bool, LedgerError> {
        self.end_and_queue(job, JobState::Found, result)
    }

    /// Gives up an accepted job. Returns `false` and changes nothing if it is no longer accepted.
    pub fn expire(&self, job: JobId, notice: &GiftWrap) -> Result<bool, LedgerError> {
        self.end_and_queue(job, JobState::Expired, notice)
    }

    /// Ends an accepted job and queues its message. Of several callers only the first succeeds
    /// (compare and set).
    fn end_and_queue(&self, job: JobId, state: JobState, message: &GiftWrap) -> Result<bool, LedgerError> {
        let now = self.now();
        let done = self.write(|transaction| end_job(self, transaction, job, state, message, now))?;
        fault::after("found");
        Ok(done.is_some())
    }

    /// Accepted jobs that take longer than promised and whose askers were not told, oldest first.
    pub fn late_jobs(&self) -> Result<Vec<Job>, LedgerError> {
        self.list(&late_query(), [self.now()])
    }

    /// Accepted jobs that expire at `now` (Unix seconds) or before, oldest first.
    pub fn overdue_jobs(&self, now: u64) -> Result<Vec<Job>, LedgerError> {
        self.list(&overdue_query(), [seconds(now)])
    }

    /// Queues the one notice that a job takes longer than promised. Returns `false` if it was
    /// queued before, or the job has ended.
    pub fn tell_late(&self, job: JobId, notice: &GiftWrap) -> Result<bool, LedgerError> {
        let first = "UPDATE job SET notice_at = NULL WHERE id = ?1 AND state = 'accepted' AND notice_at IS NOT NULL";
        self.tell(job, notice, first)
    }

    /// Queues a notice about a job, if the statement `first` changes a row. Returns whether it did.
    pub(super) fn tell(&self, job: JobId, notice: &GiftWrap, first: &str) -> Result<bool, LedgerError> {
        let now = self.now();
        let told = self.write(|transaction| {
            if execute(transaction, first, [job.0])? == 0 {
                return Ok(None);
            }
            queue_about(transaction, self.budget(), job, notice, None, now).map(Some)
        })?;
        Ok(told.is_some())
    }

    /// All accepted jobs, oldest first.
    pub fn open_jobs(&self) -> Result<Vec<Job>, LedgerError> {
        let query = format!("SELECT {JOB_COLUMNS} FROM job WHERE state = 'accepted' ORDER BY id");
        self.list(&query, [])
    }

    /// The newest jobs in any state, of one asker or of all, oldest first; `most` at most.
    pub fn latest_jobs(&self, asker: Option<Asker>, most: usize) -> Result<Vec<Job>, LedgerError> {
        let query = format!("SELECT {JOB_COLUMNS} FROM job WHERE ?1 IS NULL OR asker = ?1 ORDER BY id DESC LIMIT ?2");
        let mut jobs = self.list(&query, params![asker.map(|asker| asker.0), most as i64])?;
        jobs.reverse();
        Ok(jobs)
    }

    /// One job, if it is still accepted.
    pub fn open_job(&self, job: JobId) -> Result<Option<Job>, LedgerError> {
        Ok(self.job(job)?.filter(|job| job.state == JobState::Accepted))
    }

    /// One job, in any state.
    pub fn job(&self, job: JobId) -> Result<Option<Job>, LedgerError> {
        Ok(self.list(&format!("SELECT {JOB_COLUMNS} FROM job WHERE id = ?1"), [job.0])?.pop())
    }

    /// Facts about an asker, for the decision about their next message.
    pub fn asker_view(&self, asker: Asker) -> Result<AskerView, LedgerError> {
        let now = self.now();
        self.reading(|connection| read_asker_view(connection, asker, now))
    }

    /// Number of jobs in each state, and of messages not sent yet.
    pub fn totals(&self) -> Result<Totals, LedgerError> {
        self.reading(count_totals)
    }

    /// All jobs of a query that selects [`JOB_COLUMNS`].
    fn list(&self, query: &str, values: impl Params) -> Result<Vec<Job>, LedgerError> {
        let now = self.now();
        self.reading(|connection| jobs(connection, query, values, now))
    }
}

/// Ends an accepted job within a transaction. `None` if it is no longer accepted.
pub(super) fn end_job(
    ledger: &Ledger,
    transaction: &Transaction<'_>,
    job: JobId,
    state: JobState,
    message: &GiftWrap,
    now: i64,
) -> Result<Option<()>, LedgerError> {
    let end = "UPDATE job SET state = ?2 WHERE id = ?1 AND state = 'accepted' RETURNING half_family";
    let ended = query_first(transaction, end, params![job.0, state.word()], |row| row.get::<_, Option<[u8; 32]>>(0))?;
    let Some(family) = ended else {
        return Ok(None);
    };
    let result_of = (state == JobState::Found).then_some(job);
    queue_about(transaction, ledger.budget(), job, message, result_of, now)?;
    fault::before("found");
    if let Some(family) = family.filter(|_| state == JobState::Found) {
        execute(transaction, "INSERT OR IGNORE INTO used_half (family) VALUES (?1)", [family])?;
        // The file is written before this transaction is committed: a half that is not in the file
        // must not be used.
        let generation = ledger.used_halves().spend(&family)?;
        write_meta(transaction, "generation", generation)?;
    }
    Ok(Some(()))
}

/// Attempts to send a result after which it counts as one that nobody takes. They take a minute.
const ATTEMPTS_UNTAKEN: u32 = 3;

/// Facts about an asker.
fn read_asker_view(connection: &Connection, asker: Asker, now: i64) -> Result<AskerView, LedgerError> {
    let open = format!("SELECT {JOB_COLUMNS} FROM job WHERE asker = ?1 AND state = 'accepted' ORDER BY id");
    // Only the numbers: reading the patterns of a month's jobs would take time.
    let kept = query_all(
        connection,
        "SELECT job.id, job.state = 'found', finished OR attempts >= ?3 FROM job
         JOIN outbox ON outbox.result_of = job.id
         WHERE job.asker = ?1 AND job.state IN ('found', 'delivered') AND outbox.expires_at > ?2 ORDER BY job.id DESC",
        params![asker.0, now, ATTEMPTS_UNTAKEN],
        |row| Ok((JobId(row.get(0)?), row.get::<_, bool>(1)?, row.get::<_, bool>(2)?)),
    )?;
    // A clock that was set back leaves times in the future. Up to a day ahead they count as
    // now, so that a small step opens no second quota. Further ahead they do not count, so that
    // a large step locks nobody out.
    let last_day = "SELECT min(at, ?2) FROM (SELECT accepted_at AS at FROM job WHERE asker = ?1
                                             UNION ALL SELECT at FROM started WHERE asker = ?1)
                    WHERE at > ?2 - ?3 AND at <= ?2 + ?3 ORDER BY at";
    let redirected = "SELECT 1 FROM redirected WHERE asker = ?1 AND at > ?2 - ?3 AND at <= ?2 + ?3";
    let near = params![asker.0, now, DAY];
    Ok(AskerView {
        open: jobs(connection, &open, [asker.0], now)?,
        undelivered: kept.iter().filter(|(_, is_undelivered, _)| *is_undelivered).count(),
        untaken: kept.iter().any(|(_, is_undelivered, was_tried)| *is_undelivered && *was_tried),
        results: kept.into_iter().map(|(job, ..)| job).collect(),
        served: exists(connection, "SELECT 1 FROM job WHERE asker = ?1 AND state = 'delivered'", [asker.0])?,
        accepted_last_day: query_all(connection, last_day, near, |row| row.get(0).map(unsigned))?,
        silent: exists(connection, "SELECT 1 FROM silent WHERE asker = ?1", [asker.0])?,
        redirected: exists(connection, redirected, near)?,
        language: super::askers::language(connection, asker)?,
        standing: super::askers::standing(connection, asker)?,
    })
}

/// Number of jobs in each state, and of messages not sent yet.
fn count_totals(connection: &Connection) -> rusqlite::Result<Totals> {
    let query = "SELECT count(*) FILTER (WHERE state = 'accepted'), count(*) FILTER (WHERE state = 'found'),
                        count(*) FILTER (WHERE state = 'delivered'), count(*) FILTER (WHERE state = 'cancelled'),
                        count(*) FILTER (WHERE state = 'expired'),
                        (SELECT count(*) FROM outbox WHERE finished = 0)
                 FROM job INDEXED BY job_by_state";
    connection.query_row(query, [], |row| {
        Ok(Totals {
            accepted: unsigned(row.get(0)?),
            found: unsigned(row.get(1)?),
            delivered: unsigned(row.get(2)?),
            cancelled: unsigned(row.get(3)?),
            expired: unsigned(row.get(4)?),
            unsent_messages: unsigned(row.get(5)?),
        })
    })
}

impl Ledger {
    /// Replaces the sealed result kept so far. `pattern` is the rarest pattern that the new key
    /// matches. Returns `false` and changes nothing if the job is no longer accepted or has a
    /// target, or if the kept key is at least as rare.
    pub fn keep_best(&self, job: JobId, pattern: &Pattern, result: &GiftWrap) -> Result<bool, LedgerError> {
        let kept = self.write(|transaction| {
            let query = "SELECT asker, (SELECT pattern FROM best WHERE best.job = job.id) FROM job
                         WHERE id = ?1 AND state = 'accepted' AND best IS NOT NULL";
            let read = |row: &Row<'_>| Ok((row.get::<_, [u8; 32]>(0)?, row.get::<_, Option<String>>(1)?));
            let open = query_first(transaction, query, [job.0], read)?;
            let Some((asker, before)) = open else { return Ok(None) };
            if result.to.0 != asker {
                return Err(LedgerError::Misaddressed);
            }
            // If the kept pattern cannot be read, the new one replaces it.
            let before = before.and_then(|text| text.parse::<Pattern>().ok());
            if before.is_some_and(|before| before.difficulty() >= pattern.difficulty()) {
                return Ok(None);
            }
            execute(
                transaction,
                "INSERT INTO best (job, pattern, wrap, json, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (job) DO UPDATE SET pattern = ?2, wrap = ?3, json = ?4, expires_at = ?5",
                params![job.0, pattern.as_str(), result.id, result.json, seconds(result.expires_at)],
            )?;
            fault::before("keep");
            Ok(Some(()))
        })?;
        fault::after("keep");
        Ok(kept.is_some())
    }

    /// Records how long accepted jobs without a target have been searched. The time never
    /// decreases.
    pub fn record_searched(&self, searched: &[(JobId, Duration)]) -> Result<(), LedgerError> {
        let record = "INSERT INTO best (job, searched) SELECT id, ?2 FROM job
                      WHERE id = ?1 AND state = 'accepted' AND best IS NOT NULL
                      ON CONFLICT (job) DO UPDATE SET searched = max(searched, ?2)";
        self.change(|transaction| {
            for &(job, time) in searched {
                let milliseconds = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
                execute(transaction, record, params![job.0, milliseconds])?;
            }
            Ok(())
        })
    }

    /// T2 of a job without a target: the kept result becomes the job's result. Returns `false` and
    /// changes nothing if the job is no longer accepted or nothing was kept.
    pub fn deliver_best(&self, job: JobId) -> Result<bool, LedgerError> {
        let now = self.now();
        let done = self.write(|transaction| {
            let query =
                "SELECT best.wrap, best.json, best.expires_at, job.asker FROM best JOIN job ON job.id = best.job
                         WHERE best.job = ?1 AND job.state = 'accepted' AND best.wrap IS NOT NULL";
            let kept = query_first(transaction, query, [job.0], |row| {
                let expires_at = unsigned(row.get(2)?);
                Ok(GiftWrap { id: row.get(0)?, json: row.get(1)?, expires_at, to: Asker(row.get(3)?) })
            })?;
            let Some(result) = kept else { return Ok(None) };
            end_job(self, transaction, job, JobState::Found, &result, now)
        })?;
        fault::after("found");
        Ok(done.is_some())
    }
}

/// Earlier use of a half.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HalfUse {
    /// An open job searches for this half, or for a related one.
    Open,
    /// A key was found for this half, or for a related half.
    Spent,
}

impl Ledger {
    /// Earlier use of this half or a related one; `None` if it is fresh.
    pub fn half_use(&self, half: &HalfPoint) -> Result<Option<HalfUse>, LedgerError> {
        let family = half.family();
        let query = "SELECT EXISTS (SELECT 1 FROM used_half WHERE family = ?1),
                            EXISTS (SELECT 1 FROM job WHERE half_family = ?1 AND state = 'accepted')";
        let read = |row: &Row<'_>| Ok((row.get::<_, bool>(0)?, row.get::<_, bool>(1)?));
        Ok(match self.reading(|connection| connection.query_row(query, [family], read))? {
            (true, _) => Some(HalfUse::Spent),
            (false, true) => Some(HalfUse::Open),
            (false, false) => None,
        })
    }
}
