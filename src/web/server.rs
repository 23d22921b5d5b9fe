//! The HTTP server: HTTP/1.1, GET and HEAD, four paths, and a bound on everything a client can use
//! up.

use super::listener::{self, ServerLimits, bind_error};
use super::page::{COMPRESSED, PAGE, PAGE_SHA256, PICTURE, headers, link};
use crate::config::{RelayEntry, WebConfig};
use crate::shutdown::Shutdown;
use http_body_util::Full;
use hyper::body::{Body, Bytes};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use nostr::{PublicKey, RelayUrl};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Bounds of the page's server.
const PAGE_LIMITS: ServerLimits =
    ServerLimits { connections: 64, head: Duration::from_secs(10), connection: Duration::from_secs(60) };

/// The HTTP server, already listening.
pub struct WebServer {
    listener: TcpListener,
    site: Arc<Site>,
    link: String,
    pub(super) limits: ServerLimits,
}

/// The parts of replies that are prepared in advance.
struct Site {
    headers: HeaderMap,
    /// The page's address for this bot, relative to the server.
    page_of_bot: HeaderValue,
    etag: HeaderValue,
}

impl WebServer {
    /// Listens at the configured address. `None` if none is configured.
    ///
    /// Errors: the system refuses the address.
    pub async fn bind(config: &WebConfig, relays: &[RelayEntry], bot: PublicKey) -> std::io::Result<Option<WebServer>> {
        WebServer::listen(config)?.map(|listener| WebServer::new(listener, config, relays, bot)).transpose()
    }

    /// Listens at the configured address, before there is a runtime. `None` if none is configured.
    ///
    /// Errors: the system refuses the address.
    pub fn listen(config: &WebConfig) -> std::io::Result<Option<std::net::TcpListener>> {
        let Some(address) = config.listen else { return Ok(None) };
        let failed = |error| bind_error("the page cannot be served at", "listen", address, &error);
        let listener = std::net::TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Some(listener))
    }

    /// The server of an address.
    ///
    /// Errors: the system refuses the address.
    pub fn new(
        listener: std::net::TcpListener,
        config: &WebConfig,
        relays: &[RelayEntry],
        bot: PublicKey,
    ) -> std::io::Result<WebServer> {
        let listener = TcpListener::from_std(listener)?;
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() {
            tracing::warn!(%address, "the page can be reached from other machines without TLS; put a reverse proxy in front");
        }
        let inbox: Vec<RelayUrl> = relays.iter().filter(|relay| relay.inbox).map(|relay| relay.url.clone()).collect();
        let all: Vec<RelayUrl> = relays.iter().map(|relay| relay.url.clone()).collect();
        let base = config.public_url.clone().unwrap_or_else(|| format!("http://{address}/"));
        let ascii = |text: String| HeaderValue::from_str(&text).ok();
        let site = Site {
            headers: headers(&all),
            page_of_bot: ascii(link("page", bot, &inbox)).unwrap_or(HeaderValue::from_static("page")),
            etag: ascii(format!("\"{PAGE_SHA256}\"")).unwrap_or(HeaderValue::from_static("\"\"")),
        };
        Ok(WebServer { listener, site: Arc::new(site), link: link(&base, bot, &inbox), limits: PAGE_LIMITS })
    }

    /// The page's address for people.
    pub fn link(&self) -> &str {
        &self.link
    }

    /// The address at which the server listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Serves until the shutdown. A failed connection does not affect the others.
    pub async fn run(&self, shutdown: Shutdown) {
        let site = Arc::clone(&self.site);
        let answer = move |request| {
            let reply = site.answer(&request);
            async move { reply }
        };
        listener::serve(&self.listener, self.limits, shutdown, answer).await;
    }
}

impl Site {
    fn answer(&self, request: &Request<impl Body>) -> Response<Full<Bytes>> {
        let is_head = request.method() == Method::HEAD;
        let is_page = request.uri().path() == "/page";
        let encoding = COMPRESSED.into_iter().find(|(name, _)| is_page && accepts(request, name));
        let page = encoding.map_or(PAGE.as_bytes(), |(_, compressed)| compressed);
        let (status, kind, body): (_, _, &[u8]) = match (request.method(), request.uri().path()) {
            (&Method::GET | &Method::HEAD, "/page") if self.is_known(request) => (StatusCode::NOT_MODIFIED, "", b""),
            (&Method::GET | &Method::HEAD, "/page") => (StatusCode::OK, "text/html; charset=utf-8", page),
            (&Method::GET | &Method::HEAD, "/page.sha256") => {
                (StatusCode::OK, "text/plain; charset=utf-8", PAGE_SHA256.as_bytes())
            }
            (&Method::GET | &Method::HEAD, "/picture.png") => (StatusCode::OK, "image/png", PICTURE),
            (&Method::GET | &Method::HEAD, "/") => (StatusCode::FOUND, "", b""),
            (&Method::GET | &Method::HEAD, _) => (StatusCode::NOT_FOUND, "text/plain; charset=utf-8", b"Not here.\n"),
            _ => (StatusCode::METHOD_NOT_ALLOWED, "text/plain; charset=utf-8", b"GET and HEAD only.\n"),
        };
        let shown = if is_head { Bytes::new() } else { Bytes::from_static(body) };
        let mut response = Response::new(Full::new(shown));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.extend(self.headers.clone());
        if !kind.is_empty() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        match status {
            StatusCode::FOUND => drop(headers.insert(header::LOCATION, self.page_of_bot.clone())),
            StatusCode::METHOD_NOT_ALLOWED => {
                headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
                // A request body is never read, so the connection is closed.
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            _ if is_page => {
                headers.insert(header::ETAG, self.etag.clone());
                headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
                if let (StatusCode::OK, Some((name, _))) = (status, encoding) {
                    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(name));
                }
            }
            // Other sites show the bot's picture.
            StatusCode::OK if body == PICTURE => {
                let name = HeaderName::from_static("cross-origin-resource-policy");
                headers.insert(name, HeaderValue::from_static("cross-origin"));
            }
            _ => {}
        }
        if is_head {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        response
    }

    fn is_known(&self, request: &Request<impl Body>) -> bool {
        request.headers().get(header::IF_NONE_MATCH).is_some_and(|known| known == self.etag)
    }
}

/// Whether a client takes an encoding: it names it, and not with a quality of zero.
fn accepts(request: &Request<impl Body>, encoding: &str) -> bool {
    let accepted = request.headers().get_all(header::ACCEPT_ENCODING).iter();
    accepted.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|one| {
        let (name, quality) = one.split_once(';').unwrap_or((one, ""));
        let is_refused = quality.trim().strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0));
        name.trim().eq_ignore_ascii_case(encoding) && !is_refused
    })
}
