//! The HTTP server of the page: HTTP/1.1, GET and HEAD, four paths, and a bound on everything a
//! client can use up. The content security policy is the page's own, made stricter.

use super::listener::{self, ServerLimits, bind_error};
use crate::config::{RelayEntry, WebConfig};
use crate::shutdown::Shutdown;
use http_body_util::Full;
use hyper::body::{Body, Bytes};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use nostr::{PublicKey, RelayUrl, ToBech32};
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
        let mut response = Response::new(Full::new(Bytes::from_static(body)));
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

/// `web/dist/index.html`, as `web/check.sh` builds it from `web/src`.
pub(super) const PAGE: &str = include_str!("../../web/dist/index.html");

/// The page compressed, with the name of the encoding, the smallest one first. `web/check.sh`
/// compares them with the page.
pub(super) const COMPRESSED: [(&str, &[u8]); 2] =
    [("br", include_bytes!("../../web/dist/index.html.br")), ("gzip", include_bytes!("../../web/dist/index.html.gz"))];

/// The picture of the bot's profile.
pub(super) const PICTURE: &[u8] = include_bytes!("../nostr/presence/picture.png");

/// SHA-256 of the page, hex, as `web/dist/page.sha256` publishes it.
pub const PAGE_SHA256: &str = include_str!("../../web/dist/page.sha256").split_at(64).0;

/// The most relays in the page's address. The page accepts no more (`web/src/link.ts`).
const MAX_RELAYS: usize = 6;

/// The address of the page, with the bot and its relays behind `#`, which browsers do not send to
/// the server: `https://bot.example/#npub1…&relay=wss://relay.example`.
pub fn link(base: &str, bot: PublicKey, relays: &[RelayUrl]) -> String {
    let Ok(npub) = bot.to_bech32();
    let relays =
        relays.iter().take(MAX_RELAYS).map(|relay| format!("&relay={}", relay.as_str_without_trailing_slash()));
    format!("{base}#{npub}{}", relays.collect::<String>())
}

/// All fixed headers; the policy is added to them.
const FIXED: [(HeaderName, &str); 7] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), microphone=(), geolocation=(), payment=()"),
    (header::CACHE_CONTROL, "no-cache"),
];

/// The headers of a page that may connect only to these relays.
pub(super) fn headers(relays: &[RelayUrl]) -> HeaderMap {
    let mut headers: HeaderMap =
        FIXED.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))).collect();
    // `origin` and the build of the page ensure visible ASCII. If this failed, the policy in the
    // page itself would still hold.
    if let Ok(policy) = HeaderValue::from_str(&policy(relays)) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers
}

/// The policy in the page's `<meta>`, limited to connections to these relays. It also forbids
/// framing, which a `<meta>` cannot.
fn policy(relays: &[RelayUrl]) -> String {
    let own =
        PAGE.split_once("http-equiv=\"Content-Security-Policy\" content=\"").and_then(|(_, rest)| rest.split_once('"'));
    let own = own.map_or("default-src 'none'", |(policy, _)| policy);
    let origins: Vec<String> = relays.iter().filter_map(origin).collect();
    let connect = if origins.is_empty() { "'none'".to_owned() } else { origins.join(" ") };
    let kept = own.split("; ").filter(|directive| !directive.starts_with("connect-src "));
    let added = [format!("connect-src {connect}"), "frame-ancestors 'none'".to_owned()];
    kept.map(str::to_owned).chain(added).collect::<Vec<_>>().join("; ")
}

/// The origin, such as `wss://relay.example:8080`. `None` if the host has characters with a meaning
/// in a policy.
fn origin(relay: &RelayUrl) -> Option<String> {
    let (scheme, rest) = relay.as_str().split_once("://")?;
    let authority = rest.split('/').next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    (!authority.is_empty() && authority.chars().all(is_plain)).then(|| format!("{scheme}://{authority}"))
}
