//! The pace of a worker: a limit on the start points drawn for it.
//!
//! A worker chooses the number of start points in its orders, and how fast it answers. Each start
//! point costs the vault a multiplication, whether the worker searches it or not.

use super::wire::MOST_STARTS;
use crate::token_bucket::TokenBucket;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Start points a second for all devices and sessions of a worker together. Eight GPUs with
/// launches of 20 ms use 8,800.
const STARTS: u32 = 10_000;
/// Start points that a worker may take at once. Every device begins with a few orders.
const AT_ONCE: u32 = 20_000;

const _: () = assert!(AT_ONCE as usize > 8 * MOST_STARTS);

/// The start points that a worker may still take. All its devices share this limit, and it outlives
/// their sessions.
pub struct Pace(Mutex<TokenBucket>);

impl Default for Pace {
    fn default() -> Pace {
        Pace(Mutex::new(TokenBucket::new(STARTS, AT_ONCE)))
    }
}

impl Pace {
    /// Takes the start points of an order. Returns how long the order must wait.
    pub fn take(&self, starts: usize, now: Instant) -> Duration {
        let starts = u32::try_from(starts).unwrap_or(u32::MAX);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take_many(now, starts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_points_of_a_worker_are_paced_however_they_are_asked_for() {
        for starts in [1, 22, MOST_STARTS] {
            let (pace, began) = (Pace::default(), Instant::now());
            let (mut now, mut drawn) = (began, 0);
            while now < began + Duration::from_secs(60) {
                now += pace.take(starts, now);
                drawn += starts;
            }
            let most = STARTS as usize * 60 + AT_ONCE as usize + starts;
            assert!((most - 2 * starts..=most).contains(&drawn), "{drawn} of {most}");
        }
    }
}
