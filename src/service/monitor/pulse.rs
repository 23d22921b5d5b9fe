//! Signs of life of the essential parts of the bot.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Signs of life. Cheap to clone; clones share them.
///
/// The maintenance task answers a ping with a beat. The thread that answers requests cannot,
/// because it waits for messages. It notes when it began a batch.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    beats: watch::Sender<u64>,
    attending: Mutex<Option<Instant>>,
    waiting: AtomicU64,
    answered: AtomicU64,
}

/// A guard that marks a batch as in progress until the guard is dropped, also by a panic.
pub struct Attending(Pulse);

impl Pulse {
    /// Answers a ping.
    pub fn beat(&self) {
        self.0.beats.send_modify(|beats| *beats = beats.wrapping_add(1));
    }

    /// A receiver of the beats from now on.
    pub fn beats(&self) -> watch::Receiver<u64> {
        self.0.beats.subscribe()
    }

    /// Notes that a batch of messages is in progress until the value is dropped.
    pub fn attend(&self) -> Attending {
        self.set_attending(Some(Instant::now()));
        Attending(self.clone())
    }

    /// Time that the present batch has taken; `None` between two batches.
    pub fn attending_for(&self) -> Option<Duration> {
        self.0.attending.lock().unwrap_or_else(PoisonError::into_inner).map(|since| since.elapsed())
    }

    /// Notes how many messages wait for their answer.
    pub fn set_waiting(&self, messages: usize) {
        self.0.waiting.store(messages as u64, Ordering::Relaxed);
    }

    /// Number of messages that wait for their answer.
    pub fn waiting(&self) -> u64 {
        self.0.waiting.load(Ordering::Relaxed)
    }

    /// Counts a message that was decided on.
    pub fn count_answered(&self) {
        self.0.answered.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of messages decided on since the start.
    pub fn answered(&self) -> u64 {
        self.0.answered.load(Ordering::Relaxed)
    }

    fn set_attending(&self, since: Option<Instant>) {
        *self.0.attending.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }
}

impl Drop for Attending {
    fn drop(&mut self) {
        self.0.set_attending(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_batch_is_noted_until_it_ends_also_by_a_panic() {
        let pulse = Pulse::default();
        assert_eq!(pulse.attending_for(), None);
        let batch = pulse.attend();
        assert!(pulse.attending_for().is_some());
        drop(batch);
        assert_eq!(pulse.attending_for(), None);
        let panicking = AssertUnwindSafe(|| {
            let _batch = pulse.attend();
            panic!("a panic of the test");
        });
        assert!(catch_unwind(panicking).is_err());
        assert_eq!(pulse.attending_for(), None);
    }
}
