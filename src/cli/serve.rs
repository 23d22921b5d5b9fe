//! `npubbot serve`: runs the bot until a signal stops it.
//!
//! Requests to stop are SIGINT and SIGTERM; Ctrl-C and others on Windows. The first asks for a
//! clean shutdown, the second ends the process at once. The clean shutdown has a time limit,
//! because a launch may hang in a driver. Ending at once is as safe as `kill -9`: no accepted job
//! is lost.

use super::folders::Folders;
use super::identity::IdentityFlags;
use super::log::LogLevel;
use super::output::stdout;
use super::search_flags::SearchFlags;
use crate::clock::Clock;
use crate::config::{Config, Walls};
use crate::ledger::LedgerError;
use crate::log_writer;
use crate::os::manager::{self, BotState};
use crate::os::process;
use crate::os::signals::{Hangups, Stops};
use crate::roster::{KeepTasks, task};
use crate::scheduler::Health;
use crate::service::{MetricsServer, Monitors, ProcessControls, Service, ServiceManager, public_settings};
use crate::shutdown::{self, Shutdown};
use crate::vault::{PublicSettings, Vault};
use crate::web::{PAGE_SHA256, WebServer};
use clap::Args;
use nostr::ToBech32;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use thiserror::Error;
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

impl Serve {
    /// The bot's data folder.
    ///
    /// Errors: those of [`super::folders::FolderFlags::find`].
    pub fn data(&self) -> anyhow::Result<PathBuf> {
        Ok(self.identity.folders.find()?.data)
    }

    /// Runs the command.
    pub fn run(self, level: LogLevel) -> anyhow::Result<()> {
        let folders = self.identity.folders.find()?;
        let config = self.search.in_config(Config::load(&folders.config)?);
        let vault = self.identity.open(&folders.data, public_settings(&config))?;
        need_walls(&config, &vault)?;
        // Signals are caught from here on, before the npub is printed, because a program that reads
        // the npub may send one at once. Before this point there is nothing to shut down.
        let shutdown = listen_for_stop()?;
        announce(&vault.public_key().to_bech32()?);
        let runtime = runtime()?;
        let reload = Arc::new(Reload::new(folders.config.clone(), self.search, level));
        let vault = ConfiguredVault { settings: public_settings(&config), vault, identity: self.identity };
        let served = runtime.block_on(serve(config, folders, vault, shutdown, reload));
        // Threads that still wait for a device or the network are abandoned.
        runtime.shutdown_timeout(THREADS_END_TIMEOUT);
        served
    }
}

/// The vault lacks a sandbox that the configuration requires. Exit code 2.
#[derive(Debug, Error)]
#[error(
    "the vault has no sandbox here: {0}. Use another kernel or container, or set `walls` of [vault] to \"optional\""
)]
pub(super) struct NoWalls(String);

/// Checks that the vault has the walls that the configuration requires.
fn need_walls(config: &Config, vault: &Vault) -> Result<(), NoWalls> {
    let missing = vault.missing_walls().into_iter().find(|wall| wall.is_sandbox);
    match missing.filter(|_| config.vault.walls == Walls::Required) {
        Some(wall) => Err(NoWalls(wall.loss)),
        None => Ok(()),
    }
}

/// The bot's vault, and the settings of public events that it was started with.
struct ConfiguredVault {
    settings: PublicSettings,
    vault: Vault,
    identity: IdentityFlags,
}

impl ConfiguredVault {
    /// Replaces the vault by one with the settings of this configuration, if they differ. Nobody is
    /// asked for a passphrase a second time: a vault opened by hand stays as it is.
    fn follow(&mut self, config: &Config, folders: &Folders) {
        let settings = public_settings(config);
        if settings == self.settings {
            return;
        }
        match self.identity.open_again(&folders.data, settings.clone()) {
            Ok(Some(vault)) if vault.public_key() == self.vault.public_key() => {
                (self.settings, self.vault) = (settings, vault);
            }
            Ok(Some(_)) => tracing::error!("the identity file holds another identity now; {UNCHANGED}"),
            Ok(None) => tracing::warn!("the passphrase was typed, and the vault must be started again; {UNCHANGED}"),
            Err(error) => tracing::error!(%error, "the vault cannot be started again; {UNCHANGED}"),
        }
    }
}

/// What follows where the vault keeps its settings.
const UNCHANGED: &str = "restart the bot to publish the new profile and relay lists, and to authenticate to new relays";

/// Writes a line for the program or person that started the bot. The bot serves without a reader
/// too.
fn announce(line: &str) {
    if let Err(error) = writeln!(stdout(), "{line}") {
        tracing::warn!(%error, line, "a line could not be written");
    }
}

