//! Pauses between attempts.

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use std::time::Duration;

/// Pauses that double from a first to a longest one, which repeats.
///
/// Two other schedules do not use this: the outbox's, whose steps are counted in the ledger, and
/// the throttle's, whose gap also shrinks.
#[derive(Debug)]
pub(in crate::nostr) struct Backoff {
    builder: ExponentialBuilder,
    pauses: ExponentialBackoff,
    longest: Duration,
}

/// A clone begins with the first pause.
impl Clone for Backoff {
    fn clone(&self) -> Backoff {
        Backoff { builder: self.builder, pauses: self.builder.build(), longest: self.longest }
    }
}

impl Backoff {
    /// Pauses of `first`, 2 × `first`, … up to `longest`.
    pub fn new(first: Duration, longest: Duration) -> Backoff {
        let builder = ExponentialBuilder::new().with_min_delay(first).with_max_delay(longest).without_max_times();
        Backoff { builder, pauses: builder.build(), longest }
    }

    /// The pause before the next attempt.
    pub fn next_pause(&mut self) -> Duration {
        self.pauses.next().unwrap_or(self.longest)
    }

    /// Begins with the first pause again, because an attempt succeeded.
    pub fn reset(&mut self) {
        self.pauses = self.builder.build();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_start_again_after_a_success() {
        let mut backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(12));
        let mut next = || backoff.next_pause().as_secs();
        assert_eq!([next(), next(), next(), next(), next()], [2, 4, 8, 12, 12]);
        backoff.reset();
        assert_eq!(backoff.next_pause().as_secs(), 2);
    }
}
