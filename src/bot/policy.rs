//! The facts that a decision depends on, the limits on requests, and what would be accepted instead.

use super::decide::{looks_alike, too_many_prefixes};
use super::phrases::{TextTable, list, means, number, reply, say, span};
use super::price::{LEAST_BITS, Place};
use super::reply::{BotReply, instead, lines, price};
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

    /// The mean time of an open job, and the chance that it is done by now.
    pub(super) fn progress(&self, job: &Job) -> Option<(Duration, f64)> {
        let rate = match job.spec.half {
            Some(_) => self.split_rate(&job.spec.patterns, self.shares.own_split_part),
            None => self.pool_rate(&job.spec.patterns),
        }?;
        let difficulty = difficulty_of(&job.spec.patterns)?;
        let searched = self.searched_since(job.accepted_at);
        Some((self.takes(difficulty, rate)?.mean, difficulty.chance_after(rate.0 * searched.as_secs_f64())))
    }
}

const DAY: u64 = 86_400;
/// The longest prefix that is accepted while no device has a measured rate. Even a slow processor
/// finds it in minutes.
const UNMEASURED_CHARACTERS: u32 = 6;
/// The longest search without a target that an asker may ask for.
pub(super) const LONGEST_BEST: Duration = Duration::from_secs(600);

/// A search that is not accepted yet.
pub(super) struct PlannedSearch<'a> {
    /// The patterns, any of which is searched for; empty for `best`.
    pub patterns: &'a [Pattern],
    /// A search without a target.
    pub best: Option<Best>,
    /// The common difficulty of the patterns.
    pub difficulty: Option<Difficulty>,
    /// The rate of the search for the patterns.
    pub rate: Option<Rate>,
    pub is_split: bool,
}

/// The refusal of a search, or `None` if it is accepted.
pub(super) fn refusal(
    t: &TextTable,
    author: Asker,
    search: &PlannedSearch<'_>,
    place: &Place,
    facts: &Facts<'_>,
) -> Option<BotReply> {
    let refused = search.patterns.iter().find(|pattern| !accepted_by_bot(pattern));
    let asked = Some(search.patterns.len()).filter(|asked| *asked > facts.limits.prefixes_per_job);
    refused
        .map(|pattern| not_searched(t, pattern))
        .or_else(|| not_served(t, search.is_split, facts))
        .or_else(|| search.best.and_then(|best| too_long(t, best, facts)))
        .or_else(|| asked.map(|asked| too_many_prefixes(t, asked, facts)))
        .or_else(|| already_searching(t, search, facts))
        .or_else(|| too_many(t, facts))
        .or_else(|| too_wide(t, search.patterns))
        .or_else(|| too_hard(t, search, facts))
        // The work is asked for last, so nobody does it for a request that is refused anyway.
        .or_else(|| no_place(t, author, place, facts))
}

/// The refusal of a pattern that the bot does not search for.
fn not_searched(t: &TextTable, pattern: &Pattern) -> BotReply {
    let (reason, nothing) = (say!(t, "needs-start"), say!(t, "nothing-started"));
    let text = lines([means(t, pattern), reason, nothing, instead(t, nearest_accepted(pattern).as_ref())]);
    BotReply { topic: "needs-start", text }
}

/// The refusal of a job for which there is no place, or of a request that lacks work.
fn no_place(t: &TextTable, author: Asker, place: &Place, facts: &Facts<'_>) -> Option<BotReply> {
    if place.is_full {
        return Some(reply!(t, "too-wide-now"));
    }
    let has_room = facts.undelivered < 0.5 || facts.priority <= Priority::Known;
    let least = if facts.is_crowded_out || !has_room { LEAST_BITS } else { 0 };
    let bits = place.bits.max(least);
    (facts.paid < bits).then(|| price(t, bits, author, facts))
}

/// The refusal of a search without a target that takes too long: longer than [`LONGEST_BEST`], or
/// than a search with a target may take.
pub(super) fn too_long(t: &TextTable, best: Best, facts: &Facts<'_>) -> Option<BotReply> {
    let limit = LONGEST_BEST.min(facts.limits.longest_expected_time);
    let longest = Best { time: limit, ..best };
    (best.time > limit).then(|| reply!(t, "best-too-long", limit = span(t, limit), best = longest.to_string()))
}

/// The refusal for an asker who is not served, or whose half was used.
fn not_served(t: &TextTable, is_split: bool, facts: &Facts<'_>) -> Option<BotReply> {
    if facts.is_stranger {
        return Some(reply!(t, "friends-only"));
    }
    facts.half.filter(|_| is_split).map(|half_use| match half_use {
        HalfUse::Open => reply!(t, "half-used", use = "open"),
        HalfUse::Spent => reply!(t, "half-used", use = "spent"),
    })
}

/// The part of the budget for undelivered results from which known askers get no job either.
const UNDELIVERED_OF_KNOWN: f64 = 2.0;

