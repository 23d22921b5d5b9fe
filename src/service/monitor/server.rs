//! The server for monitoring: `/metrics` for Prometheus, `/healthz` and `/readyz` for service
//! managers and load balancers.
//!
//! Each answer is made at most once a second. All requests within that second get the same answer,
//! so that frequent requests cost the bot no work.

use super::{HEALTH_TIMEOUT, Monitors};
use crate::shutdown::Shutdown;
use crate::web::{ServerLimits, bind_error, serve};
use http_body_util::Full;
use hyper::body::{Body, Bytes};
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// The name of its thread.
const THREAD_NAME: &str = "metrics";
/// Bounds of this server. Monitoring takes one or two connections.
const METRICS_LIMITS: ServerLimits =
    ServerLimits { connections: 8, head: Duration::from_secs(5), connection: Duration::from_secs(30) };
/// Time for which an answer is reused.
const ANSWER_KEPT_FOR: Duration = Duration::from_secs(1);
/// The version of Prometheus's text format.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The server, already listening.
pub struct MetricsServer {
    listener: TcpListener,
}

/// An answer, with the time when it was made.
type CachedAnswer = Mutex<Option<(Instant, StatusCode, Bytes)>>;

/// The answers to the three pages.
struct Answers {
    bot: Monitors,
    /// Whether the server listens on the loopback only.
    is_local: bool,
    metrics: CachedAnswer,
    health: CachedAnswer,
    readiness: CachedAnswer,
}

impl MetricsServer {
    /// Listens at the configured address.
    ///
    /// Errors: the system refuses the address.
    pub fn bind(address: SocketAddr) -> std::io::Result<MetricsServer> {
        let listen = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener =
            listen().map_err(|error| bind_error("metrics cannot be served at", "metrics", address, &error))?;
        if !address.ip().is_loopback() {
            tracing::warn!(%address, "metrics can be read from other machines; a firewall should let only monitoring in");
        }
        Ok(MetricsServer { listener })
    }

    /// The address at which the server listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Serves until the shutdown, on a separate thread: in a bot that hangs, all threads of its
    /// runtime may hang, and the answer must still be "unhealthy".
    ///
    /// Errors: the thread or its runtime cannot be made.
    pub fn start(self, bot: Monitors, shutdown: Shutdown) -> std::io::Result<()> {
        let run = move || {
            let roster = bot.roster().clone();
            roster.keep_thread(
                THREAD_NAME,
                || shutdown.is_stopping(),
                || {
                    if let Err(error) = self.run(&bot, &shutdown) {
                        tracing::warn!(%error, "metrics cannot be served");
                    }
                },
            );
        };
        std::thread::Builder::new().name(THREAD_NAME.to_owned()).spawn(run)?;
        Ok(())
    }

    fn run(&self, bot: &Monitors, shutdown: &Shutdown) -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let answers = Arc::new(Answers {
            bot: bot.clone(),
            is_local: self.address().is_some_and(|address| address.ip().is_loopback()),
            metrics: CachedAnswer::default(),
            health: CachedAnswer::default(),
            readiness: CachedAnswer::default(),
        });
        let answer = move |request| {
            let answers = Arc::clone(&answers);
            async move { answers.answer(&request).await }
        };
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener.try_clone()?)?;
            tokio::select! {
                () = serve(&listener, METRICS_LIMITS, shutdown.clone(), answer) => {}
                () = bot.roster().condemned(THREAD_NAME) => {}
            }
            Ok(())
        })
    }
}

