//! Records ended attempts (T3) in groups, because each transaction waits for the disk and
//! acceptances (T1) wait behind it.

use crate::ledger::{Attempt, Ledger};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

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
