//! The wait for a connection.

use nostr_sdk::prelude::*;
use std::time::{Duration, Instant};

/// Limit of each call of the library's wait, and so the time between two checks of the connection.
const LOOK: Duration = Duration::from_millis(100);

/// Waits until a relay is connected or never will be, at most for `limit`.
///
/// The library's own wait looks at the state and then subscribes to its changes. It misses a
/// connection made in between until its time limit. So this function calls that wait repeatedly,
/// with a short limit.
pub(super) async fn wait_for_connection(relay: &Relay, limit: Duration) {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let is_settled =
            matches!(relay.status(), RelayStatus::Connected | RelayStatus::Terminated | RelayStatus::Banned);
        if is_settled || left.is_zero() {
            return;
        }
        relay.wait_for_connection(left.min(LOOK)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;
    use tokio::net::TcpListener;

    /// A listener, and the address of a relay at its port.
    async fn listen() -> (TcpListener, RelayUrl) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = RelayUrl::parse(&format!("ws://{}", listener.local_addr().unwrap())).unwrap();
        (listener, url)
    }

    /// A client that has begun to connect to a relay.
    async fn dial(url: &RelayUrl) -> (Client, Relay) {
        let client = Client::default();
        client.add_relay(url).await.unwrap();
        let relay = client.relay(url).await.unwrap();
        relay.connect();
        (client, relay)
    }

    /// With the library's own wait, one or two of these connections take seven seconds.
    #[ignore = "twenty seconds: it makes twenty thousand connections"]
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_connection_goes_unnoticed() {
        let (listener, url) = listen().await;
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut socket = tokio_tungstenite::accept_async(tcp).await.unwrap();
                    while socket.next().await.is_some_and(|message| message.is_ok()) {}
                });
            }
        });
        for _ in 0..20_000 {
            let (client, relay) = dial(&url).await;
            let (limit, began) = (Duration::from_secs(7), Instant::now());
            wait_for_connection(&relay, limit).await;
            assert!(relay.is_connected() && began.elapsed() < limit, "{:?}", began.elapsed());
            client.shutdown().await;
        }
    }

    #[tokio::test]
    async fn the_wait_has_an_end() {
        // Nobody listens at this port.
        let url = listen().await.1;
        let (client, relay) = dial(&url).await;
        let (limit, began) = (Duration::from_millis(300), Instant::now());
        wait_for_connection(&relay, limit).await;
        assert!(!relay.is_connected() && began.elapsed() >= limit);
        client.shutdown().await;
        wait_for_connection(&relay, Duration::from_secs(3600)).await;
        assert!(!relay.is_connected(), "a connection that was given up is not waited for");
    }
}
