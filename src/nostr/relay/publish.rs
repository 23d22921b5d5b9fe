//! Sending one event to one relay.
//!
//! Limits events to hosts that limit our rate or do not answer. Such a host delays only its own
//! events.
//!
//! A host that says `rate-limited` gets its events one by one. A host that has not answered for
//! some seconds gets one event at a time, as a probe. Its other events are tried again later and do
//! not occupy the outbox meanwhile. An external host that has never answered gets a few events at a
//! time. No external host gets more events at a time than its connection has room for answers.

use super::connections::{AskAgain, Relays, wait_until};
use super::error::NostrError;
use super::external::LINGER;
use super::host::{Host, Hosts};
use super::slots::Visitor;
use crate::job::Asker;
use crate::token_bucket::TokenBucket;
use hashlink::LruCache;
use nostr_relay_pool::relay;
use nostr_sdk::{Event, JsonUtil, Relay, RelayUrl};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time limit for a relay to accept an event, authentication included.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(20);

impl Relays {
    /// Sends one of the bot's own events to one relay and waits for its OK.
    ///
    /// Errors: see [`NostrError`].
    pub(in crate::nostr) async fn publish(&self, url: &RelayUrl, event: &Event) -> Result<(), NostrError> {
        self.publish_for(url, &event.as_json(), Visitor::NOBODY).await
    }

    /// Sends one event to one relay and waits for its OK. A relay that limits our rate gets the
    /// event when its turn comes.
    ///
    /// `event`: the event's JSON. It is parsed only when it can be sent, because a parsed event
    /// takes some 6 KiB, and many visits to external relays end before that. `visitor`: the asker
    /// for whom an external relay is visited.
    ///
    /// Errors: see [`NostrError`].
    pub(in crate::nostr) async fn publish_for(
        &self,
        url: &RelayUrl,
        event: &str,
        visitor: Visitor,
    ) -> Result<(), NostrError> {
        let hosts = self.hosts(url, visitor).await?;
        let (host, deadline) = (&hosts.limited, Instant::now() + PUBLISH_TIMEOUT);
        loop {
            let turn = self.throttle.turn(host, Instant::now(), deadline).ok_or_else(|| NostrError::busy(url))?;
            wait_until(turn).await;
            let sent = if self.is_ours(url) {
                self.publish_to_ours(url, &hosts, event).await
            } else {
                self.publish_to_external(url, &hosts, event, visitor).await
            };
            match sent {
                Ok(()) => {
                    self.throttle.speed_up(host);
                    return Ok(());
                }
                Err(NostrError::Busy(_)) => self.throttle.slow_down(host, Instant::now()),
                Err(error) => return Err(error),
            }
        }
    }

    async fn publish_to_ours(&self, url: &RelayUrl, hosts: &Hosts, event: &str) -> Result<(), NostrError> {
        let relay = self.our_relay(url).await?;
        let delivery = self.begin_delivery(url, hosts, MostAtOnce::OURS).await?;
        send(&relay, event, &delivery).await
    }

    /// Sends an event to an external relay. The delivery is registered before the relay is dialled,
    /// so that a host that does not answer cannot delay many events.
    async fn publish_to_external(
        &self,
        url: &RelayUrl,
        hosts: &Hosts,
        event: &str,
        visitor: Visitor,
    ) -> Result<(), NostrError> {
        if !self.throttle.may_send_for(visitor.asker, &hosts.limited, Instant::now()) {
            return Err(NostrError::no_room(url));
        }
        let delivery = self.begin_delivery(url, hosts, MostAtOnce::external(visitor.urgent)).await?;
        let relay = self.external.visit(url, hosts, visitor).await?;
        let sent = send(&relay, event, &delivery).await;
        match &sent {
            Ok(()) | Err(NostrError::Refused { .. }) => self.external.answered(url),
            // The relay lost its slot to another visitor, or it closed the connection and has never
            // accepted an event. It is not dialled again in this attempt.
            Err(NostrError::Busy(_)) if !self.external.holds(url) => return Err(NostrError::no_room(url)),
            Err(NostrError::Busy(_)) if !self.throttle.has_answered(&hosts.named) => {
                return Err(NostrError::not_connected(url));
            }
            Err(_) => {}
        }
        sent
    }

