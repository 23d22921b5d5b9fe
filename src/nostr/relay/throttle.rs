//! Limits events to hosts that limit our rate or do not answer. Such a host delays only its own
//! events.
//!
//! A host that says `rate-limited` gets its events one by one. A host that has not answered for
//! some seconds gets one event at a time, as a probe. Its other events are tried again later and do
//! not occupy the outbox meanwhile. An external host that has never answered gets a few events at a
//! time. No external host gets more events at a time than its connection has room for answers.

use super::host::{Host, Hosts};
use hashlink::LruCache;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A host that has not answered for this long gets one event at a time.
const PATIENCE: Duration = Duration::from_secs(3);
/// The gap between two events after the first `rate-limited`.
const FIRST_GAP: Duration = Duration::from_millis(500);
/// The longest gap.
const LONGEST_GAP: Duration = Duration::from_secs(10);
/// A host whose gap has become shorter than this is not limited any more.
const NO_GAP: Duration = Duration::from_millis(100);
/// The most events in progress to an external host that has never answered.
pub(super) const UNANSWERED: usize = 4;
/// The most events in progress to an external host that has answered.
pub(super) const AT_ONCE: usize = 96;
/// Places among [`AT_ONCE`] that are kept for results and askers with a job.
const KEPT: usize = 32;
/// Number of hosts that have answered and are remembered.
const ANSWERED: usize = 10_000;

/// The limits of all hosts.
#[derive(Debug)]
pub(in crate::nostr) struct Throttle {
    limited: Mutex<HashMap<Host, RateLimit>>,
    pending: Mutex<Pending>,
}

/// A host that limits our rate.
#[derive(Debug)]
struct RateLimit {
    gap: Duration,
    /// When the next event may be sent.
    next: Instant,
    slowed_at: Instant,
}

/// Hosts whose answers we await, and hosts that have answered.
#[derive(Debug)]
struct Pending {
    hosts: HashMap<Host, Owed>,
    answered: LruCache<Host, ()>,
}

/// The answers that we await from one host.
#[derive(Debug)]
struct Owed {
    deliveries: usize,
    /// When the host last answered, or got the first of these events.
    since: Instant,
    /// Whether a delivery timed out, and the host has not answered since.
    is_suspect: bool,
}

/// The most events in progress to one host.
#[derive(Clone, Copy, Debug)]
pub(super) struct MostAtOnce {
    /// The limit for a host that has never answered.
    unanswered: usize,
    /// The limit for a host that has answered.
    answered: usize,
}

impl MostAtOnce {
    /// No limit, for the bot's own relays.
    pub const OURS: MostAtOnce = MostAtOnce { unanswered: usize::MAX, answered: usize::MAX };

    /// The limits for external relays. Events that are not `urgent` leave places for those that
    /// are.
    pub fn external(urgent: bool) -> MostAtOnce {
        MostAtOnce { unanswered: UNANSWERED, answered: if urgent { AT_ONCE } else { AT_ONCE - KEPT } }
    }
}

/// Whether an event may be sent to a host now.
#[derive(Debug)]
pub(super) enum Start<'a> {
    /// Yes. The delivery ends when it is dropped.
    Now(Delivery<'a>),
    /// Soon: too many events are in progress to the host.
    Soon,
    /// No: the host has not answered earlier events.
    Later,
}

/// One event on its way to one host.
#[derive(Debug)]
pub(super) struct Delivery<'a> {
    throttle: &'a Throttle,
    hosts: &'a Hosts,
}

impl Default for Throttle {
    fn default() -> Throttle {
        let pending = Pending { hosts: HashMap::new(), answered: LruCache::new(ANSWERED) };
        Throttle { limited: Mutex::default(), pending: Mutex::new(pending) }
    }
}

impl Throttle {
    /// Reserves the next time at which an event may be sent; `None` if that is after `deadline`.
    pub(super) fn turn(&self, host: &Host, now: Instant, deadline: Instant) -> Option<Instant> {
        let mut limited = self.limited();
        let Some(limit) = limited.get_mut(host) else { return Some(now) };
        let turn = limit.next.max(now);
        if turn > deadline {
            return None;
        }
        limit.next = turn + limit.gap;
        Some(turn)
    }

