//! What waits to be opened: a lane for wraps with proof of work, and one for the rest. Both are bounded, in events and in
//! bytes; what does not fit is left to a sweep, for the relay still has it.

use super::checks::is_worth_opening;
use super::flood::Flood;
use nostr_sdk::{Event, PublicKey, RelayMessage, RelayPoolNotification, RelayUrl};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, broadcast, mpsc};

/// Events that may wait in a lane.
const WAITING: usize = 4096;
/// Memory they may have, in KiB: their content and this for the rest of each.
const KIBIBYTES: usize = 32 * 1024;
const KIBIBYTES_AN_EVENT: usize = 2;

/// An event and where it came from.
pub(super) struct Arrival {
    pub url: RelayUrl,
    pub event: Box<Event>,
    /// Whether it has the proof of work that floods make dear.
    pub paid: bool,
    /// Its place in memory; a sweep's pages are bounded otherwise.
    pub room: Option<OwnedSemaphorePermit>,
}

/// The receiving ends.
pub(super) struct Lanes {
    pub paid: mpsc::Receiver<Arrival>,
    pub plain: mpsc::Receiver<Arrival>,
}

/// The sending ends.
pub(super) struct Entrance {
    paid: mpsc::Sender<Arrival>,
    plain: mpsc::Sender<Arrival>,
    /// For each lane its own, so that a flood leaves those with work their room.
    room_paid: Arc<Semaphore>,
    room_plain: Arc<Semaphore>,
    pub bot: PublicKey,
    pub flood: Flood,
    /// Something did not fit, or the library lost something.
    pub lost: Arc<Notify>,
    /// A relay closed our subscription.
    pub closed: Arc<Notify>,
}

pub(super) fn open(bot: PublicKey, flood: Flood) -> (Entrance, Lanes) {
    let ((paid, paid_out), (plain, plain_out)) = (mpsc::channel(WAITING), mpsc::channel(WAITING));
    let room = || Arc::new(Semaphore::new(KIBIBYTES));
    let (room_paid, room_plain) = (room(), room());
    let (lost, closed) = (Arc::default(), Arc::default());
    (
        Entrance { paid, plain, room_paid, room_plain, bot, flood, lost, closed },
        Lanes { paid: paid_out, plain: plain_out },
    )
}

impl Entrance {
    /// Does nothing but forward: a slow reader of the library's stream loses events that are never announced again.
    pub async fn drain(self, mut notifications: broadcast::Receiver<RelayPoolNotification>, subscription: &str) {
        loop {
            match notifications.recv().await {
                Ok(RelayPoolNotification::Event { relay_url, event, .. }) => {
                    if !self.admit(relay_url, event) {
                        return;
                    }
                }
                Ok(RelayPoolNotification::Message {
                    message: RelayMessage::Closed { subscription_id, .. }, ..
                }) if subscription_id.as_str() == subscription => {
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

    /// `false` when nobody takes anything any more.
    fn admit(&self, url: RelayUrl, event: Box<Event>) -> bool {
        if !is_worth_opening(&event, &self.bot) {
            return true;
        }
        let paid = self.flood.is_paid(&event);
        let (lane, room) = if paid { (&self.paid, &self.room_paid) } else { (&self.plain, &self.room_plain) };
        let size = (event.content.len() / 1024 + KIBIBYTES_AN_EVENT) as u32;
        let Ok(room) = Arc::clone(room).try_acquire_many_owned(size) else {
            self.run_over();
            return true;
        };
        match lane.try_send(Arrival { url, event, paid, room: Some(room) }) {
            Ok(()) => true,
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
