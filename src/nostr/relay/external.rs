//! External relays: relays that askers list, connected for as long as they are needed.
//!
//! They have a client of their own, so nothing that such a relay sends reaches the inbox. Each is
//! dialled only when it is needed and never retried automatically, so nobody can use the bot to
//! keep dialling a host that is not a relay.

use super::connections::{AskAgain, NullDatabase};
use super::error::NostrError;
use super::host::{Host, Hosts, Resolver};
use super::publish::MAX_EVENTS_IN_PROGRESS;
use super::slots::{Admission, MAX_CONNECTIONS, Slots, Visitor};
use super::transport::{Proxy, Transport};
use futures_util::FutureExt;
use hashlink::LruCache;
use nostr_sdk::{Client, ClientOptions, NostrSigner, Relay, RelayOptions, RelayPoolOptions, RelayStatus, RelayUrl};
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time limit for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(7);
/// The most unread messages of one relay: an OK for each event in progress, and a few notices. The
/// library's default of 2,048 would reserve half a megabyte for each relay that is dialled.
const UNREAD_PER_EXTERNAL: usize = 128;
const _: () = assert!(UNREAD_PER_EXTERNAL > MAX_EVENTS_IN_PROGRESS);

/// Connections to external relays. Cheap to clone.
#[derive(Clone)]
pub(super) struct ExternalRelays {
    client: Client,
    resolver: Resolver,
    proxy: Option<Proxy>,
    known: Arc<Mutex<KnownRelays>>,
}

impl ExternalRelays {
    /// Makes the client for external relays, without a connection. With `public_only`, private
    /// addresses are not dialled; with a `proxy`, everything goes through it.
    pub fn new(
        signer: impl NostrSigner + 'static,
        public_only: bool,
        resolver: Resolver,
        proxy: Option<Proxy>,
    ) -> ExternalRelays {
        // Nobody reads the combined stream: each answer is awaited at its own relay.
        let pool = RelayPoolOptions::new().notification_channel_size(1).max_relays(Some(MAX_CONNECTIONS));
        // An asker's relay could otherwise have us sign whenever it likes.
        let options = ClientOptions::new().pool(pool).automatic_authentication(false);
        let transport = Transport::to_external(public_only, resolver.clone()).through(proxy);
        let builder = Client::builder().signer(signer).websocket_transport(transport);
        let client = builder.database(NullDatabase).opts(options).build();
        ExternalRelays { client, resolver, proxy, known: Arc::default() }
    }

    fn known(&self) -> MutexGuard<'_, KnownRelays> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The hosts whose limits apply to a relay. `has_answered`: whether the host of this name has
    /// answered before. Such hosts and those of `urgent` visitors are resolved first.
    ///
    /// Errors: [`NostrError::NotConnected`] if the host has no address or was unreachable a moment
    /// ago, [`super::error::NO_ROOM`] while too many names of its domain are looked up.
    pub async fn hosts(&self, url: &RelayUrl, has_answered: bool, urgent: bool) -> Result<Hosts, NostrError> {
        let hosts = Hosts::by_name(url);
        if has_answered && self.known().slots.get(url).is_some_and(Relay::is_connected) {
            return Ok(hosts);
        }
        if is_unreachable(&self.known().unreachable, &hosts.named) {
            return Err(NostrError::not_connected(url));
        }
        if self.proxy.is_some() {
            // With a proxy, nothing here may look the name up.
            let limited = if has_answered { hosts.named.clone() } else { Host::of_domain(url) };
            return Ok(Hosts { limited, ..hosts });
        }
        let address = url.clone().into();
        let resolving = self.resolver.resolve(&address, has_answered || urgent);
        let error = match tokio::time::timeout(CONNECT_TIMEOUT, resolving).await {
            Ok(Ok(addresses)) => match addresses.into_iter().min() {
                Some(_) if has_answered => return Ok(hosts),
                Some(first) => return Ok(Hosts { limited: Host::at(first, url), ..hosts }),
                None => NostrError::not_connected(url),
            },
            Ok(Err(error)) if error.kind() == ErrorKind::WouldBlock => return Err(NostrError::no_room(url)),
            Ok(Err(_)) | Err(_) => NostrError::not_connected(url),
        };
        self.known().unreachable.insert(hosts.named, Instant::now());
        Err(error)
    }

