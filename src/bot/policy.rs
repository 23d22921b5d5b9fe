//! The limits on requests, and what would be accepted instead.

use super::accepted::{
    ALL_HANDED_ON, ALL_INTERVALS, ALL_TEXT_TESTS, FEW_INTERVALS, JOB_INTERVALS, JOB_TEXT_TESTS, LITTLE_HANDED_ON,
    accepted_by_bot, handed_on_by, intervals_of, nearest_accepted, text_tests_of,
};
use super::explain::cheaper_one;
use super::facts::{Facts, SplitCost};
use super::reply::Reply;
use crate::job::JobId;
use crate::pattern::{Best, Difficulty, Pattern, Rate};
use std::collections::HashSet;
use std::time::Duration;

const DAY: u64 = 86_400;
/// The longest prefix that is accepted while no device has a measured rate. Even a slow processor
/// finds it in minutes.
const UNMEASURED_CHARACTERS: u32 = 6;
/// The longest search without a target that an asker may ask for.
pub(super) const LONGEST_BEST: Duration = Duration::from_secs(600);
/// Longest list of prefixes that is repeated in a command, in bytes.
const LONGEST_PREFIXES: usize = 300;

/// The refusal of a request, or `None` if it is accepted. `difficulty`: the common difficulty of
/// the patterns. `rate`: the rate at which the job would be searched.
pub(super) fn refusal(
    patterns: &[Pattern],
    difficulty: Difficulty,
    is_split: bool,
    rate: Option<Rate>,
    facts: &Facts<'_>,
) -> Option<Reply> {
    let limits = facts.limits;
    if let Some(pattern) = patterns.iter().find(|pattern| !accepted_by_bot(pattern)) {
        return Some(Reply::NotSearched { pattern: pattern.clone(), nearest: nearest_accepted(pattern) });
    }
    if let Some(reply) = owed(is_split, facts) {
        return Some(reply);
    }
    if patterns.len() > limits.prefixes_per_job {
        return Some(Reply::TooManyPrefixes { asked: patterns.len(), allowed: limits.prefixes_per_job });
    }
    if let Some(job) = same_request(patterns, facts).filter(|_| !is_split) {
        return Some(Reply::AlreadySearching { job });
    }
    if let Some(reply) = too_many(facts) {
        return Some(reply);
    }
    if let Some(reply) = too_wide(patterns, facts) {
        return Some(reply);
    }
    let refused = match rate {
        Some(rate) => too_hard(patterns, difficulty, is_split, rate, facts),
        None => {
            let most = Difficulty::from_bits(5 * UNMEASURED_CHARACTERS).candidates();
            (difficulty.candidates() > most).then_some(Reply::NotMeasured { characters: UNMEASURED_CHARACTERS })
        }
    };
    // The work is asked for last, so nobody does it for a request that is refused anyway.
    refused.or_else(|| facts.split_work.filter(|_| is_split).map(|cost| work_wanted(prefixes_of(patterns), cost)))
}

/// The refusal of a request without a target, or `None` if it is accepted.
pub(super) fn refusal_of_best(best: Best, is_split: bool, facts: &Facts<'_>) -> Option<Reply> {
    let same = facts
        .asker
        .open
        .iter()
        .find(|job| job.spec.half.is_none() && job.spec.best.as_ref().is_some_and(|search| search.best == best));
    owed(is_split, facts)
        .or_else(|| too_long(best, facts))
        .or_else(|| same.filter(|_| !is_split).map(|job| Reply::AlreadySearching { job: job.id }))
        .or_else(|| too_many(facts))
        .or_else(|| too_wide(&best.family.floor(), facts))
        .or_else(|| facts.split_work.filter(|_| is_split).map(|cost| work_wanted(best.to_string(), cost)))
}

/// The refusal of a search without a target that takes too long: longer than [`LONGEST_BEST`], or
/// than a search with a target may take.
pub(super) fn too_long(best: Best, facts: &Facts<'_>) -> Option<Reply> {
    let limit = LONGEST_BEST.min(facts.limits.longest_expected_time);
    (best.time > limit).then_some(Reply::BestTooLong { best: Best { time: limit, ..best } })
}

/// The refusal for an asker who owes work, or whose half was used.
fn owed(is_split: bool, facts: &Facts<'_>) -> Option<Reply> {
    let used = facts.half.filter(|_| is_split);
    facts.owes.map(Reply::WorkWanted).or_else(|| used.map(Reply::HalfUsed))
}

