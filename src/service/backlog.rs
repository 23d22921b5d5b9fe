//! Messages that wait for their answer, the order in which they get it, and the limits on answers:
//! a number per hour for each asker, and a number per second for all askers together.
//!
//! An asker at the limit gets one notice that says when the next answer comes, and no answer until
//! then. The counts are in memory, for a bounded number of askers. At worst, an attacker with many
//! keys makes the bot forget the counts of other askers.

use super::monitor::Pulse;
use crate::bot::{self, AskerRequest, BotReply};
use crate::job::Asker;
use crate::language::Language;
use crate::ledger::Effect;
use crate::log_writer::LogLimit;
use crate::nostr::{Arrival, SeenIds};
use crate::token_bucket::TokenBucket;
use hashlink::LinkedHashMap;
use std::cell::OnceCell;
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most messages answered together, in one transaction.
pub(super) const MAX_BATCH: usize = 64;
/// The most messages that wait. Beyond this number only those that come first are kept. The rest stay on the relays.
const MAX_WAITING: usize = 1000;
static TOO_MANY: LogLimit = LogLimit::new();

/// A message that waits for its turn.
pub(super) struct QueuedRequest {
    pub arrival: Arrival,
    /// The request in the message.
    request: OnceCell<AskerRequest>,
    /// Whether the message is answered first; `None` if that was not looked up.
    comes_first: Option<bool>,
}

impl QueuedRequest {
    /// The request in the message. It is read when its turn comes, so that a flood costs no
    /// reading.
    pub fn request(&self) -> &AskerRequest {
        self.request.get_or_init(|| bot::read(&self.arrival.message))
    }

    /// Whether the message is answered first, by this rule, which is asked once.
    fn comes_first(&mut self, rule: impl Fn(&QueuedRequest) -> bool) -> bool {
        let comes_first = self.comes_first.unwrap_or_else(|| rule(self));
        self.comes_first = Some(comes_first);
        comes_first
    }
}

/// The waiting messages, oldest first.
#[derive(Default)]
pub(super) struct Backlog {
    pulse: Arc<Pulse>,
    seen: SeenIds,
    waiting: VecDeque<QueuedRequest>,
    /// Messages dropped since the last line of the log about them.
    dropped: u64,
}

impl Backlog {
    /// An empty backlog. `pulse` is told how many wait; `seen` takes back what is dropped.
    pub fn new(pulse: Arc<Pulse>, seen: SeenIds) -> Backlog {
        Backlog { pulse, seen, waiting: VecDeque::new(), dropped: 0 }
    }

    /// Whether no message waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a message.
    pub fn push(&mut self, arrival: Arrival) {
        self.waiting.push_back(QueuedRequest { arrival, request: OnceCell::new(), comes_first: None });
    }

    /// Takes messages that can be decided independently: one per asker, and one request for a split
    /// key. The oldest come first; if there are more than a batch, those of askers who have one for
    /// which `is_first` is true.
    ///
    /// While there are more messages than `limits` allow for all askers together, only those for
    /// which `is_first` is true are answered at once: of askers with an open job, of friends, and
    /// with proof of work. The others wait. Messages beyond the bound of the backlog are dropped; a backfill brings them again.
    pub fn take(
        &mut self,
        limits: &mut AnswerLimits,
        is_first: impl Fn(&QueuedRequest) -> bool,
        now: Instant,
    ) -> Vec<QueuedRequest> {
        if self.waiting.len() > MAX_BATCH {
            // With all of their messages, so that the order of these is kept.
            let asker = |next: &QueuedRequest| next.arrival.message.author;
            let first = self.waiting.iter_mut().filter_map(|next| next.comes_first(&is_first).then(|| asker(next)));
            let first: HashSet<Asker> = first.collect();
            self.waiting.make_contiguous().sort_by_key(|next| !first.contains(&asker(next)));
        }
        let (mut askers, mut has_half) = (HashSet::new(), false);
        let mut taken = Vec::new();
        let mut left = VecDeque::new();
        for mut next in self.waiting.drain(..) {
            let asker = next.arrival.message.author;
            // If a message waits, the later ones of its asker wait too, so that their order is
            // kept.
            let may = askers.insert(asker)
                && taken.len() < MAX_BATCH
                && (limits.of_all.try_take(now) || next.comes_first(&is_first));
            if !may {
                left.push_back(next);
                continue;
            }
            // What a split job costs depends on those before it.
            match next.request().half().is_none() || !std::mem::replace(&mut has_half, true) {
                true => taken.push(next),
                false => left.push_back(next),
            }
        }
        let mut room = MAX_WAITING;
        let before = left.len();
        left.retain_mut(|waiting| {
            let is_kept = room > 0 || waiting.comes_first(&is_first);
            room = room.saturating_sub(1);
            if !is_kept {
                self.seen.give_back(&waiting.arrival.id);
            }
            is_kept
        });
        self.dropped += (before - left.len()) as u64;
        self.waiting = left;
        self.pulse.waiting.store(self.waiting.len() as u64, Ordering::Relaxed);
        if self.dropped > 0 && TOO_MANY.next(now).is_some() {
            tracing::warn!(messages = self.dropped, "too many messages; these are fetched again later");
            self.dropped = 0;
        }
        taken
    }
}