    /// Returns a connected relay, which is dialled if necessary.
    ///
    /// `hosts` comes from [`ExternalRelays::hosts`].
    ///
    /// Errors: [`super::error::NO_ROOM`] if there is no slot for this visitor,
    /// [`NostrError::NotConnected`] if the relay cannot be reached.
    pub async fn visit(&self, url: &RelayUrl, hosts: &Hosts, visitor: Visitor) -> Result<Relay, NostrError> {
        let asking = AskAgain::new();
        let relay = loop {
            match self.admit(url, hosts, visitor)? {
                Some(relay) => break relay,
                None if asking.pause().await => {}
                None => return Err(NostrError::no_room(url)),
            }
        };
        relay.wait_for_connection(CONNECT_TIMEOUT).await;
        if relay.is_connected() {
            return Ok(relay);
        }
        let mut known = self.known();
        if known.slots.get(url).is_none() {
            // Another visitor got the slot, which says nothing about the host.
            return Err(NostrError::no_room(url));
        }
        if relay.stats().success() == 0 {
            known.unreachable.insert(hosts.named.clone(), Instant::now());
        }
        Err(NostrError::not_connected(url))
    }

    /// Returns a relay that is connected or being dialled; `None` if it has no slot but may get one
    /// soon. Waits for nothing.
    ///
    /// Errors: [`NostrError::NotConnected`] if the host could not be reached a moment ago,
    /// [`super::error::NO_ROOM`] if there is no slot.
    fn admit(&self, url: &RelayUrl, hosts: &Hosts, visitor: Visitor) -> Result<Option<Relay>, NostrError> {
        let KnownRelays { slots, unreachable } = &mut *self.known();
        if !slots.get(url).is_some_and(is_active) && is_unreachable(unreachable, &hosts.named) {
            return Err(NostrError::not_connected(url));
        }
        // An inactive relay is added again, because the library might never recover its connection.
        let dial = |leaving: &[RelayUrl]| {
            leaving.iter().for_each(|url| self.leave(url));
            let options = RelayOptions::new()
                .reconnect(false)
                .verify_subscriptions(true)
                .notification_channel_size(UNREAD_PER_EXTERNAL);
            at_once(self.client.pool().add_relay(url, options))?.ok()?;
            let relay = at_once(self.client.pool().relay(url))?.ok()?;
            relay.connect();
            Some(relay)
        };
        match slots.admit(url, &hosts.limited, visitor, Instant::now(), is_active, dial) {
            Admission::Granted(relay) => Ok(Some(relay)),
            Admission::Later => Ok(None),
            Admission::Refused => Err(NostrError::no_room(url)),
        }
    }

    /// Whether a relay has a slot.
    pub fn holds(&self, url: &RelayUrl) -> bool {
        self.known().slots.get(url).is_some()
    }

    /// Records that a relay answered. Its connection is kept in preference to those that have not.
    pub fn answered(&self, url: &RelayUrl) {
        self.known().slots.answered(url);
    }

    fn leave(&self, url: &RelayUrl) {
        // An error means that the relay is gone already.
        let _ = at_once(self.client.force_remove_relay(url));
    }

    /// Disconnects from relays that were not used for a while.
    pub fn leave_idle(&self) {
        let mut known = self.known();
        known.slots.remove_idle(Instant::now(), LINGER).iter().for_each(|url| self.leave(url));
    }

    /// Disconnects from all relays.
    pub async fn disconnect(&self) {
        self.client.shutdown().await;
    }
}

/// Time before a host that could not be reached is dialled again.
const DIAL_AGAIN_AFTER: Duration = Duration::from_millis(2500);
/// Number of unreachable hosts that are remembered.
const REMEMBERED_UNREACHABLE: usize = 1000;
/// Time after which an unused connection is closed.
pub(super) const LINGER: Duration = Duration::from_secs(600);

