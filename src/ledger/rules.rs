//! The operator's rules for single askers, and the askers as an operator sees them.

use super::error::LedgerError;
use super::meta::unsigned;
use super::open::Ledger;
use crate::job::{Asker, JobId};
use rusqlite::params;

/// Number of the newest jobs whose askers are listed, besides the askers with open jobs.
const JOBS_LOOKED_THROUGH: i64 = 10_000;

/// An operator's rule for an asker. Ordinary askers have none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AskerRule {
    /// Messages of the asker are ignored.
    Denied,
    /// Higher limits, and no proof of work.
    Friend,
}

impl AskerRule {
    /// The word for the rule in the column `rule`.
    pub fn word(self) -> &'static str {
        match self {
            AskerRule::Denied => "denied",
            AskerRule::Friend => "friend",
        }
    }

    /// Reads the column `rule`; `None` for an unknown word.
    fn parse(word: &str) -> Option<AskerRule> {
        [AskerRule::Denied, AskerRule::Friend].into_iter().find(|rule| rule.word() == word)
    }
}

/// One asker with totals, for the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AskerTotals {
    /// The asker.
    pub asker: Asker,
    /// Accepted jobs.
    pub open_jobs: u64,
    /// Found and delivered jobs whose rows are kept.
    pub done: u64,
    /// Messages answered in the last 16 days.
    pub messages: u64,
    /// When their last job was accepted, Unix seconds.
    pub last_job_at: Option<u64>,
    /// The operator's rule.
    pub rule: Option<AskerRule>,
}

impl Ledger {
    /// All rules, except those of a later version that this version does not know.
    pub fn rules(&self) -> Result<Vec<(Asker, AskerRule)>, LedgerError> {
        self.reading(|connection| {
            let mut statement = connection.prepare_cached("SELECT asker, rule FROM rule")?;
            let rows = statement.query_map([], |row| Ok((row.get(0).map(Asker)?, row.get::<_, String>(1)?)))?;
            let rules = rows.map(|row| row.map(|(asker, word)| AskerRule::parse(&word).map(|rule| (asker, rule))));
            Ok(rules.filter_map(Result::transpose).collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Sets the rule of an asker, or removes it. A denial cancels the asker's accepted jobs;
    /// returns their numbers. A result that was found is still sent.
    pub fn set_rule(&self, asker: Asker, rule: Option<AskerRule>) -> Result<Vec<JobId>, LedgerError> {
        let now = self.now();
        let cancelled = self.write(|transaction| {
            let Some(rule) = rule else {
                transaction.execute("DELETE FROM rule WHERE asker = ?1", [asker.0])?;
                return Ok(Some(Vec::new()));
            };
            transaction.execute(
                "INSERT OR REPLACE INTO rule (asker, rule, since) VALUES (?1, ?2, ?3)",
                params![asker.0, rule.word(), now],
            )?;
            if rule != AskerRule::Denied {
                return Ok(Some(Vec::new()));
            }
            super::asker::cancel_all(transaction, asker).map(Some)
        })?;
        Ok(cancelled.unwrap_or_default())
    }

    /// Askers with an open job, a rule, or one of the 10,000 newest jobs. Returns at most `most`:
    /// those with the most open jobs first, then those with the latest job.
    pub fn list_askers(&self, most: usize) -> Result<Vec<AskerTotals>, LedgerError> {
        let query = "
            WITH listed (asker) AS (
                SELECT asker FROM job WHERE state = 'accepted'
                UNION SELECT asker FROM (SELECT asker FROM job ORDER BY id DESC LIMIT ?2)
                UNION SELECT asker FROM rule)
            SELECT asker,
                   (SELECT count(*) FROM job WHERE job.asker = listed.asker AND state = 'accepted') AS open,
                   (SELECT count(*) FROM job WHERE job.asker = listed.asker AND state IN ('found', 'delivered')),
                   (SELECT count(*) FROM seen WHERE seen.asker = listed.asker),
                   (SELECT max(accepted_at) FROM job WHERE job.asker = listed.asker) AS last,
                   (SELECT rule FROM rule WHERE rule.asker = listed.asker)
            FROM listed ORDER BY open DESC, last DESC, asker LIMIT ?1";
        self.reading(|connection| {
            let mut statement = connection.prepare_cached(query)?;
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let rows = statement.query_map(params![most, JOBS_LOOKED_THROUGH], |row| {
                Ok(AskerTotals {
                    asker: Asker(row.get(0)?),
                    open_jobs: unsigned(row.get(1)?),
                    done: unsigned(row.get(2)?),
                    messages: unsigned(row.get(3)?),
                    last_job_at: row.get::<_, Option<i64>>(4)?.map(unsigned),
                    rule: row.get::<_, Option<String>>(5)?.as_deref().and_then(AskerRule::parse),
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}
