//! The facts that a decision depends on, the limits on requests, and what would be accepted instead.

use super::decide::cheaper_one;
use super::price::{LEAST_BITS, Place, owed};
use super::reply::BotReply;
use crate::config::Limits;
use crate::hours::{Calendar, Hours};
use crate::job::{Asker, JobId, Priority};
use crate::key::Npub;
use crate::ledger::{AskerView, HalfUse, Job};
use crate::pattern::{
    Best, Difficulty, Effort, NINETY_FIVE_PERCENT, Pattern, PatternKind, PatternSet, Rate, rate_in_turns,
};
use crate::scheduler::{PatternLoad, Shares, WaitEstimate};
use std::collections::HashSet;
use std::time::Duration;

/// Waits shorter than this are not mentioned.
const SHORT_WAIT: Duration = Duration::from_secs(2);

/// Multiple of the promised time after which an asker is told that a job is late.
const HALF_AS_LONG_AGAIN: f64 = 1.5;

/// Everything that a decision depends on, besides the message.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The limits of the configuration.
    pub limits: &'a Limits,
    /// Jobs and keys of the asker.
    pub asker: &'a AskerView,
    /// The open jobs of all askers, and their shares of the devices.
    pub shares: Shares,
    /// The measured rate of all devices together; `None` before the first measurement.
    pub rate: Option<Rate>,
    /// The rate of all devices together when they compare whole keys.
    pub whole_keys_rate: Option<Rate>,
    /// The number of the job, if the message becomes one.
    pub next_job: JobId,
    /// The earlier use of the half in a split request; `None` if it was not used before.
    pub half: Option<HalfUse>,
    /// The time that easy requests of this asker wait, if all devices search for the pool: a launch
    /// yields a limited number of keys.
    pub queue: WaitEstimate,
    /// The address of the bot's page, if it has one.
    pub page: Option<&'a str>,
    /// Whether the bot serves friends only, and this asker is none.
    pub is_stranger: bool,
    /// The part of their budget that results take which nobody takes, from 0.
    pub undelivered: f64,
    /// The bot's public key.
    pub bot: Npub,
    /// Whether a job of the asker comes before those of others. Friends owe no work.
    pub priority: Priority,
    /// Whether a job costs this asker work because they are new and many new ones ask.
    pub is_crowded_out: bool,
    /// Bits of the proof of work in the message that was not spent before; 0 without one.
    pub paid: u32,
    /// The hours at which the devices search; `None` for always.
    pub hours: Option<&'a Hours>,
    /// Whether the search is paused with no known end: by the operator, for heat or on a battery.
    pub is_stopped: bool,
    /// The current time, in Unix seconds.
    pub now: u64,
}

impl Facts<'_> {
    pub(super) fn open_jobs(&self) -> usize {
        self.shares.pool_jobs + self.shares.split_jobs
    }

    /// The time that older easy requests take before one with these patterns. One easy prefix is
    /// enough to wait, because its key is found before those of the hard ones.
    fn easy_wait(&self, patterns: &[Pattern]) -> Duration {
        match patterns.iter().any(|pattern| pattern.bits() <= self.queue.up_to_bits) {
            true => self.queue.wait.div_f64(self.shares.pool_part.max(0.01)),
            false => Duration::ZERO,
        }
    }

    /// The time until a request is searched; zero if that is less than [`SHORT_WAIT`].
    pub(super) fn queue_for(&self, patterns: &[Pattern]) -> Duration {
        Some(self.easy_wait(patterns)).filter(|wait| *wait >= SHORT_WAIT).unwrap_or_default()
    }

    /// The place that is left for a job with these patterns.
    pub(super) fn place_for(
        &self,
        patterns: &[Pattern],
        is_best: bool,
        is_split: bool,
        device_time: Duration,
    ) -> Place {
        let wait = if is_split || is_best { Duration::ZERO } else { self.easy_wait(patterns) };
        Place::new(&PatternLoad::new(patterns, is_best, is_split), device_time, wait, self)
    }

    /// The time at which an asker is told that a job is late, in Unix seconds. `None` if the job
    /// has expired by then.
    pub(super) fn notice_at(&self, promised: Duration, expires_at: u64) -> Option<u64> {
        let after = promised.mul_f64(HALF_AS_LONG_AGAIN).as_secs().max(60);
        Some(self.now.saturating_add(after)).filter(|&at| at < expires_at)
    }

    /// The rate of a split job with this share of the devices. Its launches compare whole keys if
    /// one of its patterns needs that.
    pub(super) fn split_rate(&self, patterns: &[Pattern], part: f64) -> Option<Rate> {
        let needs_whole = patterns.iter().any(|pattern| !pattern.begins_selectively());
        let rate = if needs_whole { self.whole_keys_rate } else { self.rate };
        rate.map(|Rate(rate)| Rate(rate * part))
    }

    /// The rate of a job of the pool. Patterns for the fast kernel and patterns that need whole
    /// keys compared take turns.
    pub(super) fn pool_rate(&self, patterns: &[Pattern]) -> Option<Rate> {
        let part_of = |rate: Option<Rate>, part: f64| rate.map(|Rate(rate)| Rate(rate * part * self.shares.pool_part));
        let is_whole = |pattern: &Pattern| !pattern.begins_selectively();
        match (patterns.iter().any(is_whole), patterns.iter().all(is_whole)) {
            (false, _) => part_of(self.rate, self.shares.top_words_part),
            (true, true) => part_of(self.whole_keys_rate, self.shares.whole_keys_part),
            // This job has patterns of both kinds, so the kinds share the pool.
            (true, false) => {
                let (top_words, whole_keys) = (part_of(self.rate, 1.0)?, part_of(self.whole_keys_rate, 1.0)?);
                rate_in_turns(patterns, top_words, whole_keys, &mut effort())
            }
        }
    }
}

