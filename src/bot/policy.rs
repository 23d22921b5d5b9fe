//! The facts that a decision depends on, the limits on requests, and what would be accepted instead.

use super::decide::cheaper_one;
use super::reply::BotReply;
use crate::config::Limits;
use crate::hours::{Calendar, Hours};
use crate::job::JobId;
use crate::key::Npub;
use crate::ledger::{AskerView, HalfUse};
use crate::message::WorkWanted;
use crate::pattern::{
    Best, Difficulty, Effort, NINETY_FIVE_PERCENT, Pattern, PatternKind, PatternSet, Rate, rate_in_turns,
};
use std::collections::HashSet;
use std::time::Duration;

/// Waits shorter than this are not mentioned.
const SHORT_WAIT: Duration = Duration::from_secs(2);

/// Multiple of the promised time after which an asker is told that a job is late.
const HALF_AS_LONG_AGAIN: f64 = 1.5;

/// Proof of work of a split job ([`crate::key::SplitWork`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SplitCost {
    /// Bits of the work.
    pub bits: u32,
    /// The bot for which the work is done.
    pub bot: Npub,
}

/// Everything that a decision depends on, besides the message.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The limits of the configuration.
    pub limits: &'a Limits,
    /// Jobs and keys of the asker.
    pub asker: &'a AskerView,
    /// Number of jobs of the pool being searched, of all askers.
    pub pool_jobs: usize,
    /// Number of split jobs being searched, of all askers. They take turns with the pool.
    pub split_jobs: usize,
    /// Intervals that the devices' filters need for all open jobs.
    pub intervals: usize,
    /// Tests of whole texts that the devices need for all open jobs.
    pub text_tests: usize,
    /// The share of keys that pass a filter and need a full check, summed over the patterns of all
    /// open jobs ([`crate::pattern::Pattern::handed_on`]).
    pub handed_on: f64,
    /// The measured rate of all devices together; `None` before the first measurement.
    pub rate: Option<Rate>,
    /// The rate of all devices together when they compare whole keys.
    pub whole_keys_rate: Option<Rate>,
    /// The number of the job, if the message becomes one.
    pub next_job: JobId,
    /// The earlier use of the half in a split request; `None` if it was not used before.
    pub half: Option<HalfUse>,
    /// The pool's share of the devices, 0 to 1.
    pub pool_part: f64,
    /// The share of the pool's time for patterns that the fast kernel searches for.
    pub top_words_part: f64,
    /// The share of the pool's time for patterns that need whole keys compared.
    pub whole_keys_part: f64,
    /// The share of the devices that a further split job of this asker would have.
    pub split_part: f64,
    /// The share of the devices that each split job of this asker has now.
    pub own_split_part: f64,
    /// Requests of the pool with a prefix of at most this many bits wait for older ones: a launch
    /// yields a limited number of keys.
    pub easy_bits: u32,
    /// Time that requests of at most `easy_bits` wait, if all devices search for the pool.
    pub easy_wait: Duration,
    /// The address of the bot's page, if it has one.
    pub page: Option<&'a str>,
    /// Whether the bot serves friends only, and this asker is none.
    pub is_stranger: bool,
    /// The proof of work this asker still owes, because there is a flood and they are new.
    pub owes: Option<WorkWanted>,
    /// Whether there is room for results of askers who have taken one before, and for no others.
    pub undelivered_full: bool,
    /// Proof of work that a split job costs now and this message lacks.
    pub split_work: Option<SplitCost>,
    /// Place in line of a further split job of this asker, from 1; `None` if it is searched at
    /// once.
    pub split_place: Option<usize>,
    /// The hours at which the devices search; `None` for always.
    pub hours: Option<&'a Hours>,
    /// Whether the search is paused with no known end: by the operator, for heat or on a battery.
    pub is_stopped: bool,
    /// The current time, in Unix seconds.
    pub now: u64,
}

