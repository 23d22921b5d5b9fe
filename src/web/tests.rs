//! Tests of the server on loopback, with requests written byte by byte.

use super::server::{COMPRESSED, PAGE, PICTURE};
use super::{PAGE_SHA256, WebServer};
use crate::config::{RelayEntry, WebConfig};
use crate::shutdown::{self, Stopper};
use nostr::hashes::{Hash, sha256};
use nostr::{Keys, RelayUrl};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest wait; nothing here takes nearly as long.
const PATIENCE: Duration = Duration::from_secs(20);

struct Running {
    address: SocketAddr,
    link: String,
    npub: String,
    _stopper: Stopper,
}

fn relay(url: &str, inbox: bool) -> RelayEntry {
    RelayEntry { url: RelayUrl::parse(url).unwrap(), inbox, status: true, discovery: true }
}

async fn serve(public_url: Option<&str>, change: impl FnOnce(&mut WebServer)) -> Running {
    use nostr::ToBech32;
    let bot = Keys::generate().public_key();
    let config = WebConfig {
        listen: Some("127.0.0.1:0".parse().unwrap()),
        public_url: public_url.map(str::to_owned),
        metrics: None,
    };
    let relays =
        [relay("wss://in.example", true), relay("wss://out.example:8443/path", false), relay("ws://[::1]:7000", true)];
    let mut server = WebServer::bind(&config, &relays, bot).await.unwrap().unwrap();
    change(&mut server);
    let (stopper, shutdown) = shutdown::pair();
    let (address, link) = (server.address().unwrap(), server.link().to_owned());
    tokio::spawn(async move { server.run(shutdown).await });
    Running { address, link, npub: bot.to_bech32().unwrap(), _stopper: stopper }
}

/// Sends a request. Returns status line and headers in lower case, and the body.
async fn ask(address: SocketAddr, request: &str) -> (String, String) {
    let (head, body) = ask_bytes(address, request).await;
    (head, String::from_utf8(body).unwrap())
}

async fn ask_bytes(address: SocketAddr, request: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut reply = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut reply)).await.expect("the server ends the connection").unwrap();
    let end = reply.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap_or(reply.len());
    let head = String::from_utf8(reply[..end].to_vec()).unwrap();
    (head.to_lowercase(), reply.get(end + 4..).unwrap_or_default().to_vec())
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[test]
fn the_published_hash_is_that_of_the_page() {
    assert_eq!(sha256::Hash::hash(PAGE.as_bytes()).to_string(), PAGE_SHA256);
}

