//! The outbox task: starts an attempt for each due message, and records how they ended (T3).
//!
//! The number of messages in progress is bounded. Some places are reserved for results and for
//! askers with a job, and some for all other messages.

use super::Outbox;
use crate::fault;
use crate::ledger::{Attempt, DueMessage, Ledger, MessageId};
use crate::shutdown::Shutdown;
use futures_util::FutureExt;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

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
        let outbox = Arc::new(self);
        let (ended, to_record) = mpsc::channel();
        let (done, mut recorded) = unbounded_channel();
        let ledger = outbox.ledger.clone();
        let recorder = tokio::task::spawn_blocking(move || record(&ledger, &to_record, &done));
        let mut messages = MessagesInProgress::default();
        let mut attempts: JoinSet<Attempt> = JoinSet::new();
        // The time of the next read. A read costs as much as sending a few messages.
        let mut read_at = Instant::now();
        let mut earliest = read_at;
        let mut leave_at = read_at;
        loop {
            fault::before("round");
            let now = Instant::now();
            if now >= read_at {
                for (message, cancel) in messages.start(outbox.due(&messages), now) {
                    attempts.spawn(Arc::clone(&outbox).attempt_or_later(message, cancel));
                }
                read_at = now + outbox.until_next_due();
                earliest = now + if messages.0.len() < BUSY_FROM { Duration::ZERO } else { READ_PAUSE_WHEN_BUSY };
            }
            if now >= leave_at {
                outbox.relays.leave_idle_external();
                leave_at = now + LEAVE_IDLE;
            }
            fault::after("round");
            tokio::select! {
                () = shutdown.stopped() => break,
                () = wake.notified() => read_at = earliest,
                Some(Ok(attempt)) = attempts.join_next() => {
                    messages.0.entry(attempt.message).and_modify(|message| message.has_ended = true);
                    // An error means that the recorder has ended, which it does after this task.
                    let _ = ended.send(attempt);
                }
                Some(recorded) = recorded.recv() => {
                    if messages.is_full() {
                        read_at = earliest;
                    } else if recorded.iter().any(|attempt| attempt.again_at.is_some()) {
                        read_at = read_at.min(Instant::now() + outbox.until_next_due());
                    }
                    recorded.iter().for_each(|attempt| _ = messages.0.remove(&attempt.message));
                }
                () = tokio::time::sleep_until(read_at.into()) => {}
            }
        }
        // The attempts that have ended are recorded.
        drop(ended);
        let _ = recorder.await;
    }

    /// [`Outbox::attempt`]. After a panic the message counts as one that no relay accepted.
    async fn attempt_or_later(self: Arc<Self>, message: Arc<DueMessage>, cancel: Arc<Notify>) -> Attempt {
        AssertUnwindSafe(self.attempt(&message, &cancel)).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(message = message.id.0, "sending a message panicked; it is tried again");
            Attempt { message: message.id, reached: Vec::new(), again_at: self.again_at(&message, 0, 0) }
        })
    }

    /// The due messages that are not in progress.
    fn due(&self, messages: &MessagesInProgress) -> Vec<DueMessage> {
        let due = self.ledger.due_messages_except(READ_PER_CLASS, |message| messages.0.contains_key(&message));
        due.unwrap_or_else(|error| {
            tracing::warn!(%error, "the outbox cannot be read yet");
            Vec::new()
        })
    }

    fn until_next_due(&self) -> Duration {
        let due = self.ledger.next_due().ok().flatten();
        let pause = due.map_or(LONGEST_READ_PAUSE, |due| Duration::from_secs(due.saturating_sub(self.clock.now())));
        // Messages that are already due are in progress, or the ledger failed. Neither needs
        // another read at once.
        pause.clamp(SHORTEST_READ_PAUSE, LONGEST_READ_PAUSE)
    }
}

/// Time that an ended attempt waits for others to join its transaction.
const GATHER_TIME: Duration = Duration::from_millis(10);
/// Pause after a transaction failed.
const RECORD_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Records attempts until no more can come, several in one transaction, because each waits for the
/// disk and acceptances (T1) wait behind it. Attempts that cannot be recorded stay due.
fn record(ledger: &Ledger, ended: &mpsc::Receiver<Attempt>, done: &UnboundedSender<Vec<Attempt>>) {
    while let Ok(first) = ended.recv() {
        std::thread::sleep(GATHER_TIME);
        let attempts: Vec<Attempt> = std::iter::once(first).chain(ended.try_iter()).collect();
        match catch_unwind(AssertUnwindSafe(|| ledger.record_attempts(&attempts))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "attempts could not be recorded");
                std::thread::sleep(RECORD_AGAIN_AFTER);
            }
            Err(_) => tracing::error!("recording attempts panicked; they stay due"),
        }
        // An error means that the outbox is stopping.
        let _ = done.send(attempts);
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
#[derive(Default)]
struct MessagesInProgress(HashMap<MessageId, InProgress>);

struct InProgress {
    urgent: bool,
    /// Whether it was tried before.
    is_repeated: bool,
    started: Instant,
    /// Whether the attempt waits only to be recorded.
    has_ended: bool,
    cancel: Arc<Notify>,
}