impl Drop for Backlog {
    /// After a panic, what waited is fetched again.
    fn drop(&mut self) {
        for waiting in &self.waiting {
            self.seen.give_back(&waiting.arrival.id);
        }
    }
}

/// Time over which an asker's answers are counted.
const ANSWER_WINDOW: Duration = Duration::from_secs(3600);
/// The most askers whose answers are counted, 100 bytes each. The oldest window is dropped first.
const MAX_COUNTED_ASKERS: usize = 10_000;
/// Size of the burst after a pause: as many answers as the rate per second allows in this many
/// seconds.
const BURST_SECONDS: u32 = 10;

/// Whether a message may be answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AnswerVerdict {
    /// The message may be answered.
    Answer,
    /// The answer is replaced by a notice that the next answer comes after this time.
    Notice(Duration),
    /// The message is not answered: the notice was already given.
    Silence,
}

/// Answers given to one asker since the start of a window.
#[derive(Debug)]
struct AnswerWindow {
    start: Instant,
    answers: u32,
}

/// Counts answers, and decides whether a further message may be answered.
#[derive(Debug)]
pub(super) struct AnswerLimits {
    per_hour: u32,
    /// Answers to all askers together.
    of_all: TokenBucket,
    /// The oldest first.
    windows: LinkedHashMap<Asker, AnswerWindow>,
}

impl AnswerLimits {
    /// Limits of `per_hour` answers per asker, and `per_second` answers in total.
    pub fn new(per_hour: u32, per_second: u32, now: Instant) -> AnswerLimits {
        let of_all = TokenBucket::full_at(now, per_second, per_second.saturating_mul(BURST_SECONDS));
        AnswerLimits { per_hour, of_all, windows: LinkedHashMap::new() }
    }

    /// Whether a message of this asker may be answered. Counts nothing.
    pub fn verdict(&self, asker: Asker, now: Instant) -> AnswerVerdict {
        let Some(window) = self.windows.get(&asker) else { return AnswerVerdict::Answer };
        let passed = now.saturating_duration_since(window.start);
        match window.answers {
            _ if passed >= ANSWER_WINDOW => AnswerVerdict::Answer,
            answers if answers < self.per_hour => AnswerVerdict::Answer,
            answers if answers == self.per_hour => AnswerVerdict::Notice(ANSWER_WINDOW - passed),
            _ => AnswerVerdict::Silence,
        }
    }

    /// Counts an answer or a notice, after it was recorded in the ledger.
    pub fn count(&mut self, asker: Asker, now: Instant) {
        let is_over = |window: &AnswerWindow| now.saturating_duration_since(window.start) >= ANSWER_WINDOW;
        while self.windows.front().is_some_and(|(_, window)| is_over(window)) {
            self.windows.pop_front();
        }
        if let Some(window) = self.windows.get_mut(&asker) {
            window.answers = window.answers.saturating_add(1);
            return;
        }
        if self.windows.len() >= MAX_COUNTED_ASKERS {
            self.windows.pop_front();
        }
        self.windows.insert(asker, AnswerWindow { start: now, answers: 1 });
    }
}

/// Time over which new askers are counted.
const NEW_ASKERS_WINDOW: Duration = Duration::from_secs(60);

/// The lottery among requests of new askers without proof of work. While more than a number of them
/// come within a minute, some are drawn, so that about that number is served. Its times are those of
/// the system's monotonic clock. Cheap to clone; clones share the count.
#[derive(Clone, Debug)]
pub(super) struct NewAskers {
    per_minute: usize,
    /// Times of the latest requests, at most `per_minute`.
    latest: Arc<Mutex<VecDeque<Instant>>>,
}

impl NewAskers {
    /// A lottery that begins beyond this number of new askers within a minute.
    pub fn new(per_minute: u32) -> NewAskers {
        NewAskers { per_minute: per_minute as usize, latest: Arc::default() }
    }

