//! The library's WebSocket connection, without Nagle's delay: a subscription's end and the event behind it are two small
//! writes, and the second would wait some 40 ms for the receipt of the first. And for strangers' relays a connection that
//! leads into the operator's own network only where that is meant.

use super::address::is_public;
use async_wsocket::futures_util::{Sink, StreamExt, TryStreamExt};
use async_wsocket::{ConnectionMode, Message, WebSocket};
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

/// How long it may take to reach a stranger's relay.
const PATIENCE: Duration = Duration::from_secs(7);
/// ExternalRelays' names that are looked up at once: each takes a thread until the last server has kept silent.
const LOOKUPS: usize = 64;
/// Addresses of one name that are tried, each this long after the one before, until one answers.
const ADDRESSES: usize = 4;
const HEAD_START: Duration = Duration::from_millis(250);
/// ExternalRelays' relays are asked for relay lists, and for nothing that is longer.
const LONGEST_MESSAGE: usize = 1024 * 1024;

/// Connects and switches the delay off.
#[derive(Clone, Debug)]
pub(in crate::nostr) struct Transport(Whom);

/// Whose relays are dialled.
#[derive(Clone, Debug)]
enum Whom {
    Ours,
    ExternalRelays { public_only: bool, lookups: Arc<Semaphore> },
}

impl Transport {
    /// To the relays of the operator's own choice, wherever they are.
    pub fn to_ours() -> Transport {
        Transport(Whom::Ours)
    }

    /// To relays that askers name: whatever its name, to public addresses only, unless the bot itself lives elsewhere.
    pub fn to_external(public_only: bool) -> Transport {
        Transport(Whom::ExternalRelays { public_only, lookups: Arc::new(Semaphore::new(LOOKUPS)) })
    }

    async fn open(&self, url: &Url, mode: &ConnectionMode, timeout: Duration) -> Result<WebSocket, TransportError> {
        match &self.0 {
            Whom::Ours => WebSocket::connect(url, mode, timeout).await.map_err(TransportError::backend),
            Whom::ExternalRelays { public_only, lookups } => {
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
            // Without it the connection works as well, only later.
            let _ = tcp.map(|tcp| tcp.set_nodelay(true));
            let (sink, stream) = socket.split();
            let stream: WebSocketStream = Box::pin(stream.map_err(TransportError::backend));
            Ok((Box::new(Outward(sink)) as WebSocketSink, stream))
        })
    }
}

/// A connection to an address that was looked at: asking for it again by name could lead elsewhere.
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
        // Kept until the lookup ends, also when nobody waits for it any more.
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

/// The library's error type around a sink. (Its own adapter for that panics when polled again after an error.)
struct Outward<S>(S);

impl<S: Sink<Message, Error = async_wsocket::Error> + Unpin> Sink<Message> for Outward<S> {
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

    /// A public name could lead there as well; this one does on every machine.
    #[tokio::test]
    async fn a_name_that_leads_home_is_not_dialled_for_a_stranger() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = Url::parse(&format!("ws://localhost:{port}")).unwrap();
        let connect = |transport: Transport, url: Url| async move {
            transport.connect(&url, &ConnectionMode::Direct, PATIENCE).await.map(|_| ())
        };
        let error = connect(Transport::to_external(true), url.clone()).await.unwrap_err();
        assert!(error.to_string().contains("no public address"), "{error}");
        // Whoever lives at home may go there.
        let relay = async { tokio_tungstenite::accept_async(listener.accept().await.unwrap().0).await.map(|_| ()) };
        let (served, connected) = tokio::join!(relay, connect(Transport::to_external(false), url));
        served.unwrap();
        connected.unwrap();
    }
}
