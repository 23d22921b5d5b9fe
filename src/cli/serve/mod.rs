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
//! The supervisor has no secret, parses nothing of strangers and keeps no state. If the network
//! process ends, the supervisor ends too, with its exit code; if the supervisor ends, the kernel
//! ends the network process, and so the vault ends.
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

use super::identity::IdentityFlags;
use super::log::RunningLog;
use super::output::stdout;
use super::search_flags::SearchFlags;
use crate::clock::Clock;
use crate::config::Config;
use crate::control::ControlServer;
use crate::ledger::LedgerError;
use crate::log_writer;
use crate::os::process;
use crate::os::signals::Stops;
use crate::roster::task;
use crate::scheduler::Health;
use crate::service::{MetricsServer, Monitors, Outcome, ProcessControls, Service, ServiceManager, public_settings};
use crate::shutdown::{self, Shutdown};
use crate::vault::{PublicSettings, Spawner, Vault, VaultError};
use crate::web::{PAGE_SHA256, WebServer};
use clap::Args;
use nostr::ToBech32;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::Notify;

/// Time limit for other threads after the service has ended.
pub(super) const THREADS_END_TIMEOUT: Duration = Duration::from_millis(100);

/// Time between two checks for a damaged ledger.
const DAMAGE_CHECK_PERIOD: Duration = Duration::from_secs(1);

/// Time limit of a clean shutdown.
const STOP_TIMEOUT: Duration = Duration::from_millis(1700);
/// Time limit of `exit`, which runs the exit handlers of libraries.
const EXIT_TIMEOUT: Duration = Duration::from_millis(50);

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
#[command(after_help = "\
Examples:
  npubbot serve                                  ask for the passphrase
  npubbot serve --passphrase-file secret.txt     for a service without a terminal
  npubbot serve --device cuda:1                  search on the second GPU only

Exit codes: 0 stopped; 1 failed, a restart may help; 2 the operator must change something first.
SIGINT and SIGTERM stop it cleanly within two seconds. Without a terminal, SIGHUP reads the
configuration again, like `npubbot reload`.")]
pub(super) struct Serve {
    #[command(flatten)]
    identity: IdentityFlags,
    #[command(flatten)]
    search: SearchFlags,
}

/// The end of one run of the service.
enum RunEnd {
    /// A signal asked for the end.
    Stopped,
    /// The operator has reloaded the configuration: this is the new one.
    Reloaded(Box<Config>),
}

/// The bot's vault, which can be started anew with other settings of public events.
struct ConfiguredVault {
    vault: Vault,
    /// Starts another vault with these settings.
    start: Box<StartVault>,
}

type StartVault = dyn Fn(PublicSettings) -> Result<Vault, VaultError> + Send + Sync;

impl ConfiguredVault {
    /// Replaces the vault by one with the settings of this configuration, if they differ. Nobody is
    /// asked for a passphrase a second time: a vault opened by hand stays as it is.
    /// Returns what the operator has to do if it stays for another reason.
    fn follow(&mut self, config: &Config) -> Option<&'static str> {
        let settings = public_settings(config);
        if self.vault.settings() == Some(&settings) {
            return None;
        }
        match (self.start)(settings) {
            Ok(vault) if vault.public_key() == self.vault.public_key() => {
                self.vault = vault;
                return None;
            }
            Ok(_) => tracing::error!("the identity file holds another identity now; {UNCHANGED}"),
            Err(error) => tracing::error!(%error, "the vault cannot be started again; {UNCHANGED}"),
        }
        Some(UNCHANGED)
    }
}

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

/// The sockets at which the bot listens. They are open before its walls are up.
struct Sockets {
    page: Option<TcpListener>,
    metrics: Option<MetricsServer>,
    /// The operator's socket. The bot works without it.
    control: std::io::Result<ControlServer>,
}

/// A bot, and its connections to the person and the programs that started it.
struct Bot {
    data: PathBuf,
    vault: ConfiguredVault,
    /// Starts the processes of GPUs.
    devices: Arc<dyn Spawner>,
    shutdown: Shutdown,
    reload: Arc<Reload>,
    manager: ServiceManager,
    sockets: Sockets,
}

