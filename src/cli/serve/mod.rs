//! `npubbot serve`: runs the bot until a signal stops it.
//!
//! On Linux it is a tree of processes, and on other systems one process and its vault:
//!
//! ```text
//! npubbot serve             the supervisor: the paths of secrets, and the right to start processes
//! ├─ npubbot vault          every secret; no files, no network
//! └─ npubbot network        relays, ledger, search; no other file, no other process
//! ```
//!
//! Requests to stop are SIGINT and SIGTERM; Ctrl-C and others on Windows. The first asks for a
//! clean shutdown, the second ends the process at once. The clean shutdown has a time limit,
//! because a launch may hang in a driver. Ending at once is as safe as `kill -9`: no accepted job
//! is lost.

#[cfg(not(supervised))]
mod alone;
#[cfg(supervised)]
mod network;
#[cfg(supervised)]
mod supervisor;

#[cfg(supervised)]
pub(super) use network::serve_network;

use super::exit::LOG_FLUSH_TIMEOUT;
use super::identity::IdentityFlags;
use super::log::RecentLines;
use super::output::stdout;
use super::search_flags::SearchFlags;
use crate::clock::Clock;
use crate::config::Config;
use crate::control::ControlServer;
use crate::ledger::LedgerError;
use crate::log_writer;
use crate::os::manager::BotState;
use crate::os::process;
use crate::os::signals::Stops;
use crate::scheduler::Health;
use crate::service::{
    MetricsServer, Monitors, ProcessControls, ReloadRequest, Service, ServiceManager, public_settings,
};
use crate::shutdown::{self, Shutdown};
use crate::vault::{PublicSettings, Spawner, Vault, VaultError};
use crate::web::{PAGE_SHA256, WebServer};
use clap::Args;
use nostr::ToBech32;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

/// The most requests to reload that wait. The operator's socket has as many connections.
const MAX_RELOADS: usize = 8;

/// Time limit for other threads after the service has ended.
pub(super) const THREADS_END_TIMEOUT: Duration = Duration::from_millis(100);

/// Time between two checks for a damaged ledger.
const DAMAGE_CHECK_PERIOD: Duration = Duration::from_secs(1);

/// Time limit of a clean shutdown.
const STOP_TIMEOUT: Duration = Duration::from_millis(1700);

/// Exit code of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;
/// The log line of a clean shutdown that exceeds its time limit.
const LATE_STOP: &str = "the clean shutdown takes too long; unfinished work continues after the next start";

/// Exit code if the clean shutdown exceeded its time limit.
const NOT_CLEAN: i32 = 1;

/// The most threads that run tasks. Tasks only wait for relays and pass work on: the vault opens
/// messages, and the ledger and the search have their own threads. Each further thread costs
/// memory: on 16 cores a flood took 66 MiB with 16 threads and 58 MiB with 4.
const MAX_RUNTIME_THREADS: usize = 4;

/// Flags of `npubbot serve`.
#[derive(Args, Debug)]
pub(super) struct Serve {
    #[command(flatten)]
    identity: IdentityFlags,
    #[command(flatten)]
    search: SearchFlags,
}

/// What starts a vault with these settings of public events.
type StartVault = dyn Fn(PublicSettings) -> Result<Vault, VaultError> + Send + Sync;

/// What follows after a change of the page or the metrics, whose sockets are open.
const WEB_WAITS: &str = "changes of [web] take effect at the next start of the bot";

/// What follows where the vault keeps its settings.
const UNCHANGED: &str = "restart the bot to publish the new profile and relay lists, and to authenticate to new relays";

/// Writes a line for the program or person that started the bot. The bot serves without a reader
/// too.
fn announce(line: &str) {
    if let Err(error) = writeln!(stdout(), "{line}") {
        tracing::warn!(%error, line, "a line could not be written");
    }
}

/// A bot, and its connections to the person and the programs that started it.
struct Bot {
    data: PathBuf,
    vault: Vault,
    start_vault: Box<StartVault>,
    /// Starts the processes of GPUs.
    devices: Arc<dyn Spawner>,
    shutdown: Shutdown,
    /// Reads the configuration again. Its error is the reason, for the operator.
    read: Box<dyn Fn() -> Result<Config, String> + Send + Sync>,
    /// Requests to do so, of the operator and, by SIGHUP, of the system.
    reloads: (mpsc::Sender<ReloadRequest>, mpsc::Receiver<ReloadRequest>),
    recent_log: RecentLines,
    manager: ServiceManager,
    /// The sockets of the page and the metrics, which are open before the walls are up.
    page: Option<TcpListener>,
    metrics: Option<MetricsServer>,
    /// The operator's socket. The bot works without it.
    control: std::io::Result<ControlServer>,
}

