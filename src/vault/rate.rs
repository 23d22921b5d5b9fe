//! Rates of requests, so that a captured bot cannot use the vault faster than an honest one ever
//! does. A request above the rate waits its turn.

use super::frame::lock;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A token bucket.
pub(super) struct Rate {
    per_second: f64,
    burst: f64,
    /// Tokens at a moment. Below zero: taken in advance by those who wait.
    state: Mutex<(f64, Instant)>,
}

impl Rate {
    /// `burst` requests at once, `per_second` in the long run.
    pub(super) fn new(per_second: u32, burst: u32) -> Rate {
        let (per_second, burst) = (f64::from(per_second), f64::from(burst));
        Rate { per_second, burst, state: Mutex::new((burst, Instant::now())) }
    }

    /// Takes a token, and waits until it is due.
    pub(super) fn wait(&self) {
        std::thread::sleep(self.take(Instant::now()));
    }

    /// Takes a token. Returns the time until it is due.
    fn take(&self, now: Instant) -> Duration {
        let (tokens, at) = &mut *lock(&self.state);
        let gained = now.saturating_duration_since(*at).as_secs_f64() * self.per_second;
        (*tokens, *at) = ((*tokens + gained).min(self.burst) - 1.0, now.max(*at));
        Duration::from_secs_f64((-*tokens).max(0.0) / self.per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_at_once_and_then_one_after_another() {
        let (rate, began) = (Rate::new(10, 3), Instant::now());
        let waits: Vec<u128> = (0..6).map(|_| rate.take(began).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200, 300]);
        let later = began + Duration::from_secs(3600);
        let waits: Vec<u128> = (0..4).map(|_| rate.take(later).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100], "an hour saves no more than a burst");
        assert_eq!(rate.take(began).as_millis(), 200, "a clock that goes back gives nothing");
    }
}
