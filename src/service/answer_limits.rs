//! Limits on answers: a number per hour for each asker, and a number per second for all askers
//! together.
//!
//! An asker at the limit gets one notice that says when the next answer comes, and no answer until
//! then. The counts are in memory, for a bounded number of askers. At worst, an attacker with many
//! keys makes the bot forget the counts of other askers.

use crate::bot::Reply;
use crate::job::Asker;
use crate::ledger::Effect;
use crate::token_bucket::TokenBucket;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Time over which an asker's answers are counted.
const WINDOW: Duration = Duration::from_secs(3600);
/// The most askers whose answers are counted, 100 bytes each. The oldest window is dropped first.
const MOST_ASKERS: usize = 10_000;
/// Size of the burst after a pause: as many answers as the rate per second allows in this many
/// seconds.
const BURST_SECONDS: u32 = 10;

/// Whether a message may be answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// The message may be answered.
    Answer,
    /// The answer is replaced by a notice that the next answer comes after this time.
    Notice(Duration),
    /// The message is not answered: the notice was already given.
    Silence,
}

/// Answers given to one asker since the start of a window.
#[derive(Debug)]
struct Window {
    start: Instant,
    answers: u32,
}

/// Counts answers, and decides whether a further message may be answered.
#[derive(Debug)]
pub(super) struct AnswerLimits {
    per_hour: u32,
    /// Answers to all askers together.
    of_all: TokenBucket,
    windows: HashMap<Asker, Window>,
    /// Askers in `windows` with the start of their window, oldest first.
    order: VecDeque<(Instant, Asker)>,
}

impl AnswerLimits {
    /// Limits of `per_hour` answers per asker, and `per_second` answers in total.
    pub fn new(per_hour: u32, per_second: u32, now: Instant) -> AnswerLimits {
        let of_all = TokenBucket::full_at(now, per_second, per_second.saturating_mul(BURST_SECONDS));
        AnswerLimits { per_hour, of_all, windows: HashMap::new(), order: VecDeque::new() }
    }

    /// Takes one token of the limit for all askers together. Returns `false` if none is left now.
    pub fn take(&mut self, now: Instant) -> bool {
        self.of_all.try_take(now)
    }

    /// Whether a message of this asker may be answered. Counts nothing.
    pub fn verdict(&self, asker: Asker, now: Instant) -> Verdict {
        let Some(window) = self.windows.get(&asker) else { return Verdict::Answer };
        let passed = now.saturating_duration_since(window.start);
        match window.answers {
            _ if passed >= WINDOW => Verdict::Answer,
            answers if answers < self.per_hour => Verdict::Answer,
            answers if answers == self.per_hour => Verdict::Notice(WINDOW - passed),
            _ => Verdict::Silence,
        }
    }

    /// Counts an answer or a notice, after it was recorded in the ledger.
    pub fn count(&mut self, asker: Asker, now: Instant) {
        while let Some(&(start, oldest)) = self.order.front()
            && (now.saturating_duration_since(start) >= WINDOW || self.windows.len() >= MOST_ASKERS)
        {
            if self.windows.len() >= MOST_ASKERS && self.windows.contains_key(&asker) && start + WINDOW > now {
                break;
            }
            self.order.pop_front();
            self.windows.remove(&oldest);
        }
        let window = self.windows.entry(asker).or_insert_with(|| {
            self.order.push_back((now, asker));
            Window { start: now, answers: 0 }
        });
        window.answers = window.answers.saturating_add(1);
    }
}

/// Limits the answer to an asker who has had too many. Above the limit no job is started and no
/// result is sent again, but the asker can still cancel, stop and delete.
pub(super) fn limited(effect: Effect, reply: Option<Reply>, verdict: Verdict, now: u64) -> (Effect, Option<Reply>) {
    let said = match verdict {
        Verdict::Answer => return (effect, reply),
        // A message by NIP-04 has only this one answer, and no notice.
        _ if matches!(effect, Effect::Redirect) => return (Effect::Nothing, None),
        Verdict::Notice(wait) => reply.map(|_| Reply::Paused { until: now + wait.as_secs() + 60 }),
        Verdict::Silence => None,
    };
    let effect = match effect {
        Effect::Accept(..) | Effect::Resend(_) => Effect::Nothing,
        other => other,
    };
    (effect, said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asker(number: u32) -> Asker {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        Asker(bytes)
    }

    #[test]
    fn an_asker_gets_a_number_of_answers_one_notice_then_silence_for_the_hour() {
        let start = Instant::now();
        let mut limits = AnswerLimits::new(3, 10, start);
        let mut ask = |minutes: u64| {
            let now = start + Duration::from_secs(60 * minutes);
            let verdict = limits.verdict(asker(1), now);
            if verdict != Verdict::Silence {
                limits.count(asker(1), now);
            }
            verdict
        };
        for minute in 0..3 {
            assert_eq!(ask(minute), Verdict::Answer);
        }
        assert_eq!(ask(20), Verdict::Notice(Duration::from_secs(40 * 60)));
        assert_eq!(ask(21), Verdict::Silence);
        assert_eq!(ask(59), Verdict::Silence);
        assert_eq!(ask(60), Verdict::Answer);
        assert_eq!(limits.verdict(asker(2), start), Verdict::Answer, "other askers are still answered");
    }

    #[test]
    fn a_thousand_fresh_keys_open_no_second_quota_and_memory_is_bounded() {
        let start = Instant::now();
        let mut limits = AnswerLimits::new(2, 10, start);
        for _ in 0..3 {
            limits.count(asker(0), start);
        }
        for number in 1..=1000 {
            limits.count(asker(number), start);
        }
        assert_eq!(limits.verdict(asker(0), start), Verdict::Silence);
        for number in 1..=50_000 {
            limits.count(asker(number), start + Duration::from_secs(1));
        }
        assert!(limits.windows.len() <= MOST_ASKERS && limits.order.len() <= MOST_ASKERS);
        limits.count(asker(7), start + 2 * WINDOW);
        assert_eq!((limits.windows.len(), limits.order.len()), (1, 1), "old windows go");
    }

    #[test]
    fn all_askers_together_get_a_burst_and_then_a_rate() {
        let start = Instant::now();
        let mut limits = AnswerLimits::new(100, 5, start);
        let taken = |limits: &mut AnswerLimits, now| (0..1000).filter(|_| limits.take(now)).count();
        assert_eq!(taken(&mut limits, start), 50);
        assert_eq!(taken(&mut limits, start + Duration::from_secs(2)), 10);
        assert_eq!(taken(&mut limits, start + Duration::from_secs(3600)), 50);
    }
}
