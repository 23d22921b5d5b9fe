//! Messages that wait for their answer, and the order in which they get it.

use super::access::Access;
use super::answer_limits::AnswerLimits;
use super::monitor::Pulse;
use crate::bot::{self, Request};
use crate::job::Asker;
use crate::nostr::Arrival;
use std::cell::OnceCell;
use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

/// The most messages answered together, in one transaction.
pub(super) const BATCH: usize = 64;
/// The most messages that wait. Beyond this number only those of askers with an open job and of
/// friends are kept. The rest stay on the relays.
const MAX_WAITING: usize = 1000;
/// Time between two log lines about messages left on the relays.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// A message that waits for its turn.
pub(super) struct QueuedRequest {
    pub arrival: Arrival,
    /// The request in the message.
    request: OnceCell<Request>,
    /// Whether the asker has an open job or is a friend; `None` if that was not looked up.
    has_job: Option<bool>,
}

impl QueuedRequest {
    /// The request in the message. It is read when its turn comes, so that a flood costs no reading.
    pub fn request(&self) -> &Request {
        self.request.get_or_init(|| bot::read(&self.arrival.message))
    }
}

/// The waiting messages, oldest first.
#[derive(Default)]
pub(super) struct Backlog {
    access: Access,
    pulse: Pulse,
    waiting: VecDeque<QueuedRequest>,
    dropped: u64,
    told: Option<Instant>,
}

impl Backlog {
    /// An empty backlog. `access` knows whose messages are ignored; `pulse` is told how many wait.
    pub fn new(access: Access, pulse: Pulse) -> Backlog {
        Backlog { access, pulse, ..Backlog::default() }
    }

    /// Whether no message waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a message. If its asker is denied, the message is only counted and takes no turn.
    pub fn push(&mut self, arrival: Arrival) {
        if self.access.ignores(arrival.message.author) {
            return;
        }
        self.waiting.push_back(QueuedRequest { arrival, request: OnceCell::new(), has_job: None });
    }

    /// Takes messages that can be decided independently, oldest first: one per asker, and no half
    /// twice.
    ///
    /// While there are more messages than `limits` allow for all askers together, only askers for
    /// whom `has_job` is true are answered at once: those with an open job, and friends. The others
    /// wait. Messages beyond the bound of the backlog are dropped, and arrive again at the next
    /// start.
    pub fn take(
        &mut self,
        limits: &mut AnswerLimits,
        has_job: impl Fn(Asker) -> bool,
        now: Instant,
    ) -> Vec<QueuedRequest> {
        let (mut askers, mut halves) = (HashSet::new(), HashSet::new());
        let mut taken = Vec::new();
        let mut left = VecDeque::new();
        for mut next in self.waiting.drain(..) {
            let asker = next.arrival.message.author;
            // If a message waits, the later ones of its asker wait too, so that their order is
            // kept.
            let may = askers.insert(asker)
                && taken.len() < BATCH
                && (limits.take(now) || *next.has_job.get_or_insert_with(|| has_job(asker)));
            if !may {
                left.push_back(next);
                continue;
            }
            match next.request().half().is_none_or(|half| halves.insert(half.family())) {
                true => taken.push(next),
                false => left.push_back(next),
            }
        }
        let mut room = MAX_WAITING;
        let before = left.len();
        left.retain(|waiting| {
            let is_kept = waiting.has_job == Some(true) || room > 0;
            room = room.saturating_sub(1);
            is_kept
        });
        self.dropped += (before - left.len()) as u64;
        self.waiting = left;
        self.pulse.set_waiting(self.waiting.len());
        self.tell(now);
        taken
    }

    /// Logs, once a minute, how many messages were dropped.
    fn tell(&mut self, now: Instant) {
        let is_due = self.told.is_none_or(|told| now.saturating_duration_since(told) >= TELL_EVERY);
        if self.dropped > 0 && is_due {
            tracing::warn!(messages = self.dropped, "too many messages; these are left on the relays");
            (self.dropped, self.told) = (0, Some(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::RumorId;
    use crate::vault::Rumor;
    use nostr_sdk::RelayUrl;

    fn message(asker: u16, text: &str) -> Arrival {
        let mut key = [0; 32];
        key[..2].copy_from_slice(&asker.to_be_bytes());
        Arrival {
            id: [0; 32],
            message: Rumor {
                id: RumorId([0; 32]),
                author: Asker(key),
                kind: 14,
                content: text.to_owned(),
                created_at: 0,
                subject: None,
                deletes: Vec::new(),
                encryption_key: None,
                other_receivers: 0,
                ticket: None,
            },
            relay: RelayUrl::parse("wss://relay.example").unwrap(),
            paid: false,
        }
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
        let has_job = |asker| asker == known;
        let first = askers(&backlog.take(&mut limits, has_job, now));
        assert_eq!(first, (1..=10).chain([500]).collect::<Vec<_>>());
        assert!(backlog.take(&mut limits, has_job, now).is_empty());
        let later = now + Duration::from_secs(3);
        assert_eq!(askers(&backlog.take(&mut limits, has_job, later)), [11, 12, 13], "the others in order");
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
        while limits.take(now) {}
        let mut backlog = Backlog::default();
        (0..3000).for_each(|asker| backlog.push(message(asker, "help")));
        assert!(backlog.take(&mut limits, |_| false, now).is_empty());
        assert_eq!(backlog.waiting.len(), MAX_WAITING);
        let oldest: Vec<u16> = backlog.waiting.iter().take(2).map(|queued| number(&queued.arrival)).collect();
        assert_eq!(oldest, [0, 1], "the oldest stay");
        assert!(
            backlog.waiting.iter().all(|queued| queued.request.get().is_none()),
            "a message is read when its turn comes"
        );
    }
}
