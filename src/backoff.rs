//! Pauses between attempts.

use std::time::Duration;

/// Pauses that double from a first to a longest one, which repeats.
///
/// Two other schedules do not use this: the outbox's, whose steps are counted in the ledger, and
/// that of the limits on relays, whose gap also shrinks.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    next: Duration,
    first: Duration,
    longest: Duration,
}

impl Backoff {
    /// Pauses of `first`, 2 × `first`, … up to `longest`.
    pub fn new(first: Duration, longest: Duration) -> Backoff {
        Backoff { next: first, first, longest }
    }

    /// The pause before the next attempt.
    pub fn next_pause(&mut self) -> Duration {
        let doubled = (self.next * 2).min(self.longest);
        std::mem::replace(&mut self.next, doubled)
    }

    /// Begins with the first pause again, because an attempt succeeded.
    pub fn reset(&mut self) {
        self.next = self.first;
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
