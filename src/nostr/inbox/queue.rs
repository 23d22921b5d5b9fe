//! Events waiting to be decrypted, in two lanes: those with proof of work, and the others.
//!
//! Both lanes are bounded, in events and in bytes. Events that do not fit are left to a backfill.
//! Only events that our inbox relays send for our subscription are accepted.
//!
//! Flood detection, and the proof of work (NIP-13) that is required during a flood only.
//!
//! The work is in the id of the gift wrap, because nothing else can be checked before decryption,
//! the expensive step. A wrap without work is never refused; it waits behind those with work.
//! During a flood, only requests of new askers without work are refused.

use super::seen::SeenIds;
use super::subscription::Awaited;
use crate::fault::{self, Step};
use crate::message::WorkWanted;
use crate::nostr::relay::reports::RelayReports;
use crate::vault::{GIFT_WRAPS, Rumor};
use nostr_sdk::{Event, Kind, PublicKey, RelayMessage, RelayPoolNotification, RelayUrl, SubscriptionId};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, broadcast};

/// The most events in a lane.
const MAX_WAITING: usize = 4096;
/// Memory of a lane, in bytes: the content of its events, and [`BYTES_AN_EVENT`] each for the rest.
/// The lanes are separate, so that a flood without work leaves room for events with work.
const LANE_BYTES: usize = 32 << 20;
/// Memory counted per event besides its content, in bytes.
const BYTES_AN_EVENT: usize = 2048;

/// An event that was not verified yet.
pub(super) type ArrivedEvent = Arrival<Box<Event>>;

/// The waiting events. Cheap to clone; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct EventQueue {
    /// Events with proof of work, then the others.
    lanes: Arc<Mutex<[EventLane; 2]>>,
    filled: Arc<Notify>,
}

#[derive(Debug, Default)]
struct EventLane {
    events: VecDeque<ArrivedEvent>,
    bytes: usize,
}

impl EventQueue {
    /// Adds an event. Returns `false` if its lane is full.
    pub fn push(&self, arrival: ArrivedEvent) -> bool {
        let mut lanes = self.lock();
        let lane = &mut lanes[usize::from(!arrival.paid)];
        let bytes = lane.bytes + size(&arrival);
        if lane.events.len() == MAX_WAITING || bytes > LANE_BYTES {
            return false;
        }
        lane.bytes = bytes;
        lane.events.push_back(arrival);
        drop(lanes);
        self.filled.notify_one();
        true
    }

    /// The oldest event with proof of work; without one the oldest of the others, if `plain` is
    /// true.
    fn pop(&self, plain: bool) -> Option<ArrivedEvent> {
        let mut lanes = self.lock();
        let lane = lanes.iter_mut().take(1 + usize::from(plain)).find(|lane| !lane.events.is_empty())?;
        let arrival = lane.events.pop_front()?;
        lane.bytes -= size(&arrival);
        Some(arrival)
    }

    /// The next event with proof of work, if one waits.
    pub fn next_paid(&self) -> Option<ArrivedEvent> {
        self.pop(false)
    }

