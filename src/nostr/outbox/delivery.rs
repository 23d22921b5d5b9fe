//! The outbox task: starts an attempt for each due message, and records how they ended (T3),
//! several in one transaction, because each waits for the disk and acceptances (T1) wait behind it.
//!
//! The attempts in progress. Their number is bounded. Some places are reserved for results and for
//! askers with a job, and some for all other messages.

use super::Outbox;
use crate::fault;
use crate::ledger::{Attempt, DueMessage, Ledger, LedgerError, MessageId, NextAttempt};
use crate::shutdown::Shutdown;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::{Id, JoinHandle, JoinSet};

/// The longest pause between two reads of the ledger. It is short, because setting the clock can
/// make messages due earlier.
const LONGEST_READ_PAUSE: Duration = Duration::from_secs(2);
/// The shortest pause between two reads, if no new message is announced.
const SHORTEST_READ_PAUSE: Duration = Duration::from_millis(200);
/// The shortest pause between two reads while many messages are in progress, because reading takes
/// longer then.
const READ_PAUSE_WHEN_BUSY: Duration = Duration::from_millis(50);
/// Time between two searches for idle connections, which are then closed.
const LEAVE_IDLE: Duration = Duration::from_secs(10);

impl Outbox {
    /// Sends due messages until the shutdown; `wake` announces new ones.
    pub async fn run(self, wake: Arc<Notify>, mut shutdown: Shutdown) {
        let mut recorder = AttemptRecorder::new(self.ledger.clone());
        let outbox = Arc::new(self);
        let mut under_way = UnderWay::new(Arc::clone(&outbox));
        // The time of the next read. A read costs as much as sending a few messages.
        let mut read_at = Instant::now();
        let mut earliest = read_at;
        let mut leave_at = read_at;
        loop {
            fault::before("round");
            let now = Instant::now();
            if now >= read_at {
                under_way.start(due(&under_way), now);
                read_at = now + outbox.until_next_due();
                earliest = now + if under_way.is_busy() { READ_PAUSE_WHEN_BUSY } else { Duration::ZERO };
            }
            if now >= leave_at {
                outbox.relays.leave_idle_external();
                leave_at = now + LEAVE_IDLE;
            }
            fault::after("round");
            tokio::select! {
                () = shutdown.stopped() => return recorder.finish().await,
                () = wake.notified() => read_at = earliest,
                Some(attempt) = under_way.next_ended() => recorder.add(attempt),
                recorded = recorder.next() => {
                    if under_way.is_full() {
                        read_at = earliest;
                    } else if recorded.iter().any(|attempt| attempt.next != NextAttempt::Finished) {
                        read_at = read_at.min(Instant::now() + outbox.until_next_due());
                    }
                    recorded.iter().for_each(|attempt| under_way.recorded(attempt.message));
                }
                () = tokio::time::sleep_until(read_at.into()) => {}
            }
        }
    }

    fn until_next_due(&self) -> Duration {
        let due = self.ledger.next_due().ok().flatten();
        let pause = due.map_or(LONGEST_READ_PAUSE, |due| Duration::from_secs(due.saturating_sub(self.clock.now())));
        // Messages that are already due are in progress, or the ledger failed. Neither needs
        // another read at once.
        pause.clamp(SHORTEST_READ_PAUSE, LONGEST_READ_PAUSE)
    }
}

fn due(under_way: &UnderWay) -> Vec<DueMessage> {
    under_way.due().unwrap_or_else(|error| {
        tracing::warn!(%error, "the outbox cannot be read yet");
        Vec::new()
    })
}

/// Time that an ended attempt waits for others to join its transaction.
const GATHER_TIME: Duration = Duration::from_millis(10);
/// Pause after a transaction failed.
const RECORD_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Ended attempts that are not recorded yet.
pub(super) struct AttemptRecorder {
    ledger: Ledger,
    ended: Vec<Attempt>,
    /// The time at which `ended` is recorded.
    due: Instant,
    recording: Option<(Vec<Attempt>, JoinHandle<()>)>,
}

impl AttemptRecorder {
    /// A recorder that writes to `ledger`.
    pub fn new(ledger: Ledger) -> AttemptRecorder {
        AttemptRecorder { ledger, ended: Vec::new(), due: Instant::now(), recording: None }
    }

    /// Adds an ended attempt.
    pub fn add(&mut self, attempt: Attempt) {
        if self.ended.is_empty() {
            self.due = Instant::now() + GATHER_TIME;
        }
        self.ended.push(attempt);
    }