/// Runs the service, and again after each change of the configuration, until shutdown.
async fn serve(
    mut config: Config,
    folders: Folders,
    mut vault: ConfiguredVault,
    mut shutdown: Shutdown,
    reload: Arc<Reload>,
) -> anyhow::Result<()> {
    let (manager, monitors) = (ServiceManager::from_environment(), Monitors::default());
    if let Some(page) = WebServer::bind(&config.web, &config.relays, vault.vault.public_key()).await? {
        announce(page.link());
        tracing::info!(sha256 = PAGE_SHA256, "serving the page for people without an account");
        let (page, roster, stop) = (Arc::new(page), monitors.roster().clone(), shutdown.clone());
        let page = task(&shutdown, move |stop| {
            let page = Arc::clone(&page);
            async move { page.run(stop).await }
        });
        tokio::spawn(async move { roster.keep_task("page", page, stop).await });
    }
    if let Some(address) = config.web.metrics {
        let metrics = MetricsServer::bind(address)?;
        tracing::info!(address = %metrics.address().unwrap_or(address), "serving metrics and health");
        metrics.start(monitors.clone(), shutdown.clone())?;
    }
    reload.listen_for_hangup()?;
    let mut former: Option<Config> = None;
    loop {
        tokio::task::block_in_place(|| vault.follow(&config, &folders));
        let started = tokio::select! {
            started = Service::start(config.clone(), &folders.data, vault.vault.clone(), Clock::System) => started,
            () = shutdown.stopped() => return Ok(()),
            never = manager.watch_start() => match never {},
        };
        let mut service = match (started, former.take()) {
            (Ok(service), _) => service,
            // A device or relay that does not exist is only found by the start.
            (Err(error), Some(old)) => {
                tracing::error!(%error, "the new configuration does not work, so the old one stays");
                config = old;
                continue;
            }
            (Err(error), None) => return Err(error),
        };
        monitors.set(Some(service.monitor()));
        let end = run(&mut service, &folders, &mut shutdown, &reload, (manager, &monitors)).await;
        monitors.set(None);
        if !matches!(end, Ok(RunEnd::Reloaded(_))) {
            manager.stopping();
        }
        service.stop().await;
        match end? {
            RunEnd::Stopped => return Ok(()),
            RunEnd::Reloaded(mut new) => {
                if new.web != config.web {
                    tracing::warn!("changes of [web] take effect at the next start of the bot");
                    new.web = config.web.clone();
                }
                former = Some(std::mem::replace(&mut config, *new));
            }
        }
    }
}

/// Lets a started service run until something ends it.
///
/// Errors: the ledger is damaged.
async fn run(
    service: &mut Service,
    folders: &Folders,
    shutdown: &mut Shutdown,
    reload: &Arc<Reload>,
    (manager, monitors): (ServiceManager, &Monitors),
) -> Result<RunEnd, LedgerError> {
    for device in service.devices() {
        match &device.health {
            Health::Working => tracing::info!(device = %device.id, name = device.name, kernel = device.kernel,
                threads = device.threads, rate = %device.rate.unwrap_or_default(), "searching on"),
            Health::Out(reason) => tracing::warn!(device = %device.id, reason, "a device is not in use"),
        }
    }
    if let Err(error) = service.serve_control_socket(&folders.data, reload.controls()) {
        tracing::warn!(%error, "the local socket cannot be opened, so `npubbot status` and its like do not work");
    }
    tracing::info!("serving; Ctrl-C stops");
    manager.ready();
    tokio::select! {
        () = shutdown.stopped() => Ok(RunEnd::Stopped),
        damage = wait_for_damage(service) => Err(damage),
        config = reload.next_config() => Ok(RunEnd::Reloaded(config)),
        never = manager.watch(monitors) => match never {},
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

/// Reads the configuration again on request, and hands it to the loop of `serve`.
pub(super) struct Reload {
    file: PathBuf,
    flags: SearchFlags,
    level: LogLevel,
    /// A checked configuration that `serve` has not taken yet.
    next: Mutex<Option<Box<Config>>>,
    changed: Notify,
}

impl Reload {
    /// A reader of this configuration file. `flags` replace values of each configuration that is
    /// read.
    pub fn new(file: PathBuf, flags: SearchFlags, level: LogLevel) -> Reload {
        Reload { file, flags, level, next: Mutex::default(), changed: Notify::new() }
    }

    /// Reads the configuration at each SIGHUP, from now on. A program with a terminal does not:
    /// there the signal means that the terminal is gone, and ends the program as usual.
    pub fn listen_for_hangup(self: &Arc<Reload>) -> std::io::Result<()> {
        let Some(mut hangups) = Hangups::listen()? else { return Ok(()) };
        let reload = Arc::clone(self);
        tokio::spawn(async move {
            while hangups.next().await.is_some() {
                let reload = Arc::clone(&reload);
                // The log has the outcome. A panic ends this one attempt.
                let _ = tokio::task::spawn_blocking(move || reload.reload()).await;
            }
        });
        Ok(())
    }

    /// Waits for a checked configuration.
    pub async fn next_config(&self) -> Box<Config> {
        loop {
            if let Some(config) = self.next.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return config;
            }
            self.changed.notified().await;
        }
    }

    /// The operator's changes to this process.
    pub fn controls(self: &Arc<Reload>) -> ProcessControls {
        let (read, level, recent) = (Arc::clone(self), Arc::clone(self), Arc::clone(self));
        let set = move |wanted: &str| {
            level.level.set(wanted)?;
            Ok(format!("the log has the level {wanted} until the next start"))
        };
        ProcessControls {
            reload: Box::new(move || read.reload()),
            set_log_level: Box::new(set),
            recent_log: Box::new(move || recent.level.recent()),
        }
    }

    fn reload(&self) -> Result<String, String> {
        match Config::load(&self.file) {
            Ok(config) => {
                tracing::info!("the configuration is read again");
                *self.next.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(Box::new(self.flags.in_config(config)));
                self.changed.notify_one();
                let file = self.file.display();
                Ok(format!("{file} is right; the bot takes it up within seconds (`[web]` at the next start)"))
            }
            Err(error) => {
                tracing::warn!(%error, "the configuration is wrong, so the old one stays");
                Err(format!("{error}; the old configuration stays"))
            }
        }
    }
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
                tracing::warn!("the clean shutdown takes too long; unfinished work continues after the next start");
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
    // Otherwise the service manager would start the service again.
    let _ = manager::tell(BotState::Stopped);
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
pub(super) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.worker_threads(cores.min(MAX_RUNTIME_THREADS)).enable_all().build()?)
}
