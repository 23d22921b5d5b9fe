//! Limits on external relays: memory for all of them together, and bytes per second for each.

use crate::token_bucket::TokenBucket;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory limit of all external connections together, in KiB.
const BUDGET: usize = 16 * 1024;
/// Memory of one external connection, in KiB: a frame, a message in parts, and the buffers.
const SHARE: u32 = 80;

/// Bytes that an external relay may send at once: an OK for each event in progress to it (at most
/// 96, of some 200 bytes), and a frame of the greatest length.
const BURST: u32 = 64 * 1024;
/// Bytes per second that an external relay may send on average.
const BYTES_PER_SECOND: u32 = 32 * 1024;
/// Bytes that a smaller message counts as, because small messages also cost time.
const LEAST: u32 = 64;

/// The memory budget of all external connections. Cheap to clone; clones share it.
#[derive(Clone, Debug)]
pub(super) struct Budget(Arc<Semaphore>);

impl Default for Budget {
    fn default() -> Budget {
        Budget(Arc::new(Semaphore::new(BUDGET)))
    }
}

impl Budget {
    /// Takes the share of one connection, which is returned when it is dropped. While the budget is
    /// used up, waits for another connection to close.
    pub async fn share(&self) -> Option<OwnedSemaphorePermit> {
        // An error means that the semaphore is closed, which never happens.
        Arc::clone(&self.0).acquire_many_owned(SHARE).await.ok()
    }
}

/// The bytes that one external relay may still send.
#[derive(Debug)]
pub(super) struct Allowance(TokenBucket);

impl Allowance {
    /// An allowance of the whole burst, for a new connection.
    pub fn new(now: Instant) -> Allowance {
        Allowance(TokenBucket::full_at(now, BYTES_PER_SECOND, BURST))
    }

    /// Counts a message; `false` if the relay has sent too much.
    pub fn take(&mut self, bytes: usize, now: Instant) -> bool {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).max(LEAST);
        self.0.take_many(now, bytes).is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::time::Duration;

    #[test]
    fn external_connections_share_a_budget() {
        let budget = Budget::default();
        let share = || budget.share().now_or_never().flatten();
        let shares: Vec<_> = std::iter::from_fn(share).collect();
        assert_eq!(shares.len(), BUDGET / SHARE as usize);
        assert!(budget.clone().share().now_or_never().is_none());
        drop(shares);
        assert!(share().is_some());
    }

    #[test]
    fn a_burst_passes_and_then_a_rate() {
        let start = Instant::now();
        let mut allowance = Allowance::new(start);
        assert!(allowance.take(32 * 1024, start) && allowance.take(32 * 1024, start));
        assert!(!allowance.take(1, start));
        let mut allowance = Allowance::new(start);
        let tiny = (0..).take_while(|_| allowance.take(0, start)).count();
        assert_eq!(tiny, 1024, "empty messages count too");
        let mut allowance = Allowance::new(start);
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!((0..100).all(|second| allowance.take(32 * 1024, at(second))), "the rate passes for ever");
    }
}
