//! Requests without a target: `best words 10m`, `surprise`.

use super::decide::Decision;
use super::facts::Facts;
use super::policy;
use super::reply::{BestAcceptance, BestExplanation, Reply};
use super::request::Request;
use crate::job::{BestSearch, JobSpec};
use crate::key::HalfPoint;
use crate::ledger::Effect;
use crate::pattern::Best;
use std::time::Duration;

/// Decides about a request without a target.
pub(super) fn find_best(request: &Request, best: Best, half: Option<HalfPoint>, facts: &Facts<'_>) -> Decision {
    let is_split = half.is_some();
    if let Some(refusal) = policy::refusal_of_best(best, is_split, facts) {
        return (Effect::Nothing, Some(refusal));
    }
    let part = if is_split { facts.split_part } else { pool_part(facts) };
    let patterns = best.family.floor();
    let queue = if is_split { Duration::ZERO } else { facts.queue_for(&patterns) };
    let takes = takes(best, part, facts);
    let reply = Reply::AcceptedBest(BestAcceptance {
        job: facts.next_job,
        explanation: explanation(best, part, facts),
        rests: facts.rests(),
        queue,
        is_split,
        place: facts.split_place.filter(|_| is_split),
    });
    let expires_at = facts.now + facts.limits.give_up_after.as_secs();
    let spec = JobSpec {
        asker: request.asker,
        patterns,
        best: Some(Box::new(BestSearch::new(best))),
        half,
        encryption_key: request.encryption_key,
        subject: request.subject.clone(),
        expires_at,
        notice_at: facts.notice_at(takes.saturating_add(facts.until_hours() + queue), expires_at),
    };
    (Effect::Accept(facts.next_job, spec), Some(reply))
}

/// The answer to `explain best words 10m`.
pub(super) fn explain_best(best: Best, facts: &Facts<'_>) -> Reply {
    match policy::too_long(best, facts) {
        Some(reply) => reply,
        None => Reply::ExplainedBest(explanation(best, pool_part(facts), facts)),
    }
}

/// The share of the devices that a search without a target gets from the pool. Its patterns
/// restrict the start of a key, so the fast kernel searches for them.
fn pool_part(facts: &Facts<'_>) -> f64 {
    facts.pool_part * facts.top_words_part
}

fn explanation(best: Best, part: f64, facts: &Facts<'_>) -> BestExplanation {
    BestExplanation { best, likely: facts.rate.and_then(|rate| best.likely(rate)), takes: takes(best, part, facts) }
}

/// Time until a search ends that has the share `part` of the devices. The time that the asker named
/// is that of a search with all devices.
fn takes(best: Best, part: f64, facts: &Facts<'_>) -> Duration {
    facts.within(best.time.div_f64(part.max(0.001)))
}