    /// Counts a request of a new asker. `draw`: a random number from 0 to 1. Returns whether the
    /// request is served.
    pub fn draw(&self, draw: f64, now: Instant) -> bool {
        let served = self.served_part(now);
        let mut latest = self.latest();
        latest.push_back(now);
        if latest.len() > self.per_minute {
            latest.pop_front();
        }
        draw < served
    }

    /// The part of the requests that is served, 0 to 1: the part of a minute in which the last
    /// `per_minute` came.
    pub fn served_part(&self, now: Instant) -> f64 {
        if self.per_minute == 0 {
            return 0.0;
        }
        let latest = self.latest();
        let since = latest.front().filter(|_| latest.len() >= self.per_minute);
        since.map_or(1.0, |&since| {
            let taken = now.saturating_duration_since(since).as_secs_f64();
            (taken / NEW_ASKERS_WINDOW.as_secs_f64()).min(1.0)
        })
    }

    fn latest(&self) -> MutexGuard<'_, VecDeque<Instant>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Limits the answer to an asker who has had too many. Above the limit no job is started and no
/// result is sent again, but the asker can still cancel, stop and delete.
pub(super) fn limit_answer(
    effect: Effect,
    reply: Option<BotReply>,
    verdict: AnswerVerdict,
    now: u64,
    language: Language,
) -> (Effect, Option<String>) {
    let said = match verdict {
        AnswerVerdict::Answer => return (effect, reply.map(|reply| reply.text)),
        // A message by NIP-04 has only this one answer, and no notice.
        _ if matches!(effect, Effect::Redirect) => return (Effect::Nothing, None),
        AnswerVerdict::Notice(wait) => reply.map(|_| bot::notices::paused(language, now + wait.as_secs() + 60)),
        AnswerVerdict::Silence => None,
    };
    let effect = match effect {
        Effect::Accept(..) | Effect::Resend(_) => Effect::Nothing,
        other => other,
    };
    (effect, said)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A message with this text. Its id is the key of its author.
    pub(in crate::service) fn queued(author: Asker, text: &str) -> QueuedRequest {
        let message = crate::vault::Rumor {
            id: crate::job::RumorId([0; 32]),
            author,
            kind: 14,
            content: text.to_owned(),
            created_at: 0,
            subject: None,
            deletes: Vec::new(),
            encryption_key: None,
            other_receivers: 0,
            ticket: None,
        };
        let relay = nostr_sdk::RelayUrl::parse("wss://relay.example").unwrap();
        QueuedRequest { arrival: Arrival { id: author.0, message, relay }, request: OnceCell::new(), comes_first: None }
    }

    fn message(asker: u16, text: &str) -> Arrival {
        let mut key = [0; 32];
        key[..2].copy_from_slice(&asker.to_be_bytes());
        queued(Asker(key), text).arrival
    }

    fn number(arrival: &Arrival) -> u16 {
        let key = arrival.message.author.0;
        u16::from_be_bytes([key[0], key[1]])
    }

    fn askers(taken: &[QueuedRequest]) -> Vec<u16> {
        taken.iter().map(|queued| number(&queued.arrival)).collect()
    }

    #[test]
    fn askers_with_an_open_job_come_first_when_there_are_too_many_messages() {
        let now = Instant::now();
        // A burst of ten, then one per second.
        let mut limits = AnswerLimits::new(100, 1, now);
        let mut backlog = Backlog::default();
        (1..=20).for_each(|asker| backlog.push(message(asker, "help")));
        backlog.push(message(500, "status"));
        let known = message(500, "").message.author;
        let is_first = |message: &QueuedRequest| message.arrival.message.author == known;
        let first = askers(&backlog.take(&mut limits, is_first, now));
        assert_eq!(first, (1..=10).chain([500]).collect::<Vec<_>>());
        assert!(backlog.take(&mut limits, is_first, now).is_empty());
        let later = now + Duration::from_secs(3);
        assert_eq!(askers(&backlog.take(&mut limits, is_first, later)), [11, 12, 13], "the others in order");
    }

    #[test]
    fn whoever_comes_first_does_not_wait_for_the_batches_of_others() {
        let now = Instant::now();
        let mut backlog = Backlog::default();
        (1..=200).chain([500, 201, 500]).for_each(|asker| backlog.push(message(asker, "help")));
        let known = message(500, "").message.author;
        let is_first = |message: &QueuedRequest| message.arrival.message.author == known;
        let mut next = || askers(&backlog.take(&mut AnswerLimits::new(100, 1000, now), is_first, now));
        assert_eq!(next(), [500].into_iter().chain(1..64).collect::<Vec<_>>());
        assert_eq!(next(), [500].into_iter().chain(64..127).collect::<Vec<_>>());
        assert_eq!(next()[0], 127);
    }

    /// However many new askers come, about the limit is served in each minute, and each of them has
    /// the same chance.
    #[test]
    fn new_askers_are_drawn_by_lot_beyond_their_number_a_minute() {
        let (new_askers, start) = (NewAskers::new(60), Instant::now());
        let at = |seconds: f64| start + Duration::from_secs_f64(seconds);
        let served = |from: f64, per_second: u32, seconds: u32| {
            let all = per_second * seconds;
            // Draws that are spread evenly.
            let draw = |number: u32| f64::from(number) * 0.618_034 % 1.0;
            let serves =
                |number: &u32| new_askers.draw(draw(*number), at(from + f64::from(*number) / f64::from(per_second)));
            (0..all).filter(serves).count()
        };
        assert_eq!(served(0.0, 1, 60), 60, "all of them, up to the number");
        let flooded = served(60.0, 34, 600);
        assert!((550..=700).contains(&flooded), "{flooded} of 20,400 in ten minutes, 60 a minute are served");
        assert!(new_askers.served_part(at(660.0)) < 0.04);
        assert!((new_askers.served_part(at(720.0)) - 1.0).abs() < 1e-9, "a minute later all are served again");
        assert!(!NewAskers::new(0).draw(0.0, start), "each of them owes work");
    }

    #[test]
    fn messages_of_one_asker_are_answered_one_after_the_other() {
        let now = Instant::now();
        let mut limits = AnswerLimits::new(100, 100, now);
        let mut backlog = Backlog::default();
        [1, 1, 2, 1].into_iter().for_each(|asker| backlog.push(message(asker, "help")));
        let mut next = || askers(&backlog.take(&mut limits, |_| false, now));
        assert_eq!((next(), next(), next(), next()), (vec![1, 2], vec![1], vec![1], vec![]));
    }

    #[test]
    fn the_number_of_waiting_messages_is_bounded() {
        let now = Instant::now();
        let mut limits = AnswerLimits::new(100, 1, now);
        while limits.of_all.try_take(now) {}
        let mut backlog = Backlog::default();
        (0..3000).for_each(|asker| backlog.push(message(asker, "help")));
        let ids: Vec<[u8; 32]> = backlog.waiting.iter().map(|queued| queued.arrival.id).collect();
        assert!(ids.iter().all(|&id| backlog.seen.insert(id)));
        assert!(backlog.take(&mut limits, |_| false, now).is_empty());
        assert_eq!(backlog.waiting.len(), MAX_WAITING);
        let is_given_back = |id: &[u8; 32]| backlog.seen.insert(*id);
        assert_eq!(ids.iter().filter(|id| is_given_back(id)).count(), 3000 - MAX_WAITING, "a backfill brings the rest");
        let oldest: Vec<u16> = backlog.waiting.iter().take(2).map(|queued| number(&queued.arrival)).collect();
        assert_eq!(oldest, [0, 1], "the oldest stay");
        assert!(
            backlog.waiting.iter().all(|queued| queued.request.get().is_none()),
            "a message is read when its turn comes"
        );
    }

    fn key(number: u32) -> Asker {
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
            let verdict = limits.verdict(key(1), now);
            if verdict != AnswerVerdict::Silence {
                limits.count(key(1), now);
            }
            verdict
        };
        for minute in 0..3 {
            assert_eq!(ask(minute), AnswerVerdict::Answer);
        }
        assert_eq!(ask(20), AnswerVerdict::Notice(Duration::from_secs(40 * 60)));
        assert_eq!(ask(21), AnswerVerdict::Silence);
        assert_eq!(ask(59), AnswerVerdict::Silence);
        assert_eq!(ask(60), AnswerVerdict::Answer);
        assert_eq!(limits.verdict(key(2), start), AnswerVerdict::Answer, "other askers are still answered");
    }

    #[test]
    fn a_thousand_fresh_keys_open_no_second_quota_and_memory_is_bounded() {
        let start = Instant::now();
        let mut limits = AnswerLimits::new(2, 10, start);
        for _ in 0..3 {
            limits.count(key(0), start);
        }
        for number in 1..=1000 {
            limits.count(key(number), start);
        }
        assert_eq!(limits.verdict(key(0), start), AnswerVerdict::Silence);
        for number in 1..=50_000 {
            limits.count(key(number), start + Duration::from_secs(1));
        }
        assert!(limits.windows.len() <= MAX_COUNTED_ASKERS);
        limits.count(key(7), start + 2 * ANSWER_WINDOW);
        assert_eq!(limits.windows.len(), 1, "old windows go");
    }
}