    /// Records the ended attempts and returns them. Never returns while there are none. Cancel-safe.
    pub async fn next(&mut self) -> Vec<Attempt> {
        if self.recording.is_none() {
            if self.ended.is_empty() {
                return std::future::pending().await;
            }
            tokio::time::sleep_until(self.due.into()).await;
            let (ledger, ended) = (self.ledger.clone(), std::mem::take(&mut self.ended));
            let attempts = ended.clone();
            self.recording = Some((ended, tokio::task::spawn_blocking(move || record(&ledger, &attempts))));
        }
        if let Some((_, recording)) = &mut self.recording
            && let Err(error) = recording.await
        {
            tracing::error!(%error, "recording attempts panicked; they stay due");
        }
        self.recording.take().map_or_else(Vec::new, |(recorded, _)| recorded)
    }

    /// Records the remaining attempts.
    pub async fn finish(mut self) {
        while self.recording.is_some() || !self.ended.is_empty() {
            self.next().await;
        }
    }
}

/// Records attempts. If that fails, they stay due.
fn record(ledger: &Ledger, attempts: &[Attempt]) {
    if let Err(error) = ledger.record_attempts(attempts) {
        tracing::warn!(%error, "attempts could not be recorded");
        std::thread::sleep(RECORD_AGAIN_AFTER);
    }
}

/// The most messages in progress.
const MAX_MESSAGES: usize = 1024;
/// The most messages of one class in progress. The two classes are urgent messages, which are
/// results and answers to askers with a job, and all others.
const MAX_MESSAGES_OF_CLASS: usize = 640;
/// Messages of each class that are read from the ledger at once.
const READ_PER_CLASS: usize = 256;
/// Time after which a message's first attempt may be ended to make room for another message. The
/// attempt is repeated later.
const ATTEMPT_TIME: Duration = Duration::from_millis(1500);
/// The value of [`ATTEMPT_TIME`] for urgent messages.
const URGENT_ATTEMPT_TIME: Duration = Duration::from_secs(3);
/// The value of [`ATTEMPT_TIME`] for repeated attempts. In a flood most of them fail like the
/// first.
const FURTHER_ATTEMPT_TIME: Duration = Duration::from_millis(500);
/// Number of messages in progress from which the ledger is read less often.
const BUSY_FROM: usize = 64;

/// Messages whose attempts are in progress or not recorded yet.
pub(super) struct UnderWay {
    outbox: Arc<Outbox>,
    /// The messages, and whether each is urgent.
    messages: HashMap<MessageId, bool>,
    attempts: JoinSet<Attempt>,
    running: HashMap<Id, RunningAttempt>,
}

struct RunningAttempt {
    message: Arc<DueMessage>,
    started: Instant,
    cancel: Arc<Notify>,
}

impl UnderWay {
    /// Starts with no messages. They are sent through `outbox`.
    pub fn new(outbox: Arc<Outbox>) -> UnderWay {
        UnderWay { outbox, messages: HashMap::new(), attempts: JoinSet::new(), running: HashMap::new() }
    }

    /// The next messages to send.
    pub fn due(&self) -> Result<Vec<DueMessage>, LedgerError> {
        self.outbox.ledger.due_messages_except(READ_PER_CLASS, |message| self.messages.contains_key(&message))
    }

    /// Whether reading the due messages takes long, because many are in progress.
    pub fn is_busy(&self) -> bool {
        self.messages.len() >= BUSY_FROM
    }

    /// Whether some due messages may have found no place.
    pub fn is_full(&self) -> bool {
        self.messages.len() >= MAX_MESSAGES
            || self.of_classes().into_iter().any(|messages| messages >= MAX_MESSAGES_OF_CLASS)
    }

    /// The numbers of messages of each class: not urgent, urgent.
    fn of_classes(&self) -> [usize; 2] {
        let urgent = self.messages.values().filter(|urgent| **urgent).count();
        [self.messages.len() - urgent, urgent]
    }

    /// Starts an attempt for each of these messages, as far as there is room. For each new message
    /// without room, ends one running attempt of its class.
    pub fn start(&mut self, due: Vec<DueMessage>, now: Instant) {
        let (mut of_classes, mut waiting) = (self.of_classes(), [0, 0]);
        for message in due {
            let class = usize::from(message.urgent);
            if !has_room(self.messages.len(), of_classes[class]) {
                waiting[class] += usize::from(message.attempts == 0);
                continue;
            }
            of_classes[class] += 1;
            self.messages.insert(message.id, message.urgent);
            let (outbox, message, cancel) = (Arc::clone(&self.outbox), Arc::new(message), Arc::new(Notify::new()));
            let (sent, cancelled) = (Arc::clone(&message), Arc::clone(&cancel));
            let task = self.attempts.spawn(async move { outbox.attempt(&sent, &cancelled).await });
            self.running.insert(task.id(), RunningAttempt { message, started: now, cancel });
        }
        self.end_longest(false, waiting[0], now);
        self.end_longest(true, waiting[1], now);
    }

