//! The bot's connections: our own relays with their roles, and external relays for as long as they
//! are needed.

use super::error::NostrError;
use super::external::ExternalRelays;
use super::host::{Host, Hosts, Resolver, has_allowed_port, is_private};
use super::publish::Throttle;
use super::reports::{RelayReports, RelayWords};
use super::slots::Visitor;
use super::transport::{Proxy, Transport};
use crate::config::RelayEntry;
use crate::vault::BotSigner;
use nostr_relay_pool::prelude::{
    Backend, DatabaseError, DatabaseEventStatus, Events, NostrDatabase, RejectedReason, SaveEventStatus,
};
use nostr_sdk::prelude::*;
use nostr_sdk::{
    Client, ClientOptions, Event, EventId, Filter, NostrSigner, PublicKey, Relay, RelayOptions, RelayPoolNotification,
    RelayPoolOptions, RelayUrl, SubscriptionId, Timestamp, Url,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::future::{Future, ready};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit, broadcast};

/// Capacity of the library's notification stream, in messages. Its reader may be some seconds late
/// in a flood.
const UNREAD_OF_ALL: usize = 8_192;
/// The most unread messages of one of our relays. They take some 1 MB. A query that misses one is
/// repeated.
const UNREAD_PER_RELAY: usize = 4_096;
/// The most lookups at one of our relays at a time. The library passes every message of the relay
/// to every open query, so twice as many queries cost four times as much.
pub(super) const LOOKUPS_PER_RELAY: usize = 16;
/// Pause between two attempts to connect to one of our relays.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// The longest wait for one of our relays that has just disconnected.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(7);
/// A relay of ours whose last connection was made within this time will probably return soon. Only
/// such relays are waited for.
const JUST_GONE: Duration = Duration::from_secs(60);

/// The longest time that a caller asks for a place among those of others.
const ASK_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause between two times it asks.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// Identifies one connection to one of our relays. A reconnect makes another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::nostr) struct Connection {
    number: usize,
    made_at: Timestamp,
}

/// One of our relays, and its connections since the start.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RelayFigures {
    /// The URL of the relay.
    pub url: String,
    /// Whether the relay is connected.
    pub state: ConnectionState,
    /// Attempts to connect that failed.
    pub failures: u64,
    /// Mean time from a ping to its answer; `None` before there are enough answers.
    pub lag_milliseconds: Option<u64>,
    /// The relay's own words, if it refused or announced something.
    #[serde(default)]
    pub said: Option<RelayWords>,
}

/// Whether a relay is connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionState {
    /// It is.
    Connected,
    /// It is not, and the bot tries again.
    Disconnected,
}

impl RelayFigures {
    /// Whether the relay is connected.
    pub fn is_connected(&self) -> bool {
        self.state == ConnectionState::Connected
    }

    /// Whether the relay is connected, and does not refuse to show the bot its messages.
    pub fn serves(&self) -> bool {
        self.is_connected() && !self.said.as_ref().is_some_and(|said| said.refuses_inbox)
    }
}

/// The relays that the bot may connect to, and the proxy to them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach {
    /// Whether to connect to relays that askers list.
    pub visits_external: bool,
    /// Whether such relays may be at private addresses, for test networks.
    pub allow_private: bool,
    /// The SOCKS5 proxy for all relays except those on this machine or its network.
    pub proxy: Option<SocketAddr>,
}

/// All connections of the bot. Cheap to clone.
#[derive(Clone)]
pub struct Relays {
    /// The connections to our own relays.
    client: Client,
    entries: Arc<Vec<RelayEntry>>,
    bot: PublicKey,
    pub(super) external: ExternalRelays,
    reach: Reach,
    /// What our relays say, and what they show of the time.
    pub(in crate::nostr) reports: RelayReports,
    /// Limits the events that relays get at a time.
    pub(super) throttle: Arc<Throttle>,
    /// Limits the lookups at a time at each of our relays.
    lookups: Arc<HashMap<RelayUrl, Semaphore>>,
}