/// The refusal for an asker who has reached the limit on open or daily jobs.
fn too_many(facts: &Facts<'_>) -> Option<Reply> {
    let limits = facts.limits;
    if facts.asker.open.len() >= limits.open_jobs_per_asker {
        let open = facts.asker.open.iter().map(|job| job.id).collect();
        return Some(Reply::TooManyOpen { open, allowed: limits.open_jobs_per_asker });
    }
    let today = &facts.asker.accepted_last_day;
    if today.len() >= limits.jobs_per_day {
        // The next job is possible once fewer than the allowed number are younger than a day. That
        // is so when the job accepted at this time is a day old.
        let at = today.get(today.len() - limits.jobs_per_day).copied().unwrap_or(facts.now);
        let wait = (at + DAY).saturating_sub(facts.now);
        return Some(Reply::TooManyToday { allowed: limits.jobs_per_day, wait_seconds: wait });
    }
    None
}

/// The patterns as text for a command line, or a placeholder if that is too long.
fn prefixes_of(patterns: &[Pattern]) -> String {
    let prefixes = patterns.iter().map(quoted).collect::<Vec<_>>().join(" ");
    if prefixes.len() > LONGEST_PREFIXES { "PREFIX...".to_owned() } else { prefixes }
}

/// The refusal of a split request that lacks proof of work, with the command that does the work.
fn work_wanted(prefixes: String, SplitCost { bits, bot }: SplitCost) -> Reply {
    let command = format!("npubbot split new {prefixes} --out half.age --work {bits} --bot {bot}");
    Reply::SplitWorkWanted { bits, command }
}

/// A pattern, quoted for a shell if necessary.
fn quoted(pattern: &Pattern) -> String {
    match pattern.prefix() {
        Some(prefix) => prefix.to_owned(),
        None => format!("'{pattern}'"),
    }
}

/// The refusal of a job that has too many intervals, tests of whole texts or keys to check in full,
/// alone or together with the open jobs.
fn too_wide(patterns: &[Pattern], facts: &Facts<'_>) -> Option<Reply> {
    let (intervals, tests, handed_on) = (intervals_of(patterns), text_tests_of(patterns), handed_on_by(patterns));
    if intervals > JOB_INTERVALS {
        return Some(Reply::TooWide { asked: intervals, allowed: JOB_INTERVALS });
    }
    if tests > JOB_TEXT_TESTS {
        return Some(Reply::TooManyEnds { asked: tests, allowed: JOB_TEXT_TESTS });
    }
    let is_full = intervals > FEW_INTERVALS && facts.intervals + intervals > ALL_INTERVALS;
    let has_no_test = tests > 0 && facts.text_tests + tests > ALL_TEXT_TESTS;
    let is_busy = handed_on > LITTLE_HANDED_ON && facts.handed_on + handed_on > ALL_HANDED_ON;
    (is_full || has_no_test || is_busy).then_some(Reply::TooWideNow)
}

/// The asker's open job of the pool for the same patterns.
fn same_request(patterns: &[Pattern], facts: &Facts<'_>) -> Option<JobId> {
    let requested: HashSet<&Pattern> = patterns.iter().collect();
    let in_pool = facts.asker.open.iter().filter(|job| job.spec.half.is_none() && job.spec.best.is_none());
    in_pool.into_iter().find(|job| job.spec.patterns.iter().collect::<HashSet<_>>() == requested).map(|job| job.id)
}

/// The refusal of a request that takes too long.
fn too_hard(
    patterns: &[Pattern],
    difficulty: Difficulty,
    is_split: bool,
    rate: Rate,
    facts: &Facts<'_>,
) -> Option<Reply> {
    let limit = facts.limits.longest_expected_time;
    // The time until the hours begin does not count: a bot that searches at night accepts requests
    // by day.
    let expected = facts.takes(difficulty, rate)?.mean;
    if expected <= limit {
        return None;
    }
    // The longest single prefix that is accepted now; 0 if even one character takes too long.
    let of_prefixes = if is_split { facts.split_rate(&[], facts.split_part) } else { facts.pool_rate(&[]) };
    let of_prefixes = of_prefixes.unwrap_or(rate);
    let within = |characters: &u32| {
        let difficulty = Difficulty::from_bits(5 * characters);
        facts.takes(difficulty, of_prefixes).is_some_and(|takes| takes.mean <= limit)
    };
    let characters = (1..=50).take_while(within).last().unwrap_or(0);
    // The look-alike is shown in a command without a half, so split requests get none.
    let hinted = if is_split { &[] } else { patterns };
    let cheaper = cheaper_one(hinted, Some(rate), facts).filter(|cheaper| cheaper.expected <= limit);
    Some(Reply::TooHard { expected, limit, characters, cheaper })
}