/// The time that a search takes once it can begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Takes {
    /// The mean time.
    pub mean: Duration,
    /// The time within which 95 of 100 searches end.
    pub most: Duration,
}

/// The reason why nothing is searched now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rests {
    /// The hours of the search begin at this time, Unix seconds.
    Until(u64),
    /// Nobody knows when the search goes on.
    Now,
}

impl Takes {
    /// A search that goes on day and night.
    pub fn without_pause(mean: Duration) -> Takes {
        let most = Duration::try_from_secs_f64(mean.as_secs_f64() * NINETY_FIVE_PERCENT).unwrap_or(Duration::MAX);
        Takes { mean, most }
    }
}

impl Facts<'_> {
    fn calendar(&self) -> Option<Calendar> {
        self.hours.map(|hours| hours.calendar(self.now))
    }

    /// The time that a search of this difficulty takes; `None` if nothing searches.
    pub(super) fn takes(&self, difficulty: Difficulty, rate: Rate) -> Option<Takes> {
        let Takes { mean, most } = Takes::without_pause(difficulty.expected_time(rate)?);
        Some(match self.calendar() {
            Some(calendar) => Takes { mean: calendar.mean(mean), most: calendar.within(most) },
            None => Takes { mean, most },
        })
    }

    /// The time until the devices have searched for this long.
    pub(super) fn within(&self, time: Duration) -> Duration {
        self.calendar().map_or(time, |calendar| calendar.within(time))
    }

    /// The time until the hours of the search begin; zero within them.
    pub(super) fn until_hours(&self) -> Duration {
        self.calendar().map_or(Duration::ZERO, |calendar| calendar.wait())
    }

    /// Time since `since` (Unix seconds) during which the hours allowed the devices to search.
    pub(super) fn searched_since(&self, since: u64) -> Duration {
        let whole = self.now.saturating_sub(since);
        Duration::from_secs(self.hours.map_or(whole, |hours| hours.between(since, self.now)))
    }

    /// The reason why nothing is searched now; `None` if the devices search.
    pub(super) fn rests(&self) -> Option<Rests> {
        let wait = self.until_hours().as_secs();
        match (self.is_stopped, wait) {
            (true, _) => Some(Rests::Now),
            (false, 0) => None,
            (false, wait) => Some(Rests::Until(self.now.saturating_add(wait))),
        }
    }
}

const DAY: u64 = 86_400;
/// The longest prefix that is accepted while no device has a measured rate. Even a slow processor
/// finds it in minutes.
const UNMEASURED_CHARACTERS: u32 = 6;
/// The longest search without a target that an asker may ask for.
pub(super) const LONGEST_BEST: Duration = Duration::from_secs(600);