/// A configuration that is taken up: the former one, whether changes of `[web]` wait, and who asked.
struct Reload {
    former: Config,
    is_web_changed: bool,
    request: ReloadRequest,
}

impl Bot {
    /// Prints the npub and serves until shutdown.
    fn run(self, config: Config, runtime: Runtime) -> anyhow::Result<()> {
        announce(&self.vault.public_key().to_bech32()?);
        let served = runtime.block_on(async {
            let (manager, monitors) = (self.manager.clone(), Monitors::default());
            tokio::select! {
                served = self.serve(config, &monitors) => served,
                never = manager.watch(&monitors) => match never {},
            }
        });
        // Threads that still wait for a device or the network are abandoned.
        runtime.shutdown_timeout(THREADS_END_TIMEOUT);
        served
    }

    /// Runs the service, and again after each change of the configuration.
    async fn serve(mut self, mut config: Config, monitors: &Monitors) -> anyhow::Result<()> {
        self.open_sockets(&config, monitors)?;
        let mut reload: Option<Reload> = None;
        loop {
            let unchanged = tokio::task::block_in_place(|| self.follow(&config));
            let (vault, devices) = (self.vault.clone(), Arc::clone(&self.devices));
            let started = tokio::select! {
                started = Service::start_with(config.clone(), &self.data, vault, Clock::System, devices) => started,
                () = self.shutdown.stopped() => return Ok(()),
            };
            let service = match (started, reload.take()) {
                (Ok(service), None) => service,
                (Ok(service), Some(Reload { is_web_changed, request, .. })) => {
                    let waiting = [is_web_changed.then_some(WEB_WAITS), unchanged];
                    let waiting: Vec<&str> = waiting.into_iter().flatten().collect();
                    let _ = request.send(match waiting.as_slice() {
                        [] => Ok("the bot has taken it up".to_owned()),
                        waiting => Err(format!("the bot has taken it up, but for a part: {}", waiting.join("; "))),
                    });
                    service
                }
                // A device or relay that does not exist is only found by the start.
                (Err(error), Some(Reload { former, request, .. })) => {
                    tracing::error!(%error, "the new configuration does not work, so the old one stays");
                    let _ = request.send(Err(format!("{error:#}; the old configuration stays")));
                    config = former;
                    continue;
                }
                (Err(error), None) => return Err(error),
            };
            monitors.set(Some(service.monitor()));
            let end = self.run_service(&service).await;
            monitors.set(None);
            if !matches!(end, Ok(Some(_))) {
                self.manager.tell(BotState::Stopping);
            }
            service.stop().await;
            let Some((mut new, request)) = end? else { return Ok(()) };
            let is_web_changed = new.web != config.web;
            if is_web_changed {
                tracing::warn!("{WEB_WAITS}");
                new.web = config.web.clone();
            }
            reload = Some(Reload { former: std::mem::replace(&mut config, new), is_web_changed, request });
        }
    }

    /// Serves the page, the metrics and the operator's socket, for as long as the bot runs.
    fn open_sockets(&mut self, config: &Config, monitors: &Monitors) -> std::io::Result<()> {
        if let Some(listener) = self.page.take() {
            let page = Arc::new(WebServer::new(listener, &config.web, &config.relays, self.vault.public_key())?);
            announce(page.link());
            tracing::info!(sha256 = PAGE_SHA256, "serving the page for people without an account");
            monitors.keep("page", &self.shutdown, move |stop| {
                let page = Arc::clone(&page);
                async move { page.run(stop).await }
            });
        }
        if let Some(metrics) = self.metrics.take() {
            tracing::info!(address = ?metrics.address(), "serving metrics and health");
            metrics.start(monitors.clone(), self.shutdown.clone())?;
        }
        match &self.control {
            Ok(control) => {
                let recent = self.recent_log.clone();
                let recent_log = Box::new(move || recent.lines());
                let controls = ProcessControls { reload: self.reloads.0.clone(), recent_log };
                monitors.serve_control_socket(control.clone(), controls, &self.shutdown);
            }
            Err(error) => {
                tracing::warn!(%error, "the local socket cannot be opened, so `npubbot status` and its like do not work");
            }
        }
        Ok(())
    }

