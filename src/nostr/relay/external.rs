//! External relays: relays that askers list, connected for as long as they are needed.
//!
//! They have a client of their own, so nothing that such a relay sends reaches the inbox. Each is dialled when it is
//! needed and never retried by itself: nobody can use the bot to keep dialling a host that is no relay.

use super::error::NostrError;
use super::null_database::NullDatabase;
use super::transport::Transport;
use nostr_sdk::{Client, ClientOptions, NostrSigner, Relay, RelayOptions, RelayPoolOptions, RelayStatus, RelayUrl};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Time limit for a connection.
const CONNECT: Duration = Duration::from_secs(7);
/// A relay that could not be reached is not dialled again before this.
const RETRY: Duration = Duration::from_secs(5);
/// An unused connection is closed after this.
pub(super) const LINGER: Duration = Duration::from_secs(600);
/// Connections at once.
const MOST: usize = 200;
/// Unread messages of one relay: an OK for each message the outbox has under way. The library's default of 2,048 takes
/// half a megabyte a relay.
const NOTIFICATIONS: usize = 512;

/// Connections to external relays. Cheap to clone.
#[derive(Clone)]
pub(super) struct ExternalRelays {
    client: Client,
    /// The relays in the client. Locked while relays are added and removed, which does not wait for the network.
    known: Arc<Mutex<HashMap<RelayUrl, Visit>>>,
}

struct Visit {
    used: Instant,
    dialled: Instant,
}

impl ExternalRelays {
    /// `transport` restricts the addresses that may be dialled.
    pub fn new(signer: impl NostrSigner + 'static, transport: Transport) -> ExternalRelays {
        // Nobody reads the combined stream: each answer is awaited at its own relay.
        let options = ClientOptions::new().pool(RelayPoolOptions::new().notification_channel_size(1));
        let builder = Client::builder().signer(signer).websocket_transport(transport);
        let client = builder.database(NullDatabase).opts(options).build();
        ExternalRelays { client, known: Arc::default() }
    }

    /// A connected relay.
    pub async fn visit(&self, url: &RelayUrl) -> Result<Relay, NostrError> {
        let not_connected = || NostrError::not_connected(url);
        let relay = self.dial(url).await?.ok_or_else(not_connected)?;
        relay.wait_for_connection(CONNECT).await;
        if relay.is_connected() { Ok(relay) } else { Err(not_connected()) }
    }

    /// A relay that is connected or being dialled; `None` if it could not be reached a moment ago.
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
                // After the library's own `connect` just after a disconnect, a relay may never recover.
                _ => self.leave(url).await,
            }
        } else if known.len() >= MOST {
            self.make_room(&mut known).await;
        }
        known.insert(url.clone(), Visit { used: now, dialled: now });
        let options =
            RelayOptions::new().reconnect(false).verify_subscriptions(true).notification_channel_size(NOTIFICATIONS);
        let failed = |error: nostr_relay_pool::pool::Error| NostrError::relay(url, error);
        self.client.pool().add_relay(url, options).await.map_err(failed)?;
        let relay = self.client.pool().relay(url).await.map_err(failed)?;
        relay.connect();
        Ok(Some(relay))
    }

    /// Disconnects from the relay that was unused for the longest time, unconnected ones first. A message under way there
    /// is sent again.
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
        // An error means that it is gone already.
        let _ = self.client.force_remove_relay(url).await;
    }

    /// Disconnects from relays that were not used for a while.
    pub async fn leave_idle(&self) {
        let mut known = self.known.lock().await;
        let idle: Vec<RelayUrl> =
            known.iter().filter(|(_, visit)| visit.used.elapsed() > LINGER).map(|(url, _)| url.clone()).collect();
        for url in idle {
            known.remove(&url);
            self.leave(&url).await;
        }
    }

    /// Disconnects from all relays.
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

    fn external() -> ExternalRelays {
        ExternalRelays::new(Keys::generate(), Transport::to_external(false))
    }

    /// Addresses of a port that nobody listens on.
    async fn dead(count: usize) -> Vec<RelayUrl> {
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        (0..count).map(|number| RelayUrl::parse(&format!("ws://127.0.0.1:{port}/{number}")).unwrap()).collect()
    }

    #[tokio::test]
    async fn a_host_that_is_no_relay_is_not_dialled_again() {
        let external = external();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = RelayUrl::parse(&format!("ws://{}", listener.local_addr().unwrap())).unwrap();
        // It accepts the connection and hangs up.
        let accepted = tokio::spawn(async move { drop(listener.accept().await) });
        assert!(external.visit(&url).await.is_err());
        accepted.await.unwrap();
        let relay = external.client.relay(&url).await.unwrap();
        let given_up = async {
            while relay.status() != RelayStatus::Terminated {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(CONNECT, given_up).await.expect("the library would dial it again");
        // Another visit at once does not dial it either.
        assert!(external.visit(&url).await.is_err());
        assert_eq!(relay.stats().attempts(), 1);
        assert!(external.client.relay(&url).await.unwrap().stats().attempts() <= 1);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_live_relay_is_reached_beside_any_number_of_dead_hosts() {
        let external = external();
        let alive = LocalRelay::new(RelayBuilder::default());
        alive.run().await.unwrap();
        let url = alive.url().await;
        external.visit(&url).await.unwrap();
        // More at once than there is room for.
        let mut visits = JoinSet::new();
        for dead in dead(MOST + 100).await {
            let external = external.clone();
            visits.spawn(async move { external.visit(&dead).await.is_ok() });
        }
        while let Some(reached) = visits.join_next().await {
            assert!(!reached.unwrap());
        }
        assert_eq!(external.client.pool().all_relays().await.len(), MOST);
        assert_eq!(external.known.lock().await.len(), MOST);
        assert!(external.client.relay(&url).await.unwrap().is_connected(), "a connected relay stays");
        let other = LocalRelay::new(RelayBuilder::default());
        other.run().await.unwrap();
        external.visit(&other.url().await).await.expect("unreachable hosts make room");
    }

    #[tokio::test]
    async fn a_relay_that_hung_up_is_dialled_again() {
        let external = external();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = RelayUrl::parse(&format!("ws://{}", listener.local_addr().unwrap())).unwrap();
        let accept = || async { tokio_tungstenite::accept_async(listener.accept().await.unwrap().0).await.unwrap() };
        let (first, visited) = tokio::join!(accept(), external.visit(&url));
        let relay = visited.unwrap();
        drop(first);
        let gone = async {
            while relay.is_connected() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(CONNECT, gone).await.expect("the connection ends");
        let (_second, visited) = tokio::join!(accept(), external.visit(&url));
        visited.expect("dialled again at once");
    }
}