    /// Ends up to `count` attempts of a class, in the order of [`in_order_of_ending`].
    fn end_longest(&self, urgent: bool, count: usize, now: Instant) {
        if count == 0 {
            return;
        }
        let longest = in_order_of_ending(self.running.values(), urgent, now);
        longest.iter().take(count).for_each(|running| running.cancel.notify_one());
    }

    /// The next attempt that ended; `None` while there is none. Cancel-safe.
    pub async fn next_ended(&mut self) -> Option<Attempt> {
        let (task, attempt) = match self.attempts.join_next_with_id().await? {
            Ok((task, attempt)) => (task, Some(attempt)),
            Err(error) => (error.id(), None),
        };
        let message = self.running.remove(&task)?.message;
        Some(attempt.unwrap_or_else(|| {
            // Counts as an attempt that no relay accepted.
            tracing::error!(message = message.id.0, "sending a message panicked; it is tried again");
            Attempt { message: message.id, reached: Vec::new(), next: self.outbox.next(&message, 0, 0) }
        }))
    }

    /// Notes that an attempt is recorded: the message may be sent again when it is due.
    pub fn recorded(&mut self, message: MessageId) {
        self.messages.remove(&message);
    }
}

/// The attempts of a class that may be ended, in the order of ending: repeated attempts before
/// first ones, and among equals the longest first.
fn in_order_of_ending<'a>(
    running: impl Iterator<Item = &'a RunningAttempt>,
    urgent: bool,
    now: Instant,
) -> Vec<&'a RunningAttempt> {
    let least_time = |running: &RunningAttempt| match (running.message.attempts, urgent) {
        (1.., _) => FURTHER_ATTEMPT_TIME,
        (0, true) => URGENT_ATTEMPT_TIME,
        (0, false) => ATTEMPT_TIME,
    };
    let may_end =
        |running: &&RunningAttempt| running.message.urgent == urgent && now >= running.started + least_time(running);
    let mut longest: Vec<&RunningAttempt> = running.filter(may_end).collect();
    longest.sort_by_key(|running| (running.message.attempts == 0, running.started));
    longest
}

/// Whether there is room for another message. `all`: messages in progress; `of_class`: those of its
/// class.
fn has_room(all: usize, of_class: usize) -> bool {
    all < MAX_MESSAGES && of_class < MAX_MESSAGES_OF_CLASS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Asker;
    use crate::message::GiftWrap;

    #[test]
    fn results_have_places_that_chatter_does_not_get() {
        let start = |messages: &mut Vec<bool>, is_urgent: bool| {
            let of_class = messages.iter().filter(|urgent| **urgent == is_urgent).count();
            if has_room(messages.len(), of_class) {
                messages.push(is_urgent);
            }
        };
        // Chatter has reserved places too, because an attacker creates jobs as easily as keys.
        for first in [false, true] {
            let mut messages = Vec::new();
            (0..2 * MAX_MESSAGES).for_each(|_| start(&mut messages, first));
            assert_eq!(messages.len(), MAX_MESSAGES_OF_CLASS);
            (0..2 * MAX_MESSAGES).for_each(|_| start(&mut messages, !first));
            assert_eq!(messages.len(), MAX_MESSAGES);
        }
    }

    #[test]
    fn further_attempts_make_room_before_first_ones_and_each_has_its_least_time() {
        let now = Instant::now() + Duration::from_secs(60);
        let running = |id, urgent, attempts, millis| {
            let wrap = GiftWrap { id: [0; 32], to: Asker([0; 32]), json: String::new(), expires_at: 0 };
            let (seen_on, acknowledged_by) = (Vec::new(), Vec::new());
            let id = MessageId(id);
            let message =
                DueMessage { id, result_of: None, urgent, wrap, queued_at: 0, attempts, seen_on, acknowledged_by };
            RunningAttempt {
                message: Arc::new(message),
                started: now - Duration::from_millis(millis),
                cancel: Arc::default(),
            }
        };
        let all = [
            running(1, false, 0, 9000),
            running(2, false, 0, 1499),
            running(3, false, 0, 1500),
            running(4, false, 1, 499),
            running(5, false, 1, 500),
            running(6, false, 7, 600),
            running(11, true, 0, 2999),
            running(12, true, 0, 3000),
            running(13, true, 2, 500),
        ];
        let order = |urgent| -> Vec<i64> {
            in_order_of_ending(all.iter(), urgent, now).iter().map(|running| running.message.id.0).collect()
        };
        assert_eq!((order(false), order(true)), (vec![6, 5, 1, 3], vec![13, 12]));
    }
}