    /// Records that a host said `rate-limited`. Further refusals within the gap do not count: their
    /// events were sent earlier.
    pub(super) fn slow_down(&self, host: &Host, now: Instant) {
        let mut limited = self.limited();
        let gap = match limited.get(host) {
            None => FIRST_GAP,
            Some(limit) if now.duration_since(limit.slowed_at) < limit.gap => return,
            Some(limit) => (limit.gap * 2).min(LONGEST_GAP),
        };
        limited.insert(host.clone(), RateLimit { gap, next: now + gap, slowed_at: now });
    }

    /// Records that a host accepted an event: the gap becomes an eighth shorter.
    pub(super) fn speed_up(&self, host: &Host) {
        let mut limited = self.limited();
        if let Some(limit) = limited.get_mut(host) {
            limit.gap = limit.gap * 7 / 8;
            if limit.gap < NO_GAP {
                limited.remove(host);
            }
        }
    }

    /// Starts a delivery if the host may get one now.
    pub(super) fn begin_delivery<'a>(&'a self, hosts: &'a Hosts, most: MostAtOnce, now: Instant) -> Start<'a> {
        let mut pending = self.pending();
        let has_answered = pending.answered.get(&hosts.named).is_some();
        let new = Owed { deliveries: 0, since: now, is_suspect: false };
        let owed = pending.hosts.entry(hosts.limited.clone()).or_insert(new);
        if owed.deliveries == 0 {
            owed.since = now;
        } else if owed.is_suspect || now.duration_since(owed.since) > PATIENCE {
            return Start::Later;
        } else if owed.deliveries >= if has_answered { most.answered } else { most.unanswered } {
            return Start::Soon;
        }
        owed.deliveries += 1;
        Start::Now(Delivery { throttle: self, hosts })
    }

    /// Whether the host of this name answered the last time.
    pub(super) fn has_answered(&self, named: &Host) -> bool {
        self.pending().answered.get(named).is_some()
    }

