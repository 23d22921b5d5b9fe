//! WebSocket connections for nostr-sdk, with limits on the data that a relay can make us hold.
//!
//! Nagle's delay is off. Closing a subscription and sending an event are two small writes; with the
//! delay, the second would wait some 40 ms for the acknowledgement of the first. Our own relays may
//! have the delay on their side, so we acknowledge their data at once. External relays are dialled
//! at public addresses only.

use super::host::{Resolver, has_allowed_port, is_own_address, is_private, may_dial};
use super::reports::RelayReports;
use crate::os::kernel::Tcp;
use crate::token_bucket::TokenBucket;
use async_wsocket::{ConnectionMode, Message, WebSocket};
use futures_util::{Sink, StreamExt, TryStreamExt, future};
use nostr_relay_pool::transport::error::TransportError;
use nostr_relay_pool::transport::websocket::{WebSocketSink, WebSocketStream, WebSocketTransport};
use nostr_sdk::util::BoxedFuture;
use nostr_sdk::{RelayUrl, Url};
use std::io::{Error, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_socks::tcp::Socks5Stream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, client_async_tls_with_config};

/// Time limit for dialling an external relay.
const DIAL_TIMEOUT: Duration = Duration::from_secs(7);
/// Delay before the next address of a domain is tried.
const HEAD_START: Duration = Duration::from_millis(250);
/// The most bytes of a frame or message from one of our own relays.
const OUR_LONGEST: usize = 1024 * 1024;
/// The most bytes of a frame or message from an external relay, which needs to send only OK, AUTH
/// and NOTICE.
const EXTERNAL_LONGEST: usize = 32 * 1024;
/// Bytes of the read and the write buffer of an external connection.
const EXTERNAL_BUFFER: usize = 8 * 1024;
/// The most unread bytes of an external relay that the system keeps. (Linux takes twice as many,
/// and without a limit up to 6 MiB.)
const EXTERNAL_UNREAD: u32 = 16 * 1024;
/// The most bytes of unsent data of one external connection.
const LONGEST_UNSENT: usize = 1024 * 1024;

/// Makes WebSocket connections.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    /// The memory of all external connections, in KiB; `None` for the transport to our own relays.
    external: Option<Arc<Semaphore>>,
    /// Where the clocks of our own relays are recorded.
    reports: RelayReports,
    /// Whether only public addresses of other machines are dialled.
    public_only: bool,
    resolver: Resolver,
    proxy: Option<Proxy>,
}

type Socket = tokio_tungstenite::WebSocketStream<MaybeTlsStream<TcpStream>>;

impl Transport {
    /// The transport to relays of the configuration, at any address.
    pub fn to_ours(reports: RelayReports) -> Transport {
        Transport { external: None, reports, public_only: false, resolver: Resolver::default(), proxy: None }
    }

    /// The transport to relays that askers list. With `public_only`, private addresses and those of
    /// this machine are not dialled, even if `resolver` returns one for a domain.
    pub fn to_external(public_only: bool, resolver: Resolver) -> Transport {
        let (external, reports) = (Some(Arc::new(Semaphore::new(ALL_CONNECTIONS_KIB))), RelayReports::default());
        Transport { external, reports, public_only, resolver, proxy: None }
    }

    /// This transport through a proxy, if there is one.
    pub fn through(self, proxy: Option<Proxy>) -> Transport {
        Transport { proxy, ..self }
    }

    fn may_dial(&self, address: IpAddr) -> bool {
        !self.public_only || may_dial(address, is_own_address)
    }

    /// The limits of a connection, enforced before memory is reserved for a frame.
    fn config(&self) -> WebSocketConfig {
        let config = WebSocketConfig::default();
        match self.external {
            None => config.max_frame_size(Some(OUR_LONGEST)).max_message_size(Some(OUR_LONGEST)),
            Some(_) => config
                .max_frame_size(Some(EXTERNAL_LONGEST))
                .max_message_size(Some(EXTERNAL_LONGEST))
                .read_buffer_size(EXTERNAL_BUFFER)
                .write_buffer_size(EXTERNAL_BUFFER)
                .max_write_buffer_size(LONGEST_UNSENT),
        }
    }

    /// An unconnected socket for an address.
    fn tcp_for(&self, address: &SocketAddr) -> std::io::Result<TcpSocket> {
        let tcp = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        if self.external.is_some() {
            tcp.set_recv_buffer_size(EXTERNAL_UNREAD)?;
        }
        Ok(tcp)
    }

