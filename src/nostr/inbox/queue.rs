//! What waits to be opened: a lane for wraps with proof of work, and one for the rest. Both are bounded, in events and in
//! bytes; what does not fit is left to a sweep, for the relay still has it. Only what our inbox relays say in answer to our
//! subscription comes in here.

use super::dedup::{SeenIds, is_worth_opening};
use super::flood::Flood;
use super::watchdog::Awaited;
use crate::fault::{self, Step};
use nostr_sdk::{Event, PublicKey, RelayMessage, RelayPoolNotification, RelayUrl, SubscriptionId};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, broadcast, mpsc};

/// Events that may wait in a lane.
const WAITING: usize = 4096;
/// Ids of events that were let in and are remembered here; the inbox remembers more.
const ADMITTED: usize = 4 * WAITING;
/// Memory they may have, in KiB: their content and this for the rest of each.
const KIBIBYTES: usize = 32 * 1024;
const KIBIBYTES_AN_EVENT: usize = 2;

/// An event and where it came from.
pub(in crate::nostr) struct Arrival {
    pub url: RelayUrl,
    pub event: Box<Event>,
    /// Whether it has the proof of work that floods make dear.
    pub paid: bool,
    /// Its place in memory; a sweep's pages are bounded otherwise.
    pub room: Option<OwnedSemaphorePermit>,
}

/// The receiving ends.
pub(in crate::nostr) struct Queues {
    pub paid: mpsc::Receiver<Arrival>,
    pub plain: mpsc::Receiver<Arrival>,
}

/// The sending ends.
pub(in crate::nostr) struct Entrance {
    paid: mpsc::Sender<Arrival>,
    plain: mpsc::Sender<Arrival>,
    /// For each lane its own, so that a flood leaves those with work their room.
    room_paid: Arc<Semaphore>,
    room_plain: Arc<Semaphore>,
    pub source: Source,
    pub flood: Flood,
    /// Our own letters, with which the watchdog tries the relays.
    pub awaited: Awaited,
    /// The latest that were let in: relays repeat themselves and each other.
    admitted: SeenIds,
    /// Something did not fit, or the library lost something.
    pub lost: Arc<Notify>,
    /// A relay closed our subscription.
    pub closed: Arc<Notify>,
}

/// Whose events are wanted, and which.
pub(in crate::nostr) struct Source {
    pub bot: PublicKey,
    /// Our inbox relays.
    pub relays: Vec<RelayUrl>,
    /// The name of our subscription there.
    pub subscription: &'static str,
}

pub(in crate::nostr) fn open(source: Source, flood: Flood, awaited: Awaited) -> (Entrance, Queues) {
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
    /// Does nothing but forward: a slow reader of the library's stream loses events that are never announced again.
    pub async fn drain(mut self, mut notifications: broadcast::Receiver<RelayPoolNotification>) {
        loop {
            match notifications.recv().await {
                // Not the library's own event: that comes once for each id, under whatever question had it first.
                Ok(RelayPoolNotification::Message {
                    relay_url,
                    message: RelayMessage::Event { subscription_id, event },
                }) if self.is_asked_for(&relay_url, &subscription_id) => {
                    fault::before(Step::Listen);
                    if !self.admit(relay_url, event.into_owned()) {
                        return;
                    }
                    fault::after(Step::Listen);
                }
                Ok(RelayPoolNotification::Message {
                    relay_url,
                    message: RelayMessage::Closed { subscription_id, .. },
                }) if self.is_asked_for(&relay_url, &subscription_id) => {
                    self.closed.notify_one();
                }
                Ok(RelayPoolNotification::Shutdown) | Err(broadcast::error::RecvError::Closed) => return,
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(count)) => {
                    tracing::debug!(count, "the stream ran over; sweeping");
                    self.lost.notify_one();
                }
            }
        }
    }

    /// What a sweep fetches goes its own way, and what nobody asked for goes nowhere.
    fn is_asked_for(&self, relay: &RelayUrl, subscription: &SubscriptionId) -> bool {
        subscription.as_str() == self.source.subscription && self.source.relays.contains(relay)
    }

    /// `false` when nobody takes anything any more.
    fn admit(&mut self, url: RelayUrl, event: Event) -> bool {
        let id = event.id.to_bytes();
        // Our own letters do not queue: in a flood they would be late, and the relay taken for deaf.
        if self.awaited.arrived(&id) || self.admitted.contains(&id) || !is_worth_opening(&event, &self.source.bot) {
            return true;
        }
        let paid = self.flood.is_paid(&event);
        let (lane, room) = if paid { (&self.paid, &self.room_paid) } else { (&self.plain, &self.room_plain) };
        let size = (event.content.len() / 1024 + KIBIBYTES_AN_EVENT) as u32;
        let Ok(room) = Arc::clone(room).try_acquire_many_owned(size) else {
            self.run_over();
            return true;
        };
        match lane.try_send(Arrival { url, event: Box::new(event), paid, room: Some(room) }) {
            Ok(()) => {
                self.admitted.insert(id);
                true
            }
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.run_over();
                true
            }
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        }
    }

    fn run_over(&self) {
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
    async fn only_what_our_relays_answer_comes_in() {
        let (bot, flood) = (Keys::generate(), Flood::new(20, 1000));
        let ours = RelayUrl::parse("wss://ours.example").unwrap();
        let theirs = RelayUrl::parse("wss://theirs.example").unwrap();
        let (entrance, mut lanes) = open(source(&bot, &ours), flood, Awaited::default());
        let closed = Arc::clone(&entrance.closed);
        let (library, stream) = broadcast::channel(16);
        let draining = tokio::spawn(entrance.drain(stream));
        library.send(event(&theirs, "inbox", &wrap(&bot, "a stranger's"))).unwrap();
        library.send(event(&ours, "other", &wrap(&bot, "another question's"))).unwrap();
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
        assert_eq!(lanes.plain.recv().await.unwrap().event.content, "ours");
        assert!(lanes.plain.recv().await.is_none());
        assert!(tokio::time::timeout(Duration::ZERO, closed.notified()).await.is_err(), "a stranger closes nothing");
    }

    #[tokio::test]
    async fn our_own_letter_does_not_queue_behind_a_flood() {
        let (bot, awaited) = (Keys::generate(), Awaited::default());
        let ours = RelayUrl::parse("wss://ours.example").unwrap();
        let (entrance, _lanes) = open(source(&bot, &ours), Flood::new(20, 1000), awaited.clone());
        let (library, stream) = broadcast::channel(2 * WAITING);
        tokio::spawn(entrance.drain(stream));
        for number in 0..=WAITING {
            library.send(event(&ours, "inbox", &wrap(&bot, &number.to_string()))).unwrap();
        }
        let letter = wrap(&bot, "our own");
        let seen = awaited.expect(letter.id.to_bytes());
        library.send(event(&ours, "inbox", &letter)).unwrap();
        tokio::time::timeout(PATIENCE, seen.notified()).await.expect("it is seen at once");
    }
}
