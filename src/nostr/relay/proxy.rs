//! A SOCKS5 proxy of the operator, such as Tor's: relays are reached through it, and it resolves
//! their names.

use std::io::{Error, Result};
use std::net::SocketAddr;
use tokio::net::{TcpSocket, TcpStream};
use tokio_socks::tcp::Socks5Stream;

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
    pub async fn connect(self, socket: TcpSocket, host: &str, port: u16) -> Result<TcpStream> {
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

#[cfg(test)]
mod tests {
    use super::super::external::ExternalRelays;
    use super::super::resolver::Resolver;
    use super::super::transport::Transport;
    use super::*;
    use async_wsocket::ConnectionMode;
    use nostr_relay_pool::transport::websocket::WebSocketTransport;
    use nostr_sdk::{Keys, RelayUrl, Url};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;
    use tokio::net::TcpListener;

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
        for transport in [Transport::to_external(true, resolver.clone()), Transport::to_ours()] {
            assert!(error(&transport, &name).await.contains("only `proxy` in [network] reaches"));
        }
        assert_eq!(lookups.load(Ordering::SeqCst), 0);
    }

    #[tokio::test]
    async fn our_own_relay_nearby_is_dialled_without_the_proxy() {
        let (relay, proxy) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), away().await);
        let url = format!("ws://{}", relay.local_addr().unwrap());
        let serve = async { tokio_tungstenite::accept_async(relay.accept().await.unwrap().0).await.map(|_| ()) };
        let transport = Transport::to_ours().through(Some(proxy));
        let (url, mode) = (Url::parse(&url).unwrap(), ConnectionMode::Direct);
        let (served, connected) = tokio::join!(serve, transport.connect(&url, &mode, Duration::from_secs(60)));
        served.unwrap();
        assert!(connected.is_ok());
    }
}