/// The external relays, and the hosts that could not be reached.
struct KnownRelays {
    /// The relays in the client: one per slot. Both change only while this is locked.
    slots: Slots<Relay>,
    /// The hosts that could not be reached, and when.
    unreachable: LruCache<Host, Instant>,
}

impl Default for KnownRelays {
    fn default() -> KnownRelays {
        KnownRelays { slots: Slots::default(), unreachable: LruCache::new(REMEMBERED_UNREACHABLE) }
    }
}

/// Whether a host could not be reached a moment ago.
fn is_unreachable(unreachable: &LruCache<Host, Instant>, named: &Host) -> bool {
    unreachable.peek(named).is_some_and(|at| at.elapsed() < DIAL_AGAIN_AFTER)
}

/// Adds a relay to the client or removes one. Neither waits for the network, and nobody else uses the
/// client meanwhile. (Tokio's fairness could make it wait all the same.)
fn at_once<T>(change: impl Future<Output = T>) -> Option<T> {
    tokio::task::unconstrained(change).now_or_never()
}

fn is_active(relay: &Relay) -> bool {
    matches!(relay.status(), RelayStatus::Connected | RelayStatus::Connecting | RelayStatus::Pending)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Asker;
    use crate::nostr::relay::error::NO_ROOM;
    use crate::nostr::relay::slots::MAX_PER_HOST;
    use crate::nostr::tests::{accept, listen};
    use nostr_relay_builder::{LocalRelay, RelayBuilder};
    use nostr_sdk::{Keys, RelayStatus};
    use std::net::IpAddr;
    use tokio::net::TcpListener;
    use tokio::task::JoinSet;

    impl ExternalRelays {
        /// Visits a relay that has never answered.
        async fn visit_new(&self, url: &RelayUrl, visitor: Visitor) -> Result<Relay, NostrError> {
            let hosts = self.hosts(url, false, visitor.urgent).await?;
            self.visit(url, &hosts, visitor).await
        }
    }

    fn external() -> ExternalRelays {
        ExternalRelays::new(Keys::generate(), false, Resolver::default(), None)
    }

    fn visitor(number: usize) -> Visitor {
        Visitor { asker: Asker([number as u8; 32]), urgent: false, retries: false }
    }

    /// Addresses of hosts where nothing listens on the port.
    async fn dead(count: usize) -> Vec<RelayUrl> {
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let host =
            |number| RelayUrl::parse(&format!("ws://127.1.{}.{}:{port}", number / 250, 1 + number % 250)).unwrap();
        (0..count).map(host).collect()
    }

    #[tokio::test]
    async fn a_host_that_is_no_relay_is_not_dialled_again() {
        // The second visit must come before a host may be dialled again, which a busy machine can
        // delay.
        while !is_not_dialled_again().await {}
    }

    /// Visits a host twice that closes connections. Checks that it is dialled once; `false` if the
    /// second visit came so late that it may be dialled again.
    async fn is_not_dialled_again() -> bool {
        let external = external();
        let (listener, url) = listen().await;
        let began = Instant::now();
        // Accepts the connection and closes it.
        let accepted = tokio::spawn(async move { drop(listener.accept().await) });
        assert!(external.visit_new(&url, visitor(0)).await.is_err());
        accepted.await.unwrap();
        let relay = external.client.relay(&url).await.unwrap();
        let given_up = async {
            while relay.status() != RelayStatus::Terminated {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(CONNECT_TIMEOUT, given_up).await.expect("the library would dial it again");
        // A second visit does not dial it again, nor does a visit to another path of the same host.
        assert!(external.visit_new(&url, visitor(0)).await.is_err());
        let path = RelayUrl::parse(&format!("{url}/2")).unwrap();
        assert!(external.visit_new(&path, visitor(1)).await.is_err());
        if began.elapsed() > Duration::from_secs(2) {
            return false;
        }
        assert_eq!(relay.stats().attempts(), 1);
        assert!(external.client.relay(&path).await.is_err(), "it was not even added");
        true
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_live_relay_is_reached_beside_any_number_of_dead_hosts() {
        let external = external();
        let alive = LocalRelay::new(RelayBuilder::default());
        alive.run().await.unwrap();
        let url = alive.url().await;
        external.visit_new(&url, visitor(0)).await.unwrap();
        external.answered(&url);
        // More visits at once than there are slots.
        let mut visits = JoinSet::new();
        for (number, dead) in dead(MAX_CONNECTIONS + 100).await.into_iter().enumerate() {
            let external = external.clone();
            visits.spawn(async move { external.visit_new(&dead, visitor(number)).await.is_ok() });
        }
        while let Some(reached) = visits.join_next().await {
            assert!(!reached.unwrap());
        }
        assert!(external.client.pool().all_relays().await.len() <= MAX_CONNECTIONS);
        assert!(external.client.relay(&url).await.unwrap().is_connected(), "a connected relay stays");
        let other = LocalRelay::new(RelayBuilder::default());
        other.run().await.unwrap();
        external.visit_new(&other.url().await, visitor(1)).await.expect("unreachable hosts make room");
    }

    #[tokio::test]
    async fn a_relay_that_hung_up_is_dialled_again() {
        let external = external();
        let (listener, url) = listen().await;
        let (first, visited) = tokio::join!(accept(&listener), external.visit_new(&url, visitor(0)));
        let relay = visited.unwrap();
        drop(first);
        let gone = async {
            while relay.is_connected() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(CONNECT_TIMEOUT, gone).await.expect("the connection ends");
        let (_second, visited) = tokio::join!(accept(&listener), external.visit_new(&url, visitor(0)));
        let relay = visited.expect("dialled again at once");
        external.disconnect().await;
        assert!(!relay.is_connected());
    }

    /// Whoever takes the slot of a relay that is being dialled says nothing about its host.
    #[tokio::test]
    async fn a_relay_whose_slot_was_taken_is_not_unreachable() {
        let external = external();
        // Nobody answers the handshake.
        let (_listener, url) = listen().await;
        let visit = tokio::spawn({
            let (external, url) = (external.clone(), url.clone());
            async move { external.visit_new(&url, visitor(0)).await }
        });
        while external.client.relay(&url).await.is_err() {
            tokio::task::yield_now().await;
        }
        let later = Instant::now() + Duration::from_secs(1);
        let taken = external.known().slots.remove_idle(later, Duration::ZERO);
        assert_eq!(taken, std::slice::from_ref(&url));
        external.leave(&url);
        let visited = visit.await.unwrap();
        assert!(matches!(&visited, Err(NostrError::Relay { reason, .. }) if reason == NO_ROOM), "{visited:?}");
        assert!(external.hosts(&url, false, false).await.is_ok(), "it may be dialled at once");
    }

    /// The attacker has a wildcard in DNS, so every name has the same address.
    #[tokio::test(flavor = "multi_thread")]
    async fn names_of_one_address_have_the_connections_of_one_host() {
        let lookup = |name: &str| Ok(vec![IpAddr::from([127, 0, 0, if name.contains("evil") { 1 } else { 2 }])]);
        let external = ExternalRelays::new(Keys::generate(), false, Resolver::new(lookup), None);
        // Nobody answers the handshake.
        let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = |name: String| RelayUrl::parse(&format!("ws://{name}.example:{port}")).unwrap();
        let mut visits = JoinSet::new();
        for number in 0..50 {
            let (external, url) = (external.clone(), url(format!("evil{number}")));
            visits.spawn(async move { external.visit_new(&url, visitor(number)).await.is_ok() });
        }
        // Most find no slot and return.
        for _ in 0..30 {
            assert!(!visits.join_next().await.unwrap().unwrap());
            assert!(external.known().slots.len() <= MAX_PER_HOST);
        }
        let honest = url("honest".to_owned());
        let hosts = external.hosts(&honest, false, false).await.unwrap();
        let dialled = external.admit(&honest, &hosts, visitor(200)).unwrap();
        assert!(dialled.is_some(), "another address has slots of its own");
    }
}
