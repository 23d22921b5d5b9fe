//! Monitoring: whether the bot lives, whether it can serve, and its metrics, for the service manager
//! (systemd, or that of Windows) and over HTTP: `/metrics` for Prometheus, `/healthz` and `/readyz`.
//!
//! Each answer over HTTP is made at most once a second. All requests within that second get the same
//! answer, so that frequent requests cost the bot no work.

pub(in crate::service) mod metrics;

use super::Handles;
use super::doctor::FULL_DISK_BYTES;
use super::operator::ProcessControls;
use crate::control::{ControlServer, OperatorCommand};
use crate::nostr::RelayFigures;
use crate::os::manager::BotState;
use crate::roster::{Roster, task};
use crate::scheduler::Health;
use crate::shutdown::Shutdown;
use crate::web::{ServerLimits, bind_error, serve};
use http_body_util::Full;
use hyper::body::{Body, Bytes};
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use std::convert::Infallible;
use std::future::pending;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

/// Longest time that a batch of messages may take. Waiting for room on a full disk is no part of a
/// batch.
const MAX_BATCH_TIME: Duration = Duration::from_secs(60);
/// Time to answer a health check over HTTP.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);

/// A running service. Cheap to clone.
#[derive(Clone)]
pub struct Monitor {
    pub(super) bot: Handles,
    pub(super) since: SystemTime,
    /// Locked during a query of the ledger, so that only one can hang.
    asking: Arc<Mutex<()>>,
}

impl Monitor {
    /// A service that is ready now.
    pub(super) fn new(bot: Handles) -> Monitor {
        Monitor { bot, since: SystemTime::now(), asking: Arc::default() }
    }

    /// Whether the bot lives: all its tasks and threads are there, its maintenance task answers,
    /// its ledger answers a query, and the thread that answers requests is not stuck in a batch.
    ///
    /// Errors: the part that did not answer within `patience`.
    pub async fn check(&self, patience: Duration) -> Result<(), String> {
        let context = &self.bot.context;
        check_none_gone(self.bot.gone())?;
        let mut beats = context.pulse.beats.subscribe();
        context.wakes.ping.notify_one();
        if timeout(patience, beats.changed()).await.is_err() {
            return Err("the maintenance task does not answer".to_owned());
        }
        if context.pulse.attending_for().is_some_and(|time| time > MAX_BATCH_TIME) {
            return Err("a batch of messages takes too long".to_owned());
        }
        let hangs = |_| "the ledger does not answer".to_owned();
        let asking = timeout(patience, Arc::clone(&self.asking).lock_owned()).await.map_err(hangs)?;
        let ledger = context.ledger.clone();
        // The answer may be an error, for example about a damaged file: other code handles that.
        let query = tokio::task::spawn_blocking(move || {
            let _ = ledger.sizes();
            drop(asking);
        });
        timeout(patience, query).await.map(|_| ()).map_err(hangs)
    }

    /// Whether the bot can serve askers: its parts and its vault are there, a relay is connected, a
    /// device works, and there is room to record what it does.
    ///
    /// Errors: the missing part.
    pub async fn readiness(&self) -> Result<(), String> {
        check_none_gone(self.bot.gone())?;
        if self.bot.context.vault.trouble().is_some() {
            return Err("the vault does not answer".to_owned());
        }
        let is_connected = self.bot.relays.figures().await.iter().any(RelayFigures::is_connected);
        let works = self.bot.scheduler.devices().iter().any(|device| device.health == Health::Working);
        let ledger = self.bot.context.ledger.clone();
        let free = tokio::task::spawn_blocking(move || ledger.free_bytes()).await.ok().flatten();
        missing_part(is_connected, works, free).map_or(Ok(()), |part| Err(part.to_owned()))
    }

