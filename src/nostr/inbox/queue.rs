//! The queue of events that wait to be decrypted, and the way into it: only events that our inbox
//! relays send for our subscription, of a fitting kind and size. Events that do not fit into the queue
//! are left to a backfill.

use super::seen::SeenIds;
use super::subscription::Awaited;
use super::{InboxItem, SUBSCRIPTION};
use crate::fault;
use crate::nostr::relay::reports::RelayReports;
use crate::vault::{GIFT_WRAPS, Rumor};
use futures_util::stream::{Stream, StreamExt, poll_fn};
use nostr_sdk::{Event, Kind, PublicKey, RelayMessage, RelayPoolNotification, RelayUrl};
use std::sync::Arc;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, broadcast, mpsc};

/// The most events that wait.
const MAX_WAITING: usize = 4096;
/// Memory of the waiting events, in bytes: their content, and [`BYTES_AN_EVENT`] each for the rest.
const WAITING_BYTES: usize = 32 << 20;
/// Memory counted per event besides its content, in bytes.
const BYTES_AN_EVENT: usize = 2048;

/// An event that was not verified yet.
pub(super) type ArrivedEvent = Arrival<Box<Event>>;

/// The way from the library's stream into the queue.
pub(super) struct Entrance {
    waiting: mpsc::Sender<(ArrivedEvent, OwnedSemaphorePermit)>,
    /// The bytes that are left for waiting events.
    room: Arc<Semaphore>,
    /// The receiver of the events.
    bot: PublicKey,
    /// Our inbox relays.
    inboxes: Vec<RelayUrl>,
    /// The watchdog's messages to the bot itself.
    awaited: Awaited,
    /// Several relays send the same event.
    seen: SeenIds,
    /// Notified when a relay closed our subscription.
    pub closed: Arc<Notify>,
    reports: RelayReports,
}

impl Entrance {
    /// The entrance of an empty queue, and the stream of the waiting events, oldest first.
    pub fn new(
        bot: PublicKey,
        inboxes: Vec<RelayUrl>,
        awaited: Awaited,
        seen: SeenIds,
        reports: RelayReports,
    ) -> (Entrance, impl Stream<Item = InboxItem<Box<Event>>>) {
        let (waiting, mut events) = mpsc::channel(MAX_WAITING);
        let next = poll_fn(move |context| events.poll_recv(context));
        let room = Arc::new(Semaphore::new(WAITING_BYTES));
        let entrance = Entrance { waiting, room, bot, inboxes, awaited, seen, closed: Arc::default(), reports };
        (entrance, next.map(|(arrival, _room)| InboxItem::Message(arrival)))
    }

    /// Moves events from the library's stream into the queue, and does nothing else: a slow reader
    /// of that stream loses events, which are not announced again.
    pub async fn drain(self, mut notifications: broadcast::Receiver<RelayPoolNotification>) {
        loop {
            match notifications.recv().await {
                // The library's `Event` notification is not used: it comes only once per id, for
                // the subscription that received the event first.
                Ok(RelayPoolNotification::Message { relay_url, message }) => self.hear(relay_url, message),
                Ok(RelayPoolNotification::Shutdown) | Err(broadcast::error::RecvError::Closed) => return,
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(count)) => {
                    tracing::debug!(count, "the stream overflowed; starting a backfill");
                    self.seen.lost.notify_one();
                }
            }
        }
    }

    fn hear(&self, relay: RelayUrl, message: RelayMessage<'_>) {
        // Not a query, and no message that nobody asked for.
        let is_inbox = |id: &str| id == SUBSCRIPTION && self.inboxes.contains(&relay);
        match message {
            RelayMessage::Event { subscription_id, event } if is_inbox(subscription_id.as_str()) => {
                fault::before("listen");
                self.admit(relay, event.into_owned());
                fault::after("listen");
            }
            message => {
                if matches!(&message, RelayMessage::Closed { subscription_id: id, .. } if is_inbox(id.as_str())) {
                    self.closed.notify_one();
                }
                self.reports.hear(&relay, &message, is_inbox);
            }
        }
    }

    /// Puts an event into the queue, unless it is not acceptable or a copy of one.
    fn admit(&self, relay: RelayUrl, event: Event) {
        let id = event.id.to_bytes();
        // The watchdog's messages do not queue: in a flood they would be late, and the relay would
        // seem dead.
        if self.awaited.arrived(&id) || !is_acceptable(&event, &self.bot) || !self.seen.insert(id) {
            return;
        }
        if !self.push(Arrival { message: Box::new(event), id, relay }) {
            self.seen.give_back(&id);
        }
    }

    /// Adds an event to the queue. Returns `false` if there is no room.
    fn push(&self, arrival: ArrivedEvent) -> bool {
        let size = arrival.message.content.len() + BYTES_AN_EVENT;
        let room = Arc::clone(&self.room).try_acquire_many_owned(size as u32);
        room.is_ok_and(|room| self.waiting.try_send((arrival, room)).is_ok())
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
}