impl Facts<'_> {
    pub(super) fn open_jobs(&self) -> usize {
        self.pool_jobs + self.split_jobs
    }

    /// The time until a request is searched; zero if that is less than [`SHORT_WAIT`].
    pub(super) fn queue_for(&self, patterns: &[Pattern]) -> Duration {
        // One easy prefix is enough to wait, because its key is found before those of the hard
        // ones.
        let waits = patterns.iter().any(|pattern| pattern.bits() <= self.easy_bits);
        let wait = self.easy_wait.div_f64(self.pool_part.max(0.01));
        if waits && wait >= SHORT_WAIT { wait } else { Duration::ZERO }
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
        let part_of = |rate: Option<Rate>, part: f64| rate.map(|Rate(rate)| Rate(rate * part * self.pool_part));
        let is_whole = |pattern: &Pattern| !pattern.begins_selectively();
        match (patterns.iter().any(is_whole), patterns.iter().all(is_whole)) {
            (false, _) => part_of(self.rate, self.top_words_part),
            (true, true) => part_of(self.whole_keys_rate, self.whole_keys_part),
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
) -> Option<BotReply> {
    let limits = facts.limits;
    if let Some(pattern) = patterns.iter().find(|pattern| !accepted_by_bot(pattern)) {
        return Some(BotReply::NotSearched { pattern: pattern.clone(), nearest: nearest_accepted(pattern) });
    }
    if let Some(reply) = owed(is_split, facts) {
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
    if let Some(reply) = too_wide(patterns, facts) {
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
    refused.or_else(|| facts.split_work.filter(|_| is_split).map(|cost| work_wanted(prefixes_of(patterns), cost)))
}

/// The refusal of a request without a target, or `None` if it is accepted.
pub(super) fn refusal_of_best(best: Best, is_split: bool, facts: &Facts<'_>) -> Option<BotReply> {
    let same = facts
        .asker
        .open
        .iter()
        .find(|job| job.spec.half.is_none() && job.spec.best.as_ref().is_some_and(|search| search.best == best));
    owed(is_split, facts)
        .or_else(|| too_long(best, facts))
        .or_else(|| same.filter(|_| !is_split).map(|job| BotReply::AlreadySearching { job: job.id }))
        .or_else(|| too_many(facts))
        .or_else(|| too_wide(&best.family.floor(), facts))
        .or_else(|| facts.split_work.filter(|_| is_split).map(|cost| work_wanted(best.to_string(), cost)))
}

/// The refusal of a search without a target that takes too long: longer than [`LONGEST_BEST`], or
/// than a search with a target may take.
pub(super) fn too_long(best: Best, facts: &Facts<'_>) -> Option<BotReply> {
    let limit = LONGEST_BEST.min(facts.limits.longest_expected_time);
    (best.time > limit).then_some(BotReply::BestTooLong { best: Best { time: limit, ..best } })
}

/// The refusal for an asker who is not served or owes work, or whose half was used.
fn owed(is_split: bool, facts: &Facts<'_>) -> Option<BotReply> {
    let used = facts.half.filter(|_| is_split);
    if facts.is_stranger {
        return Some(BotReply::FriendsOnly);
    }
    facts.owes.map(BotReply::WorkWanted).or_else(|| used.map(BotReply::HalfUsed))
}

/// The refusal for an asker who has reached the limit on open or daily jobs, or whose last result
/// nobody takes.
fn too_many(facts: &Facts<'_>) -> Option<BotReply> {
    let (limits, asker) = (facts.limits, facts.asker);
    let with_undelivered = asker.open.len() + asker.undelivered;
    if asker.untaken || (asker.undelivered > 0 && with_undelivered >= limits.open_jobs_per_asker) {
        return Some(BotReply::ResultNotTaken);
    }
    if facts.undelivered_full && !asker.served {
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

/// The patterns as text for a command line, or a placeholder if that is too long.
fn prefixes_of(patterns: &[Pattern]) -> String {
    let prefixes = patterns.iter().map(quoted).collect::<Vec<_>>().join(" ");
    if prefixes.len() > LONGEST_PREFIXES { "PREFIX...".to_owned() } else { prefixes }
}

/// The refusal of a split request that lacks proof of work, with the command that does the work.
fn work_wanted(prefixes: String, SplitCost { bits, bot }: SplitCost) -> BotReply {
    let command = format!("npubbot split new {prefixes} --out half.age --work {bits} --bot {bot}");
    BotReply::SplitWorkWanted { bits, command }
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
fn too_wide(patterns: &[Pattern], facts: &Facts<'_>) -> Option<BotReply> {
    let (intervals, tests, handed_on) = (intervals_of(patterns), text_tests_of(patterns), handed_on_by(patterns));
    if intervals > JOB_INTERVALS {
        return Some(BotReply::TooWide { asked: intervals, allowed: JOB_INTERVALS });
    }
    if tests > JOB_TEXT_TESTS {
        return Some(BotReply::TooManyEnds { asked: tests, allowed: JOB_TEXT_TESTS });
    }
    let is_full = intervals > FEW_INTERVALS && facts.intervals + intervals > ALL_INTERVALS;
    let has_no_test = tests > 0 && facts.text_tests + tests > ALL_TEXT_TESTS;
    let is_busy = handed_on > LITTLE_HANDED_ON && facts.handed_on + handed_on > ALL_HANDED_ON;
    (is_full || has_no_test || is_busy).then_some(BotReply::TooWideNow)
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
    Some(BotReply::TooHard { expected, limit, characters, cheaper })
}

/// The most steps for computing the difficulties in one message. They take a few milliseconds.
const DIFFICULTY_STEPS: usize = 1 << 14;
/// Limit on the intervals of one job. The longest list of words has 1,794 intervals.
pub(super) const JOB_INTERVALS: usize = 4096;
/// Limit on the intervals of all open jobs together. It is the size of a list of 100,000 words.
/// With so many intervals, every job still keeps most of its rate.
pub(super) const ALL_INTERVALS: usize = 1 << 17;
/// Number of intervals up to which a job is accepted, however many the other jobs have.
pub(super) const FEW_INTERVALS: usize = 64;

/// Limit on the tests of whole texts of one job.
pub(super) const JOB_TEXT_TESTS: usize = 8;
/// Limit on the tests of whole texts of all open jobs. Each test is made on every key.
pub(super) const ALL_TEXT_TESTS: usize = 32;
/// Limit on the share of keys that need a full check ([`Pattern::handed_on`]), summed over all open
/// jobs. It allows four patterns that fix four characters at the start and have a part elsewhere. A
/// GPU checks even more keys without delay. For a CPU of two cores, this limit means a few thousand
/// full checks a second, of tens of microseconds each.
pub(super) const ALL_HANDED_ON: f64 = 1.0 / (1 << 18) as f64;
/// Share of keys that need a full check up to which a job is accepted, whatever the share of the
/// other jobs. It is the share of a pattern that fixes eight characters at the start.
pub(super) const LITTLE_HANDED_ON: f64 = 1.0 / (1u64 << 40) as f64;

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

/// Number of intervals of all these patterns.
pub(super) fn intervals_of(patterns: &[Pattern]) -> usize {
    patterns.iter().map(Pattern::interval_count).sum()
}

/// Number of tests of whole texts of all these patterns.
pub(super) fn text_tests_of(patterns: &[Pattern]) -> usize {
    patterns.iter().map(Pattern::text_test_count).sum()
}

/// The share of keys that need a full check ([`Pattern::handed_on`]), summed over these patterns.
pub(super) fn handed_on_by(patterns: &[Pattern]) -> f64 {
    patterns.iter().map(Pattern::handed_on).sum()
}