    async fn begin_delivery<'a>(
        &'a self,
        url: &RelayUrl,
        hosts: &'a Hosts,
        most: MostAtOnce,
    ) -> Result<Delivery<'a>, NostrError> {
        let asking = AskAgain::new();
        loop {
            match self.throttle.begin_delivery(hosts, most, Instant::now()) {
                DeliveryStart::Now(delivery) => return Ok(delivery),
                DeliveryStart::Later => return Err(NostrError::silent(url)),
                DeliveryStart::Soon if asking.pause().await => {}
                DeliveryStart::Soon => return Err(NostrError::no_room(url)),
            }
        }
    }

    /// Disconnects from external relays that were not used for a while, and forgets their rate
    /// limits.
    pub(in crate::nostr) fn leave_idle_external(&self) {
        self.external.leave_idle();
        self.throttle.forget_idle(Instant::now(), LINGER);
    }
}

async fn send(relay: &Relay, event: &str, delivery: &Delivery<'_>) -> Result<(), NostrError> {
    let url = relay.url();
    let event = Event::from_json(event).map_err(|error| NostrError::relay(url, error.to_string()))?;
    let sent = tokio::time::timeout(PUBLISH_TIMEOUT, relay.send_event(&event)).await;
    delivery.end(!matches!(sent, Err(_) | Ok(Err(relay::Error::Timeout))));
    let Err(error) = sent.map_err(|_| NostrError::silent(url))? else { return Ok(()) };
    let reason = error.to_string();
    // The first word of a refusal is machine-readable (NIP-01).
    match reason.split(':').next().unwrap_or_default() {
        // The relay has the event already.
        "duplicate" => Ok(()),
        "rate-limited" => Err(NostrError::busy(url)),
        "invalid" | "blocked" | "pow" | "restricted" => Err(NostrError::refused(url, reason)),
        // Some relays enforce a rate limit by closing the connection.
        _ if !relay.is_connected() => Err(NostrError::busy(url)),
        _ => Err(NostrError::relay(url, reason)),
    }
}

/// A host that has not answered for this long gets one event at a time.
const SILENT_AFTER: Duration = Duration::from_secs(3);
/// The gap between two events after the first `rate-limited`.
const FIRST_GAP: Duration = Duration::from_millis(500);
/// The longest gap.
const LONGEST_GAP: Duration = Duration::from_secs(10);
/// A host whose gap has become shorter than this is not limited any more.
const NO_GAP: Duration = Duration::from_millis(100);
/// The most events in progress to an external host that has never answered.
pub(super) const MAX_EVENTS_UNANSWERED: usize = 4;
/// The most events in progress to an external host that has answered.
pub(super) const MAX_EVENTS_IN_PROGRESS: usize = 96;
/// Places among [`MAX_EVENTS_IN_PROGRESS`] that are kept for results and askers with a job.
const KEPT_FOR_URGENT: usize = 32;
/// Number of hosts that have answered and are remembered.
const REMEMBERED_ANSWERED: usize = 10_000;

/// Events a minute that an external host gets on behalf of one asker, and at once. Each is a
/// message that the asker caused; nobody can use the bot to flood a host.
const EVENTS_A_MINUTE: u32 = 60;
/// Number of pairs of an asker and a host whose events are counted.
const REMEMBERED_FOR_ASKERS: usize = 10_000;

/// The limits of all hosts.
#[derive(Debug)]
pub(in crate::nostr) struct Throttle(Mutex<HostLimits>);

#[derive(Debug)]
struct HostLimits {
    /// Hosts that limit our rate.
    limited: HashMap<Host, RateLimit>,
    /// The events that hosts may still get on behalf of askers.
    for_askers: LruCache<(Asker, Host), TokenBucket>,
    /// Hosts whose answers we await.
    owed: HashMap<Host, Owed>,
    /// Hosts that have answered.
    answered: LruCache<Host, ()>,
}

/// A host that limits our rate.
#[derive(Debug)]
struct RateLimit {
    gap: Duration,
    /// When the next event may be sent.
    next: Instant,
    slowed_at: Instant,
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
        MostAtOnce {
            unanswered: MAX_EVENTS_UNANSWERED,
            answered: if urgent { MAX_EVENTS_IN_PROGRESS } else { MAX_EVENTS_IN_PROGRESS - KEPT_FOR_URGENT },
        }
    }
}

/// Whether an event may be sent to a host now.
#[derive(Debug)]
pub(super) enum DeliveryStart<'a> {
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
        Throttle(Mutex::new(HostLimits {
            limited: HashMap::new(),
            for_askers: LruCache::new(REMEMBERED_FOR_ASKERS),
            owed: HashMap::new(),
            answered: LruCache::new(REMEMBERED_ANSWERED),
        }))
    }
}

