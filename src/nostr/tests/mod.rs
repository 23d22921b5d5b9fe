//! Relays for the unit tests of this room.

use super::relay::Reach;
use super::relay::connections::Relays;
use crate::config::RelayEntry;
use crate::vault::Vault;
use futures_util::{SinkExt, StreamExt};
use nostr_sdk::{Event, JsonUtil, RelayUrl};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// Long enough for anything that is not broken.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A listener, and the URL of a relay at its port.
pub(super) async fn listen() -> (TcpListener, RelayUrl) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = RelayUrl::parse(&format!("ws://{}", listener.local_addr().unwrap())).unwrap();
    (listener, url)
}

/// Accepts a connection, WebSocket included.
pub(super) async fn accept(listener: &TcpListener) -> WebSocketStream<TcpStream> {
    tokio_tungstenite::accept_async(listener.accept().await.unwrap().0).await.unwrap()
}

/// The id of a query; `None` for other messages.
pub(super) fn query_id(message: Message) -> Option<String> {
    let text = message.into_text().ok()?;
    text.strip_prefix(r#"["REQ",""#).and_then(|rest| rest.split('"').next()).map(str::to_owned)
}

/// A relay that answers every query with the same events, genuine or not.
#[derive(Clone, Default)]
pub(super) struct StubbornRelay {
    pub events: Arc<Mutex<Vec<Event>>>,
    /// Number of queries so far.
    pub queries: Arc<AtomicUsize>,
}

impl StubbornRelay {
    /// Starts it in the background.
    pub async fn run(&self) -> RelayUrl {
        let (listener, url) = listen().await;
        let relay = self.clone();
        tokio::spawn(async move {
            let mut socket = accept(&listener).await;
            while let Some(Ok(message)) = socket.next().await {
                let Some(id) = query_id(message) else { continue };
                relay.queries.fetch_add(1, Ordering::SeqCst);
                let events = relay.events.lock().unwrap().clone();
                for event in events {
                    let said = format!(r#"["EVENT","{id}",{}]"#, event.as_json());
                    socket.send(Message::text(said)).await.unwrap();
                }
                socket.send(Message::text(format!(r#"["EOSE","{id}"]"#))).await.unwrap();
            }
        });
        url
    }
}

/// An inbox relay of the bot's.
pub(super) fn ours(url: &RelayUrl) -> RelayEntry {
    RelayEntry { url: url.clone(), inbox: true, status: false, discovery: false }
}

/// A bot without an identity, connected to one inbox relay.
pub(super) async fn connect(url: &RelayUrl) -> Relays {
    let relays = unconnected(&[ours(url)], Reach::anywhere()).await;
    assert_eq!(relays.wait_for_any(PATIENCE).await, 1);
    relays
}

/// A bot without an identity that is not connected yet.
pub(super) async fn unconnected(entries: &[RelayEntry], reach: Reach) -> Relays {
    Relays::connect(entries, reach, Vault::without_identity().unwrap().signer()).await.unwrap()
}
