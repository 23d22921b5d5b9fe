//! Events waiting to be decrypted, in two lanes: those with proof of work, and the others.
//!
//! Both lanes are bounded, in events and in bytes. Events that do not fit are left to a backfill.
//! Only events that our inbox relays send for our subscription are accepted.

use super::arrival::{Arrival, SeenIds, is_acceptable};
use super::flood::Flood;
use super::watchdog::Awaited;
use crate::fault::{self, Step};
use nostr_sdk::{Event, PublicKey, RelayMessage, RelayPoolNotification, RelayUrl, SubscriptionId};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
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
pub(super) struct Queue {
    /// Events with proof of work, then the others.
    lanes: Arc<Mutex<[Lane; 2]>>,
    filled: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Lane {
    events: VecDeque<ArrivedEvent>,
    bytes: usize,
}

impl Queue {
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

    fn lock(&self) -> MutexGuard<'_, [Lane; 2]> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn size(arrival: &ArrivedEvent) -> usize {
    arrival.message.content.len() + BYTES_AN_EVENT
}

/// The way from the library's stream into the queue.
pub(super) struct Entrance {
    pub queue: Queue,
    pub source: Source,
    pub flood: Flood,
    /// The watchdog's messages to the bot itself.
    pub awaited: Awaited,
    /// Several relays send the same event.
    pub seen: SeenIds,
    /// Notified when an event found no room, or the library dropped events.
    pub lost: Arc<Notify>,
    /// Notified when a relay closed our subscription.
    pub closed: Arc<Notify>,
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
                Ok(RelayPoolNotification::Message {
                    relay_url,
                    message: RelayMessage::Closed { subscription_id, .. },
                }) if self.is_subscribed(&relay_url, &subscription_id) => {
                    self.closed.notify_one();
                }
                Ok(RelayPoolNotification::Shutdown) | Err(broadcast::error::RecvError::Closed) => return,
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(count)) => {
                    tracing::debug!(count, "the stream overflowed; starting a backfill");
                    self.lost.notify_one();
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
            self.seen.forget(&id);
            self.flood.record_overflow(Instant::now());
            self.lost.notify_one();
        }
    }
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
            queue: Queue::default(),
            source: Source { bot: bot.public_key(), relays: vec![ours.clone()], subscription: "inbox" },
            flood: Flood::new(20, 1000),
            awaited: Awaited::default(),
            seen: SeenIds::new(100_000),
            lost: Arc::default(),
            closed: Arc::default(),
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
        tokio::time::timeout(TEST_TIMEOUT, entrance.lost.notified()).await.expect("a backfill brings it");
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
}
