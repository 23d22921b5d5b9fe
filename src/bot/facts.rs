//! The facts that a decision depends on.

use super::accepted::effort;
use crate::config::Limits;
use crate::hours::Hours;
use crate::job::JobId;
use crate::key::Npub;
use crate::ledger::{AskerView, HalfUse};
use crate::message::WorkWanted;
use crate::pattern::{Pattern, Rate, rate_in_turns};
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
    /// The proof of work this asker still owes, because there is a flood and they are new.
    pub owes: Option<WorkWanted>,
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
