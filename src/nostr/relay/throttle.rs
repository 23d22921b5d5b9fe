//! Relays that want fewer events, or say nothing: each is served as fast as it lets letters pass, and holds up only its own.
//!
//! One that says `rate-limited` gets its letters one by one. One that has not said a word for some seconds gets one at a time,
//! to see whether it lives; the others come again later, so that they do not take up the room that other relays' letters need.

use nostr_sdk::RelayUrl;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A relay that has said nothing for so long gets no more than one at a time.
const PATIENCE: Duration = Duration::from_secs(3);
/// Between two events to a relay that has just said that it wants fewer.
const FIRST_GAP: Duration = Duration::from_millis(500);
const LONGEST_GAP: Duration = Duration::from_secs(10);
/// A relay that bears a gap this short is not held back any more.
const NO_GAP: Duration = Duration::from_millis(100);

/// Who is to be served how slowly. Relays without a complaint are not in here.
#[derive(Debug, Default)]
pub(in crate::nostr) struct Pace {
    slow: Mutex<HashMap<RelayUrl, Slow>>,
    waited_for: Mutex<HashMap<RelayUrl, Wait>>,
}

/// A relay from which an answer is awaited.
#[derive(Debug)]
struct Wait {
    under_way: usize,
    /// Since when it has said nothing.
    since: Instant,
    /// It let somebody wait in vain, and has not answered since.
    is_doubtful: bool,
}

/// One event under way to one relay.
pub(in crate::nostr) struct Delivery<'a> {
    pace: &'a Pace,
    url: &'a RelayUrl,
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

    /// Says that an event goes out now; `None` if the relay leaves others waiting. Ends when it is dropped.
    pub fn deliver<'a>(&'a self, url: &'a RelayUrl, now: Instant) -> Option<Delivery<'a>> {
        let mut waits = self.waits();
        let wait = waits.entry(url.clone()).or_insert(Wait { under_way: 0, since: now, is_doubtful: false });
        if wait.under_way == 0 {
            wait.since = now;
        } else if wait.is_doubtful || now.duration_since(wait.since) > PATIENCE {
            return None;
        }
        wait.under_way += 1;
        Some(Delivery { pace: self, url })
    }

    /// Forgets relays that had nothing to do for so long: askers name as many as they like.
    pub fn forget_idle(&self, now: Instant, idle: Duration) {
        self.lock().retain(|_, relay| now < relay.next + idle);
        self.waits().retain(|_, wait| wait.under_way > 0 || now < wait.since + idle);
    }

    fn waits(&self) -> std::sync::MutexGuard<'_, HashMap<RelayUrl, Wait>> {
        self.waited_for.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RelayUrl, Slow>> {
        self.slow.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Delivery<'_> {
    /// Whether the relay said anything.
    pub fn heard(&self, anything: bool) {
        if let Some(wait) = self.pace.waits().get_mut(self.url) {
            wait.is_doubtful = !anything;
            wait.since = Instant::now();
        }
    }
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        let mut waits = self.pace.waits();
        if let Some(wait) = waits.get_mut(self.url) {
            wait.under_way -= 1;
            if wait.under_way == 0 && !wait.is_doubtful {
                waits.remove(self.url);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_nothing_gets_one_at_a_time_until_it_answers() {
        let (pace, url) = (Pace::default(), RelayUrl::parse("wss://silent.example").unwrap());
        let now = Instant::now();
        let mut under_way: Vec<_> = (0..5).filter_map(|_| pace.deliver(&url, now)).collect();
        assert_eq!(under_way.len(), 5);
        assert!(pace.deliver(&url, now + 2 * PATIENCE).is_none(), "it has said nothing yet");
        under_way.drain(..).for_each(|delivery| delivery.heard(false));
        let probe = pace.deliver(&url, now + 2 * PATIENCE).expect("one may try");
        assert!(pace.deliver(&url, now + 2 * PATIENCE).is_none(), "one, until it answers");
        probe.heard(true);
        assert!(pace.deliver(&url, Instant::now()).is_some());
    }

    #[test]
    fn who_had_nothing_to_do_for_long_is_forgotten() {
        let (pace, now, idle) = (Pace::default(), Instant::now(), Duration::from_secs(600));
        let url = |number: u32| RelayUrl::parse(&format!("wss://{number}.example")).unwrap();
        let urls: Vec<RelayUrl> = (0..100).map(url).collect();
        for url in &urls {
            pace.slow_down(url, now);
            pace.deliver(url, now).unwrap().heard(false);
        }
        let _under_way = pace.deliver(&urls[0], now);
        let known = |pace: &Pace| (pace.lock().len(), pace.waits().len());
        pace.forget_idle(now + idle / 2, idle);
        assert_eq!(known(&pace), (100, 100));
        pace.forget_idle(now + idle * 2, idle);
        assert_eq!(known(&pace), (0, 1));
    }

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