/// The refusal of a request, or `None` if it is accepted. `difficulty`: the common difficulty of
/// the patterns. `rate`: the rate at which the job would be searched.
pub(super) fn refusal(
    author: Asker,
    patterns: &[Pattern],
    difficulty: Difficulty,
    is_split: bool,
    rate: Option<Rate>,
    place: &Place,
    facts: &Facts<'_>,
) -> Option<BotReply> {
    let limits = facts.limits;
    if let Some(pattern) = patterns.iter().find(|pattern| !accepted_by_bot(pattern)) {
        return Some(BotReply::NotSearched { pattern: pattern.clone(), nearest: nearest_accepted(pattern) });
    }
    if let Some(reply) = not_served(is_split, facts) {
        return Some(reply);
    }
    if patterns.len() > limits.prefixes_per_job {
        return Some(BotReply::TooManyPrefixes { asked: patterns.len(), allowed: limits.prefixes_per_job });
    }
    if let Some(job) = same_request(patterns, facts).filter(|_| !is_split) {
        return Some(BotReply::AlreadySearching { job });
    }
    if let Some(reply) = too_many(facts) {
        return Some(reply);
    }
    if let Some(reply) = too_wide(patterns) {
        return Some(reply);
    }
    let refused = match rate {
        Some(rate) => too_hard(patterns, difficulty, is_split, rate, facts),
        None => {
            let most = Difficulty::from_bits(5 * UNMEASURED_CHARACTERS).candidates();
            (difficulty.candidates() > most).then_some(BotReply::NotMeasured { characters: UNMEASURED_CHARACTERS })
        }
    };
    // The work is asked for last, so nobody does it for a request that is refused anyway.
    refused.or_else(|| no_place(author, place, facts))
}

/// The refusal of a request without a target, or `None` if it is accepted.
pub(super) fn refusal_of_best(
    author: Asker,
    best: Best,
    is_split: bool,
    place: &Place,
    facts: &Facts<'_>,
) -> Option<BotReply> {
    let open = &facts.asker.open;
    let is_same = |job: &&Job| job.spec.half.is_none() && job.spec.best.as_ref().is_some_and(|own| own.best == best);
    not_served(is_split, facts)
        .or_else(|| too_long(best, facts))
        .or_else(|| {
            open.iter().find(is_same).filter(|_| !is_split).map(|job| BotReply::AlreadySearching { job: job.id })
        })
        .or_else(|| too_many(facts))
        .or_else(|| no_place(author, place, facts))
}

/// The refusal of a job for which there is no place, or of a request that lacks work.
fn no_place(author: Asker, place: &Place, facts: &Facts<'_>) -> Option<BotReply> {
    let has_room = facts.undelivered < 0.5 || facts.priority <= Priority::Known;
    let least = if facts.is_crowded_out || !has_room { LEAST_BITS } else { 0 };
    place.refusal(author, facts).or_else(|| owed(least, author, facts))
}

/// The refusal of a search without a target that takes too long: longer than [`LONGEST_BEST`], or
/// than a search with a target may take.
pub(super) fn too_long(best: Best, facts: &Facts<'_>) -> Option<BotReply> {
    let limit = LONGEST_BEST.min(facts.limits.longest_expected_time);
    (best.time > limit).then_some(BotReply::BestTooLong { best: Best { time: limit, ..best } })
}

/// The refusal for an asker who is not served, or whose half was used.
fn not_served(is_split: bool, facts: &Facts<'_>) -> Option<BotReply> {
    let used = facts.half.filter(|_| is_split).map(BotReply::HalfUsed);
    if facts.is_stranger { Some(BotReply::FriendsOnly) } else { used }
}

/// The part of the budget for undelivered results from which known askers get no job either.
const UNDELIVERED_OF_KNOWN: f64 = 2.0;

/// The refusal for an asker who has reached the limit on open or daily jobs, or whose last result
/// nobody takes.
fn too_many(facts: &Facts<'_>) -> Option<BotReply> {
    let (limits, asker) = (facts.limits, facts.asker);
    let with_undelivered = asker.open.len() + asker.undelivered;
    let is_untaken = asker.untaken && facts.priority != Priority::Friend;
    if is_untaken || (asker.undelivered > 0 && with_undelivered >= limits.open_jobs_per_asker) {
        return Some(BotReply::ResultNotTaken);
    }
    let room = match facts.priority {
        // Friends are few, and so are the jobs of each.
        Priority::Friend => f64::INFINITY,
        Priority::Known => UNDELIVERED_OF_KNOWN,
        Priority::Paid | Priority::New => 1.0,
    };
    if facts.undelivered >= room {
        return Some(BotReply::TooManyNotTaken);
    }
    if facts.asker.open.len() >= limits.open_jobs_per_asker {
        let open = facts.asker.open.iter().map(|job| job.id).collect();
        return Some(BotReply::TooManyOpen { open, allowed: limits.open_jobs_per_asker });
    }
    let today = &facts.asker.accepted_last_day;
    if today.len() >= limits.jobs_per_day {
        // The next job is possible once fewer than the allowed number are younger than a day. That
        // is so when the job accepted at this time is a day old.
        let at = today.get(today.len() - limits.jobs_per_day).copied().unwrap_or(facts.now);
        let wait = (at + DAY).saturating_sub(facts.now);
        return Some(BotReply::TooManyToday { allowed: limits.jobs_per_day, wait_seconds: wait });
    }
    None
}

