//! The outbox task: starts an attempt for each due message, and records how they ended (T3), several
//! in one transaction, because each waits for the disk and acceptances (T1) wait behind it.

use super::attempts::Outbox;
use super::under_way::UnderWay;
use crate::fault::{self, Step};
use crate::ledger::{Attempt, DueMessage, Ledger, Next};
use crate::shutdown::Shutdown;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// The longest pause between two reads of the ledger. It is short, because setting the clock can
/// make messages due earlier.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The shortest pause between two reads, if no new message is announced.
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
/// The shortest pause between two reads while many messages are in progress, because reading takes
/// longer then.
const BUSY_PAUSE: Duration = Duration::from_millis(50);
/// Time between two searches for idle connections, which are then closed.
const LEAVE_IDLE: Duration = Duration::from_secs(10);

impl Outbox {
    /// Sends due messages until the shutdown; `wake` announces new ones.
    pub async fn run(self, wake: Arc<Notify>, mut shutdown: Shutdown) {
        let mut recorder = Recorder::new(self.ledger.clone());
        let outbox = Arc::new(self);
        let mut under_way = UnderWay::new(Arc::clone(&outbox));
        // The time of the next read. A read costs as much as sending a few messages.
        let mut read_at = Instant::now();
        let mut earliest = read_at;
        let mut leave_at = read_at;
        loop {
            fault::before(Step::Round);
            let now = Instant::now();
            if now >= read_at {
                under_way.start(due(&under_way), now);
                read_at = now + outbox.until_next_due();
                earliest = now + if under_way.is_busy() { BUSY_PAUSE } else { Duration::ZERO };
            }
            if now >= leave_at {
                outbox.relays.leave_idle_external().await;
                leave_at = now + LEAVE_IDLE;
            }
            let all_ended = under_way.all_ended();
            fault::after(Step::Round);
            tokio::select! {
                () = shutdown.stopped() => return recorder.finish().await,
                () = wake.notified() => read_at = earliest,
                Some(attempt) = under_way.next_ended() => recorder.add(attempt),
                recorded = recorder.next(all_ended) => {
                    if under_way.is_full() {
                        read_at = earliest;
                    } else if recorded.iter().any(|attempt| attempt.next != Next::Finished) {
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
        let pause = due.map_or(LONGEST_PAUSE, |due| Duration::from_secs(due.saturating_sub(self.clock.now())));
        // Messages that are already due are in progress, or the ledger failed. Neither needs
        // another read at once.
        pause.clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
    }
}

fn due(under_way: &UnderWay) -> Vec<DueMessage> {
    under_way.due().unwrap_or_else(|error| {
        tracing::warn!(%error, "the outbox cannot be read yet");
        Vec::new()
    })
}

/// Time that an ended attempt waits for others to join its transaction.
const GATHER: Duration = Duration::from_millis(10);
/// Pause after a transaction failed.
const RETRY: Duration = Duration::from_secs(2);

/// Ended attempts that are not recorded yet.
pub(super) struct Recorder {
    ledger: Ledger,
    ended: Vec<Attempt>,
    /// The time at which `ended` is recorded, even if other attempts are still running.
    due: Instant,
    recording: Option<(Vec<Attempt>, JoinHandle<()>)>,
}

impl Recorder {
    /// A recorder that writes to `ledger`.
    pub fn new(ledger: Ledger) -> Recorder {
        Recorder { ledger, ended: Vec::new(), due: Instant::now(), recording: None }
    }

    /// Adds an ended attempt.
    pub fn add(&mut self, attempt: Attempt) {
        if self.ended.is_empty() {
            self.due = Instant::now() + GATHER;
        }
        self.ended.push(attempt);
    }

    /// Records the ended attempts and returns them. Never returns while there are none. `at_once`:
    /// whether to record without waiting for others, because no other attempt is running.
    /// Cancel-safe.
    pub async fn next(&mut self, at_once: bool) -> Vec<Attempt> {
        if self.recording.is_none() {
            if self.ended.is_empty() {
                return std::future::pending().await;
            }
            if !at_once {
                tokio::time::sleep_until(self.due.into()).await;
            }
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
            self.next(true).await;
        }
    }
}

/// Records attempts. If that fails, they stay due.
fn record(ledger: &Ledger, attempts: &[Attempt]) {
    if let Err(error) = ledger.record_attempts(attempts) {
        tracing::warn!(%error, "attempts could not be recorded");
        std::thread::sleep(RETRY);
    }
}