impl Throttle {
    /// Reserves the next time at which an event may be sent; `None` if that is after `deadline`.
    pub(super) fn turn(&self, host: &Host, now: Instant, deadline: Instant) -> Option<Instant> {
        let mut limits = self.lock();
        let Some(limit) = limits.limited.get_mut(host) else { return Some(now) };
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
        let limited = &mut self.lock().limited;
        let gap = match limited.get(host) {
            None => FIRST_GAP,
            Some(limit) if now.duration_since(limit.slowed_at) < limit.gap => return,
            Some(limit) => (limit.gap * 2).min(LONGEST_GAP),
        };
        limited.insert(host.clone(), RateLimit { gap, next: now + gap, slowed_at: now });
    }

    /// Records that a host accepted an event: the gap becomes an eighth shorter.
    pub(super) fn speed_up(&self, host: &Host) {
        let limited = &mut self.lock().limited;
        if let Some(limit) = limited.get_mut(host) {
            limit.gap = limit.gap * 7 / 8;
            if limit.gap < NO_GAP {
                limited.remove(host);
            }
        }
    }

    /// Whether an external host may get another event on behalf of an asker now. Counts it.
    fn may_send_for(&self, asker: Asker, host: &Host, now: Instant) -> bool {
        let full = || TokenBucket::full_at(now, 1, EVENTS_A_MINUTE);
        self.lock().for_askers.entry((asker, host.clone())).or_insert_with(full).try_take(now)
    }

    /// Starts a delivery if the host may get one now.
    pub(super) fn begin_delivery<'a>(&'a self, hosts: &'a Hosts, most: MostAtOnce, now: Instant) -> DeliveryStart<'a> {
        let mut limits = self.lock();
        let has_answered = limits.answered.get(&hosts.named).is_some();
        let new = Owed { deliveries: 0, since: now, is_suspect: false };
        let owed = limits.owed.entry(hosts.limited.clone()).or_insert(new);
        if owed.deliveries == 0 {
            owed.since = now;
        } else if owed.is_suspect || now.duration_since(owed.since) > SILENT_AFTER {
            return DeliveryStart::Later;
        } else if owed.deliveries >= if has_answered { most.answered } else { most.unanswered } {
            return DeliveryStart::Soon;
        }
        owed.deliveries += 1;
        DeliveryStart::Now(Delivery { throttle: self, hosts })
    }

    /// Whether the host of this name answered the last time.
    pub(super) fn has_answered(&self, named: &Host) -> bool {
        self.lock().answered.get(named).is_some()
    }

    /// Forgets hosts that were idle for this long, because askers can list any number of hosts.
    pub(super) fn forget_idle(&self, now: Instant, idle: Duration) {
        let mut limits = self.lock();
        limits.limited.retain(|_, limit| now < limit.next + idle);
        limits.owed.retain(|_, owed| owed.deliveries > 0 || now < owed.since + idle);
    }

