//! Relays that limit our rate, or do not answer. Each gets events as fast as it accepts them, and delays only its own.
//!
//! A relay that says `rate-limited` gets its events one by one. A relay that has not answered for some seconds gets one
//! at a time, as a probe; the others are tried again later and do not occupy the outbox meanwhile.

use nostr_sdk::RelayUrl;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A relay that has not answered for this long gets one event at a time.
const PATIENCE: Duration = Duration::from_secs(3);
/// The gap between two events after the first `rate-limited`.
const FIRST_GAP: Duration = Duration::from_millis(500);
/// The longest gap.
const LONGEST_GAP: Duration = Duration::from_secs(10);
/// A relay whose gap has become shorter than this is not limited any more.
const NO_GAP: Duration = Duration::from_millis(100);

/// The limits of all relays that have any.
#[derive(Debug, Default)]
pub(in crate::nostr) struct Throttle {
    limited: Mutex<HashMap<RelayUrl, RateLimit>>,
    pending: Mutex<HashMap<RelayUrl, Pending>>,
}

/// A relay that limits our rate.
#[derive(Debug)]
struct RateLimit {
    gap: Duration,
    /// When the next event may be sent.
    next: Instant,
    slowed_at: Instant,
}

/// A relay that owes us an answer.
#[derive(Debug)]
struct Pending {
    deliveries: usize,
    /// When it last answered, or got the first of these events.
    since: Instant,
    /// A delivery timed out, and it has not answered since.
    is_suspect: bool,
}

/// One event on its way to one relay.
pub(in crate::nostr) struct Delivery<'a> {
    throttle: &'a Throttle,
    url: &'a RelayUrl,
}

impl Throttle {
    /// When the next event may be sent; `None` if that is after `deadline`.
    pub fn turn(&self, url: &RelayUrl, now: Instant, deadline: Instant) -> Option<Instant> {
        let mut limited = self.limited();
        let Some(limit) = limited.get_mut(url) else { return Some(now) };
        let turn = limit.next.max(now);
        if turn > deadline {
            return None;
        }
        limit.next = turn + limit.gap;
        Some(turn)
    }

    /// A relay said `rate-limited`. Repeats for events sent before it said so count once.
    pub fn slow_down(&self, url: &RelayUrl, now: Instant) {
        let mut limited = self.limited();
        let gap = match limited.get(url) {
            None => FIRST_GAP,
            Some(limit) if now.duration_since(limit.slowed_at) < limit.gap => return,
            Some(limit) => (limit.gap * 2).min(LONGEST_GAP),
        };
        limited.insert(url.clone(), RateLimit { gap, next: now + gap, slowed_at: now });
    }

    /// A relay accepted an event: the gap becomes an eighth shorter.
    pub fn speed_up(&self, url: &RelayUrl) {
        let mut limited = self.limited();
        if let Some(limit) = limited.get_mut(url) {
            limit.gap = limit.gap * 7 / 8;
            if limit.gap < NO_GAP {
                limited.remove(url);
            }
        }
    }

    /// Starts a delivery; `None` if the relay leaves others unanswered. It ends when it is dropped.
    pub fn begin_delivery<'a>(&'a self, url: &'a RelayUrl, now: Instant) -> Option<Delivery<'a>> {
        let mut pending = self.pending();
        let relay = pending.entry(url.clone()).or_insert(Pending { deliveries: 0, since: now, is_suspect: false });
        if relay.deliveries == 0 {
            relay.since = now;
        } else if relay.is_suspect || now.duration_since(relay.since) > PATIENCE {
            return None;
        }
        relay.deliveries += 1;
        Some(Delivery { throttle: self, url })
    }

    /// Forgets relays that were idle for this long: askers list as many as they like.
    pub fn forget_idle(&self, now: Instant, idle: Duration) {
        self.limited().retain(|_, limit| now < limit.next + idle);
        self.pending().retain(|_, relay| relay.deliveries > 0 || now < relay.since + idle);
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<RelayUrl, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limited(&self) -> MutexGuard<'_, HashMap<RelayUrl, RateLimit>> {
        self.limited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Delivery<'_> {
    /// Notes whether the relay answered, with an OK or a refusal.
    pub fn end(&self, answered: bool) {
        if let Some(relay) = self.throttle.pending().get_mut(self.url) {
            relay.is_suspect = !answered;
            relay.since = Instant::now();
        }
    }
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        let mut pending = self.throttle.pending();
        if let Some(relay) = pending.get_mut(self.url) {
            relay.deliveries -= 1;
            if relay.deliveries == 0 && !relay.is_suspect {
                pending.remove(self.url);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_relay_gets_one_event_at_a_time_until_it_answers() {
        let (throttle, url) = (Throttle::default(), RelayUrl::parse("wss://silent.example").unwrap());
        let now = Instant::now();
        let mut under_way: Vec<_> = (0..5).filter_map(|_| throttle.begin_delivery(&url, now)).collect();
        assert_eq!(under_way.len(), 5);
        assert!(throttle.begin_delivery(&url, now + 2 * PATIENCE).is_none(), "it has not answered yet");
        under_way.drain(..).for_each(|delivery| delivery.end(false));
        let probe = throttle.begin_delivery(&url, now + 2 * PATIENCE).expect("one probe is allowed");
        assert!(throttle.begin_delivery(&url, now + 2 * PATIENCE).is_none(), "one at a time until it answers");
        probe.end(true);
        assert!(throttle.begin_delivery(&url, Instant::now()).is_some());
    }

    #[test]
    fn idle_relays_are_forgotten() {
        let (throttle, now, idle) = (Throttle::default(), Instant::now(), Duration::from_secs(600));
        let url = |number: u32| RelayUrl::parse(&format!("wss://{number}.example")).unwrap();
        let urls: Vec<RelayUrl> = (0..100).map(url).collect();
        for url in &urls {
            throttle.slow_down(url, now);
            throttle.begin_delivery(url, now).unwrap().end(false);
        }
        let _delivery = throttle.begin_delivery(&urls[0], now);
        let known = |throttle: &Throttle| (throttle.limited().len(), throttle.pending().len());
        throttle.forget_idle(now + idle / 2, idle);
        assert_eq!(known(&throttle), (100, 100));
        throttle.forget_idle(now + idle * 2, idle);
        assert_eq!(known(&throttle), (0, 1));
    }

    #[test]
    fn a_rate_limited_relay_gets_events_one_by_one_and_faster_after_each_success() {
        let (throttle, url) = (Throttle::default(), RelayUrl::parse("wss://slow.example").unwrap());
        let now = Instant::now();
        let late = now + Duration::from_secs(20);
        let wait = |at: Instant| throttle.turn(&url, at, late).map(|turn| (turn - at).as_millis());
        assert_eq!((wait(now), wait(now)), (Some(0), Some(0)), "an unlimited relay has no gap");
        // Thirty were under way when it said so.
        (0..30).for_each(|_| throttle.slow_down(&url, now));
        assert_eq!((wait(now), wait(now), wait(now)), (Some(500), Some(1000), Some(1500)));
        // Again, later: twice the gap. A turn after the deadline is refused.
        throttle.slow_down(&url, now + FIRST_GAP);
        assert_eq!(wait(now), Some(1500));
        assert_eq!(throttle.turn(&url, now, now + FIRST_GAP), None);
        (0..30).for_each(|_| throttle.speed_up(&url));
        assert_eq!((wait(late), wait(late)), (Some(0), Some(0)), "the limit is gone");
    }
}
