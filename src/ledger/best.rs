//! Jobs without a target. The ledger keeps the sealed result of the best key so far. A rarer key's
//! result replaces it; the last one becomes the job's result when the time is up.

use super::error::LedgerError;
use super::job::JobState;
use super::jobs::end;
use super::meta::{seconds, unsigned};
use super::open::Ledger;
use crate::fault::{self, Step};
use crate::job::{Asker, JobId};
use crate::message::GiftWrap;
use crate::pattern::Pattern;
use rusqlite::{OptionalExtension, params};
use std::time::Duration;

impl Ledger {
    /// Replaces the sealed result kept so far. `pattern` is the rarest pattern that the new key
    /// matches. Returns `false` and changes nothing if the job is no longer accepted or has a
    /// target, or if the kept key is at least as rare.
    ///
    /// Errors: [`LedgerError::Misaddressed`] if the result is sealed to somebody other than the
    /// job's asker.
    pub fn keep_best(&self, job: JobId, pattern: &Pattern, result: &GiftWrap) -> Result<bool, LedgerError> {
        let kept = self.write(|transaction| {
            let open: Option<([u8; 32], Option<String>)> = transaction
                .prepare_cached(
                    "SELECT asker, (SELECT pattern FROM best WHERE best.job = job.id) FROM job
                     WHERE id = ?1 AND state = 'accepted' AND best IS NOT NULL",
                )?
                .query_row([job.0], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let Some((asker, before)) = open else { return Ok(None) };
            if result.to.0 != asker {
                return Err(LedgerError::Misaddressed);
            }
            // If the kept pattern cannot be read, the new one replaces it.
            let before = before.and_then(|text| text.parse::<Pattern>().ok());
            if before.is_some_and(|before| before.difficulty() >= pattern.difficulty()) {
                return Ok(None);
            }
            transaction
                .prepare_cached(
                    "INSERT INTO best (job, pattern, wrap, json, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (job) DO UPDATE SET pattern = ?2, wrap = ?3, json = ?4, expires_at = ?5",
                )?
                .execute(params![job.0, pattern.as_str(), result.id, result.json, seconds(result.expires_at)])?;
            fault::before(Step::Keep);
            Ok(Some(()))
        })?;
        fault::after(Step::Keep);
        Ok(kept.is_some())
    }

    /// Records how long accepted jobs without a target have been searched. The time never
    /// decreases.
    pub fn record_searched(&self, searched: &[(JobId, Duration)]) -> Result<(), LedgerError> {
        self.write(|transaction| {
            let mut record = transaction.prepare_cached(
                "INSERT INTO best (job, searched) SELECT id, ?2 FROM job
                 WHERE id = ?1 AND state = 'accepted' AND best IS NOT NULL
                 ON CONFLICT (job) DO UPDATE SET searched = max(searched, ?2)",
            )?;
            for &(job, time) in searched {
                record.execute(params![job.0, milliseconds(time)])?;
            }
            Ok((!searched.is_empty()).then_some(()))
        })?;
        Ok(())
    }

    /// T2 of a job without a target: the kept result becomes the job's result. Returns `false` and
    /// changes nothing if the job is no longer accepted or nothing was kept.
    pub fn deliver_best(&self, job: JobId) -> Result<bool, LedgerError> {
        let now = self.now();
        let done = self.write(|transaction| {
            let kept = transaction
                .prepare_cached(
                    "SELECT best.wrap, best.json, best.expires_at, job.asker FROM best JOIN job ON job.id = best.job
                     WHERE best.job = ?1 AND job.state = 'accepted' AND best.wrap IS NOT NULL",
                )?
                .query_row([job.0], |row| {
                    let expires_at = unsigned(row.get(2)?);
                    Ok(GiftWrap { id: row.get(0)?, json: row.get(1)?, expires_at, to: Asker(row.get(3)?) })
                })
                .optional()?;
            let Some(result) = kept else { return Ok(None) };
            end(self, transaction, job, JobState::Found, &result, now)
        })?;
        fault::after(Step::Found);
        Ok(done.is_some())
    }
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