    /// Replaces the vault by one with the settings of this configuration, if they differ. Nobody is
    /// asked for a passphrase a second time: a vault opened by hand stays as it is.
    /// Returns what the operator has to do if it stays for another reason.
    fn follow(&mut self, config: &Config) -> Option<&'static str> {
        let settings = public_settings(config);
        if self.vault.settings() == Some(&settings) {
            return None;
        }
        match (self.start_vault)(settings) {
            Ok(vault) if vault.public_key() == self.vault.public_key() => {
                self.vault = vault;
                return None;
            }
            Ok(_) => tracing::error!("the identity file holds another identity now; {UNCHANGED}"),
            Err(error) => tracing::error!(%error, "the vault cannot be started again; {UNCHANGED}"),
        }
        Some(UNCHANGED)
    }

    /// Lets a started service run until a signal ends it, or there is a new configuration, which is
    /// returned with its request.
    ///
    /// Errors: the ledger is damaged.
    async fn run_service(&mut self, service: &Service) -> Result<Option<(Config, ReloadRequest)>, LedgerError> {
        for device in service.scheduler().devices() {
            match &device.health {
                Health::Working => tracing::info!(device = %device.id, name = device.name, kernel = device.kernel,
                    threads = device.threads, rate = %device.rate.unwrap_or_default(), "searching on"),
                Health::Out(reason) => tracing::warn!(device = %device.id, reason, "a device is not in use"),
            }
        }
        tracing::info!("serving; Ctrl-C stops");
        self.manager.tell(BotState::Ready);
        loop {
            let request = tokio::select! {
                () = self.shutdown.stopped() => return Ok(None),
                damage = wait_for_damage(service) => return Err(damage),
                Some(request) = self.reloads.1.recv() => request,
            };
            match tokio::task::block_in_place(|| (self.read)()) {
                Ok(config) => {
                    tracing::info!("the configuration is read again");
                    return Ok(Some((config, request)));
                }
                Err(error) => {
                    tracing::warn!(error, "the configuration is wrong, so the old one stays");
                    let _ = request.send(Err(format!("{error}; the old configuration stays")));
                }
            }
        }
    }
}

/// Returns once the ledger is found to be damaged. Serving on could damage it further.
async fn wait_for_damage(service: &Service) -> LedgerError {
    loop {
        if let Some(damage) = service.ledger().damage() {
            return LedgerError::Corrupt(damage.to_owned());
        }
        tokio::time::sleep(DAMAGE_CHECK_PERIOD).await;
    }
}

/// Reads the configuration. Errors: the reason, for the operator.
fn read_again(file: &Path) -> Result<(String, Config), String> {
    Config::read(file).map_err(|error| error.to_string())
}

/// The shutdown that SIGINT, SIGTERM or Ctrl-C asks for, from now on.
#[cfg_attr(all(supervised, not(any(feature = "demo", feature = "fleet"))), expect(dead_code))]
pub(super) fn listen_for_stop() -> anyhow::Result<Shutdown> {
    let (stopper, shutdown) = shutdown::pair();
    on_stop(move |end| match end {
        None => {
            tracing::info!("stopping; send the signal again to end at once");
            stopper.stop();
        }
        Some(code) => end_process(code),
    })?;
    Ok(shutdown)
}

/// Starts a thread that waits for requests to stop. Calls `stop` with `None` at the first one, and
/// with an exit code at the second or after [`STOP_TIMEOUT`]. tokio has replaced the default handlers
/// for good, so this thread must be able to end a stuck program.
fn on_stop(stop: impl Fn(Option<i32>) + Send + 'static) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut stops = {
        let _within = runtime.enter();
        Stops::listen()?
    };
    let watch = async move {
        stops.next().await;
        stop(None);
        if tokio::time::timeout(STOP_TIMEOUT, stops.next()).await.is_ok() {
            return stop(Some(INTERRUPTED));
        }
        tracing::warn!("{LATE_STOP}");
        stop(Some(NOT_CLEAN));
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(watch))?;
    Ok(())
}

/// Ends the process without exit handlers of libraries, which may hang.
fn end_process(code: i32) -> ! {
    log_writer::flush(LOG_FLUSH_TIMEOUT);
    process::end_now(code)
}

/// Builds the multi-threaded runtime.
pub(super) fn runtime() -> anyhow::Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.worker_threads(cores.min(MAX_RUNTIME_THREADS)).enable_all().build()?)
}