#[cfg(test)]
impl Reach {
    /// Every relay, without a proxy.
    pub fn anywhere() -> Reach {
        Reach { visits_external: true, allow_private: true, proxy: None }
    }
}

impl Relays {
    /// Adds our relays and connects in the background. Relays that are away are tried again until
    /// the bot stops.
    ///
    /// Errors: [`NostrError::Relay`] if the signer has no public key, or the client cannot add a
    /// relay.
    pub async fn connect(entries: &[RelayEntry], reach: Reach, signer: BotSigner) -> Result<Relays, NostrError> {
        let proxy = reach.proxy.map(Proxy);
        let bot = signer
            .get_public_key()
            .await
            .map_err(|error| NostrError::Relay { url: "any".to_owned(), reason: error.to_string() })?;
        let reports = RelayReports::default();
        let pool = RelayPoolOptions::new().notification_channel_size(UNREAD_OF_ALL);
        let options = ClientOptions::new().pool(pool);
        let builder = Client::builder()
            .signer(signer.clone())
            .websocket_transport(Transport::to_ours(reports.clone()).through(proxy));
        let client = builder.database(NullDatabase).opts(options).build();
        for entry in entries {
            add(&client, &entry.url).await?;
        }
        client.connect().await;
        let external = ExternalRelays::new(signer, !reach.allow_private, Resolver::default(), proxy);
        Ok(Relays {
            client,
            entries: Arc::new(entries.to_vec()),
            bot,
            external,
            reach,
            reports,
            throttle: Arc::default(),
            lookups: Arc::new(
                entries.iter().map(|entry| (entry.url.clone(), Semaphore::new(LOOKUPS_PER_RELAY))).collect(),
            ),
        })
    }