impl MessagesInProgress {
    /// The numbers of messages of each class: not urgent, urgent.
    fn of_classes(&self) -> [usize; 2] {
        let urgent = self.0.values().filter(|message| message.urgent).count();
        [self.0.len() - urgent, urgent]
    }

    /// Whether some due messages may have found no place.
    fn is_full(&self) -> bool {
        let of_classes = self.of_classes();
        !(has_room(of_classes, false) && has_room(of_classes, true))
    }

    /// Adds these messages as far as there is room, and returns those added. For each new message
    /// without room, ends one running attempt of its class.
    fn start(&mut self, due: Vec<DueMessage>, now: Instant) -> Vec<(Arc<DueMessage>, Arc<Notify>)> {
        let (mut of_classes, mut started, mut waiting) = (self.of_classes(), Vec::new(), [0, 0]);
        for message in due {
            let (urgent, is_repeated) = (message.urgent, message.attempts > 0);
            if !has_room(of_classes, urgent) {
                waiting[usize::from(urgent)] += usize::from(!is_repeated);
                continue;
            }
            of_classes[usize::from(urgent)] += 1;
            let cancel = Arc::<Notify>::default();
            let place = InProgress { urgent, is_repeated, started: now, has_ended: false, cancel: Arc::clone(&cancel) };
            self.0.insert(message.id, place);
            started.push((Arc::new(message), cancel));
        }
        for (urgent, count) in [(false, waiting[0]), (true, waiting[1])].into_iter().filter(|(_, count)| *count > 0) {
            self.in_order_of_ending(urgent, now)
                .iter()
                .take(count)
                .for_each(|(_, message)| message.cancel.notify_one());
        }
        started
    }

    /// The attempts of a class that may be ended, in the order of ending: repeated attempts before
    /// first ones, and among equals the longest first.
    fn in_order_of_ending(&self, urgent: bool, now: Instant) -> Vec<(&MessageId, &InProgress)> {
        let least_time = |message: &InProgress| match (message.is_repeated, urgent) {
            (true, _) => FURTHER_ATTEMPT_TIME,
            (false, true) => URGENT_ATTEMPT_TIME,
            (false, false) => ATTEMPT_TIME,
        };
        let may_end = |(_, message): &(&MessageId, &InProgress)| {
            message.urgent == urgent && !message.has_ended && now >= message.started + least_time(message)
        };
        let mut longest: Vec<_> = self.0.iter().filter(may_end).collect();
        longest.sort_by_key(|(_, message)| (!message.is_repeated, message.started));
        longest
    }
}

/// Whether there is room for another message of a class, beside these numbers of each.
fn has_room(of_classes: [usize; 2], urgent: bool) -> bool {
    of_classes[0] + of_classes[1] < MAX_MESSAGES && of_classes[usize::from(urgent)] < MAX_MESSAGES_OF_CLASS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_progress(urgent: bool, is_repeated: bool, started: Instant) -> InProgress {
        InProgress { urgent, is_repeated, started, has_ended: false, cancel: Arc::default() }
    }

    #[test]
    fn results_have_places_that_chatter_does_not_get() {
        let now = Instant::now();
        let start = |messages: &mut MessagesInProgress, urgent: bool| {
            if has_room(messages.of_classes(), urgent) {
                messages.0.insert(MessageId(messages.0.len() as i64), in_progress(urgent, false, now));
            }
        };
        // Chatter has reserved places too, because an attacker creates jobs as easily as keys.
        for first in [false, true] {
            let mut messages = MessagesInProgress::default();
            (0..2 * MAX_MESSAGES_OF_CLASS).for_each(|_| start(&mut messages, first));
            assert_eq!(messages.0.len(), MAX_MESSAGES_OF_CLASS);
            assert!(messages.is_full());
            (0..2 * MAX_MESSAGES_OF_CLASS).for_each(|_| start(&mut messages, !first));
            assert_eq!(messages.0.len(), MAX_MESSAGES);
        }
    }

    #[test]
    fn further_attempts_make_room_before_first_ones_and_each_has_its_least_time() {
        let now = Instant::now() + Duration::from_secs(60);
        let running = |(id, urgent, is_repeated, millis)| {
            (MessageId(id), in_progress(urgent, is_repeated, now - Duration::from_millis(millis)))
        };
        let all = [
            (1, false, false, 9000),
            (2, false, false, 1499),
            (3, false, false, 1500),
            (4, false, true, 499),
            (5, false, true, 500),
            (6, false, true, 600),
            (7, false, true, 9000),
            (11, true, false, 2999),
            (12, true, false, 3000),
            (13, true, true, 500),
        ];
        let mut messages = MessagesInProgress(all.map(running).into());
        messages.0.entry(MessageId(7)).and_modify(|message| message.has_ended = true);
        let order =
            |urgent| -> Vec<i64> { messages.in_order_of_ending(urgent, now).iter().map(|(id, _)| id.0).collect() };
        assert_eq!((order(false), order(true)), (vec![6, 5, 1, 3], vec![13, 12]));
    }
}
