//! What one asker may ask for, and what would be accepted instead.

use super::decide::Context;
use super::reply::Reply;
use crate::ids::JobId;
use crate::pattern::{Difficulty, Pattern};
use std::collections::HashSet;

const DAY: u64 = 86_400;

/// The refusal of a wish, or `None` when it is welcome.
pub(super) fn refusal(patterns: &[Pattern], context: &Context<'_>) -> Option<Reply> {
    let limits = context.limits;
    if patterns.len() > limits.prefixes_per_job {
        return Some(Reply::TooManyPrefixes { asked: patterns.len(), allowed: limits.prefixes_per_job });
    }
    if let Some(job) = same_wish(patterns, context) {
        return Some(Reply::AlreadySearching { job });
    }
    if context.asker.open.len() >= limits.open_jobs_per_asker {
        let open = context.asker.open.iter().map(|job| job.id).collect();
        return Some(Reply::TooManyOpen { open, allowed: limits.open_jobs_per_asker });
    }
    let today = &context.asker.accepted_last_day;
    if today.len() >= limits.jobs_per_day {
        // The next works when one more than the allowed number has left the last day.
        let at = today.get(today.len() - limits.jobs_per_day).copied().unwrap_or(context.now);
        let wait = (at + DAY).saturating_sub(context.now);
        return Some(Reply::TooManyToday { allowed: limits.jobs_per_day, wait_seconds: wait });
    }
    too_hard(patterns, context)
}

/// The open job that asks for the very same.
fn same_wish(patterns: &[Pattern], context: &Context<'_>) -> Option<JobId> {
    let wished: HashSet<&Pattern> = patterns.iter().collect();
    let same = context.asker.open.iter().find(|job| job.patterns.iter().collect::<HashSet<_>>() == wished)?;
    Some(same.id)
}

fn too_hard(patterns: &[Pattern], context: &Context<'_>) -> Option<Reply> {
    let rate = context.rate?;
    let limit = context.limits.longest_expected_time;
    let expected = Difficulty::any_of(patterns.iter().map(Pattern::difficulty))?.expected_time(rate)?;
    if expected <= limit {
        return None;
    }
    // The longest single prefix that is accepted now; 0 where even one character takes too long.
    let within = |characters: &u32| {
        let difficulty = Difficulty::from_bits(5 * characters);
        difficulty.expected_time(rate).is_some_and(|time| time <= limit)
    };
    let characters = (1..=50).take_while(within).last().unwrap_or(0);
    Some(Reply::TooHard { expected, limit, rate, characters })
}
