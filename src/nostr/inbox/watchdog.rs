//! The watchdog regularly sends a message from the bot to itself through each DM relay. It
//! reconnects to a relay that accepts the message but never delivers it. About one connection in
//! ten thousand is like that, for days.

use crate::clock::Clock;
use crate::job::Asker;
use crate::message::OutgoingMessage;
use crate::nostr::relay::connections::Relays;
use crate::nostr::relay::error::NostrError;
use crate::shutdown::Shutdown;
use crate::vault::Vault;
use nostr_sdk::{Event, JsonUtil, RelayUrl};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Time from the start to the first round.
const FIRST_ROUND: Duration = Duration::from_secs(10);
/// Time limit from a relay's OK to the message's arrival.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(20);
/// Seconds after which relays may delete the message.
const TEST_MESSAGE_LIFE: u64 = 3600;

/// The watchdog's messages in transit. Shared with the inbox, which sees them arrive.
#[derive(Clone, Debug, Default)]
pub struct Awaited {
    inner: Arc<Mutex<HashMap<[u8; 32], Arc<Notify>>>>,
}

impl Awaited {
    /// Expects the event with this id. The returned value is notified when it arrives.
    pub(super) fn expect(&self, id: [u8; 32]) -> Arc<Notify> {
        let seen = Arc::new(Notify::new());
        self.lock().insert(id, Arc::clone(&seen));
        seen
    }

    /// Notifies the test that waits for this event. Returns whether there is one.
    pub(super) fn arrived(&self, id: &[u8; 32]) -> bool {
        let seen = self.lock().get(id).cloned();
        if let Some(seen) = &seen {
            seen.notify_one();
        }
        seen.is_some()
    }

    fn forget(&self, id: &[u8; 32]) {
        self.lock().remove(id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], Arc<Notify>>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tests whether the bot's DM relays deliver, with messages of the bot to itself.
#[derive(Clone)]
pub struct Watchdog {
    /// The connections to relays.
    pub relays: Relays,
    /// The vault that seals the test messages.
    pub vault: Vault,
    /// The clock that dates the messages.
    pub clock: Clock,
    /// Time between two rounds.
    pub every: Duration,
    /// The test messages that have not arrived yet.
    pub awaited: Awaited,
    /// Notified when a relay does not deliver: the inbox subscribes again and starts a backfill.
    pub resubscribe: Arc<Notify>,
}

/// The result of one test.
enum Test {
    Passed,
    /// The relay accepted the message and did not deliver it.
    Deaf,
    Refused(NostrError),
}

impl Watchdog {
    /// Tests every DM relay in each round until the shutdown.
    pub async fn run(self, mut shutdown: Shutdown) {
        let mut rounds = tokio::time::interval_at(tokio::time::Instant::now() + FIRST_ROUND, self.every);
        let mut reported: HashSet<RelayUrl> = HashSet::new();
        loop {
            tokio::select! {
                () = shutdown.stopped() => return,
                _ = rounds.tick() => {}
            }
            for url in self.relays.ours(|relay| relay.inbox) {
                if !self.relays.is_connected(&url).await {
                    continue;
                }
                let result = tokio::select! {
                    () = shutdown.stopped() => return,
                    result = self.test(&url) => result,
                };
                match result {
                    Test::Passed => {
                        if reported.remove(&url) {
                            tracing::info!(%url, "a DM relay works again");
                        }
                    }
                    Test::Deaf => {
                        tracing::warn!(%url, "a DM relay accepts messages but does not deliver them; reconnecting");
                        reported.insert(url.clone());
                        self.relays.reconnect(&url).await;
                        self.resubscribe.notify_one();
                    }
                    Test::Refused(error) if reported.insert(url.clone()) => {
                        tracing::warn!(%url, %error, "a DM relay refuses sealed messages, so askers may not reach the bot \
                            there; give the role \"inbox\" to another in relays.toml");
                    }
                    Test::Refused(_) => {}
                }
            }
        }
    }

    async fn test(&self, url: &RelayUrl) -> Test {
        let message = OutgoingMessage {
            to: Asker(self.relays.bot().to_bytes()),
            encryption_key: None,
            text: String::new(),
            in_reply_to: None,
            subject: None,
            expires_at: self.clock.now() + TEST_MESSAGE_LIFE,
            not_before: 0,
        };
        let Some(event) = self.vault.seal(&message).ok().and_then(|wrap| Event::from_json(wrap.json).ok()) else {
            return Test::Passed;
        };
        let id = event.id.to_bytes();
        let seen = self.awaited.expect(id);
        let began = Instant::now();
        let result = match self.relays.publish(url, &event).await {
            // The relay disconnected during the test, so the test says nothing.
            Err(NostrError::NotConnected(_)) => Test::Passed,
            Err(error) => Test::Refused(error),
            Ok(()) => match tokio::time::timeout(ARRIVAL_TIMEOUT, seen.notified()).await {
                Ok(()) => Test::Passed,
                Err(_) => Test::Deaf,
            },
        };
        tracing::debug!(%url, took = ?began.elapsed(), "the watchdog tested a relay");
        self.awaited.forget(&id);
        result
    }
}
