//! What a stranger's event must be before anything is spent on it, and when a message is too old or from the future.

use nostr_sdk::{Event, Kind, PublicKey};
use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

/// Bytes of encrypted content a wrap may have: more than any message of NIP-44's ordinary length needs.
const LARGEST: usize = 128 * 1024;
/// Messages older than this are not answered any more.
const OLDEST: Duration = Duration::from_secs(7 * 86_400);
/// Clocks differ: nostr-tools rounds up, and phones run ahead.
const AHEAD: Duration = Duration::from_secs(3600);
/// Wraps remembered as dealt with. Beyond these the ledger's own memory of messages still holds.
const REMEMBERED: usize = 100_000;

/// The checks that cost nothing: size, kind, receiver.
pub(in crate::nostr) fn is_worth_opening(event: &Event, bot: &PublicKey) -> bool {
    matches!(event.kind, Kind::GiftWrap | Kind::EncryptedDirectMessage)
        && event.content.len() <= LARGEST
        && event.tags.len() <= 64
        && event.tags.public_keys().any(|key| key == bot)
}

/// Whether an event is what its author signed. The library looks at that too, but once an id: whatever claims the id of an
/// event that it has verified, it passes on unseen. So this is asked before an event is believed, or its id remembered.
pub(in crate::nostr) fn is_genuine(event: &Event) -> bool {
    event.verify_id() && event.verify_signature()
}

/// Whether a message's own date is one to answer: a week back and an hour ahead.
pub(in crate::nostr) fn is_recent(created_at: u64, now: u64) -> bool {
    created_at <= now.saturating_add(AHEAD.as_secs()) && created_at.saturating_add(OLDEST.as_secs()) >= now
}

/// Ids of wraps that were dealt with, the oldest forgotten first.
#[derive(Debug)]
pub(in crate::nostr) struct SeenIds {
    most: usize,
    known: HashSet<[u8; 32]>,
    order: VecDeque<[u8; 32]>,
}

impl Default for SeenIds {
    fn default() -> SeenIds {
        SeenIds::new(REMEMBERED)
    }
}

impl SeenIds {
    /// Remembers so many.
    pub fn new(most: usize) -> SeenIds {
        SeenIds { most, known: HashSet::new(), order: VecDeque::new() }
    }

    pub fn contains(&self, id: &[u8; 32]) -> bool {
        self.known.contains(id)
    }

    /// It is to be dealt with again. (Its old place in the order stays, so the next time it is forgotten too soon.)
    pub fn forget(&mut self, id: &[u8; 32]) {
        self.known.remove(id);
    }

    pub fn insert(&mut self, id: [u8; 32]) {
        if self.known.insert(id) {
            self.order.push_back(id);
            if self.order.len() > self.most
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
            }
        }
    }
}

/// A token bucket over real time: a burst at once, then so many a second. Nothing is dropped; what is over waits.
#[derive(Debug)]
pub(in crate::nostr) struct TokenBucket {
    a_second: f64,
    burst: f64,
    level: f64,
    at: Instant,
}

impl TokenBucket {
    pub fn new(a_second: u32, burst: u32) -> TokenBucket {
        let burst = f64::from(burst.max(1));
        TokenBucket { a_second: f64::from(a_second.max(1)), burst, level: burst, at: Instant::now() }
    }

    /// Takes a token. Returns how long to wait before using it.
    pub fn take(&mut self, now: Instant) -> Duration {
        let refill = now.saturating_duration_since(self.at).as_secs_f64() * self.a_second;
        self.at = now;
        self.level = (self.level + refill).min(self.burst) - 1.0;
        Duration::from_secs_f64((-self.level / self.a_second).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_judged_without_running_over() {
        let now = 1_800_000_000;
        assert!(is_recent(now, now) && is_recent(now + 1, now) && is_recent(now - 604_800, now));
        assert!(!is_recent(now - 604_801, now) && !is_recent(now + 3601, now));
        assert!(!is_recent(u64::MAX, now) && !is_recent(0, now) && is_recent(0, 0) && is_recent(u64::MAX, u64::MAX));
    }

    #[test]
    fn a_burst_passes_and_the_rest_waits_its_turn() {
        let mut bucket = TokenBucket::new(10, 3);
        let now = Instant::now();
        let waits: Vec<u128> = (0..6).map(|_| bucket.take(now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200, 300]);
        assert_eq!(bucket.take(now + Duration::from_secs(60)).as_millis(), 0);
    }

    #[test]
    fn what_was_dealt_with_is_remembered_for_long_and_not_for_ever() {
        let mut handled = SeenIds::default();
        let id = |number: u32| {
            let mut id = [0; 32];
            id[..4].copy_from_slice(&number.to_be_bytes());
            id
        };
        (0..=REMEMBERED as u32).for_each(|number| handled.insert(id(number)));
        assert!(!handled.contains(&id(0)) && handled.contains(&id(1)) && handled.contains(&id(REMEMBERED as u32)));
    }
}