    /// Resolves the host and connects to a permitted address.
    async fn dial(&self, url: &Url) -> Result<Socket, TransportError> {
        let wrong = |what| TransportError::backend(Error::new(ErrorKind::InvalidInput, what));
        let port = url.port_or_known_default().ok_or_else(|| wrong("no port"))?;
        if self.external.is_some() && !has_allowed_port(port) {
            return Err(wrong("a port that is no relay's"));
        }
        let is_near = RelayUrl::parse(url.as_str()).is_ok_and(|url| is_private(&url));
        // Our own relays on this machine or in its network are dialled without a proxy.
        if let Some(proxy) = self.proxy.filter(|_| !is_near || self.external.is_some()) {
            let host = url.host_str().ok_or_else(|| wrong("no host"))?;
            // The proxy resolves the name, so the address cannot be checked here. Tor refuses
            // private addresses.
            let is_own = host.trim_matches(['[', ']']).parse().is_ok_and(is_own_address);
            if self.public_only && (is_near || is_own) {
                return Err(wrong("no public address"));
            }
            let socket = self.tcp_for(&proxy.0).map_err(TransportError::backend)?;
            let tcp = proxy.connect(socket, host, port).await.map_err(TransportError::backend)?;
            return self.open(url, tcp).await;
        }
        if url.host_str().is_some_and(is_onion) {
            return Err(wrong("an onion relay, which only `proxy` in [network] reaches"));
        }
        let found = self.resolver.resolve(url, self.external.is_none()).await.map_err(TransportError::backend)?;
        let mut dialling = JoinSet::new();
        for (place, address) in (0..).zip(found.into_iter().filter(|&address| self.may_dial(address))) {
            let address = SocketAddr::new(address, port);
            let tcp = self.tcp_for(&address);
            dialling.spawn(async move {
                tokio::time::sleep(HEAD_START * place).await;
                tcp?.connect(address).await
            });
        }
        let mut failure = Error::new(ErrorKind::AddrNotAvailable, "no public address");
        while let Some(dialled) = dialling.join_next().await {
            match dialled.map_err(Error::from).flatten() {
                // The machine's addresses may have changed since they were compared.
                Ok(tcp) if self.public_only && ends_here(&tcp) => {}
                Ok(tcp) => return self.open(url, tcp).await,
                Err(error) => failure = error,
            }
        }
        Err(TransportError::backend(failure))
    }

    /// Opens the WebSocket, and TLS if the URL says so.
    async fn open(&self, url: &Url, tcp: TcpStream) -> Result<Socket, TransportError> {
        // If this fails, the connection still works, only slower.
        let _ = tcp.set_nodelay(true);
        let opened = client_async_tls_with_config(url.as_str(), tcp, Some(self.config()), None);
        let (socket, response) = Box::pin(opened).await.map_err(TransportError::backend)?;
        let date = response.headers().get("date").and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
        if let (Some(date), None) = (date, &self.external) {
            let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() as i64);
            let ahead = seconds(date) - seconds(SystemTime::now());
            self.reports.record_relay_clock(url.host_str().unwrap_or_default(), ahead);
        }
        Ok(socket)
    }
}

impl WebSocketTransport for Transport {
    fn support_ping(&self) -> bool {
        true
    }

    fn connect<'a>(
        &'a self,
        url: &'a Url,
        _: &'a ConnectionMode,
        timeout: Duration,
    ) -> BoxedFuture<'a, Result<(WebSocketSink, WebSocketStream), TransportError>> {
        Box::pin(async move {
            let fault = |kind: ErrorKind, what| move || TransportError::backend(Error::new(kind, what));
            let dial = async {
                let share = match &self.external {
                    None => None,
                    Some(memory) => share(memory).await,
                };
                Ok((share, self.dial(url).await?))
            };
            let timeout = if self.external.is_none() { timeout } else { timeout.min(DIAL_TIMEOUT) };
            let dialled: Result<_, TransportError> = tokio::time::timeout(timeout, dial)
                .await
                .map_err(|_| fault(ErrorKind::TimedOut, "it did not answer in time")())?;
            let (share, socket) = dialled?;
            let tcp = tcp_of(socket.get_ref());
            let (sink, stream) = WebSocket::Tokio(socket).split();
            let stream = stream.map_err(TransportError::backend);
            let stream: WebSocketStream = match share {
                None => Box::pin(stream.inspect(move |_| tcp.iter().for_each(Tcp::acknowledge_at_once))),
                Some(share) => {
                    let mut may_send = allowance(Instant::now());
                    Box::pin(stream.and_then(move |message| {
                        // The connection's share of the budget is held as long as the stream.
                        let _share = &share;
                        let exceeded = fault(ErrorKind::QuotaExceeded, "it sends more than it may");
                        let fits = may_send(message.len(), Instant::now());
                        future::ready(if fits { Ok(message) } else { Err(exceeded()) })
                    }))
                }
            };
            Ok((Box::new(ErrorAdapter(sink)) as WebSocketSink, stream))
        })
    }
}

