//! WebSocket connections for nostr-sdk.
//!
//! Without Nagle's delay: closing a subscription and sending an event are two small writes, and the second would wait
//! some 40 ms for the acknowledgement of the first. External relays are dialled at public addresses only.

use super::address::is_public;
use async_wsocket::{ConnectionMode, Message, WebSocket};
use futures_util::{Sink, StreamExt, TryStreamExt};
use nostr_relay_pool::transport::error::TransportError;
use nostr_relay_pool::transport::websocket::{WebSocketSink, WebSocketStream, WebSocketTransport};
use nostr_sdk::Url;
use nostr_sdk::util::BoxedFuture;
use std::io::{Error, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, client_async_tls_with_config};

/// Time limit for dialling an external relay.
const PATIENCE: Duration = Duration::from_secs(7);
/// DNS lookups of external relays at once: each occupies a thread until it ends.
const LOOKUPS: usize = 64;
/// Addresses of one domain that are tried, each [`HEAD_START`] after the one before, until one answers.
const ADDRESSES: usize = 4;
/// See [`ADDRESSES`].
const HEAD_START: Duration = Duration::from_millis(250);
/// Bytes of a message from an external relay. A relay list is the longest one we ask for.
const LONGEST_MESSAGE: usize = 1024 * 1024;

/// Makes WebSocket connections without Nagle's delay.
#[derive(Clone, Debug)]
pub(super) struct Transport(Peer);

/// The relays that are dialled.
#[derive(Clone, Debug)]
enum Peer {
    Ours,
    External { public_only: bool, lookups: Arc<Semaphore> },
}

impl Transport {
    /// For relays in the configuration, at any address.
    pub fn to_ours() -> Transport {
        Transport(Peer::Ours)
    }

    /// For relays that askers list. With `public_only`, domains that resolve to private addresses are not dialled.
    pub fn to_external(public_only: bool) -> Transport {
        Transport(Peer::External { public_only, lookups: Arc::new(Semaphore::new(LOOKUPS)) })
    }

    async fn open(&self, url: &Url, mode: &ConnectionMode, timeout: Duration) -> Result<WebSocket, TransportError> {
        match &self.0 {
            Peer::Ours => WebSocket::connect(url, mode, timeout).await.map_err(TransportError::backend),
            Peer::External { public_only, lookups } => {
                let dialled = tokio::time::timeout(timeout.min(PATIENCE), dial(url, *public_only, lookups)).await;
                let silent = || TransportError::backend(Error::from(ErrorKind::TimedOut));
                dialled.unwrap_or_else(|_| Err(silent())).map(WebSocket::Tokio)
            }
        }
    }
}

impl WebSocketTransport for Transport {
    fn support_ping(&self) -> bool {
        true
    }

    fn connect<'a>(
        &'a self,
        url: &'a Url,
        mode: &'a ConnectionMode,
        timeout: Duration,
    ) -> BoxedFuture<'a, Result<(WebSocketSink, WebSocketStream), TransportError>> {
        Box::pin(async move {
            let socket = self.open(url, mode, timeout).await?;
            let WebSocket::Tokio(stream) = &socket;
            let tcp = match stream.get_ref() {
                MaybeTlsStream::Plain(tcp) => Some(tcp),
                MaybeTlsStream::Rustls(tls) => Some(tls.get_ref().0),
                _ => None,
            };
            // Without it the connection works, only slower.
            let _ = tcp.map(|tcp| tcp.set_nodelay(true));
            let (sink, stream) = socket.split();
            let stream: WebSocketStream = Box::pin(stream.map_err(TransportError::backend));
            Ok((Box::new(ErrorAdapter(sink)) as WebSocketSink, stream))
        })
    }
}

/// Resolves the host and connects to a permitted address. (A second resolution could return another address.)
async fn dial(
    url: &Url,
    public_only: bool,
    lookups: &Arc<Semaphore>,
) -> Result<tokio_tungstenite::WebSocketStream<MaybeTlsStream<TcpStream>>, TransportError> {
    let wrong = |what| TransportError::backend(Error::new(ErrorKind::InvalidInput, what));
    let host = url.host_str().ok_or_else(|| wrong("no host"))?.trim_matches(['[', ']']).to_owned();
    let port = url.port_or_known_default().ok_or_else(|| wrong("no port"))?;
    let turn = Arc::clone(lookups).acquire_owned().await.map_err(TransportError::backend)?;
    let look_up = move || {
        // Held until the lookup ends, even if nobody waits for it any more.
        let _turn = turn;
        (host, port).to_socket_addrs().map(Vec::from_iter)
    };
    let found = tokio::task::spawn_blocking(look_up).await.map_err(TransportError::backend)?;
    let found: Vec<SocketAddr> = found.map_err(TransportError::backend)?;
    let mut dialling = JoinSet::new();
    let allowed = found.into_iter().filter(|address| !public_only || is_public(address.ip()));
    for (place, address) in (0..).zip(allowed.take(ADDRESSES)) {
        dialling.spawn(async move {
            tokio::time::sleep(HEAD_START * place).await;
            TcpStream::connect(address).await
        });
    }
    let mut failure = Error::new(ErrorKind::AddrNotAvailable, "no public address");
    while let Some(dialled) = dialling.join_next().await {
        match dialled.map_err(Error::from).flatten() {
            Ok(tcp) => {
                let mut config = WebSocketConfig::default();
                config.max_message_size = Some(LONGEST_MESSAGE);
                let opened = client_async_tls_with_config(url.as_str(), tcp, Some(config), None);
                return Box::pin(opened).await.map(|(stream, _)| stream).map_err(TransportError::backend);
            }
            Err(error) => failure = error,
        }
    }
    Err(TransportError::backend(failure))
}

/// A sink with the library's error type. (The library's own adapter panics when polled after an error.)
struct ErrorAdapter<S>(S);

impl<S: Sink<Message, Error = async_wsocket::Error> + Unpin> Sink<Message> for ErrorAdapter<S> {
    type Error = TransportError;

    fn poll_ready(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Pin::new(&mut self.0).poll_ready(context).map_err(TransportError::backend)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Message) -> Result<(), TransportError> {
        Pin::new(&mut self.0).start_send(message).map_err(TransportError::backend)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Pin::new(&mut self.0).poll_flush(context).map_err(TransportError::backend)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Pin::new(&mut self.0).poll_close(context).map_err(TransportError::backend)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A public domain could resolve to a private address too; this one does on every machine.
    #[tokio::test]
    async fn a_domain_with_a_private_address_is_not_dialled() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = Url::parse(&format!("ws://localhost:{port}")).unwrap();
        let connect = |transport: Transport, url: Url| async move {
            transport.connect(&url, &ConnectionMode::Direct, PATIENCE).await.map(|_| ())
        };
        let error = connect(Transport::to_external(true), url.clone()).await.unwrap_err();
        assert!(error.to_string().contains("no public address"), "{error}");
        // Without the restriction it is dialled.
        let relay = async { tokio_tungstenite::accept_async(listener.accept().await.unwrap().0).await.map(|_| ()) };
        let (served, connected) = tokio::join!(relay, connect(Transport::to_external(false), url));
        served.unwrap();
        connected.unwrap();
    }
}