    /// Forgets hosts that were idle for this long, because askers can list any number of hosts.
    pub(super) fn forget_idle(&self, now: Instant, idle: Duration) {
        self.limited().retain(|_, limit| now < limit.next + idle);
        self.pending().hosts.retain(|_, owed| owed.deliveries > 0 || now < owed.since + idle);
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limited(&self) -> MutexGuard<'_, HashMap<Host, RateLimit>> {
        self.limited.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Delivery<'_> {
    /// Records whether the host answered. An OK and a refusal are both answers.
    pub fn end(&self, answered: bool) {
        let mut pending = self.throttle.pending();
        if answered {
            pending.answered.insert(self.hosts.named.clone(), ());
        } else {
            pending.answered.remove(&self.hosts.named);
        }
        if let Some(owed) = pending.hosts.get_mut(&self.hosts.limited) {
            owed.is_suspect = !answered;
            owed.since = Instant::now();
        }
    }
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        let mut pending = self.throttle.pending();
        if let Some(owed) = pending.hosts.get_mut(&self.hosts.limited) {
            owed.deliveries -= 1;
            if owed.deliveries == 0 && !owed.is_suspect {
                pending.hosts.remove(&self.hosts.limited);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nostr_sdk::RelayUrl;

    fn host(name: &str) -> Hosts {
        Hosts::by_name(&RelayUrl::parse(&format!("wss://{name}.example")).unwrap())
    }

    fn begin<'a>(throttle: &'a Throttle, host: &'a Hosts, now: Instant) -> Option<Delivery<'a>> {
        match throttle.begin_delivery(host, MostAtOnce::OURS, now) {
            Start::Now(delivery) => Some(delivery),
            Start::Soon | Start::Later => None,
        }
    }

    #[test]
    fn a_silent_relay_gets_one_event_at_a_time_until_it_answers() {
        let (throttle, host) = (Throttle::default(), host("silent"));
        let now = Instant::now();
        let mut under_way: Vec<_> = (0..5).filter_map(|_| begin(&throttle, &host, now)).collect();
        assert_eq!(under_way.len(), 5);
        assert!(begin(&throttle, &host, now + 2 * PATIENCE).is_none(), "it has not answered yet");
        under_way.drain(..).for_each(|delivery| delivery.end(false));
        let probe = begin(&throttle, &host, now + 2 * PATIENCE).expect("one probe is allowed");
        assert!(begin(&throttle, &host, now + 2 * PATIENCE).is_none(), "one at a time until it answers");
        probe.end(true);
        assert!(begin(&throttle, &host, Instant::now()).is_some());
    }

    #[test]
    fn an_external_host_gets_a_few_events_at_a_time_and_more_once_it_answers() {
        let (throttle, host, now) = (Throttle::default(), host("new"), Instant::now());
        let begin = |urgent| match throttle.begin_delivery(&host, MostAtOnce::external(urgent), now) {
            Start::Now(delivery) => Ok(delivery),
            Start::Soon => Err("soon"),
            Start::Later => Err("later"),
        };
        let mut under_way: Vec<_> = (0..UNANSWERED).map(|_| begin(true).unwrap()).collect();
        assert_eq!(begin(true).unwrap_err(), "soon");
        under_way[0].end(true);
        // The host answers, so it may get more. The last places are kept for urgent events.
        under_way.extend((UNANSWERED..AT_ONCE - KEPT).map(|_| begin(false).unwrap()));
        assert_eq!(begin(false).unwrap_err(), "soon");
        under_way.extend((0..KEPT).map(|_| begin(true).unwrap()));
        assert_eq!(begin(true).unwrap_err(), "soon");
        under_way.truncate(AT_ONCE - KEPT - 1);
        assert!(begin(false).is_ok());
    }

    #[test]
    fn names_of_one_address_share_its_limit_until_they_answer() {
        let (throttle, now, address) = (Throttle::default(), Instant::now(), host("address"));
        let named = |name: &str| Hosts { limited: address.limited.clone(), ..host(name) };
        let names: Vec<Hosts> = (0..=UNANSWERED).map(|number| named(&number.to_string())).collect();
        let begin = |name| throttle.begin_delivery(name, MostAtOnce::external(false), now);
        let under_way: Vec<Start> = names[..UNANSWERED].iter().map(begin).collect();
        assert!(under_way.iter().all(|start| matches!(start, Start::Now(_))));
        assert!(matches!(begin(&names[UNANSWERED]), Start::Soon), "another name of the same address");
        if let Start::Now(delivery) = &under_way[0] {
            delivery.end(true);
        }
        assert!(throttle.has_answered(&names[0].named) && !throttle.has_answered(&address.named));
        assert!(matches!(begin(&names[UNANSWERED]), Start::Soon), "its answer counts for one name only");
    }

    #[test]
    fn idle_relays_are_forgotten() {
        let (throttle, now, idle) = (Throttle::default(), Instant::now(), Duration::from_secs(600));
        let hosts: Vec<Hosts> = (0..100).map(|number| host(&number.to_string())).collect();
        for host in &hosts {
            throttle.slow_down(&host.limited, now);
            begin(&throttle, host, now).unwrap().end(false);
        }
        let _delivery = begin(&throttle, &hosts[0], now);
        let known = |throttle: &Throttle| (throttle.limited().len(), throttle.pending().hosts.len());
        throttle.forget_idle(now + idle / 2, idle);
        assert_eq!(known(&throttle), (100, 100));
        throttle.forget_idle(now + idle * 2, idle);
        assert_eq!(known(&throttle), (0, 1));
    }

    #[test]
    fn a_rate_limited_relay_gets_events_one_by_one_and_faster_after_each_success() {
        let (throttle, host) = (Throttle::default(), host("slow"));
        let now = Instant::now();
        let late = now + Duration::from_secs(20);
        let wait = |at: Instant| throttle.turn(&host.limited, at, late).map(|turn| (turn - at).as_millis());
        assert_eq!((wait(now), wait(now)), (Some(0), Some(0)), "an unlimited relay has no gap");
        // Thirty events were in progress when the relay said `rate-limited`.
        (0..30).for_each(|_| throttle.slow_down(&host.limited, now));
        assert_eq!((wait(now), wait(now), wait(now)), (Some(500), Some(1000), Some(1500)));
        // A later refusal doubles the gap. A turn after the deadline is refused.
        throttle.slow_down(&host.limited, now + FIRST_GAP);
        assert_eq!(wait(now), Some(1500));
        assert_eq!(throttle.turn(&host.limited, now, now + FIRST_GAP), None);
        (0..30).for_each(|_| throttle.speed_up(&host.limited));
        assert_eq!((wait(late), wait(late)), (Some(0), Some(0)), "the limit is gone");
    }
}
