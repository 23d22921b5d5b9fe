//! Relays that are not ours, for as long as they are needed: those that askers list.
//!
//! They have a client of their own. Nothing that such a relay says reaches the inbox, its memory of events, or the queue of
//! signatures to be checked. And each is dialled when it is needed, never again by itself: whoever names a host that is no
//! relay must not have it knocked at.

use super::null_database::NullDatabase;
use super::transport::Transport;
use crate::nostr::NostrError;
use nostr_sdk::{Client, ClientOptions, NostrSigner, Relay, RelayOptions, RelayPoolOptions, RelayStatus, RelayUrl};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// How long a relay is waited for.
const CONNECT: Duration = Duration::from_secs(7);
/// One that could not be reached is not dialled again before this.
const RETRY: Duration = Duration::from_secs(5);
/// A relay is left after this long without use.
pub(in crate::nostr) const LINGER: Duration = Duration::from_secs(600);
/// At once.
const MOST: usize = 200;
/// What one relay may say before it is read: an OK for each letter the outbox has under way. The library's 2,048 take half a
/// megabyte a relay.
const NOTIFICATIONS: usize = 512;

/// Cheap to clone.
#[derive(Clone)]
pub(in crate::nostr) struct ExternalRelays {
    client: Client,
    /// Those that are in the client. Locked while relays are added and removed, which waits for no network.
    known: Arc<Mutex<HashMap<RelayUrl, Visit>>>,
}

struct Visit {
    used: Instant,
    dialled: Instant,
}

impl ExternalRelays {
    /// `transport` decides which addresses may be dialled.
    pub fn new(signer: impl NostrSigner + 'static, transport: Transport) -> ExternalRelays {
        // Nobody listens to what they say together: each answer is awaited at its own relay.
        let options = ClientOptions::new().pool(RelayPoolOptions::new().notification_channel_size(1));
        let builder = Client::builder().signer(signer).websocket_transport(transport);
        let client = builder.database(NullDatabase).opts(options).build();
        ExternalRelays { client, known: Arc::default() }
    }

    /// A connected relay.
    pub async fn visit(&self, url: &RelayUrl) -> Result<Relay, NostrError> {
        let not_connected = || NostrError::NotConnected(url.to_string());
        let relay = self.dial(url).await?.ok_or_else(not_connected)?;
        relay.wait_for_connection(CONNECT).await;
        if relay.is_connected() { Ok(relay) } else { Err(not_connected()) }
    }

    /// A relay that is connected or about to be; `None` where nobody answered a moment ago.
    async fn dial(&self, url: &RelayUrl) -> Result<Option<Relay>, NostrError> {
        let mut known = self.known.lock().await;
        let now = Instant::now();
        if let Some(visit) = known.get_mut(url)
            && let Ok(relay) = self.client.relay(url).await
        {
            visit.used = now;
            match relay.status() {
                RelayStatus::Connected | RelayStatus::Connecting | RelayStatus::Pending => return Ok(Some(relay)),
                _ if relay.stats().success() == 0 && visit.dialled.elapsed() < RETRY => return Ok(None),
                // From the library's `connect` just after the end of a connection, a relay may never recover.
                _ => self.leave(url).await,
            }
        } else if known.len() >= MOST {
            self.make_room(&mut known).await;
        }
        known.insert(url.clone(), Visit { used: now, dialled: now });
        let options =
            RelayOptions::new().reconnect(false).verify_subscriptions(true).notification_channel_size(NOTIFICATIONS);
        let failed = |error: nostr_relay_pool::pool::Error| NostrError::Relay {
            url: url.to_string(),
            reason: error.to_string(),
        };
        self.client.pool().add_relay(url, options).await.map_err(failed)?;
        let relay = self.client.pool().relay(url).await.map_err(failed)?;
        relay.connect();
        Ok(Some(relay))
    }

    /// Leaves the relay that was not used for the longest time, one that is not connected before all others: neither hosts that
    /// do not answer nor relays that do lock anybody out. A letter under way there is sent again.
    async fn make_room(&self, known: &mut HashMap<RelayUrl, Visit>) {
        let relays = self.client.pool().all_relays().await;
        let is_connected = |url: &RelayUrl| relays.get(url).is_some_and(Relay::is_connected);
        let first = known.iter().min_by_key(|(url, visit)| (is_connected(url), visit.used));
        if let Some(url) = first.map(|(url, _)| url.clone()) {
            known.remove(&url);
            self.leave(&url).await;
        }
    }

