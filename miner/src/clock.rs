//! The wall clock, and a clock for tests.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// Source of the time. Cheap to clone; clones of a test clock share their time.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The operating system's clock.
    #[default]
    System,
    /// A clock that stands still until it is set.
    Test(Arc<watch::Sender<u64>>),
}

impl Clock {
    /// A test clock that shows `unix_seconds`.
    pub fn at(unix_seconds: u64) -> Clock {
        Clock::Test(Arc::new(watch::Sender::new(unix_seconds)))
    }

    /// Seconds since 1970-01-01 00:00 UTC. A system clock before 1970 reads as 0.
    pub fn now(&self) -> u64 {
        match self {
            Clock::System => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            Clock::Test(seconds) => *seconds.borrow(),
        }
    }

    /// Sets a test clock. Has no effect on the system's clock.
    pub fn set(&self, unix_seconds: u64) {
        if let Clock::Test(seconds) = self {
            seconds.send_replace(unix_seconds);
        }
    }

    /// Returns a notifier that yields each time a test sets this clock, so that periodic work need
    /// not wait for its next round.
    pub fn turns(&self) -> Turns {
        match self {
            Clock::System => Turns(None),
            Clock::Test(seconds) => Turns(Some(seconds.subscribe())),
        }
    }
}

/// Yields each time a test clock is set; never for the system's clock.
pub struct Turns(Option<watch::Receiver<u64>>);

impl Turns {
    /// Waits until the clock is set again. Several changes in quick succession may count as one.
    pub async fn next(&mut self) {
        let turned = match &mut self.0 {
            Some(seconds) => seconds.changed().await.is_ok(),
            None => false,
        };
        if !turned {
            std::future::pending::<()>().await;
        }
    }
}
