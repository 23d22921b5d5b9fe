//! Relays that take only so many events in a time: each gets them one by one, as fast as it lets them pass.

use nostr_sdk::RelayUrl;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two events to a relay that has just said that it wants fewer.
const FIRST_GAP: Duration = Duration::from_millis(500);
const LONGEST_GAP: Duration = Duration::from_secs(10);
/// A relay that bears a gap this short is not held back any more.
const NO_GAP: Duration = Duration::from_millis(100);

/// Who is to be served how slowly. Relays without a complaint are not in here.
#[derive(Debug, Default)]
pub(super) struct Pace {
    slow: Mutex<HashMap<RelayUrl, Slow>>,
}

#[derive(Debug)]
struct Slow {
    gap: Duration,
    /// Whose turn is next, has it now.
    next: Instant,
    slowed_at: Instant,
}

impl Pace {
    /// When the next event may be sent; `None` if that is after `deadline`.
    pub fn turn(&self, url: &RelayUrl, now: Instant, deadline: Instant) -> Option<Instant> {
        let mut slow = self.lock();
        let Some(relay) = slow.get_mut(url) else { return Some(now) };
        let turn = relay.next.max(now);
        if turn > deadline {
            return None;
        }
        relay.next = turn + relay.gap;
        Some(turn)
    }

    /// A relay wants fewer. What was under way before it said so counts once.
    pub fn slow_down(&self, url: &RelayUrl, now: Instant) {
        let mut slow = self.lock();
        let gap = match slow.get(url) {
            None => FIRST_GAP,
            Some(relay) if now.duration_since(relay.slowed_at) < relay.gap => return,
            Some(relay) => (relay.gap * 2).min(LONGEST_GAP),
        };
        slow.insert(url.clone(), Slow { gap, next: now + gap, slowed_at: now });
    }

    /// A relay took one: the next may come a little sooner.
    pub fn went_well(&self, url: &RelayUrl) {
        let mut slow = self.lock();
        if let Some(relay) = slow.get_mut(url) {
            relay.gap = relay.gap * 7 / 8;
            if relay.gap < NO_GAP {
                slow.remove(url);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RelayUrl, Slow>> {
        self.slow.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_fewer_gets_them_one_by_one_and_faster_as_it_goes_well() {
        let (pace, url) = (Pace::default(), RelayUrl::parse("wss://slow.example").unwrap());
        let now = Instant::now();
        let late = now + Duration::from_secs(20);
        let wait = |at: Instant| pace.turn(&url, at, late).map(|turn| (turn - at).as_millis());
        assert_eq!((wait(now), wait(now)), (Some(0), Some(0)), "without a complaint nobody waits");
        // Thirty were under way when it complained.
        (0..30).for_each(|_| pace.slow_down(&url, now));
        assert_eq!((wait(now), wait(now), wait(now)), (Some(500), Some(1000), Some(1500)));
        // Again, later: twice as slow. What would come too late is not sent at all.
        pace.slow_down(&url, now + FIRST_GAP);
        assert_eq!(wait(now), Some(1500));
        assert_eq!(pace.turn(&url, now, now + FIRST_GAP), None);
        (0..30).for_each(|_| pace.went_well(&url));
        assert_eq!((wait(late), wait(late)), (Some(0), Some(0)), "it was forgiven");
    }
}