    /// All metrics in Prometheus's text format.
    ///
    /// Errors: the reason, if the ledger cannot be read.
    pub async fn metrics(&self) -> Result<String, String> {
        let relays = self.bot.relays.figures().await;
        let (bot, since) = (self.bot.clone(), self.since);
        let collect = move || metrics::collect(&bot, &relays, since);
        let collected = tokio::task::spawn_blocking(collect).await.map_err(|error| error.to_string())?;
        collected
            .map_err(|error| error.to_string())
            .inspect_err(|error| tracing::warn!(error, "metrics cannot be collected"))
    }
}

/// The missing part without which the bot serves nobody. `free`: bytes left on its disk, if known.
fn missing_part(is_connected: bool, works: bool, free: Option<u64>) -> Option<&'static str> {
    match (is_connected, works) {
        (false, _) => Some("no relay is connected"),
        (true, false) => Some("no device works"),
        (true, true) => free.filter(|&bytes| bytes < FULL_DISK_BYTES).map(|_| "the disk of the data folder is full"),
    }
}

/// The running service, and what runs beside it: the servers for monitoring, of the page and of the
/// operator's socket. A change of the configuration replaces the service. Cheap to clone; clones
/// share all.
#[derive(Clone)]
pub struct Monitors {
    /// While a service starts or stops: since when.
    running: Arc<watch::Sender<Result<Monitor, Instant>>>,
    roster: Roster,
}

impl Default for Monitors {
    fn default() -> Monitors {
        Monitors { running: Arc::new(watch::channel(Err(Instant::now())).0), roster: Roster::default() }
    }
}

impl Monitors {
    /// Sets the running service; `None` while one starts or stops.
    pub fn set(&self, monitor: Option<Monitor>) {
        drop(self.running.send_replace(monitor.ok_or_else(Instant::now)));
    }

    /// The running service.
    ///
    /// Errors: one starts or stops.
    fn running(&self) -> Result<Monitor, String> {
        self.running.borrow().clone().map_err(|_| "the bot starts".to_owned())
    }

    /// Starts a task beside the service, until the shutdown.
    pub fn keep<F>(&self, name: &'static str, stop: &Shutdown, run: impl FnMut(Shutdown) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (roster, task, stop) = (self.roster.clone(), task(stop, run), stop.clone());
        tokio::spawn(async move { roster.keep_task(name, task, stop).await });
    }

    /// Serves the operator's requests at the local socket. While a service starts, they wait.
    pub fn serve_control_socket(&self, server: ControlServer, controls: ProcessControls, stop: &Shutdown) {
        let (running, controls) = (Arc::clone(&self.running), Arc::new(controls));
        let carry_out = move |command| {
            let (mut running, controls) = (running.subscribe(), Arc::clone(&controls));
            async move {
                if command == OperatorCommand::Reload {
                    return controls.take_up_configuration().await;
                }
                let started = running.wait_for(Result::is_ok).await.ok().and_then(|running| running.clone().ok());
                match started {
                    Some(monitor) => monitor.carry_out(command, &controls).await,
                    None => Vec::new(),
                }
            }
        };
        self.keep("local socket", stop, move |stop| {
            let (server, carry_out) = (server.clone(), carry_out.clone());
            async move { server.run(carry_out, stop).await }
        });
    }

    /// Whether the bot works. A bot that is still starting counts as healthy for ten minutes.
    ///
    /// Errors: the part that is gone or does not answer within `patience`.
    async fn health(&self, patience: Duration) -> Result<(), String> {
        check_none_gone(self.roster.gone())?;
        let running = self.running.borrow().clone();
        match running {
            Ok(monitor) => monitor.check(patience).await,
            Err(since) if since.elapsed() < MAX_START_TIME => Ok(()),
            Err(_) => Err("the start takes too long".to_owned()),
        }
    }
}

/// Errors: there are such parts.
fn check_none_gone(parts: Vec<String>) -> Result<(), String> {
    if parts.is_empty() { Ok(()) } else { Err(format!("{}: gone, and started again soon", parts.join(", "))) }
}