    async fn leave(&self, url: &RelayUrl) {
        // One that is gone already is left as well.
        let _ = self.client.force_remove_relay(url).await;
    }

    /// Leaves those that were not used for a while.
    pub async fn leave_idle(&self) {
        let mut known = self.known.lock().await;
        let idle: Vec<RelayUrl> =
            known.iter().filter(|(_, visit)| visit.used.elapsed() > LINGER).map(|(url, _)| url.clone()).collect();
        for url in idle {
            known.remove(&url);
            self.leave(&url).await;
        }
    }

    /// Leaves all.
    pub async fn disconnect(&self) {
        self.client.shutdown().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nostr_relay_builder::{LocalRelay, RelayBuilder};
    use nostr_sdk::Keys;
    use tokio::net::TcpListener;
    use tokio::task::JoinSet;

    fn strangers() -> ExternalRelays {
        ExternalRelays::new(Keys::generate(), Transport::to_external(false))
    }

    /// Hosts that nobody answers at: their port was free a moment ago.
    async fn dead(count: usize) -> Vec<RelayUrl> {
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        (0..count).map(|number| RelayUrl::parse(&format!("ws://127.0.0.1:{port}/{number}")).unwrap()).collect()
    }

    #[tokio::test]
    async fn a_host_that_is_no_relay_is_not_knocked_at_again_unasked() {
        let strangers = strangers();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = RelayUrl::parse(&format!("ws://{}", listener.local_addr().unwrap())).unwrap();
        // It takes the connection and hangs up.
        let knocks = tokio::spawn(async move { drop(listener.accept().await) });
        assert!(strangers.visit(&url).await.is_err());
        knocks.await.unwrap();
        let relay = strangers.client.relay(&url).await.unwrap();
        let given_up = async {
            while relay.status() != RelayStatus::Terminated {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(CONNECT, given_up).await.expect("the library would dial it again");
        // Who asks again at once does not make it be dialled either.
        assert!(strangers.visit(&url).await.is_err());
        assert_eq!(relay.stats().attempts(), 1);
        assert!(strangers.client.relay(&url).await.unwrap().stats().attempts() <= 1);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn however_many_dead_hosts_are_named_a_relay_that_lives_is_reached() {
        let strangers = strangers();
        let alive = LocalRelay::new(RelayBuilder::default());
        alive.run().await.unwrap();
        let url = alive.url().await;
        strangers.visit(&url).await.unwrap();
        // All at once, and more than there is room for.
        let mut visits = JoinSet::new();
        for dead in dead(MOST + 100).await {
            let strangers = strangers.clone();
            visits.spawn(async move { strangers.visit(&dead).await.is_ok() });
        }
        while let Some(reached) = visits.join_next().await {
            assert!(!reached.unwrap());
        }
        assert_eq!(strangers.client.pool().all_relays().await.len(), MOST);
        assert_eq!(strangers.known.lock().await.len(), MOST);
        assert!(strangers.client.relay(&url).await.unwrap().is_connected(), "who is connected stays");
        let other = LocalRelay::new(RelayBuilder::default());
        other.run().await.unwrap();
        strangers.visit(&other.url().await).await.expect("the dead make room");
    }

    #[tokio::test]
    async fn a_relay_that_hung_up_is_dialled_anew() {
        let strangers = strangers();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = RelayUrl::parse(&format!("ws://{}", listener.local_addr().unwrap())).unwrap();
        let accept = || async { tokio_tungstenite::accept_async(listener.accept().await.unwrap().0).await.unwrap() };
        let (first, visited) = tokio::join!(accept(), strangers.visit(&url));
        let relay = visited.unwrap();
        drop(first);
        let gone = async {
            while relay.is_connected() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(CONNECT, gone).await.expect("the connection ends");
        let (_second, visited) = tokio::join!(accept(), strangers.visit(&url));
        visited.expect("dialled anew, at once");
    }
}