/// The refusal for an asker who has reached the limit on open or daily jobs, or whose last result
/// nobody takes.
fn too_many(t: &TextTable, facts: &Facts<'_>) -> Option<BotReply> {
    let (limits, asker) = (facts.limits, facts.asker);
    let (open, allowed) = (asker.open.len(), limits.open_jobs_per_asker);
    let is_untaken = asker.untaken && facts.priority != Priority::Friend;
    if is_untaken || (asker.undelivered > 0 && open + asker.undelivered >= allowed) {
        return Some(reply!(t, "result-not-taken"));
    }
    let room = match facts.priority {
        // Friends are few, and so are the jobs of each.
        Priority::Friend => f64::INFINITY,
        Priority::Known => UNDELIVERED_OF_KNOWN,
        Priority::Paid | Priority::New => 1.0,
    };
    if facts.undelivered >= room {
        return Some(reply!(t, "too-many-not-taken"));
    }
    if open >= allowed {
        let jobs: Vec<JobId> = asker.open.iter().map(|job| job.id).collect();
        let (first, jobs) = (jobs.first().map_or(JobId(1), |job| *job), list(t, &jobs));
        return Some(reply!(t, "too-many-open", count = open, jobs = jobs, allowed = allowed, number = number(first)));
    }
    let (today, allowed) = (&asker.accepted_last_day, limits.jobs_per_day);
    if today.len() >= allowed {
        // The next job is possible once fewer than the allowed number are younger than a day. That
        // is so when the job accepted at this time is a day old.
        let at = today.get(today.len() - allowed).copied().unwrap_or(facts.now);
        let wait = Duration::from_secs((at + DAY).saturating_sub(facts.now));
        return Some(reply!(t, "too-many-today", allowed = allowed, span = span(t, wait)));
    }
    None
}

/// The refusal of a job that has too many intervals or tests of whole texts by itself.
fn too_wide(t: &TextTable, patterns: &[Pattern]) -> Option<BotReply> {
    let load = PatternLoad::new(patterns, false, false);
    if load.intervals > JOB_INTERVALS {
        return Some(reply!(t, "too-wide", asked = load.intervals, allowed = JOB_INTERVALS));
    }
    let asked = load.text_tests;
    (asked > JOB_TEXT_TESTS).then(|| reply!(t, "too-many-ends", asked = asked, allowed = JOB_TEXT_TESTS))
}

/// The refusal of a search of the pool that an open job of the asker makes already.
fn already_searching(t: &TextTable, search: &PlannedSearch<'_>, facts: &Facts<'_>) -> Option<BotReply> {
    let set = |patterns: &[Pattern]| patterns.iter().cloned().collect::<HashSet<Pattern>>();
    let is_same = |job: &&Job| {
        let best = job.spec.best.as_ref().map(|own| own.best);
        job.spec.half.is_none()
            && best == search.best
            && (best.is_some() || set(&job.spec.patterns) == set(search.patterns))
    };
    let job = facts.asker.open.iter().filter(|_| !search.is_split).find(is_same)?.id;
    Some(reply!(t, "already-searching", job = job.to_string(), number = number(job)))
}

/// The refusal of a request that takes too long, or whose time is unknown.
fn too_hard(t: &TextTable, search: &PlannedSearch<'_>, facts: &Facts<'_>) -> Option<BotReply> {
    let PlannedSearch { patterns, rate, is_split, .. } = *search;
    let difficulty = search.difficulty?;
    let of_prefix = |characters: u32| Difficulty::from_bits(5 * characters);
    let Some(rate) = rate else {
        let is_long = difficulty.candidates() > of_prefix(UNMEASURED_CHARACTERS).candidates();
        return is_long.then(|| reply!(t, "not-measured", characters = UNMEASURED_CHARACTERS));
    };
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
    let is_accepted =
        |characters: &u32| facts.takes(of_prefix(*characters), of_prefixes).is_some_and(|takes| takes.mean <= limit);
    let instead = match (1..=50).take_while(is_accepted).last() {
        None => say!(t, "too-hard-all"),
        Some(characters) => say!(t, "too-hard-up-to", characters = characters),
    };
    // The look-alike is shown in a command without a half, so split requests get none.
    let hinted = if is_split { &[] } else { patterns };
    let cheaper = cheaper_one(hinted, Some(rate), facts).filter(|cheaper| cheaper.expected <= limit);
    let refusal = reply!(t, "too-hard", span = span(t, expected), limit = span(t, limit));
    Some(refusal.and([instead]).and(cheaper.map(|cheaper| looks_alike(t, &cheaper))))
}

/// The most steps for computing the difficulties in one message. They take a few milliseconds.
const DIFFICULTY_STEPS: usize = 1 << 14;
/// Limit on the intervals of one job. The longest list of words has 1,794 intervals.
pub(super) const JOB_INTERVALS: usize = 4096;

/// Limit on the tests of whole texts of one job.
pub(super) const JOB_TEXT_TESTS: usize = 8;

/// A budget of steps for the difficulties in one message. Reading the message and deciding about it
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
fn cheaper(pattern: &Pattern) -> Option<Pattern> {
    let cheaper = pattern.cheaper_within(&mut effort());
    cheaper.into_iter().find(|other| accepted_by_bot(other) && other.interval_count() <= JOB_INTERVALS)
}

/// A pattern that looks like another one, with its expected time.
pub(super) struct CheaperPattern {
    pub pattern: Pattern,
    pub expected: Duration,
}

/// The cheaper look-alike of a single pattern. `None` for several patterns.
pub(super) fn cheaper_one(patterns: &[Pattern], rate: Option<Rate>, facts: &Facts<'_>) -> Option<CheaperPattern> {
    let [only] = patterns else { return None };
    let pattern = cheaper(only)?;
    let expected = facts.takes(pattern.difficulty(), rate?)?.mean;
    Some(CheaperPattern { pattern, expected })
}