    /// Waits until one of our relays is connected, at most `limit`. Returns the number of connected
    /// ones.
    pub async fn wait_for_any(&self, limit: Duration) -> usize {
        let deadline = Instant::now() + limit;
        loop {
            let mut connected = 0;
            for entry in self.entries.iter() {
                connected += usize::from(self.is_connected(&entry.url).await);
            }
            if connected > 0 || Instant::now() >= deadline {
                return connected;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Figures of our own relays since the start.
    pub async fn figures(&self) -> Vec<RelayFigures> {
        let mut all = Vec::new();
        for entry in self.entries.iter() {
            let relay = self.client.relay(&entry.url).await.ok();
            let stats = relay.as_ref().map(Relay::stats);
            let lag = stats.and_then(|stats| stats.latency());
            all.push(RelayFigures {
                url: entry.url.to_string(),
                state: match self.is_connected(&entry.url).await {
                    true => ConnectionState::Connected,
                    false => ConnectionState::Disconnected,
                },
                failures: stats.map_or(0, |stats| stats.attempts().saturating_sub(stats.success()) as u64),
                said: self.reports.words_of(&entry.url),
                lag_milliseconds: lag.map(|lag| lag.as_millis().try_into().unwrap_or(u64::MAX)),
            });
        }
        all
    }

    /// Seconds by which our clock is behind those of our relays, negative if it is ahead. `None` if
    /// none has told.
    pub fn clock_behind(&self) -> Option<i64> {
        self.reports.clock_behind()
    }

    /// Disconnects from all relays.
    pub async fn disconnect(&self) {
        tokio::join!(self.client.shutdown(), self.external.disconnect());
    }

    /// The bot's public key.
    pub(in crate::nostr) fn bot(&self) -> PublicKey {
        self.bot
    }

    /// The library's client for our own relays.
    pub(in crate::nostr) fn client(&self) -> &Client {
        &self.client
    }

    /// Waits for a place for a lookup at one of our relays. `None` for other relays, whose lookups
    /// are not limited.
    pub(super) async fn lookup_place(&self, url: &RelayUrl) -> Option<SemaphorePermit<'_>> {
        self.lookups.get(url)?.acquire().await.ok()
    }

    /// The stream of everything that our own relays send from now on.
    pub(in crate::nostr) fn notifications(&self) -> broadcast::Receiver<RelayPoolNotification> {
        self.client.notifications()
    }

    /// Our relays that have a role.
    pub(in crate::nostr) fn ours(&self, role: impl Fn(&RelayEntry) -> bool) -> Vec<RelayUrl> {
        self.entries.iter().filter(|entry| role(entry)).map(|entry| entry.url.clone()).collect()
    }

    /// Whether one of our relays is connected.
    pub(in crate::nostr) async fn is_connected(&self, url: &RelayUrl) -> bool {
        self.client.relay(url).await.is_ok_and(|relay| relay.is_connected())
    }

    /// The current connection to one of our relays; `None` while there is none.
    pub(in crate::nostr) async fn connection(&self, url: &RelayUrl) -> Option<Connection> {
        let relay = self.client.relay(url).await.ok().filter(Relay::is_connected)?;
        Some(Connection { number: relay.stats().success(), made_at: relay.stats().connected_at() })
    }

    /// Whether the library has recorded this subscription for a relay, and so repeats it after a
    /// reconnect.
    pub(in crate::nostr) async fn is_subscribed(&self, url: &RelayUrl, id: &SubscriptionId) -> bool {
        match self.client.relay(url).await {
            Ok(relay) => relay.subscription(id).await.is_some(),
            Err(_) => false,
        }
    }

    /// Drops a connection and makes a new one. Its subscriptions are lost.
    ///
    /// The library's own `disconnect` and `connect` are not used, because a relay that is just
    /// being retried never recovers from them.
    pub(in crate::nostr) async fn reconnect(&self, url: &RelayUrl) {
        let _ = self.client.force_remove_relay(url).await;
        if let Err(error) = add(&self.client, url).await {
            tracing::warn!(%error, "a relay cannot be reconnected");
        } else if let Ok(relay) = self.client.relay(url).await {
            relay.connect();
            relay.wait_for_connection(RECONNECT_TIMEOUT).await;
        }
    }

    /// Whether we may connect to a relay that an asker lists: one of our own, or a public one on a
    /// usual port.
    pub(in crate::nostr) fn may_visit(&self, url: &RelayUrl) -> bool {
        let port = Url::from(url.clone()).port_or_known_default();
        let Reach { visits_external, allow_private, proxy } = self.reach;
        let is_usual = (proxy.is_some() || !url.is_onion()) && port.is_some_and(has_allowed_port);
        self.is_ours(url) || (visits_external && is_usual && (allow_private || !is_private(url)))
    }

    /// A connected relay: one of our own, or an external one, which is dialled and kept for a
    /// while.
    pub(super) async fn visit(&self, url: &RelayUrl) -> Result<Relay, NostrError> {
        if self.is_ours(url) {
            return self.our_relay(url).await;
        }
        let hosts = self.hosts(url, Visitor::NOBODY).await?;
        self.external.visit(url, &hosts, Visitor::NOBODY).await
    }

    /// The hosts whose limits apply to a relay.
    ///
    /// Errors: those of [`ExternalRelays::hosts`].
    pub(super) async fn hosts(&self, url: &RelayUrl, visitor: Visitor) -> Result<Hosts, NostrError> {
        if self.is_ours(url) {
            return Ok(Hosts::by_name(url));
        }
        let has_answered = self.throttle.has_answered(&Host::from_url(url));
        self.external.hosts(url, has_answered, visitor.urgent).await
    }

    /// One of our own relays, if it is connected or about to be.
    pub(super) async fn our_relay(&self, url: &RelayUrl) -> Result<Relay, NostrError> {
        let not_connected = || NostrError::not_connected(url);
        let relay = self.client.relay(url).await.map_err(|_| not_connected())?;
        if !relay.is_connected() && relay.stats().connected_at() + JUST_GONE > Timestamp::now() {
            // Some relays close idle connections.
            relay.wait_for_connection(RECONNECT_TIMEOUT).await;
        }
        if relay.is_connected() { Ok(relay) } else { Err(not_connected()) }
    }

    pub(super) fn is_ours(&self, url: &RelayUrl) -> bool {
        self.entries.iter().any(|entry| entry.url == *url)
    }
}

/// Connects to a relay, through a SOCKS5 proxy if there is one, and disconnects. Returns the time
/// that the connection took.
///
/// Errors: [`NostrError::Relay`] if it is not connected within `limit`.
pub async fn reach(url: &RelayUrl, proxy: Option<SocketAddr>, limit: Duration) -> Result<Duration, NostrError> {
    let transport = Transport::to_ours(RelayReports::default()).through(proxy.map(Proxy));
    let client = Client::builder().websocket_transport(transport).build();
    add(&client, url).await?;
    let began = Instant::now();
    let connected = client.try_connect_relay(url, limit).await;
    let took = began.elapsed();
    client.shutdown().await;
    connected.map(|()| took).map_err(|error| NostrError::relay(url, error))
}

async fn add(client: &Client, url: &RelayUrl) -> Result<(), NostrError> {
    let options = RelayOptions::new()
        .retry_interval(RETRY_INTERVAL)
        .adjust_retry_interval(false)
        .notification_channel_size(UNREAD_PER_RELAY);
    let added = client.pool().add_relay(url, options).await;
    added.map(|_| ()).map_err(|error| NostrError::relay(url, error))
}

/// A database for nostr-sdk that stores nothing, and says that it knows every event.
///
/// The default one remembers 35,000 event ids per client, for a stream of new events that we do not
/// use (`inbox::queue` says why). With this one the library does not copy events for that stream
/// either.
#[derive(Debug)]
pub(super) struct NullDatabase;

type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, DatabaseError>> + Send + 'a>>;

fn reply<'a, T: Send + 'a>(what: T) -> Reply<'a, T> {
    Box::pin(ready(Ok(what)))
}

impl NostrDatabase for NullDatabase {
    fn backend(&self) -> Backend {
        Backend::Custom("none".to_owned())
    }