impl Answers {
    async fn answer(&self, request: &Request<impl Body>) -> Response<Full<Bytes>> {
        // A page in a browser on this machine could otherwise read the answers under its own name.
        let is_named = !self.is_local || names_this_machine(request.headers().get(header::HOST));
        let is_reading = matches!(*request.method(), Method::GET | Method::HEAD);
        let refused = |status, reason: &'static str| (status, Bytes::from_static(reason.as_bytes()));
        let (status, body) = match request.uri().path() {
            _ if !is_named => {
                refused(StatusCode::MISDIRECTED_REQUEST, "Ask by the address of this machine, or localhost.\n")
            }
            _ if !is_reading => refused(StatusCode::METHOD_NOT_ALLOWED, "GET and HEAD only.\n"),
            "/metrics" => cached(&self.metrics, async { self.bot.running()?.metrics().await }).await,
            "/healthz" => cached(&self.health, async { self.bot.health(HEALTH_TIMEOUT).await.map(ok_text) }).await,
            "/readyz" => cached(&self.readiness, async { self.bot.running()?.readiness().await.map(ok_text) }).await,
            _ => refused(StatusCode::NOT_FOUND, "Not here: /metrics, /healthz, /readyz.\n"),
        };
        // hyper sends no body to HEAD, and closes a connection whose request has one.
        let mut response = Response::new(Full::new(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(TEXT_FORMAT));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

/// Whether a `Host` header, if there is one, is an address or `localhost`, with any port.
fn names_this_machine(host: Option<&HeaderValue>) -> bool {
    let Some(host) = host else { return true };
    let host = host.to_str().unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let is_address = host.parse::<IpAddr>().is_ok() || host.parse::<SocketAddr>().is_ok();
    is_address || name.eq_ignore_ascii_case("localhost") || matches!(host, "[::1]")
}

fn ok_text(_: ()) -> String {
    "ok\n".to_owned()
}

/// The kept answer if it is new enough, otherwise a new one: status 200 with the text, or 503 with
/// the reason. Other requests wait while it is made.
async fn cached(kept: &CachedAnswer, make: impl Future<Output = Result<String, String>>) -> (StatusCode, Bytes) {
    let mut kept = kept.lock().await;
    if let Some((_, status, body)) = kept.as_ref().filter(|(made, ..)| made.elapsed() < ANSWER_KEPT_FOR) {
        return (*status, body.clone());
    }
    let (status, body) = match make.await {
        Ok(text) => (StatusCode::OK, Bytes::from(text)),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n").into()),
    };
    *kept = Some((Instant::now(), status, body.clone()));
    (status, body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shutdown;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    async fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("{request} HTTP/1.0\r\nHost: localhost\r\n\r\n").as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        reply
    }

    #[tokio::test]
    async fn each_path_has_its_answer_and_nothing_is_written() {
        let server = MetricsServer::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = server.address().unwrap();
        let (_stopper, shutdown) = shutdown::pair();
        server.start(Monitors::default(), shutdown).unwrap();
        let metrics = ask(address, "GET /metrics").await;
        assert!(metrics.contains(" 503 ") && metrics.contains("text/plain; version=0.0.4"), "{metrics}");
        let health = ask(address, "GET /healthz").await;
        assert!(health.contains("200 OK") && health.ends_with("\r\n\r\nok\n"), "{health}");
        let readiness = ask(address, "GET /readyz").await;
        assert!(readiness.contains(" 503 ") && readiness.ends_with("the bot starts\n"), "{readiness}");
        assert!(ask(address, "GET /").await.contains(" 404 "));
        assert!(ask(address, "POST /metrics").await.contains(" 405 "));
        let head = ask(address, "HEAD /healthz").await;
        assert!(head.contains("content-length: 3") && head.ends_with("\r\n\r\n"), "{head}");
    }

    #[tokio::test]
    async fn a_server_that_is_gone_is_missed_and_serves_again() {
        let server = MetricsServer::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let (address, bot) = (server.address().unwrap(), Monitors::default());
        let (_stopper, shutdown) = shutdown::pair();
        server.start(bot.clone(), shutdown).unwrap();
        assert!(ask(address, "GET /healthz").await.contains("200 OK"));
        assert!(bot.roster().kill(THREAD_NAME));
        for is_gone in [true, false] {
            while bot.health(HEALTH_TIMEOUT).await.is_err_and(|reason| reason.contains(THREAD_NAME)) != is_gone {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        assert!(ask(address, "GET /healthz").await.contains("200 OK"));
    }

    /// A hundred requests within a second cost one collection.
    #[tokio::test]
    async fn metrics_are_collected_at_most_once_a_second() {
        let collections = AtomicU64::new(0);
        let kept = CachedAnswer::default();
        let collect = async || Ok(format!("collected {}\n", collections.fetch_add(1, Ordering::SeqCst)));
        let began = Instant::now();
        for _ in 0..100 {
            cached(&kept, collect()).await;
        }
        let seconds = began.elapsed().as_secs();
        assert!(collections.load(Ordering::SeqCst) <= 1 + seconds);
        if let Some((made, ..)) = kept.lock().await.as_mut() {
            *made -= ANSWER_KEPT_FOR;
        }
        let (_, body) = cached(&kept, collect()).await;
        assert_eq!(body, format!("collected {}\n", collections.load(Ordering::SeqCst) - 1), "then again");
    }

    #[tokio::test]
    async fn silent_connections_do_not_lock_monitoring_out() {
        let server = MetricsServer::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = server.address().unwrap();
        let (_stopper, shutdown) = shutdown::pair();
        server.start(Monitors::default(), shutdown).unwrap();
        let mut held = Vec::new();
        for _ in 0..2 * METRICS_LIMITS.connections {
            held.push(TcpStream::connect(address).await.unwrap());
        }
        let mut further = TcpStream::connect(address).await.unwrap();
        further.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost:9477\r\n\r\n").await.unwrap();
        assert!(further.read(&mut [0; 64]).await.unwrap() > 0);
    }

    #[test]
    fn on_the_loopback_a_host_is_an_address_or_localhost() {
        let names = |host: &'static str| names_this_machine(Some(&HeaderValue::from_static(host)));
        for host in ["127.0.0.1:9477", "127.0.0.1", "[::1]:9477", "::1", "localhost", "LocalHost:9477"] {
            assert!(names(host), "{host}");
        }
        for host in
            ["thief.example", "thief.example:9477", "localhost.thief.example", "127.0.0.1.thief.example", "", ":1"]
        {
            assert!(!names(host), "{host}");
        }
        assert!(names_this_machine(None));
    }
}
