//! Wraps waiting to be decrypted: one queue for those with proof of work, and one for the others.
//!
//! Both are bounded, in events and in bytes. Wraps that do not fit are left to a backfill. Only
//! events that our inbox relays send for our subscription are accepted.

use super::dedup::SeenIds;
use super::flood::Flood;
use super::message::is_acceptable;
use super::watchdog::Awaited;
use crate::fault::{self, Step};
use nostr_sdk::{Event, PublicKey, RelayMessage, RelayPoolNotification, RelayUrl, SubscriptionId};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, broadcast, mpsc};

/// The most events in a queue.
const WAITING: usize = 4096;
/// Number of accepted ids remembered here. The inbox remembers more.
const ADMITTED: usize = 4 * WAITING;
/// Memory of a queue, in KiB: the content of its events, and [`KIBIBYTES_AN_EVENT`] each for the
/// rest.
const KIBIBYTES: usize = 32 * 1024;
/// Memory counted per event besides its content, in KiB.
const KIBIBYTES_AN_EVENT: usize = 2;

/// A received event, not yet verified.
pub(super) struct Arrival {
    /// The relay that sent the event.
    pub url: RelayUrl,
    /// The event.
    pub event: Box<Event>,
    /// Whether the event has the proof of work that is required in a flood.
    pub paid: bool,
    /// The event's share of the queue's memory; `None` for backfilled events, whose pages are
    /// bounded.
    pub room: Option<OwnedSemaphorePermit>,
}

/// The receiving ends of the two queues.
pub(super) struct Queues {
    /// Events with proof of work.
    pub paid: mpsc::Receiver<Arrival>,
    /// Events without proof of work.
    pub plain: mpsc::Receiver<Arrival>,
}

/// The sending ends of the two queues. The library's stream feeds them.
pub(super) struct Entrance {
    paid: mpsc::Sender<Arrival>,
    plain: mpsc::Sender<Arrival>,
    /// Memory of each queue. They are separate, so that a flood without work leaves room for wraps
    /// with work.
    room_paid: Arc<Semaphore>,
    room_plain: Arc<Semaphore>,
    source: Source,
    flood: Flood,
    /// The watchdog's messages to the bot itself.
    awaited: Awaited,
    /// Ids of recently accepted events, because several relays send the same event.
    admitted: SeenIds,
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

/// Makes the two queues.
pub(super) fn open(source: Source, flood: Flood, awaited: Awaited) -> (Entrance, Queues) {
    let ((paid, paid_out), (plain, plain_out)) = (mpsc::channel(WAITING), mpsc::channel(WAITING));
    let room = || Arc::new(Semaphore::new(KIBIBYTES));
    let (room_paid, room_plain) = (room(), room());
    let (lost, closed) = (Arc::default(), Arc::default());
    let admitted = SeenIds::new(ADMITTED);
    (
        Entrance { paid, plain, room_paid, room_plain, source, flood, awaited, admitted, lost, closed },
        Queues { paid: paid_out, plain: plain_out },
    )
}

impl Entrance {
    /// Moves events from the library's stream into the queues, and does nothing else: a slow reader
    /// of that stream loses events, which are not announced again.
    pub async fn drain(mut self, mut notifications: broadcast::Receiver<RelayPoolNotification>) {
        loop {
            match notifications.recv().await {
                // The library's `Event` notification is not used: it comes only once per id, for
                // the subscription that received the event first.
                Ok(RelayPoolNotification::Message {
                    relay_url,
                    message: RelayMessage::Event { subscription_id, event },
                }) if self.is_subscribed(&relay_url, &subscription_id) => {
                    fault::before(Step::Listen);
                    if !self.admit(relay_url, event.into_owned()) {
                        return;
                    }
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

    /// Puts an event into its queue. Returns `false` when the inbox has ended.
    fn admit(&mut self, url: RelayUrl, event: Event) -> bool {
        let id = event.id.to_bytes();
        // The watchdog's messages do not queue: in a flood they would be late, and the relay would
        // seem dead.
        if self.awaited.arrived(&id) || self.admitted.contains(&id) || !is_acceptable(&event, &self.source.bot) {
            return true;
        }
        let paid = self.flood.is_paid(&event);
        let (queue, room) = if paid { (&self.paid, &self.room_paid) } else { (&self.plain, &self.room_plain) };
        let size = (event.content.len() / 1024 + KIBIBYTES_AN_EVENT) as u32;
        let Ok(room) = Arc::clone(room).try_acquire_many_owned(size) else {
            self.overflow();
            return true;
        };
        match queue.try_send(Arrival { url, event: Box::new(event), paid, room: Some(room) }) {
            Ok(()) => {
                self.admitted.insert(id);
                true
            }
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.overflow();
                true
            }
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        }
    }

    fn overflow(&self) {
        self.flood.note_overflow(Instant::now());
        self.lost.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nostr_sdk::{EventBuilder, Keys, Kind, Tag};
    use std::borrow::Cow;
    use std::time::Duration;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn wrap(bot: &Keys, text: &str) -> Event {
        let wrap = EventBuilder::new(Kind::GiftWrap, text).tag(Tag::public_key(bot.public_key()));
        wrap.sign_with_keys(&Keys::generate()).unwrap()
    }

    fn event(url: &RelayUrl, subscription: &str, event: &Event) -> RelayPoolNotification {
        let id = Cow::Owned(SubscriptionId::new(subscription));
        let message = RelayMessage::Event { subscription_id: id, event: Cow::Owned(event.clone()) };
        RelayPoolNotification::Message { relay_url: url.clone(), message }
    }

    fn source(bot: &Keys, ours: &RelayUrl) -> Source {
        Source { bot: bot.public_key(), relays: vec![ours.clone()], subscription: "inbox" }
    }

    #[tokio::test]
    async fn only_events_of_our_subscription_are_accepted() {
        let (bot, flood) = (Keys::generate(), Flood::new(20, 1000));
        let ours = RelayUrl::parse("wss://ours.example").unwrap();
        let theirs = RelayUrl::parse("wss://theirs.example").unwrap();
        let (entrance, mut queues) = open(source(&bot, &ours), flood, Awaited::default());
        let closed = Arc::clone(&entrance.closed);
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
        assert_eq!(queues.plain.recv().await.unwrap().event.content, "ours");
        assert!(queues.plain.recv().await.is_none());
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
        let (mut entrance, mut queues) = open(source(&bot, &ours), Flood::new(20, 1000), Awaited::default());
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
            assert!(entrance.admit(ours.clone(), refused));
        }
        assert!(queues.plain.try_recv().is_err());
        assert!(entrance.admit(ours.clone(), made(Kind::GiftWrap, largest, tags(1))));
        assert_eq!(queues.plain.try_recv().unwrap().event.content.len(), largest);
    }

    #[tokio::test]
    async fn a_message_to_ourselves_does_not_queue_behind_a_flood() {
        let (bot, awaited) = (Keys::generate(), Awaited::default());
        let ours = RelayUrl::parse("wss://ours.example").unwrap();
        let (entrance, _queues) = open(source(&bot, &ours), Flood::new(20, 1000), awaited.clone());
        let (library, stream) = broadcast::channel(2 * WAITING);
        tokio::spawn(entrance.drain(stream));
        for number in 0..=WAITING {
            library.send(event(&ours, "inbox", &wrap(&bot, &number.to_string()))).unwrap();
        }
        let own = wrap(&bot, "our own");
        let seen = awaited.expect(own.id.to_bytes());
        library.send(event(&ours, "inbox", &own)).unwrap();
        tokio::time::timeout(PATIENCE, seen.notified()).await.expect("it is seen at once");
    }
}
