//! The wall clock, and a clock for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Source of the time. Cheap to clone; clones of a test clock share their time.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The operating system's clock.
    #[default]
    System,
    /// A clock that stands still until it is set.
    Test(Arc<AtomicU64>),
}

impl Clock {
    /// A test clock that shows `unix_seconds`.
    pub fn at(unix_seconds: u64) -> Clock {
        Clock::Test(Arc::new(AtomicU64::new(unix_seconds)))
    }

    /// Seconds since 1970-01-01 00:00 UTC. A system clock before 1970 reads as 0.
    pub fn now(&self) -> u64 {
        match self {
            Clock::System => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            Clock::Test(seconds) => seconds.load(Ordering::SeqCst),
        }
    }

    /// Sets a test clock. Does nothing to the system's.
    pub fn set(&self, unix_seconds: u64) {
        if let Clock::Test(seconds) = self {
            seconds.store(unix_seconds, Ordering::SeqCst);
        }
    }
}