    fn save_event<'a>(&'a self, _: &'a Event) -> Reply<'a, SaveEventStatus> {
        reply(SaveEventStatus::Rejected(RejectedReason::Duplicate))
    }

    fn check_id<'a>(&'a self, _: &'a EventId) -> Reply<'a, DatabaseEventStatus> {
        reply(DatabaseEventStatus::Saved)
    }

    fn event_by_id<'a>(&'a self, _: &'a EventId) -> Reply<'a, Option<Event>> {
        reply(None)
    }

    fn count(&self, _: Filter) -> Reply<'_, usize> {
        reply(0)
    }

    fn query(&self, filter: Filter) -> Reply<'_, Events> {
        reply(Events::new(&filter))
    }

    fn delete(&self, _: Filter) -> Reply<'_, ()> {
        reply(())
    }

    fn wipe(&self) -> Reply<'_, ()> {
        reply(())
    }
}

/// Time in which a caller asks again for a place among those of others.
pub(super) struct AskAgain(Instant);

impl AskAgain {
    /// A second from now.
    pub fn new() -> AskAgain {
        AskAgain(Instant::now() + ASK_TIMEOUT)
    }

    /// Pauses before the caller asks again. Returns `false` at once if the time is over.
    pub async fn pause(&self) -> bool {
        let is_left = Instant::now() < self.0;
        if is_left {
            tokio::time::sleep(ASK_AGAIN).await;
        }
        is_left
    }
}

/// Waits until `time`; returns at once if it has passed. (Tokio's timer takes a millisecond even
/// then, which is longer than decrypting a gift wrap.)
pub(in crate::nostr) async fn wait_until(time: Instant) {
    if time > Instant::now() {
        tokio::time::sleep_until(time.into()).await;
    }
}