    /// The next event; those with proof of work come first. Only one caller may wait. Cancel-safe.
    pub async fn next(&self) -> ArrivedEvent {
        loop {
            if let Some(arrival) = self.pop(true) {
                return arrival;
            }
            self.filled.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, [EventLane; 2]> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn size(arrival: &ArrivedEvent) -> usize {
    arrival.message.content.len() + BYTES_AN_EVENT
}

/// The way from the library's stream into the queue.
pub(super) struct Entrance {
    pub queue: EventQueue,
    pub source: Source,
    pub flood: Flood,
    /// The watchdog's messages to the bot itself.
    pub awaited: Awaited,
    /// Several relays send the same event.
    pub seen: SeenIds,
    /// Notified when a relay closed our subscription.
    pub closed: Arc<Notify>,
    pub reports: RelayReports,
}

/// The events to accept.
pub(super) struct Source {
    /// The receiver of the events.
    pub bot: PublicKey,
    /// Our inbox relays.
    pub relays: Vec<RelayUrl>,
    /// The name of our subscription there.
    pub subscription: &'static str,
}

impl Entrance {
    /// Moves events from the library's stream into the queue, and does nothing else: a slow reader
    /// of that stream loses events, which are not announced again.
    pub async fn drain(self, mut notifications: broadcast::Receiver<RelayPoolNotification>) {
        loop {
            match notifications.recv().await {
                // The library's `Event` notification is not used: it comes only once per id, for
                // the subscription that received the event first.
                Ok(RelayPoolNotification::Message {
                    relay_url,
                    message: RelayMessage::Event { subscription_id, event },
                }) if self.is_subscribed(&relay_url, &subscription_id) => {
                    fault::before(Step::Listen);
                    self.admit(relay_url, event.into_owned());
                    fault::after(Step::Listen);
                }
                Ok(RelayPoolNotification::Message { relay_url, message }) => {
                    let is_inbox = |id: &str| id == self.source.subscription && self.source.relays.contains(&relay_url);
                    if matches!(&message, RelayMessage::Closed { subscription_id: id, .. } if is_inbox(id.as_str())) {
                        self.closed.notify_one();
                    }
                    self.reports.hear(&relay_url, &message, is_inbox);
                }
                Ok(RelayPoolNotification::Shutdown) | Err(broadcast::error::RecvError::Closed) => return,
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(count)) => {
                    tracing::debug!(count, "the stream overflowed; starting a backfill");
                    self.seen.lost.notify_one();
                }
            }
        }
    }

    /// Whether a message belongs to our subscription, and not to a query or to no request.
    fn is_subscribed(&self, relay: &RelayUrl, subscription: &SubscriptionId) -> bool {
        subscription.as_str() == self.source.subscription && self.source.relays.contains(relay)
    }

    /// Puts an event into the queue, unless it is not acceptable or a copy of one.
    fn admit(&self, relay: RelayUrl, event: Event) {
        let id = event.id.to_bytes();
        // The watchdog's messages do not queue: in a flood they would be late, and the relay would
        // seem dead.
        if self.awaited.arrived(&id) || !is_acceptable(&event, &self.source.bot) || !self.seen.insert(id) {
            return;
        }
        let paid = self.flood.is_paid(&event);
        if !self.queue.push(Arrival { message: Box::new(event), id, relay, paid }) {
            self.flood.record_overflow(Instant::now());
            self.seen.give_back(&id);
        }
    }
}

/// Largest encrypted content of a wrap, in bytes. The longest message that NIP-44 allows in
/// ordinary clients needs less.
const MAX_CONTENT: usize = 128 * 1024;
/// The most tags of a wrap.
const MAX_TAGS: usize = 64;
/// Seconds after which messages are not answered; older ones are not fetched.
pub(super) const MAX_AGE: u64 = 7 * 86_400;
/// Allowance for clocks that are ahead, seconds.
const CLOCK_ALLOWANCE: u64 = 3600;
/// Kinds of messages that are forwarded: text by NIP-04 (4) and by NIP-17 (14), deletions of
/// requests (5), and files (15) and invitations to MLS groups (444), which the bot declines.
const ANSWERABLE_KINDS: [u16; 5] = [4, 5, 14, 15, 444];

/// A message from the socket to the backlog: at first its event, then what the vault found in it, at
/// last the decrypted message, which passed every check.
#[derive(Debug)]
pub struct Arrival<T = Rumor> {
    /// What is known of the message.
    pub message: T,
    /// Id of the event, not of the message in it.
    pub id: [u8; 32],
    /// The relay that sent the event.
    pub relay: RelayUrl,
    /// Whether the event has the proof of work that is required in a flood.
    pub paid: bool,
}

impl<T> Arrival<T> {
    /// The message, and the arrival without it.
    pub(super) fn take(self) -> (T, Arrival<()>) {
        (self.message, Arrival { message: (), id: self.id, relay: self.relay, paid: self.paid })
    }

    /// The arrival with the next form of its message.
    pub(super) fn with<U>(self, message: U) -> Arrival<U> {
        Arrival { message, id: self.id, relay: self.relay, paid: self.paid }
    }

    /// The relays where the message was seen.
    pub fn seen_on(&self) -> Vec<String> {
        vec![self.relay.to_string()]
    }
}

/// Whether an event has the right size, kind and receiver.
pub(super) fn is_acceptable(event: &Event, bot: &PublicKey) -> bool {
    (GIFT_WRAPS.contains(&event.kind) || event.kind == Kind::EncryptedDirectMessage)
        && event.content.len() <= MAX_CONTENT
        && event.tags.len() <= MAX_TAGS
        && event.tags.public_keys().any(|key| key == bot)
}

/// Whether a decrypted message may be answered: of a known kind, and recent.
pub(super) fn is_answerable(rumor: &Rumor, now: u64) -> bool {
    ANSWERABLE_KINDS.contains(&rumor.kind) && is_recent(rumor.created_at, now)
}

/// Whether a message is at most a week old and at most an hour in the future.
fn is_recent(created_at: u64, now: u64) -> bool {
    created_at <= now.saturating_add(CLOCK_ALLOWANCE) && created_at.saturating_add(MAX_AGE) >= now
}

/// Time over which new askers are counted, and for which an overflow counts as a flood.
const FLOOD_WINDOW: Duration = Duration::from_secs(60);

/// Detects floods. Its times are those of the system's monotonic clock. Cheap to clone: `inbox` and
/// `service::requests` share one.
#[derive(Clone, Debug)]
pub struct Flood {
    bits: u32,
    new_askers_per_minute: usize,
    gauge: Arc<Mutex<FloodGauge>>,
}

#[derive(Debug, Default)]
struct FloodGauge {
    /// Times of the latest requests of new askers without work, at most `new_askers_per_minute`.
    new_askers: VecDeque<Instant>,
    /// When a queue was last full.
    overflow: Option<Instant>,
}

impl Flood {
    /// Makes a detector. `bits`: the work required in a flood. `new_askers_per_minute`: the number
    /// of requests of new askers within a minute that is a flood.
    pub fn new(bits: u32, new_askers_per_minute: u32) -> Flood {
        Flood { bits, new_askers_per_minute: new_askers_per_minute as usize, gauge: Arc::default() }
    }

    /// Whether an event has the work that is required of new askers in a flood.
    pub fn is_paid(&self, event: &Event) -> bool {
        work_of(event) >= self.bits
    }

    /// Records that a queue was full.
    pub(super) fn record_overflow(&self, now: Instant) {
        self.with(|gauge| gauge.overflow = Some(now));
    }

    /// Records a request of a new asker without work.
    pub fn record_new_asker(&self, now: Instant) {
        self.with(|gauge| {
            gauge.new_askers.push_back(now);
            while gauge.new_askers.len() > self.new_askers_per_minute {
                gauge.new_askers.pop_front();
            }
        });
    }

    /// The work required of new askers now; `None` while there is no flood.
    pub fn wanted(&self, now: Instant) -> Option<WorkWanted> {
        let left = |since: Instant| {
            FLOOD_WINDOW.checked_sub(now.saturating_duration_since(since)).filter(|left| !left.is_zero())
        };
        self.with(|gauge| {
            let is_full = gauge.new_askers.len() >= self.new_askers_per_minute;
            // The flood is over once the oldest of the kept requests is older than the window.
            let new_askers = gauge.new_askers.front().copied().filter(|_| is_full).and_then(left);
            let ends_in = new_askers.max(gauge.overflow.and_then(left))?;
            Some(WorkWanted { bits: self.bits, ends_in })
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut FloodGauge) -> T) -> T {
        act(&mut self.gauge.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The proof of work of an event, in bits (NIP-13): the leading zero bits of its id, but no more
/// than the target in its `nonce` tag. 0 without a target.
fn work_of(event: &Event) -> u32 {
    let committed = event.tags.iter().find_map(|tag| match tag.as_slice() {
        [name, _, target, ..] if name == "nonce" => target.parse::<u32>().ok(),
        _ => None,
    });
    let zeros = u32::from(nostr_sdk::nips::nip13::get_leading_zero_bits(event.id.as_bytes()));
    committed.map_or(0, |target| target.min(zeros))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nostr_sdk::{EventBuilder, Keys, Kind, Tag};
    use std::borrow::Cow;
    use std::time::Duration;

    const TEST_TIMEOUT: Duration = Duration::from_secs(20);

    fn wrap(bot: &Keys, text: &str) -> Event {
        let wrap = EventBuilder::new(Kind::GiftWrap, text).tag(Tag::public_key(bot.public_key()));
        wrap.sign_with_keys(&Keys::generate()).unwrap()
    }

    fn event(url: &RelayUrl, subscription: &str, event: &Event) -> RelayPoolNotification {
        let id = Cow::Owned(SubscriptionId::new(subscription));
        let message = RelayMessage::Event { subscription_id: id, event: Cow::Owned(event.clone()) };
        RelayPoolNotification::Message { relay_url: url.clone(), message }
    }

    fn entrance(bot: &Keys, ours: &RelayUrl) -> Entrance {
        Entrance {
            queue: EventQueue::default(),
            source: Source { bot: bot.public_key(), relays: vec![ours.clone()], subscription: "inbox" },
            flood: Flood::new(20, 1000),
            awaited: Awaited::default(),
            seen: SeenIds::default(),
            closed: Arc::default(),
            reports: RelayReports::default(),
        }
    }

    #[tokio::test]
    async fn only_events_of_our_subscription_are_accepted() {
        let bot = Keys::generate();
        let ours = RelayUrl::parse("wss://ours.example").unwrap();
        let theirs = RelayUrl::parse("wss://theirs.example").unwrap();
        let entrance = entrance(&bot, &ours);
        let (queue, closed) = (entrance.queue.clone(), Arc::clone(&entrance.closed));
        let (library, stream) = broadcast::channel(16);
        let draining = tokio::spawn(entrance.drain(stream));
        library.send(event(&theirs, "inbox", &wrap(&bot, "an external relay's"))).unwrap();
        library.send(event(&ours, "other", &wrap(&bot, "another subscription's"))).unwrap();
        let wanted = event(&ours, "inbox", &wrap(&bot, "ours"));
        library.send(wanted.clone()).unwrap();
        library.send(wanted).unwrap();
        let close = |relay_url: &RelayUrl| RelayPoolNotification::Message {
            relay_url: relay_url.clone(),
            message: RelayMessage::closed(SubscriptionId::new("inbox"), ""),
        };
        library.send(close(&theirs)).unwrap();
        library.send(RelayPoolNotification::Shutdown).unwrap();
        draining.await.unwrap();
        assert_eq!(queue.pop(true).unwrap().message.content, "ours");
        assert!(queue.pop(true).is_none());
        assert!(
            tokio::time::timeout(Duration::ZERO, closed.notified()).await.is_err(),
            "an external relay closes nothing"
        );
    }

    /// These checks are cheaper than verifying the signature, so they come first.
    #[tokio::test]
    async fn an_event_of_the_wrong_size_kind_or_receiver_is_not_queued() {
        let (bot, other) = (Keys::generate(), Keys::generate());
        let ours = RelayUrl::parse("wss://ours.example").unwrap();
        let entrance = entrance(&bot, &ours);
        let largest = 128 * 1024;
        let tags = |count: usize| vec![Tag::public_key(bot.public_key()); count];
        let made = |kind, length: usize, tags: Vec<Tag>| {
            let event = EventBuilder::new(kind, "x".repeat(length)).tags(tags);
            event.sign_with_keys(&Keys::generate()).unwrap()
        };
        let mut many = made(Kind::GiftWrap, 1, tags(1));
        many.tags = nostr_sdk::nostr::event::Tags::from_list(tags(65));
        for refused in [
            made(Kind::GiftWrap, largest + 1, tags(1)),
            many,
            made(Kind::TextNote, 1, tags(1)),
            made(Kind::GiftWrap, 1, vec![Tag::public_key(other.public_key())]),
        ] {
            entrance.admit(ours.clone(), refused);
        }
        assert!(entrance.queue.pop(true).is_none());
        entrance.admit(ours.clone(), made(Kind::GiftWrap, largest, tags(1)));
        assert_eq!(entrance.queue.pop(true).unwrap().message.content.len(), largest);
        entrance.admit(ours.clone(), made(Kind::Custom(21059), 1, tags(1)));
        assert!(entrance.queue.pop(true).is_some(), "an ephemeral wrap");
    }

    #[tokio::test]
    async fn a_message_to_ourselves_does_not_queue_behind_a_flood() {
        let bot = Keys::generate();
        let ours = RelayUrl::parse("wss://ours.example").unwrap();
        let entrance = entrance(&bot, &ours);
        let awaited = entrance.awaited.clone();
        let (library, stream) = broadcast::channel(2 * MAX_WAITING);
        tokio::spawn(entrance.drain(stream));
        for number in 0..=MAX_WAITING {
            library.send(event(&ours, "inbox", &wrap(&bot, &number.to_string()))).unwrap();
        }
        let own = wrap(&bot, "our own");
        let seen = awaited.expect(own.id.to_bytes());
        library.send(event(&ours, "inbox", &own)).unwrap();
        tokio::time::timeout(TEST_TIMEOUT, seen.notified()).await.expect("it is seen at once");
    }

    /// An event that found no room may come again; so may one beyond the bytes of its lane.
    #[tokio::test]
    async fn each_lane_is_bounded_and_events_with_work_come_first() {
        let bot = Keys::generate();
        let ours = RelayUrl::parse("wss://ours.example").unwrap();
        let entrance = entrance(&bot, &ours);
        let event = wrap(&bot, "one");
        let arrival = |paid: bool, length: usize| {
            let mut event = event.clone();
            event.content = "x".repeat(length);
            Arrival { id: event.id.to_bytes(), message: Box::new(event), relay: ours.clone(), paid }
        };
        assert!((0..MAX_WAITING).all(|_| entrance.queue.push(arrival(false, 1))));
        assert!(!entrance.queue.push(arrival(false, 1)));
        entrance.admit(ours.clone(), event.clone());
        assert!(!entrance.seen.forget(&event.id.to_bytes()), "another copy of it is not skipped");
        tokio::time::timeout(TEST_TIMEOUT, entrance.seen.lost.notified()).await.expect("a backfill brings it");
        let mut fit = 0;
        while entrance.queue.push(arrival(true, LANE_BYTES / 4)) {
            fit += 1;
        }
        assert_eq!(fit, 3);
        for number in 0..3 + MAX_WAITING {
            assert_eq!(entrance.queue.next().await.paid, number < 3);
        }
        assert!(entrance.queue.push(arrival(true, LANE_BYTES / 2)), "the room is free again");
    }

    #[test]
    fn dates_are_compared_without_overflow() {
        let now = 1_800_000_000;
        assert!(is_recent(now, now) && is_recent(now + 1, now) && is_recent(now - 604_800, now));
        assert!(!is_recent(now - 604_801, now) && !is_recent(now + 3601, now));
        assert!(!is_recent(u64::MAX, now) && !is_recent(0, now) && is_recent(0, 0) && is_recent(u64::MAX, u64::MAX));
    }

    #[test]
    fn a_flood_of_new_askers_begins_at_the_limit_and_ends_a_minute_later() {
        let (flood, start) = (Flood::new(20, 3), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        for second in [0, 10] {
            flood.record_new_asker(at(second));
            assert_eq!(flood.wanted(at(second)), None);
        }
        flood.record_new_asker(at(20));
        assert_eq!(flood.wanted(at(20)), Some(WorkWanted { bits: 20, ends_in: Duration::from_secs(40) }));
        assert_eq!(flood.wanted(at(59)), Some(WorkWanted { bits: 20, ends_in: Duration::from_secs(1) }));
        assert_eq!(flood.wanted(at(60)), None);
        // The flood lasts as long as the requests continue.
        (61..100).for_each(|second| flood.record_new_asker(at(second)));
        assert!(flood.wanted(at(140)).is_some());
        assert_eq!(flood.wanted(at(160)), None);
    }

    #[test]
    fn an_overflow_is_a_flood_for_a_minute() {
        let (flood, start) = (Flood::new(8, 1000), Instant::now());
        assert_eq!(flood.wanted(start), None);
        flood.record_overflow(start);
        assert!(flood.wanted(start + Duration::from_secs(59)).is_some());
        assert_eq!(flood.wanted(start + FLOOD_WINDOW), None);
    }

    #[test]
    fn work_counts_up_to_its_target() {
        let keys = Keys::generate();
        let mined = EventBuilder::new(Kind::GiftWrap, "x").pow(10).sign_with_keys(&keys).unwrap();
        assert_eq!(work_of(&mined), 10);
        assert!(Flood::new(10, 1).is_paid(&mined) && !Flood::new(11, 1).is_paid(&mined));
        // Zero bits without a target, and a target without zero bits, do not count.
        let mut lucky = mined.clone();
        lucky.tags = nostr_sdk::Tags::new();
        assert_eq!(work_of(&lucky), 0);
        let tag = Tag::parse(["nonce", "1", "200"]).unwrap();
        let unmet = EventBuilder::new(Kind::GiftWrap, "x").tag(tag).sign_with_keys(&keys).unwrap();
        assert!(work_of(&unmet) < 64);
    }
}
