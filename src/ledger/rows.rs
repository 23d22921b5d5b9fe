//! Conversion between rows and types. An unreadable column is an error that names its place.

use super::error::LedgerError;
use super::job::{Job, JobState};
use crate::job::{Asker, JobId, JobSpec, RumorId};
use crate::key::HalfPoint;
use crate::message::Channel;
use crate::pattern::Pattern;
use rusqlite::{Connection, Params, Row};

impl JobState {
    /// The state as the column `state` has it.
    pub(super) fn word(self) -> &'static str {
        match self {
            JobState::Accepted => "accepted",
            JobState::Found => "found",
            JobState::Delivered => "delivered",
            JobState::Cancelled => "cancelled",
            JobState::Expired => "expired",
        }
    }

    /// Reads the column `state`; `None` for an unknown word.
    pub(super) fn parse(word: &str) -> Option<JobState> {
        use JobState::{Accepted, Cancelled, Delivered, Expired, Found};
        [Accepted, Found, Delivered, Cancelled, Expired].into_iter().find(|state| state.word() == word)
    }
}

/// Columns of the table `job` that [`jobs`] reads, in its order.
pub(super) const JOB_COLUMNS: &str = "job.id, job.asker, job.rumor, job.subject, job.patterns, job.state, \
     job.accepted_at, job.expires_at, job.seen_on, job.split_point, job.channel, job.notice_at";

/// Reads all jobs of a query that selects [`JOB_COLUMNS`].
pub(super) fn jobs(connection: &Connection, query: &str, values: impl Params) -> Result<Vec<Job>, LedgerError> {
    let mut statement = connection.prepare_cached(query)?;
    let mut rows = statement.query(values)?;
    let mut jobs = Vec::new();
    while let Some(row) = rows.next()? {
        jobs.push(job(row)?);
    }
    Ok(jobs)
}

/// Reads one job.
fn job(row: &Row<'_>) -> Result<Job, LedgerError> {
    let id = JobId(row.get(0)?);
    let place = |column: &str| format!("job {id}, column {column}");
    let patterns: String = row.get(4)?;
    let state: String = row.get(5)?;
    let seen_on: String = row.get(8)?;
    let split: Option<[u8; 33]> = row.get(9)?;
    let channel: String = row.get(10)?;
    let read_point =
        |bytes: [u8; 33]| HalfPoint::from_bytes(&bytes).ok_or_else(|| LedgerError::Corrupt(place("split_point")));
    let notice_at: Option<i64> = row.get(11)?;
    Ok(Job {
        id,
        rumor: RumorId(row.get(2)?),
        state: JobState::parse(&state).ok_or_else(|| LedgerError::Corrupt(place("state")))?,
        accepted_at: unsigned(row.get(6)?),
        seen_on: read_relays(&seen_on).ok_or_else(|| LedgerError::Corrupt(place("seen_on")))?,
        spec: JobSpec {
            asker: Asker(row.get(1)?),
            patterns: read_patterns(&patterns).ok_or_else(|| LedgerError::Corrupt(place("patterns")))?,
            half: split.map(read_point).transpose()?,
            channel: read_channel(&channel).ok_or_else(|| LedgerError::Corrupt(place("channel")))?,
            subject: row.get(3)?,
            expires_at: unsigned(row.get(7)?),
            notice_at: notice_at.map(unsigned),
        },
    })
}

/// Patterns separated by spaces.
pub(super) fn write_patterns(patterns: &[Pattern]) -> String {
    patterns.iter().map(Pattern::as_str).collect::<Vec<_>>().join(" ")
}

/// Reads [`write_patterns`]; `None` unless every word is a pattern in its normal spelling.
fn read_patterns(text: &str) -> Option<Vec<Pattern>> {
    text.split(' ').map(|word| Pattern::parse(word).ok().filter(|pattern| pattern.as_str() == word)).collect()
}

/// The channel as the column `channel` has it.
pub(super) fn write_channel(channel: Channel) -> &'static str {
    match channel {
        Channel::Sealed => "sealed",
        Channel::Nip04 => "nip04",
    }
}

/// Reads [`write_channel`].
fn read_channel(word: &str) -> Option<Channel> {
    [Channel::Sealed, Channel::Nip04].into_iter().find(|&channel| write_channel(channel) == word)
}

/// Relays as a JSON array.
pub(super) fn write_relays(relays: &[String]) -> String {
    serde_json::Value::from(relays).to_string()
}

/// Reads [`write_relays`].
pub(super) fn read_relays(text: &str) -> Option<Vec<String>> {
    serde_json::from_str(text).ok()
}

/// A number of SQLite as an unsigned one. A negative number reads as 0.
pub(super) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