impl<T> Arrival<T> {
    /// The message, and the arrival without it.
    pub(super) fn take(self) -> (T, Arrival<()>) {
        (self.message, Arrival { message: (), id: self.id, relay: self.relay })
    }

    /// The arrival with the next form of its message.
    pub(super) fn with<U>(self, message: U) -> Arrival<U> {
        Arrival { message, id: self.id, relay: self.relay }
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use nostr_sdk::{EventBuilder, Keys, Kind, SubscriptionId, Tag};
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

    fn entrance(bot: &Keys, ours: &RelayUrl) -> (Entrance, impl Iterator<Item = Event>) {
        let (entrance, waiting) = Entrance::new(
            bot.public_key(),
            vec![ours.clone()],
            Awaited::default(),
            SeenIds::default(),
            RelayReports::default(),
        );
        let mut waiting = Box::pin(waiting);
        let next = move || match tokio::task::unconstrained(waiting.next()).now_or_never()?? {
            InboxItem::Message(arrival) => Some(*arrival.message),
            InboxItem::BackfillEnd(_) => None,
        };
        (entrance, std::iter::from_fn(next))
    }

    #[tokio::test]
    async fn only_events_of_our_subscription_are_accepted() {
        let bot = Keys::generate();
        let ours = RelayUrl::parse("wss://ours.example").unwrap();
        let theirs = RelayUrl::parse("wss://theirs.example").unwrap();
        let (entrance, mut waiting) = entrance(&bot, &ours);
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
        assert_eq!(waiting.next().unwrap().content, "ours");
        assert!(waiting.next().is_none());
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
        let (entrance, mut waiting) = entrance(&bot, &ours);
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
        assert!(waiting.next().is_none());
        entrance.admit(ours.clone(), made(Kind::GiftWrap, largest, tags(1)));
        assert_eq!(waiting.next().unwrap().content.len(), largest);
        entrance.admit(ours.clone(), made(Kind::Custom(21059), 1, tags(1)));
        assert!(waiting.next().is_some(), "an ephemeral wrap");
    }

    #[tokio::test]
    async fn a_message_to_ourselves_does_not_queue_behind_a_flood() {
        let bot = Keys::generate();
        let ours = RelayUrl::parse("wss://ours.example").unwrap();
        let (entrance, _waiting) = entrance(&bot, &ours);
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

    /// An event that found no room may come again; so may one beyond the bytes.
    #[tokio::test]
    async fn the_number_of_waiting_events_and_their_bytes_are_bounded() {
        let bot = Keys::generate();
        let ours = RelayUrl::parse("wss://ours.example").unwrap();
        let (entrance, mut waiting) = entrance(&bot, &ours);
        let event = wrap(&bot, "one");
        let arrival = |length: usize| {
            let mut event = event.clone();
            event.content = "x".repeat(length);
            Arrival { id: event.id.to_bytes(), message: Box::new(event), relay: ours.clone() }
        };
        assert!((0..MAX_WAITING).all(|_| entrance.push(arrival(1))));
        assert!(!entrance.push(arrival(1)));
        entrance.admit(ours.clone(), event.clone());
        assert!(!entrance.seen.forget(&event.id.to_bytes()), "another copy of it is not skipped");
        tokio::time::timeout(TEST_TIMEOUT, entrance.seen.lost.notified()).await.expect("a backfill brings it");
        assert_eq!(waiting.by_ref().count(), MAX_WAITING);
        let fit = (0..10).take_while(|_| entrance.push(arrival(WAITING_BYTES / 4))).count();
        assert_eq!(fit, 3);
        assert!(waiting.next().is_some());
        assert!(entrance.push(arrival(WAITING_BYTES / 4)), "the room is free again");
    }

    #[test]
    fn dates_are_compared_without_overflow() {
        let now = 1_800_000_000;
        assert!(is_recent(now, now) && is_recent(now + 1, now) && is_recent(now - 604_800, now));
        assert!(!is_recent(now - 604_801, now) && !is_recent(now + 3601, now));
        assert!(!is_recent(u64::MAX, now) && !is_recent(0, now) && is_recent(0, 0) && is_recent(u64::MAX, u64::MAX));
    }
}