impl Bot {
    /// Prints the npub and serves until shutdown.
    fn run(self, config: Config, runtime: Runtime) -> anyhow::Result<()> {
        announce(&self.vault.vault.public_key().to_bech32()?);
        let served = runtime.block_on(self.serve(config));
        // Threads that still wait for a device or the network are abandoned.
        runtime.shutdown_timeout(THREADS_END_TIMEOUT);
        served
    }

    /// Runs the service, and again after each change of the configuration.
    async fn serve(mut self, mut config: Config) -> anyhow::Result<()> {
        let monitors = Monitors::default();
        if let Some(listener) = self.sockets.page.take() {
            self.serve_page(listener, &config, &monitors)?;
        }
        if let Some(metrics) = self.sockets.metrics.take() {
            tracing::info!(address = ?metrics.address(), "serving metrics and health");
            metrics.start(monitors.clone(), self.shutdown.clone())?;
        }
        let (mut former, mut is_web_changed): (Option<Config>, bool) = (None, false);
        loop {
            let unchanged = tokio::task::block_in_place(|| self.vault.follow(&config));
            let (vault, devices) = (self.vault.vault.clone(), Arc::clone(&self.devices));
            let started = tokio::select! {
                started = Service::start_with(config.clone(), &self.data, vault, Clock::System, devices) => started,
                () = self.shutdown.stopped() => return Ok(()),
                never = self.manager.watch_start() => match never {},
            };
            let mut service = match (started, former.take()) {
                (Ok(service), _) => service,
                // A device or relay that does not exist is only found by the start.
                (Err(error), Some(old)) => {
                    tracing::error!(%error, "the new configuration does not work, so the old one stays");
                    self.reload.finish(Err(format!("{error:#}; the old configuration stays")));
                    config = old;
                    continue;
                }
                (Err(error), None) => return Err(error),
            };
            let waiting = [is_web_changed.then_some(WEB_WAITS), unchanged];
            let waiting: Vec<&str> = waiting.into_iter().flatten().collect();
            self.reload.finish(match waiting.as_slice() {
                [] => Ok("the bot has taken it up".to_owned()),
                waiting => Err(format!("the bot has taken it up, but for a part: {}", waiting.join("; "))),
            });
            monitors.set(Some(service.monitor()));
            let end = self.run_service(&mut service, &monitors).await;
            monitors.set(None);
            if !matches!(end, Ok(RunEnd::Reloaded(_))) {
                self.manager.stopping();
            }
            service.stop().await;
            match end? {
                RunEnd::Stopped => return Ok(()),
                RunEnd::Reloaded(mut new) => {
                    is_web_changed = new.web != config.web;
                    if is_web_changed {
                        tracing::warn!("{WEB_WAITS}");
                        new.web = config.web.clone();
                    }
                    former = Some(std::mem::replace(&mut config, *new));
                }
            }
        }
    }

    fn serve_page(&self, listener: TcpListener, config: &Config, monitors: &Monitors) -> std::io::Result<()> {
        let bot = self.vault.vault.public_key();
        let page = Arc::new(WebServer::new(listener, &config.web, &config.relays, bot)?);
        announce(page.link());
        tracing::info!(sha256 = PAGE_SHA256, "serving the page for people without an account");
        let (roster, stop) = (monitors.roster().clone(), self.shutdown.clone());
        let page = task(&self.shutdown, move |stop| {
            let page = Arc::clone(&page);
            async move { page.run(stop).await }
        });
        tokio::spawn(async move { roster.keep_task("page", page, stop).await });
        Ok(())
    }

