//! Answers to `explain`, and hints to cheaper look-alikes.

use super::accepted::{accepted_by_bot, cheaper, nearest_accepted};
use super::facts::Facts;
use super::reply::{Cheaper, Explanation, Reply};
use crate::pattern::{Pattern, Rate};

/// The most patterns of one message that are explained.
const EXPLAINED: usize = 5;

/// The cheaper look-alike of a single pattern, with its expected time. `None` for several patterns.
pub(super) fn cheaper_one(patterns: &[Pattern], rate: Option<Rate>, facts: &Facts<'_>) -> Option<Cheaper> {
    let [only] = patterns else { return None };
    let pattern = cheaper(only)?;
    let expected = facts.takes(pattern.difficulty(), rate?)?.mean;
    Some(Cheaper { pattern, expected })
}

/// The meaning and the expected time of each pattern, at the rate of the pool.
pub(super) fn explain(patterns: &[Pattern], facts: &Facts<'_>) -> Reply {
    let explanation = |pattern: &Pattern| {
        let rate = facts.pool_rate(std::slice::from_ref(pattern));
        let is_accepted = accepted_by_bot(pattern);
        Explanation {
            pattern: pattern.clone(),
            expected: rate.and_then(|rate| facts.takes(pattern.difficulty(), rate)).filter(|_| is_accepted),
            is_accepted,
            nearest: if is_accepted { None } else { nearest_accepted(pattern) },
            cheaper: cheaper_one(std::slice::from_ref(pattern), rate, facts),
        }
    };
    Reply::Explained {
        explained: patterns.iter().take(EXPLAINED).map(explanation).collect(),
        more: patterns.len().saturating_sub(EXPLAINED),
    }
}
