//! Public events that wait for their relays, and the totals a day that the daily post tells. A newer
//! event replaces the older one of its topic.

use super::error::LedgerError;
use super::open::Ledger;
use super::rows::{
    DAY, Kind, read_meta, read_relays, seconds, set_aside, unreadable, unsigned, write_meta, write_relays,
};
use crate::hours::date;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde::{Deserialize, Serialize};

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
        self.write(|transaction| replace(transaction, post, now).map(Some))?;
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
            replace(transaction, post, now).map(Some)
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
        self.reading(|connection| due(connection, now))
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
fn replace(transaction: &Transaction<'_>, post: &Post, now: i64) -> Result<(), LedgerError> {
    transaction.execute("DELETE FROM post WHERE topic = ?1", [&post.topic])?;
    transaction
        .prepare_cached("INSERT INTO post (topic, json, relays, queued_at, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![post.topic, post.json, write_relays(&post.relays), now, post.expires_at.map(seconds)])?;
    Ok(())
}

/// Events that at least one relay does not have yet. Unreadable rows are set aside.
fn due(connection: &Connection, now: i64) -> Result<Vec<DuePost>, LedgerError> {
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
    set_aside(connection, Kind::Post, &set_asides, now);
    Ok(due)
}

/// Number of days that are kept.
const DAYS_KEPT: i64 = 30;

/// Totals of one day (UTC).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct DayFigures {
    /// The day: `2026-11-23`.
    pub date: String,
    /// Candidates tested.
    pub candidates: u64,
    /// Jobs accepted.
    pub jobs_accepted: u64,
    /// Results delivered.
    pub jobs_delivered: u64,
}

impl Ledger {
    /// Adds tested candidates to today's total.
    pub fn count_candidates(&self, candidates: u64) -> Result<(), LedgerError> {
        let today = self.now() / DAY;
        self.write(|transaction| {
            transaction
                .prepare_cached(
                    "INSERT INTO day (day, candidates) VALUES (?1, ?2)
                     ON CONFLICT (day) DO UPDATE SET candidates = candidates + ?2",
                )?
                .execute(params![today, i64::try_from(candidates).unwrap_or(i64::MAX)])?;
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
        let query = "SELECT candidates, accepted, delivered FROM day WHERE day = ?1";
        let figures = self.reading(|connection| {
            let mut statement = connection.prepare_cached(query)?;
            let figures = statement.query_row([day], |row| {
                Ok(DayFigures {
                    candidates: unsigned(row.get(0)?),
                    jobs_accepted: unsigned(row.get(1)?),
                    jobs_delivered: unsigned(row.get(2)?),
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
