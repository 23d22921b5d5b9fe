//! The outbox task: starts an attempt for each due message and records how it ended.

use super::record::Recorder;
use crate::clock::Clock;
use crate::config::BotConfig;
use crate::fault::{self, Step};
use crate::ledger::{Attempt, DueMessage, Ledger, MessageId, Next};
use crate::nostr::relay::connections::Relays;
use crate::nostr::relay::relay_lists::RelayLists;
use crate::shutdown::Shutdown;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::{Id, JoinSet};

/// Messages under way at once: more than a silent relay can hold up before that is noticed.
const AT_ONCE: usize = 512;
/// The longest pause between two reads of the ledger: the clock may be set meanwhile.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The shortest one.
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);

/// Delivers stored messages.
#[derive(Clone)]
pub struct Outbox {
    /// The connections.
    pub relays: Relays,
    /// Holds the messages.
    pub ledger: Ledger,
    /// Says what is due.
    pub clock: Clock,
    /// Whether askers without relay lists are answered.
    pub bot: BotConfig,
    /// Where askers can be reached.
    pub relay_lists: Arc<RelayLists>,
}

/// Messages whose attempts are under way or not recorded yet.
#[derive(Default)]
struct UnderWay {
    ids: HashSet<MessageId>,
    attempts: JoinSet<Attempt>,
    messages: HashMap<Id, DueMessage>,
}

impl Outbox {
    /// Sends due messages until the shutdown; `wake` announces new ones.
    pub async fn run(self, wake: Arc<Notify>, mut shutdown: Shutdown) {
        let mut recorder = Recorder::new(self.ledger.clone());
        let outbox = Arc::new(self);
        let mut under_way = UnderWay::default();
        // Due messages are read at this time: reading them costs as much as sending a few.
        let mut read_at = Instant::now();
        loop {
            fault::before(Step::Round);
            if Instant::now() >= read_at {
                under_way.start(&outbox);
                outbox.relays.leave_idle_external().await;
                read_at = Instant::now() + outbox.until_next_due();
            }
            let all_ended = under_way.attempts.is_empty();
            fault::after(Step::Round);
            tokio::select! {
                () = shutdown.stopped() => return recorder.finish().await,
                () = wake.notified() => read_at = Instant::now(),
                Some(attempt) = under_way.next_ended(&outbox) => recorder.add(attempt),
                recorded = recorder.next(all_ended) => {
                    if under_way.ids.len() == AT_ONCE {
                        read_at = Instant::now();
                    } else if recorded.iter().any(|attempt| attempt.next != Next::Finished) {
                        read_at = read_at.min(Instant::now() + outbox.until_next_due());
                    }
                    for attempt in recorded {
                        under_way.ids.remove(&attempt.message);
                    }
                }
                () = tokio::time::sleep_until(read_at.into()) => {}
            }
        }
    }

    fn due(&self, limit: usize) -> Vec<DueMessage> {
        self.ledger.due_messages(limit).unwrap_or_else(|error| {
            tracing::warn!(%error, "the outbox cannot be read yet");
            Vec::new()
        })
    }

    fn until_next_due(&self) -> Duration {
        let due = self.ledger.next_due().ok().flatten();
        let pause = due.map_or(LONGEST_PAUSE, |due| Duration::from_secs(due.saturating_sub(self.clock.now())));
        // Messages that are due already are under way, or the ledger failed: neither needs another read at once.
        pause.clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
    }
}

impl UnderWay {
    /// Starts an attempt for each due message, as far as there is room.
    fn start(&mut self, outbox: &Arc<Outbox>) {
        if self.ids.len() >= AT_ONCE {
            return;
        }
        for message in outbox.due(AT_ONCE) {
            if self.ids.len() < AT_ONCE && self.ids.insert(message.id) {
                let (outbox, copy) = (Arc::clone(outbox), message.clone());
                let task = self.attempts.spawn(async move { outbox.attempt(&copy).await });
                self.messages.insert(task.id(), message);
            }
        }
    }

    /// The next attempt that ended; `None` while there is none. Cancel-safe.
    async fn next_ended(&mut self, outbox: &Outbox) -> Option<Attempt> {
        let (task, attempt) = match self.attempts.join_next_with_id().await? {
            Ok((task, attempt)) => (task, Some(attempt)),
            Err(error) => (error.id(), None),
        };
        let message = self.messages.remove(&task)?;
        Some(attempt.unwrap_or_else(|| {
            // Counts as an attempt that no relay accepted.
            tracing::error!(message = message.id.0, "sending a message panicked; it is tried again");
            Attempt { message: message.id, reached: Vec::new(), next: outbox.next(&message, 0, 0) }
        }))
    }
}
