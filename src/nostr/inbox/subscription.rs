//! Our subscription at the inbox relays, and how many of them are connected.
//!
//! The library repeats recorded subscriptions after a reconnect. It drops the record when the relay
//! closes the subscription or was away for long. So every check verifies that there is a record.
//!
//! The watchdog regularly sends a message from the bot to itself through each DM relay. It
//! reconnects to a relay that accepts the message but never delivers it. About one connection in
//! ten thousand is like that, for days.

use super::SUBSCRIPTION;
use crate::backoff::Backoff;
use crate::clock::Clock;
use crate::job::Asker;
use crate::message::OutgoingMessage;
use crate::nostr::relay::connections::{Connection, Relays};
use crate::nostr::relay::error::NostrError;
use crate::shutdown::Shutdown;
use crate::vault::Vault;
use nostr_sdk::{Event, Filter, JsonUtil, RelayUrl, SubscriptionId};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The first pause before a closed subscription is repeated. Later pauses double up to
/// [`LAST_RESUBSCRIBE_PAUSE`].
const FIRST_RESUBSCRIBE_PAUSE: Duration = Duration::from_secs(2);
/// The longest pause before a closed subscription is repeated.
const LAST_RESUBSCRIBE_PAUSE: Duration = Duration::from_secs(60);

/// One subscription at all inbox relays.
pub(super) struct InboxSubscription {
    relays: Relays,
    id: SubscriptionId,
    urls: Vec<RelayUrl>,
    /// The connections at the last check.
    connected: HashMap<RelayUrl, Connection>,
    /// The time at which to repeat a closed subscription.
    repeat_at: Option<Instant>,
    backoff: Backoff,
    /// The number of connected relays in the last log line.
    reported: Option<usize>,
}

impl InboxSubscription {
    /// The subscription, not yet requested.
    pub fn new(relays: Relays) -> InboxSubscription {
        InboxSubscription {
            urls: relays.ours(|relay| relay.inbox),
            relays,
            id: SubscriptionId::new(SUBSCRIPTION),
            connected: HashMap::new(),
            repeat_at: None,
            backoff: Backoff::new(FIRST_RESUBSCRIBE_PAUSE, LAST_RESUBSCRIBE_PAUSE),
            reported: None,
        }
    }

    /// Requests the filter's events, stored and new, from every inbox relay.
    pub async fn request(&self, filter: Filter) {
        self.request_from(self.urls.clone(), filter).await;
    }

    async fn request_from(&self, urls: Vec<RelayUrl>, filter: Filter) {
        if let Err(error) = self.relays.client().subscribe_with_id_to(urls, self.id.clone(), filter, None).await {
            tracing::warn!(%error, "the inbox relays could not be subscribed yet; backfills continue");
        }
    }

    /// Records that a relay closed the subscription, for example to request authentication.
    pub fn closed(&mut self) {
        if self.repeat_at.is_none() {
            self.repeat_at = Some(Instant::now() + self.backoff.next_pause());
        }
    }

    /// Makes pauses short again, because all relays answered a backfill.
    pub fn works(&mut self) {
        self.backoff.reset();
    }

    /// Whether any inbox relay was connected at the last check.
    pub fn is_connected(&self) -> bool {
        !self.connected.is_empty()
    }

    /// Checks the connections and subscribes where the subscription is missing. Returns whether
    /// something may have been missed: a relay that reconnects has events from the time it was
    /// away.
    pub async fn check(&mut self, filter: impl Fn() -> Filter) -> bool {
        let mut missed = false;
        if self.repeat_at.is_some_and(|at| Instant::now() >= at) {
            self.repeat_at = None;
            self.request(filter()).await;
            missed = true;
        }
        let mut connected = HashMap::new();
        for url in &self.urls {
            let Some(connection) = self.relays.connection(url).await else { continue };
            missed |= self.connected.get(url) != Some(&connection);
            connected.insert(url.clone(), connection);
            // A relay that has just closed the subscription is not asked during the pause.
            if self.repeat_at.is_none() && !self.relays.is_subscribed(url, &self.id).await {
                self.request_from(vec![url.clone()], filter()).await;
                missed = true;
            }
        }
        self.connected = connected;
        self.report();
        missed
    }

    /// Logs the number of connected relays when it changes.
    fn report(&mut self) {
        let (connected, of) = (self.connected.len(), self.urls.len());
        if self.reported.replace(connected) == Some(connected) {
            return;
        }
        if connected == 0 {
            tracing::warn!("inbox relays connected: 0 of {of}; nobody can reach the bot");
        } else {
            tracing::info!("inbox relays connected: {connected} of {of}");
        }
    }
}

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
                    Ok(true) if reported.remove(&url) => tracing::info!(%url, "a DM relay works again"),
                    Ok(true) => {}
                    Ok(false) => {
                        tracing::warn!(%url, "a DM relay accepts messages but does not deliver them; reconnecting");
                        reported.insert(url.clone());
                        self.relays.reconnect(&url).await;
                        self.resubscribe.notify_one();
                    }
                    Err(error) if reported.insert(url.clone()) => {
                        tracing::warn!(%url, %error, "a DM relay refuses sealed messages, so askers may not reach the bot \
                            there; give the role \"inbox\" to another in relays.toml");
                    }
                    Err(_) => {}
                }
            }
        }
    }

    /// Whether a relay delivers a message that it accepts.
    ///
    /// Errors: it does not accept the message.
    async fn test(&self, url: &RelayUrl) -> Result<bool, NostrError> {
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
            return Ok(true);
        };
        let id = event.id.to_bytes();
        let seen = self.awaited.expect(id);
        let began = Instant::now();
        let result = match self.relays.publish(url, &event).await {
            // The relay disconnected during the test, so the test says nothing.
            Err(NostrError::NotConnected(_)) => Ok(true),
            Err(error) => Err(error),
            Ok(()) => Ok(tokio::time::timeout(ARRIVAL_TIMEOUT, seen.notified()).await.is_ok()),
        };
        tracing::debug!(%url, took = ?began.elapsed(), "the watchdog tested a relay");
        self.awaited.forget(&id);
        result
    }
}