#[tokio::test]
async fn the_page_is_served_as_it_is_built() {
    let web = serve(None, |_| ()).await;
    let (head, body) = ask(web.address, &get("/page")).await;
    assert!(head.starts_with("http/1.1 200 "), "{head}");
    assert_eq!(header(&head, "content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(body, PAGE);
    let (_, hash) = ask(web.address, &get("/page.sha256")).await;
    assert_eq!(hash, PAGE_SHA256);
}

#[tokio::test]
async fn the_page_is_sent_compressed_to_who_takes_that() {
    let web = serve(None, |_| ()).await;
    let [(_, br), (_, gzip)] = COMPRESSED;
    assert!(br.len() < 110_000 && gzip.len() < 110_000, "{} {}", br.len(), gzip.len());
    let cases: [(&str, Option<&str>, &[u8]); 6] = [
        ("gzip, deflate, br, zstd", Some("br"), br),
        ("gzip, deflate", Some("gzip"), gzip),
        ("br;q=0, GZIP;q=0.5", Some("gzip"), gzip),
        ("br; q=0.000, gzip; q=0", None, PAGE.as_bytes()),
        ("brx, identity", None, PAGE.as_bytes()),
        ("", None, PAGE.as_bytes()),
    ];
    for (accepted, encoding, bytes) in cases {
        let request = get("/page").replace("Host: x", &format!("Host: x\r\nAccept-Encoding: {accepted}"));
        let (head, body) = ask_bytes(web.address, &request).await;
        assert_eq!(header(&head, "content-encoding"), encoding, "{accepted}");
        assert_eq!(header(&head, "vary"), Some("accept-encoding"));
        assert!(body == bytes, "{accepted}");
    }
}

#[tokio::test]
async fn the_bots_picture_is_there_for_other_sites() {
    let web = serve(None, |_| ()).await;
    let (head, body) = ask_bytes(web.address, &get("/picture.png")).await;
    assert_eq!(header(&head, "content-type"), Some("image/png"));
    assert_eq!(header(&head, "cross-origin-resource-policy"), Some("cross-origin"));
    assert_eq!(body, PICTURE);
}

#[tokio::test]
async fn the_bare_address_leads_to_the_page_with_the_bot_and_its_inbox_relays() {
    let web = serve(None, |_| ()).await;
    let (head, _) = ask(web.address, &get("/")).await;
    assert!(head.starts_with("http/1.1 302 "), "{head}");
    let expected = format!("#{}&relay=wss://in.example&relay=ws://[::1]:7000", web.npub);
    assert_eq!(header(&head, "location"), Some(format!("page{expected}").as_str()));
    assert_eq!(web.link, format!("http://{}/{expected}", web.address));
    let elsewhere = serve(Some("https://bot.example/ask"), |_| ()).await;
    assert!(
        elsewhere.link.starts_with(&format!("https://bot.example/ask#{}&relay=", elsewhere.npub)),
        "{}",
        elsewhere.link
    );
}

#[tokio::test]
async fn every_reply_has_strict_headers() {
    let web = serve(None, |_| ()).await;
    for path in ["/", "/page", "/page.sha256", "/nothing", "/../etc/passwd"] {
        let (head, _) = ask(web.address, &get(path)).await;
        assert_eq!(header(&head, "x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(header(&head, "referrer-policy"), Some("no-referrer"), "{path}");
        assert_eq!(header(&head, "x-frame-options"), Some("deny"), "{path}");
        assert_eq!(header(&head, "cross-origin-opener-policy"), Some("same-origin"), "{path}");
        assert!(header(&head, "content-security-policy").unwrap().contains("frame-ancestors 'none'"), "{path}");
    }
}

#[tokio::test]
async fn the_policy_is_that_of_the_page_limited_to_the_bots_relays() {
    let web = serve(None, |_| ()).await;
    let (head, body) = ask(web.address, &get("/page")).await;
    let policy = header(&head, "content-security-policy").unwrap();
    let connect: Vec<&str> = policy.split("; ").filter(|directive| directive.starts_with("connect-src")).collect();
    assert_eq!(connect, ["connect-src wss://in.example wss://out.example:8443 ws://[::1]:7000"]);
    let own = body.split_once("content=\"default-src").unwrap().1.split_once('"').unwrap().0.to_lowercase();
    for directive in format!("default-src{own}").split("; ").filter(|directive| !directive.starts_with("connect-src")) {
        assert!(policy.contains(directive), "{directive} is missing in {policy}");
    }
}

#[tokio::test]
async fn only_reading_is_answered() {
    let web = serve(None, |_| ()).await;
    let (head, _) = ask(web.address, &get("/nothing")).await;
    assert!(head.starts_with("http/1.1 404 "), "{head}");
    let (head, _) = ask(web.address, "POST /page HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx").await;
    assert!(head.starts_with("http/1.1 405 "), "{head}");
    assert_eq!(header(&head, "allow"), Some("get, head"));
    let (head, body) = ask(web.address, &get("/page").replace("GET", "HEAD")).await;
    assert_eq!(header(&head, "content-length"), Some(PAGE.len().to_string().as_str()));
    assert_eq!(body, "");
    let known = get("/page").replace("Host: x", &format!("Host: x\r\nIf-None-Match: \"{PAGE_SHA256}\""));
    let (head, body) = ask(web.address, &known).await;
    assert!(head.starts_with("http/1.1 304 ") && body.is_empty(), "{head}");
}

#[tokio::test]
async fn a_slow_client_is_disconnected() {
    let web = serve(None, |server| server.limits.head = Duration::from_millis(100)).await;
    let (head, _) = ask(web.address, "GET /page HTTP/1.1\r\nHo").await;
    assert!(!head.starts_with("http/1.1 200"), "{head}");
    let idle = serve(None, |server| server.limits.connection = Duration::from_millis(100)).await;
    assert_eq!(ask(idle.address, "").await.0, "");
}

#[tokio::test]
async fn an_endless_request_head_is_refused() {
    let web = serve(None, |_| ()).await;
    let mut stream = TcpStream::connect(web.address).await.unwrap();
    let _ = stream.write_all(format!("GET /page HTTP/1.1\r\nX: {}", "x".repeat(1 << 20)).as_bytes()).await;
    let mut reply = String::new();
    let _ = timeout(PATIENCE, stream.read_to_string(&mut reply)).await.expect("the server ends the connection");
    assert!(!reply.contains("200 OK"), "{reply}");
}

#[tokio::test]
async fn silent_connections_make_room_for_others_and_the_oldest_goes_first() {
    let web = serve(None, |server| server.limits.connections = 2).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(web.address).await.unwrap();
        // The reply shows that the server has accepted the connection.
        stream.write_all(b"GET /page.sha256 HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        assert!(timeout(PATIENCE, stream.read(&mut [0; 64])).await.unwrap().unwrap() > 0);
        held.push(stream);
    }
    for _ in 0..10 {
        let mut silent = TcpStream::connect(web.address).await.unwrap();
        silent.write_all(b"GET").await.unwrap();
        held.push(silent);
    }
    let (head, _) = ask(web.address, &get("/page.sha256")).await;
    assert!(head.starts_with("http/1.1 200 ok"), "{head}");
    // More than two never stay open.
    let mut closed = 0;
    for mut stream in held.into_iter().take(10) {
        let mut rest = Vec::new();
        closed += usize::from(timeout(PATIENCE, stream.read_to_end(&mut rest)).await.is_ok());
    }
    assert_eq!(closed, 10);
}

#[tokio::test]
async fn nothing_is_served_by_default_and_an_address_in_use_is_named_in_the_error() {
    let bot = Keys::generate().public_key();
    assert!(WebServer::bind(&WebConfig::default(), &[], bot).await.unwrap().is_none());
    let web = serve(None, |_| ()).await;
    let taken = WebConfig { listen: Some(web.address), ..WebConfig::default() };
    let Err(error) = WebServer::bind(&taken, &[], bot).await else { panic!("the address is taken") };
    assert!(error.to_string().contains(&web.address.to_string()), "{error}");
}