/// Whether both ends of a connection are at the same address, so at this machine.
fn ends_here(tcp: &TcpStream) -> bool {
    tcp.peer_addr().is_ok_and(|peer| tcp.local_addr().is_ok_and(|local| local.ip() == peer.ip()))
}

/// A second handle to the TCP connection; `None` if the system gives none.
fn tcp_of(stream: &MaybeTlsStream<TcpStream>) -> Option<Tcp> {
    let tcp = match stream {
        MaybeTlsStream::Plain(tcp) => tcp,
        MaybeTlsStream::Rustls(tls) => tls.get_ref().0,
        _ => return None,
    };
    Tcp::of(tcp)
}

/// A sink with the library's error type. (The library's own adapter panics when polled after an
/// error.)
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

/// The password sent with the user name. Proxies that separate streams ignore it.
const PASSWORD: &str = "npubbot";
/// The ending of names of Tor's onion services.
const ONION: &str = ".onion";

/// A SOCKS5 proxy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Proxy(pub SocketAddr);

impl Proxy {
    /// Connects to a host through the proxy. The proxy resolves the name; nothing here looks it up.
    /// Each host has its own user name, so that Tor gives it its own circuit.
    ///
    /// Errors: the proxy cannot be reached, or does not reach the host.
    pub async fn connect(self, socket: TcpSocket, host: &str, port: u16) -> std::io::Result<TcpStream> {
        let host = host.trim_matches(['[', ']']);
        let tcp = socket
            .connect(self.0)
            .await
            .map_err(|error| Error::new(error.kind(), format!("the proxy {} cannot be reached: {error}", self.0)))?;
        let through = Socks5Stream::connect_with_password_and_socket(tcp, (host, port), host, PASSWORD).await;
        through.map(Socks5Stream::into_inner).map_err(|error| Error::other(format!("the proxy says: {error}")))
    }
}

/// Whether a host is an onion service, whose name no name server may see (RFC 7686).
pub(super) fn is_onion(host: &str) -> bool {
    host.trim_end_matches('.').to_ascii_lowercase().ends_with(ONION)
}

/// Memory limit of all external connections together, in KiB.
const ALL_CONNECTIONS_KIB: usize = 16 * 1024;
/// Memory of one external connection, in KiB: a frame, a message in parts, and the buffers.
const CONNECTION_KIB: u32 = 80;

/// Bytes that an external relay may send at once: an OK for each event in progress to it (at most
/// 96, of some 200 bytes), and a frame of the greatest length.
const BURST_BYTES: u32 = 64 * 1024;
/// Bytes per second that an external relay may send on average.
const BYTES_PER_SECOND: u32 = 32 * 1024;
/// Bytes that a smaller message counts as, because small messages also cost time.
const LEAST_MESSAGE_BYTES: u32 = 64;

/// Takes the share of one external connection, which is returned when it is dropped. While the memory
/// is used up, waits for another connection to close.
async fn share(memory: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    // An error means that the semaphore is closed, which never happens.
    Arc::clone(memory).acquire_many_owned(CONNECTION_KIB).await.ok()
}