/// Signs of life and counts of messages, shared by the parts of the service.
///
/// The maintenance task answers a ping with a beat. The thread that answers requests cannot,
/// because it waits for messages. It notes when it began a batch.
#[derive(Debug, Default)]
pub struct Pulse {
    /// Answers to pings.
    pub beats: watch::Sender<u64>,
    /// When the batch in progress began.
    attending: std::sync::Mutex<Option<Instant>>,
    /// Messages that wait for their answer.
    pub waiting: AtomicU64,
    /// Messages decided on since the start.
    pub answered: AtomicU64,
    /// Messages of denied askers, which were ignored.
    pub denied: AtomicU64,
    /// Messages refused because the table of ids is full and they are too old.
    pub too_old: AtomicU64,
}

impl Pulse {
    /// Messages of denied askers since the start.
    pub fn denied(&self) -> u64 {
        self.denied.load(Ordering::Relaxed)
    }

    /// Time that the present batch has taken; `None` between two batches.
    fn attending_for(&self) -> Option<Duration> {
        self.attending.lock().unwrap_or_else(PoisonError::into_inner).map(|since| since.elapsed())
    }

    /// Notes that a batch of messages began, or `None` once it has ended.
    pub fn set_attending(&self, since: Option<Instant>) {
        *self.attending.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }
}

/// Number of signs of life in each period of the watchdog. The bot may take the time between two
/// signs to answer a check.
const SIGNS_PER_PERIOD: u32 = 3;
/// The longest time for which a start counts as healthy. It is long because NVRTC may compile all
/// kernels.
const MAX_START_TIME: Duration = Duration::from_secs(600);

/// The service manager that started this process, if any.
#[derive(Clone)]
pub struct ServiceManager {
    /// Time between two signs of life; `None` if none are wanted.
    every: Option<Duration>,
    tell: Arc<dyn Fn(BotState) -> std::io::Result<()> + Send + Sync>,
}

impl ServiceManager {
    /// A service manager that wants a sign of life in each `period`, and is told by `tell`.
    pub fn new(
        period: Option<Duration>,
        tell: impl Fn(BotState) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> ServiceManager {
        ServiceManager { every: period.map(|period| period / SIGNS_PER_PERIOD), tell: Arc::new(tell) }
    }

    /// Gives signs of life while the bot lives. Run it in the main loop, so that a loop that hangs
    /// gives none.
    pub async fn watch(&self, monitors: &Monitors) -> Infallible {
        let Some(every) = self.every else { return pending().await };
        loop {
            match monitors.health(every).await {
                Ok(()) => self.tell(BotState::Alive),
                Err(reason) => tracing::error!(reason, "the bot hangs; the service manager gets no sign of life"),
            }
            tokio::time::sleep(every).await;
        }
    }

    /// Tells a state.
    pub fn tell(&self, state: BotState) {
        if let Err(error) = (self.tell)(state) {
            tracing::debug!(%error, "the service manager cannot be told");
        }
    }
}

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
            let roster = bot.roster.clone();
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
                () = bot.roster.condemned(THREAD_NAME) => {}
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
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    #[test]
    fn a_bot_is_ready_with_a_relay_a_device_and_room_on_its_disk() {
        let cases = [
            (true, true, None, None),
            (true, true, Some(FULL_DISK_BYTES), None),
            (true, true, Some(FULL_DISK_BYTES - 1), Some("disk")),
            (true, true, Some(0), Some("disk")),
            (true, false, Some(0), Some("device")),
            (false, true, Some(FULL_DISK_BYTES), Some("relay")),
        ];
        for (is_connected, works, free, expected) in cases {
            let part = missing_part(is_connected, works, free);
            assert_eq!(part.is_some(), expected.is_some());
            assert!(part.is_none_or(|part| part.contains(expected.unwrap())), "{part:?}");
        }
    }

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
        assert!(bot.roster.kill(THREAD_NAME));
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
