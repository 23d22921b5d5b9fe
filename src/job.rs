//! The description of a job that all rooms share, and its number.

pub use npubbot_vault::message::{Asker, EncryptionKey, RumorId, Ticket};

use crate::key::HalfPoint;
use crate::pattern::{Best, Difficulty, Pattern, PatternSet, Rate};
use std::fmt;
use std::time::Duration;

/// The number of a job, counted from 1 in each ledger. Askers see it as `#12`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct JobId(pub i64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// Classes of jobs by the expected time of all devices. Each class has room of its own, so a job of
/// seconds takes no seat of jobs of hours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeClass {
    /// Up to a minute.
    Minute,
    /// Up to an hour.
    Hour,
    /// Longer.
    Longer,
}

impl TimeClass {
    /// All classes. The place of a class here is its index in arrays.
    pub const EVERY: [TimeClass; 3] = [TimeClass::Minute, TimeClass::Hour, TimeClass::Longer];

    /// The class of a job.
    pub fn of(device_time: Duration) -> TimeClass {
        match device_time.as_secs_f64() {
            seconds if seconds <= 60.0 => TimeClass::Minute,
            seconds if seconds <= 3600.0 => TimeClass::Hour,
            _ => TimeClass::Longer,
        }
    }
}

/// Whose jobs come first in a search: where one start point could serve several, and in the room that
/// jobs share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Priority {
    /// A friend of the operator.
    Friend,
    /// An asker who has taken a result before.
    Known,
    /// A new asker, who did proof of work for the job.
    Paid,
    /// Another new asker.
    New,
}

impl Priority {
    /// All priorities. The place of a priority here is its index in arrays.
    pub const EVERY: [Priority; 4] = [Priority::Friend, Priority::Known, Priority::Paid, Priority::New];
}

/// A job: its patterns, its asker and its time limit.
///
/// The bot creates it, the ledger stores it, and the scheduler searches by it. Its `Debug` output
/// has neither patterns nor asker, so no log can connect the two.
#[derive(Clone, PartialEq, Eq)]
pub struct JobSpec {
    /// Receives all messages about the job.
    pub asker: Asker,
    /// The patterns, at least one. The first match of any of them ends the job, if it has a target.
    pub patterns: Vec<Pattern>,
    /// The search without a target, if the job is one: its rarest key is the result.
    pub best: Option<Box<BestSearch>>,
    /// The asker's half point, if the asker keeps half of the key. `None` for a job of the pool.
    pub half: Option<HalfPoint>,
    /// The key that messages about the job are encrypted to; `None` for the asker's own key.
    pub encryption_key: Option<EncryptionKey>,
    /// Subject of the asker's conversation, if it has one.
    pub subject: Option<String>,
    /// The job is given up at this time, in Unix seconds.
    pub expires_at: u64,
    /// The asker is told at this time, in Unix seconds, that the search takes longer than promised.
    pub notice_at: Option<u64>,
    /// The class of its expected device time, as of the acceptance.
    pub class: TimeClass,
    /// Whether it comes before other jobs, as of the acceptance.
    pub priority: Priority,
}

/// A search without a target, and its best key so far.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BestSearch {
    /// The family of keys, and the time to search.
    pub best: Best,
    /// The time searched so far, without waiting.
    pub searched: Duration,
    /// The rarest pattern that the best key so far meets; `None` without one.
    pub kept: Option<Pattern>,
}

impl BestSearch {
    /// A search that has not begun.
    pub fn new(best: Best) -> BestSearch {
        BestSearch { best, searched: Duration::ZERO, kept: None }
    }

    /// Whether a key is rarer than the best so far, if `pattern` is the rarest one that the key
    /// meets.
    pub fn is_beaten_by(&self, pattern: &Pattern) -> bool {
        self.kept.as_ref().is_none_or(|kept| pattern.difficulty() > kept.difficulty())
    }

    /// Whether the search is over: a key is kept, and the time is up or no key is rarer. While no
    /// key is kept, the search goes on to the first one.
    pub fn is_over(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| self.searched >= self.best.time || self.best.family.is_rarest(kept))
    }
}

impl JobSpec {
    /// A job of the pool without an asker and without an end, for a search on this machine.
    pub fn local(patterns: Vec<Pattern>) -> JobSpec {
        JobSpec {
            asker: Asker([0; 32]),
            patterns,
            best: None,
            half: None,
            encryption_key: None,
            subject: None,
            expires_at: u64::MAX,
            notice_at: None,
            class: TimeClass::Minute,
            priority: Priority::New,
        }
    }

    /// A job like that of [`JobSpec::local`], for a search without a target.
    pub fn local_best(best: Best) -> JobSpec {
        JobSpec { best: Some(Box::new(BestSearch::new(best))), ..JobSpec::local(best.family.floor()) }
    }

    /// Sets the patterns that a search without a target begins with, or goes on with, at this rate
    /// of all devices.
    pub fn begin(&mut self, rate: Option<Rate>) {
        let Some(search) = &self.best else { return };
        let patterns = search.best.patterns(search.kept.as_ref(), rate);
        // If no key is rarer, the job ends after the next launch, whatever patterns that launch
        // has.
        self.patterns = if patterns.is_empty() { search.best.family.floor() } else { patterns };
    }

    /// Expected number of candidates until any pattern of the job matches. Takes long to compute
    /// for thousands of patterns. `None` for a search without a target.
    pub fn difficulty(&self) -> Option<Difficulty> {
        if self.best.is_some() {
            return None;
        }
        PatternSet::new(self.patterns.clone()).difficulty()
    }
}

impl fmt::Debug for JobSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.half.is_some() { "split" } else { "pool" };
        write!(f, "JobSpec ({kind}), {} patterns", self.patterns.len())
    }
}

#[cfg(test)]
impl JobSpec {
    /// A job of the pool or, if `asker` is given, a split job at a half point of that asker.
    pub(crate) fn for_tests(texts: &[&str], asker: Option<Asker>) -> JobSpec {
        let patterns = texts.iter().map(|text| Pattern::parse(text).unwrap()).collect();
        let generator = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
        let half = |Asker(bytes): Asker| {
            let own = crate::key::Npub(bytes).to_string().parse();
            own.unwrap_or_else(|_| generator.parse().expect("the generator is a point"))
        };
        JobSpec { asker: asker.unwrap_or(Asker([0; 32])), half: asker.map(half), ..JobSpec::local(patterns) }
    }
}