    /// Lets a started service run until something ends it.
    ///
    /// Errors: the ledger is damaged.
    async fn run_service(&mut self, service: &mut Service, monitors: &Monitors) -> Result<RunEnd, LedgerError> {
        for device in service.scheduler().devices() {
            match &device.health {
                Health::Working => tracing::info!(device = %device.id, name = device.name, kernel = device.kernel,
                    threads = device.threads, rate = %device.rate.unwrap_or_default(), "searching on"),
                Health::Out(reason) => tracing::warn!(device = %device.id, reason, "a device is not in use"),
            }
        }
        match &self.sockets.control {
            Ok(control) => service.serve_control_socket(control.clone(), self.reload.controls()),
            Err(error) => {
                tracing::warn!(%error, "the local socket cannot be opened, so `npubbot status` and its like do not work");
            }
        }
        tracing::info!("serving; Ctrl-C stops");
        self.manager.ready();
        tokio::select! {
            () = self.shutdown.stopped() => Ok(RunEnd::Stopped),
            damage = wait_for_damage(service) => Err(damage),
            config = self.reload.next_config() => Ok(RunEnd::Reloaded(config)),
            never = self.manager.watch(monitors) => match never {},
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

/// Takes a new configuration on request, and hands it to the loop of the bot.
struct Reload {
    read: Box<dyn Fn(&Reload) + Send + Sync>,
    flags: SearchFlags,
    log: RunningLog,
    /// A checked configuration that the bot has not taken yet.
    next: Mutex<Option<Box<Config>>>,
    changed: Notify,
    /// What has come of the last reload; `None` until that is known.
    outcome: Mutex<Option<Outcome>>,
}

impl Reload {
    /// `read` has a new configuration given to [`Reload::take`]. `flags` replace values of each one.
    fn new(read: Box<dyn Fn(&Reload) + Send + Sync>, flags: SearchFlags, log: RunningLog) -> Reload {
        Reload { read, flags, log, next: Mutex::default(), changed: Notify::new(), outcome: Mutex::default() }
    }

    /// Waits for a checked configuration.
    async fn next_config(&self) -> Box<Config> {
        loop {
            if let Some(config) = self.next.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return config;
            }
            self.changed.notified().await;
        }
    }

    /// The operator's changes to this process.
    fn controls(self: &Arc<Reload>) -> ProcessControls {
        let [read, outcome, recent] = [(); 3].map(|()| Arc::clone(self));
        ProcessControls {
            reload: Box::new(move || {
                *read.lock_outcome() = None;
                (read.read)(&read);
            }),
            reloaded: Box::new(move || outcome.lock_outcome().clone()),
            recent_log: Box::new(move || recent.log.recent.lines()),
        }
    }

    fn lock_outcome(&self) -> MutexGuard<'_, Option<Outcome>> {
        self.outcome.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records what has come of a reload, unless that is known.
    fn finish(&self, outcome: Outcome) {
        self.lock_outcome().get_or_insert(outcome);
    }

    /// Takes a configuration that was read, or why it cannot be used.
    fn take(&self, read: Result<Config, String>) {
        match read {
            Ok(config) => {
                tracing::info!("the configuration is read again");
                *self.next.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(Box::new(self.flags.in_config(config)));
                self.changed.notify_one();
            }
            Err(error) => {
                tracing::warn!(error, "the configuration is wrong, so the old one stays");
                self.finish(Err(format!("{error}; the old configuration stays")));
            }
        }
    }
}

/// Reads the configuration again. Errors: the reason, for the operator.
fn read_again(file: &Path) -> Result<(String, Config), String> {
    Config::read(file).map_err(|error| error.to_string())
}

/// Starts a thread that listens for signals until the process ends. tokio has replaced the default
/// handlers for good, so this thread must be able to end a stuck program.
pub(super) fn listen_for_stop() -> anyhow::Result<Shutdown> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut stops = {
        let _within = runtime.enter();
        Stops::listen()?
    };
    let (stopper, shutdown) = shutdown::pair();
    let watch = async move {
        stops.next().await;
        tracing::info!("stopping; send the signal again to end at once");
        stopper.stop();
        let code = match tokio::time::timeout(STOP_TIMEOUT, stops.next()).await {
            Ok(()) => INTERRUPTED,
            Err(_) => {
                tracing::warn!("{LATE_STOP}");
                NOT_CLEAN
            }
        };
        end_process(code);
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(watch))?;
    Ok(shutdown)
}

/// Ends the process. Exit handlers of libraries may hang, and a second call of `exit` would wait
/// for the first one, so a thread kills the process after [`EXIT_TIMEOUT`].
fn end_process(code: i32) -> ! {
    log_writer::flush(EXIT_TIMEOUT);
    let last = std::thread::Builder::new().name("last".to_owned());
    let killer = last.spawn(move || {
        std::thread::sleep(EXIT_TIMEOUT);
        process::end_now(code);
    });
    if killer.is_err() {
        process::end_now(code);
    }
    std::process::exit(code)
}

/// Builds the multi-threaded runtime.
pub(super) fn runtime() -> anyhow::Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.worker_threads(cores.min(MAX_RUNTIME_THREADS)).enable_all().build()?)
}
