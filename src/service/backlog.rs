//! Messages that wait for their answer, and the order in which they get it.

use super::access::Access;
use super::answer_limits::AnswerLimits;
use super::monitor::Pulse;
use crate::bot::{self, Request};
use crate::job::Asker;
use crate::nostr::IncomingMessage;
use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

/// The most messages answered together, in one transaction.
pub(super) const AT_ONCE: usize = 64;
/// The most messages that wait. Beyond this number only those of askers with an open job and of
/// friends are kept. The rest stay on the relays.
const MOST_WAITING: usize = 1000;
/// Time between two log lines about messages left on the relays.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// A message whose turn it is, and the request that was read from it.
pub(super) struct Waiting {
    /// The message.
    pub message: IncomingMessage,
    /// The request in the message.
    pub request: Request,
}

/// A message that waits for its turn. It is read when its turn comes, so that a flood costs no
/// reading.
struct Held {
    message: IncomingMessage,
    /// The request in the message. `None` before its turn. It is set if the turn came and the
    /// message must wait, because another message of that turn names the same half.
    request: Option<Request>,
    /// Whether the asker has an open job or is a friend; `None` if that was not looked up.
    has_job: Option<bool>,
}

/// The waiting messages, oldest first.
#[derive(Default)]
pub(super) struct Backlog {
    access: Access,
    pulse: Pulse,
    waiting: VecDeque<Held>,
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
    pub fn push(&mut self, message: IncomingMessage) {
        if self.access.ignores(message.rumor.author) {
            return;
        }
        self.waiting.push_back(Held { message, request: None, has_job: None });
    }

    /// Takes messages that can be decided independently, oldest first: one per asker, and no half
    /// twice.
    ///
    /// While there are more messages than `limits` allow for all askers together, only askers for
    /// whom `has_job` is true are answered at once: those with an open job, and friends. The others
    /// wait. Messages beyond the bound of the backlog are dropped, and arrive again at the next
    /// start.
    pub fn take(&mut self, limits: &mut AnswerLimits, has_job: impl Fn(Asker) -> bool, now: Instant) -> Vec<Waiting> {
        let (mut askers, mut halves) = (HashSet::new(), HashSet::new());
        let mut taken = Vec::new();
        let mut left = VecDeque::new();
        for mut next in self.waiting.drain(..) {
            let asker = next.message.rumor.author;
            // If a message waits, the later ones of its asker wait too, so that their order is
            // kept.
            let may = askers.insert(asker)
                && taken.len() < AT_ONCE
                && (limits.take(now) || *next.has_job.get_or_insert_with(|| has_job(asker)));
            if !may {
                left.push_back(next);
                continue;
            }
            let request = next.request.take().unwrap_or_else(|| bot::read(&next.message.rumor));
            if request.half().is_none_or(|half| halves.insert(half.family())) {
                taken.push(Waiting { message: next.message, request });
            } else {
                left.push_back(Held { request: Some(request), ..next });
            }
        }
        let mut room = MOST_WAITING;
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
    use crate::message::Channel;
    use crate::vault::Rumor;

    fn message(asker: u16, text: &str) -> IncomingMessage {
        let mut key = [0; 32];
        key[..2].copy_from_slice(&asker.to_be_bytes());
        IncomingMessage {
            rumor: Rumor {
                id: RumorId([0; 32]),
                author: Asker(key),
                kind: 14,
                content: text.to_owned(),
                created_at: 0,
                subject: None,
                takes_back: Vec::new(),
                encryption_key: None,
                other_receivers: 0,
                ticket: None,
            },
            seen_on: Vec::new(),
            channel: Channel::Sealed,
            reads_sealed: true,
            paid: false,
        }
    }

    fn number(message: &IncomingMessage) -> u16 {
        let key = message.rumor.author.0;
        u16::from_be_bytes([key[0], key[1]])
    }

    fn askers(taken: &[Waiting]) -> Vec<u16> {
        taken.iter().map(|waiting| number(&waiting.message)).collect()
    }

    #[test]
    fn askers_with_an_open_job_come_first_when_there_are_too_many_messages() {
        let now = Instant::now();
        // A burst of ten, then one per second.
        let mut limits = AnswerLimits::new(100, 1, now);
        let mut backlog = Backlog::default();
        (1..=20).for_each(|asker| backlog.push(message(asker, "help")));
        backlog.push(message(500, "status"));
        let known = Asker(message(500, "").rumor.author.0);
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
        let mut limits = AnswerLimits::new(100, 0, now);
        let mut backlog = Backlog::default();
        (0..3000).for_each(|asker| backlog.push(message(asker, "help")));
        assert!(backlog.take(&mut limits, |_| false, now).is_empty());
        assert_eq!(backlog.waiting.len(), MOST_WAITING);
        let oldest: Vec<u16> = backlog.waiting.iter().take(2).map(|held| number(&held.message)).collect();
        assert_eq!(oldest, [0, 1], "the oldest stay");
        assert!(backlog.waiting.iter().all(|held| held.request.is_none()), "a message is read when its turn comes");
    }
}
