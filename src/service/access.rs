//! Applies the operator's rules for askers: messages of a denied asker are ignored, and a friend
//! has higher limits.
//!
//! The ledger keeps the rules. Every message is checked against them, so a copy is in memory. Only
//! the operator adds rules, so strangers cannot make the table grow.

use crate::config::Limits;
use crate::job::{Asker, JobId};
use crate::ledger::{AskerRule, Ledger, LedgerError};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Factor by which a friend's limits on open jobs and on jobs a day exceed those of other askers.
pub(super) const FRIEND_FACTOR: usize = 10;

/// The rules, and a count of ignored messages. Cheap to clone; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Access(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    rules: RwLock<HashMap<Asker, AskerRule>>,
    ignored: AtomicU64,
}

impl Access {
    /// Loads the rules from the ledger.
    pub fn load(ledger: &Ledger) -> Result<Access, LedgerError> {
        let rules = RwLock::new(ledger.rules()?.into_iter().collect());
        Ok(Access(Arc::new(Shared { rules, ignored: AtomicU64::new(0) })))
    }

    /// Sets the rule of an asker, here and in the ledger, or removes it. Returns the jobs that a
    /// denial cancelled. A message being answered at this moment may still become a job.
    pub fn set(&self, ledger: &Ledger, asker: Asker, rule: Option<AskerRule>) -> Result<Vec<JobId>, LedgerError> {
        let cancelled = ledger.set_rule(asker, rule)?;
        let mut rules = self.0.rules.write().unwrap_or_else(PoisonError::into_inner);
        match rule {
            Some(rule) => rules.insert(asker, rule),
            None => rules.remove(&asker),
        };
        Ok(cancelled)
    }

    /// Whether the messages of this asker are ignored. If so, the call counts one ignored message.
    pub fn ignores(&self, asker: Asker) -> bool {
        let is_denied = self.rule(asker) == Some(AskerRule::Denied);
        if is_denied {
            self.0.ignored.fetch_add(1, Ordering::Relaxed);
        }
        is_denied
    }

    /// Messages ignored since the service started.
    pub fn ignored(&self) -> u64 {
        self.0.ignored.load(Ordering::Relaxed)
    }

    /// Whether the asker is a friend.
    pub fn is_friend(&self, asker: Asker) -> bool {
        self.rule(asker) == Some(AskerRule::Friend)
    }

    /// The limits for an asker: the configured ones, with some raised for a friend.
    pub fn limits<'a>(&self, asker: Asker, limits: &'a Limits) -> Cow<'a, Limits> {
        if !self.is_friend(asker) {
            return Cow::Borrowed(limits);
        }
        Cow::Owned(Limits {
            open_jobs_per_asker: limits.open_jobs_per_asker.saturating_mul(FRIEND_FACTOR),
            jobs_per_day: limits.jobs_per_day.saturating_mul(FRIEND_FACTOR),
            ..limits.clone()
        })
    }

    fn rule(&self, asker: Asker) -> Option<AskerRule> {
        self.0.rules.read().unwrap_or_else(PoisonError::into_inner).get(&asker).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::config::Config;

    fn asker(number: u8) -> Asker {
        Asker([number; 32])
    }

    #[test]
    fn only_messages_of_denied_askers_are_ignored_and_each_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(folder.path(), Clock::System).unwrap();
        let access = Access::load(&ledger).unwrap();
        access.set(&ledger, asker(1), Some(AskerRule::Denied)).unwrap();
        access.set(&ledger, asker(2), Some(AskerRule::Friend)).unwrap();
        assert_eq!([1, 2, 3, 1].map(|number| access.ignores(asker(number))), [true, false, false, true]);
        assert_eq!(access.ignored(), 2);
        let again = Access::load(&ledger).unwrap();
        assert!(again.ignores(asker(1)) && again.is_friend(asker(2)), "the ledger keeps the rules");
        again.set(&ledger, asker(1), None).unwrap();
        assert!(!again.ignores(asker(1)));
    }

    #[test]
    fn a_friends_limits_are_bounded_and_those_of_others_as_configured() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(folder.path(), Clock::System).unwrap();
        let access = Access::load(&ledger).unwrap();
        access.set(&ledger, asker(2), Some(AskerRule::Friend)).unwrap();
        let limits = Config::embedded_default().unwrap().limits;
        let figures = |number| {
            let limits = access.limits(asker(number), &limits);
            (limits.open_jobs_per_asker, limits.jobs_per_day, limits.prefixes_per_job, limits.longest_expected_time)
        };
        let (open, day, prefixes, longest) = figures(1);
        assert_eq!((open, day), (limits.open_jobs_per_asker, limits.jobs_per_day));
        assert_eq!(figures(2), (10 * open, 10 * day, prefixes, longest));
    }
}
