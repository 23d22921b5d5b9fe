//! Monitoring: whether the bot lives, whether it can serve, and its metrics, over HTTP and for the
//! service manager (systemd, or that of Windows).

pub(in crate::service) mod metrics;
mod server;

pub use server::MetricsServer;

use super::Handles;
use super::doctor::FULL_DISK_BYTES;
use super::operator::ProcessControls;
use crate::control::{ControlServer, OperatorCommand};
use crate::nostr::RelayFigures;
use crate::os::manager::BotState;
use crate::roster::{Roster, task};
use crate::scheduler::Health;
use crate::shutdown::Shutdown;
use std::convert::Infallible;
use std::future::pending;
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

    /// The tasks and threads beside the service.
    fn roster(&self) -> &Roster {
        &self.roster
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