/// The bytes that one external relay may still send, counted message by message.
fn allowance(now: Instant) -> impl FnMut(usize, Instant) -> bool {
    let mut bytes_left = TokenBucket::full_at(now, BYTES_PER_SECOND, BURST_BYTES);
    move |bytes, now| {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).max(LEAST_MESSAGE_BYTES);
        bytes_left.take_many(now, bytes).is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nostr::relay::external::ExternalRelays;
    use crate::nostr::relay::host::Resolver;
    use crate::nostr::tests::accept;
    use async_wsocket::ConnectionMode;
    use futures_util::FutureExt;
    use nostr_relay_pool::transport::websocket::WebSocketTransport;
    use nostr_sdk::{Keys, RelayUrl, Url};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    const DIRECT: ConnectionMode = ConnectionMode::Direct;

    async fn listen() -> (TcpListener, Url) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://localhost:{}", listener.local_addr().unwrap().port());
        (listener, Url::parse(&url).unwrap())
    }

    /// A public domain may resolve to a private address. `localhost` does so on every machine.
    #[tokio::test]
    async fn a_domain_with_a_private_address_is_not_dialled() {
        let (listener, url) = listen().await;
        let connect = |transport: Transport| {
            let url = &url;
            async move { transport.connect(url, &DIRECT, DIAL_TIMEOUT).await.map(|_| ()) }
        };
        let error = connect(Transport::to_external(true, Resolver::default())).await.unwrap_err();
        assert!(error.to_string().contains("no public address"), "{error}");
        // Without the restriction it is dialled.
        let (_relay, connected) =
            tokio::join!(accept(&listener), connect(Transport::to_external(false, Resolver::default())));
        connected.unwrap();
    }

    /// Sends a frame header that announces `length` bytes, without content. Returns the result of
    /// `transport`.
    async fn announce(transport: &Transport, length: u64) -> Option<Result<Message, TransportError>> {
        let (listener, url) = listen().await;
        let relay = async {
            let mut socket = accept(&listener).await;
            let mut header = vec![0x81, 127];
            header.extend(length.to_be_bytes());
            socket.get_mut().write_all(&header).await.unwrap();
            socket
        };
        let (_relay, connected) = tokio::join!(relay, transport.connect(&url, &DIRECT, DIAL_TIMEOUT));
        let (_sink, mut stream) = connected.unwrap();
        tokio::time::timeout(Duration::from_millis(500), stream.next()).await.ok().flatten()
    }

    #[tokio::test]
    async fn a_frame_over_the_limit_is_refused_by_its_header() {
        let (ours, external) =
            (Transport::to_ours(RelayReports::default()), Transport::to_external(false, Resolver::default()));
        for (transport, limit) in [(&ours, OUR_LONGEST), (&external, EXTERNAL_LONGEST)] {
            for length in [limit as u64 + 1, 16 << 20, u64::MAX >> 1] {
                let refused = announce(transport, length).await;
                assert!(matches!(refused, Some(Err(_))), "{length}: {:?}", refused.map(|_| "a message"));
            }
            assert!(announce(transport, limit as u64).await.is_none(), "the content is waited for");
        }
    }

    #[tokio::test]
    async fn the_system_keeps_little_of_what_an_external_relay_sends() {
        for address in ["127.0.0.1:80", "[::1]:80"] {
            let tcp = Transport::to_external(false, Resolver::default()).tcp_for(&address.parse().unwrap()).unwrap();
            assert!(tcp.recv_buffer_size().unwrap() <= 2 * EXTERNAL_UNREAD);
        }
    }

    #[tokio::test]
    async fn a_relay_that_never_stops_sending_is_disconnected() {
        let (listener, url) = listen().await;
        let relay = async {
            let mut socket = accept(&listener).await;
            let notice = tokio_tungstenite::tungstenite::Message::text("x".repeat(1024));
            while futures_util::SinkExt::send(&mut socket, notice.clone()).await.is_ok() {}
        };
        let transport = Transport::to_external(false, Resolver::default());
        let client = async {
            let (_sink, mut stream) = transport.connect(&url, &DIRECT, DIAL_TIMEOUT).await.unwrap();
            let mut bytes = 0;
            while let Some(Ok(message)) = stream.next().await {
                bytes += message.len();
            }
            bytes
        };
        let (bytes, ()) = tokio::join!(client, relay);
        assert!(bytes < 512 * 1024, "{bytes}");
    }

    #[tokio::test]
    async fn a_connection_of_this_machine_to_itself_is_noticed() {
        let (listener, _) = listen().await;
        let (dialled, _) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        assert!(ends_here(&dialled.unwrap()));
    }

    #[tokio::test]
    async fn external_relays_are_dialled_at_the_ports_of_relays_only() {
        let external = Transport::to_external(false, Resolver::default());
        for port in [22, 25, 1023] {
            let url = Url::parse(&format!("ws://127.0.0.1:{port}")).unwrap();
            let error = external.connect(&url, &DIRECT, DIAL_TIMEOUT).await.map(|_| ()).unwrap_err();
            assert!(error.to_string().contains("port"), "{error}");
        }
    }

    /// A resolver that counts lookups, and finds nothing.
    fn counting() -> (Resolver, Arc<AtomicUsize>) {
        let lookups = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&lookups);
        let resolver = Resolver::new(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(Vec::new())
        });
        (resolver, lookups)
    }

    async fn error(transport: &Transport, url: &str) -> String {
        let patience = Duration::from_secs(60);
        let connected = transport.connect(&Url::parse(url).unwrap(), &ConnectionMode::Direct, patience).await;
        connected.map(|_| ()).unwrap_err().to_string()
    }

    /// A proxy at a port where nothing listens.
    async fn away() -> Proxy {
        Proxy(TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap())
    }

    #[tokio::test]
    async fn with_a_proxy_that_is_away_nothing_is_looked_up_or_dialled_without_it() {
        let ((resolver, lookups), proxy) = (counting(), away().await);
        let transport = Transport::to_external(true, resolver.clone()).through(Some(proxy));
        let reason = error(&transport, "wss://relay.example").await;
        assert!(reason.contains("proxy") && reason.contains("cannot be reached"), "{reason}");
        let external = ExternalRelays::new(Keys::generate(), true, resolver, Some(proxy));
        let url = RelayUrl::parse("wss://relay.example").unwrap();
        let hosts = external.hosts(&url, false, false).await.unwrap();
        assert_ne!(hosts.limited, hosts.named, "a new host is limited by its domain");
        assert_eq!(lookups.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn askers_cannot_name_private_addresses_to_the_proxy() {
        let ((resolver, _), proxy) = (counting(), away().await);
        let transport = Transport::to_external(true, resolver).through(Some(proxy));
        for url in ["ws://127.0.0.1:8080", "ws://printer.local", "ws://[fd00::1]", "ws://nas"] {
            assert!(error(&transport, url).await.contains("no public address"), "{url}");
        }
        assert!(error(&transport, "ws://relay.example:25").await.contains("port"));
    }

    #[tokio::test]
    async fn an_onion_relay_is_shown_to_no_name_server() {
        let (resolver, lookups) = counting();
        let name = format!("ws://{}.ONION.", "a".repeat(56));
        for transport in [Transport::to_external(true, resolver.clone()), Transport::to_ours(RelayReports::default())] {
            assert!(error(&transport, &name).await.contains("only `proxy` in [network] reaches"));
        }
        assert_eq!(lookups.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn our_own_relay_nearby_is_dialled_without_the_proxy() {
        let (relay, proxy) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), away().await);
        let url = format!("ws://{}", relay.local_addr().unwrap());
        let serve = async { tokio_tungstenite::accept_async(relay.accept().await.unwrap().0).await.map(|_| ()) };
        let transport = Transport::to_ours(RelayReports::default()).through(Some(proxy));
        let (url, mode) = (Url::parse(&url).unwrap(), ConnectionMode::Direct);
        let (served, connected) = tokio::join!(serve, transport.connect(&url, &mode, Duration::from_secs(60)));
        served.unwrap();
        assert!(connected.is_ok());
    }

    #[test]
    fn external_connections_share_a_budget() {
        let memory = Transport::to_external(false, Resolver::default()).external.unwrap();
        let share = || share(&memory).now_or_never().flatten();
        let shares: Vec<_> = std::iter::from_fn(share).collect();
        assert_eq!(shares.len(), ALL_CONNECTIONS_KIB / CONNECTION_KIB as usize);
        assert!(share().is_none());
        drop(shares);
        assert!(share().is_some());
    }

    #[test]
    fn a_burst_passes_and_then_a_rate() {
        let start = Instant::now();
        let mut may_send = allowance(start);
        assert!(may_send(32 * 1024, start) && may_send(32 * 1024, start) && !may_send(1, start));
        let mut may_send = allowance(start);
        let tiny = (0..).take_while(|_| may_send(0, start)).count();
        assert_eq!(tiny, 1024, "empty messages count too");
        let (mut may_send, at) = (allowance(start), |seconds| start + Duration::from_secs(seconds));
        assert!((0..100).all(|second| may_send(32 * 1024, at(second))), "the rate passes for ever");
    }
}
