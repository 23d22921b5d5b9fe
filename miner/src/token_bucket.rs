//! A token bucket, which limits a rate and allows bursts.

use std::time::{Duration, Instant};

/// Allows a burst at once and then a fixed rate, in real time.
#[derive(Debug)]
pub struct TokenBucket {
    per_second: f64,
    burst: f64,
    level: f64,
    at: Instant,
}

impl TokenBucket {
    /// A full bucket of `burst` tokens that gets `per_second` tokens a second. Zero is taken as one
    /// for both.
    pub fn new(per_second: u32, burst: u32) -> TokenBucket {
        TokenBucket::full_at(Instant::now(), per_second, burst)
    }

    /// [`TokenBucket::new`] at a given time.
    pub fn full_at(at: Instant, per_second: u32, burst: u32) -> TokenBucket {
        let burst = f64::from(burst.max(1));
        TokenBucket { per_second: f64::from(per_second.max(1)), burst, level: burst, at }
    }

    /// Takes a token if there is one now.
    pub fn try_take(&mut self, now: Instant) -> bool {
        self.refill(now);
        let is_there = self.level >= 1.0;
        self.level -= f64::from(u8::from(is_there));
        is_there
    }

    /// Takes a token. Returns how long to wait before using it.
    pub fn take(&mut self, now: Instant) -> Duration {
        self.take_many(now, 1)
    }

    /// Takes this many tokens. Returns how long to wait before using them.
    pub fn take_many(&mut self, now: Instant, tokens: u32) -> Duration {
        self.refill(now);
        self.level -= f64::from(tokens);
        Duration::from_secs_f64((-self.level / self.per_second).max(0.0))
    }

    fn refill(&mut self, now: Instant) {
        let refill = now.saturating_duration_since(self.at).as_secs_f64() * self.per_second;
        self.at = now.max(self.at);
        self.level = (self.level + refill).min(self.burst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_at_once_and_the_rest_waits() {
        let mut bucket = TokenBucket::new(10, 3);
        let now = Instant::now();
        let waits: Vec<u128> = (0..6).map(|_| bucket.take(now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200, 300]);
        let later = now + Duration::from_secs(60);
        let waits: Vec<u128> = (0..4).map(|_| bucket.take(later).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100], "a minute saves no more than a burst");
        assert_eq!(bucket.take(now).as_millis(), 200, "a clock that goes back gives nothing");
        assert_eq!(bucket.take_many(later + Duration::from_secs(60), 5).as_millis(), 200);
        let tries = [60, 60, 61, 61, 61, 61].map(|second| bucket.try_take(later + Duration::from_secs(second)));
        assert_eq!(tries, [false, false, true, true, true, false], "what is not there is not owed");
    }
}