/// The refusal of a job that has too many intervals or tests of whole texts by itself.
fn too_wide(patterns: &[Pattern]) -> Option<BotReply> {
    let load = PatternLoad::new(patterns, false, false);
    if load.intervals > JOB_INTERVALS {
        return Some(BotReply::TooWide { asked: load.intervals, allowed: JOB_INTERVALS });
    }
    let asked = load.text_tests;
    (asked > JOB_TEXT_TESTS).then_some(BotReply::TooManyEnds { asked, allowed: JOB_TEXT_TESTS })
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
) -> Option<BotReply> {
    let limit = facts.limits.longest_expected_time;
    // The time until the hours begin does not count: a bot that searches at night accepts requests
    // by day.
    let expected = facts.takes(difficulty, rate)?.mean;
    if expected <= limit {
        return None;
    }
    // The longest single prefix that is accepted now; 0 if even one character takes too long.
    let of_prefixes =
        if is_split { facts.split_rate(&[], facts.shares.part_of_one_more) } else { facts.pool_rate(&[]) };
    let of_prefixes = of_prefixes.unwrap_or(rate);
    let within = |characters: &u32| {
        let difficulty = Difficulty::from_bits(5 * characters);
        facts.takes(difficulty, of_prefixes).is_some_and(|takes| takes.mean <= limit)
    };
    let characters = (1..=50).take_while(within).last().unwrap_or(0);
    // The look-alike is shown in a command without a half, so split requests get none.
    let hinted = if is_split { &[] } else { patterns };
    let cheaper = cheaper_one(hinted, Some(rate), facts).filter(|cheaper| cheaper.expected <= limit);
    Some(BotReply::TooHard { expected, limit, characters, cheaper })
}

/// The most steps for computing the difficulties in one message. They take a few milliseconds.
const DIFFICULTY_STEPS: usize = 1 << 14;
/// Limit on the intervals of one job. The longest list of words has 1,794 intervals.
pub(super) const JOB_INTERVALS: usize = 4096;

/// Limit on the tests of whole texts of one job.
pub(super) const JOB_TEXT_TESTS: usize = 8;

/// A budget of steps for the difficulties in one message. MessageReading the message and deciding about it
/// have a budget each.
pub(super) fn effort() -> Effort {
    Effort::steps(DIFFICULTY_STEPS)
}

/// Whether the bot searches for a pattern: the devices can search for it, and it needs few tests of
/// whole texts.
pub fn accepted_by_bot(pattern: &Pattern) -> bool {
    pattern.is_searchable() && pattern.text_test_count() <= JOB_TEXT_TESTS
}

/// The accepted pattern nearest to a refused one.
pub fn nearest_accepted(pattern: &Pattern) -> Option<Pattern> {
    let nearest = pattern.nearest_searchable().filter(accepted_by_bot);
    nearest.or_else(|| all_at_the_start(pattern).filter(accepted_by_bot))
}

/// A pattern with the characters of this one at the start of the key, without open places. Of
/// several parts elsewhere in the key, only the longest is used.
fn all_at_the_start(pattern: &Pattern) -> Option<Pattern> {
    let text = match pattern.kind() {
        PatternKind::Parts { start, middle, end, .. } => {
            let parts = middle.iter().chain([end]).map(|part| part.trim_start_matches('~'));
            format!("{start}{}", parts.max_by_key(|part| part.len())?)
        }
        PatternKind::Open | PatternKind::LookAlike => pattern.as_str().replace('?', ""),
        PatternKind::EqualAnywhere(count) => format!("={count}"),
        PatternKind::HexEnd(digits) => format!("hex:{digits}"),
        _ => return None,
    };
    text.parse().ok()
}

/// The common difficulty of these patterns: a key has to match only one of them. Keys that match
/// several are counted once. `None` without a pattern.
pub(super) fn difficulty_of(patterns: &[Pattern]) -> Option<Difficulty> {
    PatternSet::new(patterns.to_vec()).difficulty_within(&mut effort())
}

/// A pattern that looks like this one, is accepted, and is found much sooner.
pub(super) fn cheaper(pattern: &Pattern) -> Option<Pattern> {
    let cheaper = pattern.cheaper_within(&mut effort());
    cheaper.into_iter().find(|other| accepted_by_bot(other) && other.interval_count() <= JOB_INTERVALS)
}