    fn lock(&self) -> MutexGuard<'_, HostLimits> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Delivery<'_> {
    /// Records whether the host answered. An OK and a refusal are both answers.
    pub fn end(&self, answered: bool) {
        let mut limits = self.throttle.lock();
        if answered {
            limits.answered.insert(self.hosts.named.clone(), ());
        } else {
            limits.answered.remove(&self.hosts.named);
        }
        if let Some(owed) = limits.owed.get_mut(&self.hosts.limited) {
            owed.is_suspect = !answered;
            owed.since = Instant::now();
        }
    }
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        let all = &mut self.throttle.lock().owed;
        if let Some(owed) = all.get_mut(&self.hosts.limited) {
            owed.deliveries -= 1;
            if owed.deliveries == 0 && !owed.is_suspect {
                all.remove(&self.hosts.limited);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nostr::tests::{accept, connect, listen};
    use futures_util::{SinkExt, StreamExt};
    use nostr_sdk::{EventBuilder, Keys, RelayUrl};
    use tokio_tungstenite::tungstenite::Message;

    fn host(name: &str) -> Hosts {
        Hosts::by_name(&RelayUrl::parse(&format!("wss://{name}.example")).unwrap())
    }

    fn begin<'a>(throttle: &'a Throttle, host: &'a Hosts, now: Instant) -> Option<Delivery<'a>> {
        match throttle.begin_delivery(host, MostAtOnce::OURS, now) {
            DeliveryStart::Now(delivery) => Some(delivery),
            DeliveryStart::Soon | DeliveryStart::Later => None,
        }
    }

    #[tokio::test]
    async fn an_event_that_a_relay_puts_off_is_sent_again_in_its_turn() {
        let event = EventBuilder::text_note("").sign_with_keys(&Keys::generate()).unwrap();
        let (id, (listener, url)) = (event.id, listen().await);
        let relay = tokio::spawn(async move {
            let mut socket = accept(&listener).await;
            for answer in [r#"false,"rate-limited: slow down""#, r#"true,"""#] {
                // The library pings in between.
                let is_event = |message: Message| message.to_text().is_ok_and(|text| text.starts_with(r#"["EVENT""#));
                while !is_event(socket.next().await.unwrap().unwrap()) {}
                socket.send(Message::text(format!(r#"["OK","{id}",{answer}]"#))).await.unwrap();
            }
            socket
        });
        let relays = connect(&url).await;
        relays.publish(&url, &event).await.unwrap();
        drop(relay.await.unwrap());
        relays.disconnect().await;
    }

    #[test]
    fn a_silent_relay_gets_one_event_at_a_time_until_it_answers() {
        let (throttle, host) = (Throttle::default(), host("silent"));
        let now = Instant::now();
        let mut under_way: Vec<_> = (0..5).filter_map(|_| begin(&throttle, &host, now)).collect();
        assert_eq!(under_way.len(), 5);
        assert!(begin(&throttle, &host, now + 2 * SILENT_AFTER).is_none(), "it has not answered yet");
        under_way.drain(..).for_each(|delivery| delivery.end(false));
        let probe = begin(&throttle, &host, now + 2 * SILENT_AFTER).expect("one probe is allowed");
        assert!(begin(&throttle, &host, now + 2 * SILENT_AFTER).is_none(), "one at a time until it answers");
        probe.end(true);
        assert!(begin(&throttle, &host, Instant::now()).is_some());
    }

    #[test]
    fn an_external_host_gets_a_few_events_at_a_time_and_more_once_it_answers() {
        let (throttle, host, now) = (Throttle::default(), host("new"), Instant::now());
        let begin = |urgent| match throttle.begin_delivery(&host, MostAtOnce::external(urgent), now) {
            DeliveryStart::Now(delivery) => Ok(delivery),
            DeliveryStart::Soon => Err("soon"),
            DeliveryStart::Later => Err("later"),
        };
        let mut under_way: Vec<_> = (0..MAX_EVENTS_UNANSWERED).map(|_| begin(true).unwrap()).collect();
        assert_eq!(begin(true).unwrap_err(), "soon");
        under_way[0].end(true);
        // The host answers, so it may get more. The last places are kept for urgent events.
        under_way
            .extend((MAX_EVENTS_UNANSWERED..MAX_EVENTS_IN_PROGRESS - KEPT_FOR_URGENT).map(|_| begin(false).unwrap()));
        assert_eq!(begin(false).unwrap_err(), "soon");
        under_way.extend((0..KEPT_FOR_URGENT).map(|_| begin(true).unwrap()));
        assert_eq!(begin(true).unwrap_err(), "soon");
        under_way.truncate(MAX_EVENTS_IN_PROGRESS - KEPT_FOR_URGENT - 1);
        assert!(begin(false).is_ok());
    }

    #[test]
    fn a_host_gets_a_bounded_number_of_events_a_minute_from_one_asker() {
        let (throttle, now, host) = (Throttle::default(), Instant::now(), host("victim"));
        let sent =
            |asker: u8, at| (0..1000).filter(|_| throttle.may_send_for(Asker([asker; 32]), &host.limited, at)).count();
        assert_eq!(sent(1, now), 60);
        assert_eq!((sent(1, now + Duration::from_secs(30)), sent(2, now)), (30, 60), "another asker has their own");
    }

    #[test]
    fn names_of_one_address_share_its_limit_until_they_answer() {
        let (throttle, now, address) = (Throttle::default(), Instant::now(), host("address"));
        let named = |name: &str| Hosts { limited: address.limited.clone(), ..host(name) };
        let names: Vec<Hosts> = (0..=MAX_EVENTS_UNANSWERED).map(|number| named(&number.to_string())).collect();
        let begin = |name| throttle.begin_delivery(name, MostAtOnce::external(false), now);
        let under_way: Vec<DeliveryStart> = names[..MAX_EVENTS_UNANSWERED].iter().map(begin).collect();
        assert!(under_way.iter().all(|start| matches!(start, DeliveryStart::Now(_))));
        assert!(
            matches!(begin(&names[MAX_EVENTS_UNANSWERED]), DeliveryStart::Soon),
            "another name of the same address"
        );
        if let DeliveryStart::Now(delivery) = &under_way[0] {
            delivery.end(true);
        }
        assert!(throttle.has_answered(&names[0].named) && !throttle.has_answered(&address.named));
        assert!(
            matches!(begin(&names[MAX_EVENTS_UNANSWERED]), DeliveryStart::Soon),
            "its answer counts for one name only"
        );
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
        let known = |throttle: &Throttle| {
            let limits = throttle.lock();
            (limits.limited.len(), limits.owed.len())
        };
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
