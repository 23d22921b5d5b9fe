//! `npubbot serve`: runs the bot until a signal stops it.

use super::folders::{FolderError, Folders};
use super::identity::IdentityFlags;
use super::log::LogLevel;
use super::output::stdout;
use super::reload::Reload;
use super::runtime::runtime;
use super::search_flags::SearchFlags;
use super::signals;
use crate::clock::Clock;
use crate::config::Config;
use crate::ledger::LedgerError;
use crate::roster::{KeepTasks, task};
use crate::scheduler::Health;
use crate::service::{MetricsServer, Monitors, Service, ServiceError, ServiceManager};
use crate::shutdown::Shutdown;
use crate::vault::Vault;
use crate::web::{PAGE_SHA256, WebServer};
use clap::Args;
use nostr::ToBech32;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Time limit for other threads after the service has ended.
const LAST_PATIENCE: Duration = Duration::from_millis(100);

/// Time between two checks for a damaged ledger.
const CHECK_EVERY: Duration = Duration::from_secs(1);

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
enum End {
    /// A signal asked for the end.
    Stopped,
    /// The operator has reloaded the configuration: this is the new one.
    Reloaded(Box<Config>),
}

impl Serve {
    /// The bot's data folder.
    ///
    /// Errors: [`FolderError`].
    pub fn data(&self) -> Result<PathBuf, FolderError> {
        Ok(self.identity.find()?.data)
    }

    /// Runs the command.
    pub fn run(self, level: LogLevel) -> anyhow::Result<()> {
        let folders = self.identity.find()?;
        let config = self.search.in_config(Config::load(&folders.config)?);
        let vault = self.identity.open(&folders.data)?;
        // Signals are caught from here on, before the npub is printed, because a program that reads
        // the npub may send one at once. Before this point there is nothing to shut down.
        let shutdown = signals::listen()?;
        announce(&vault.public_key().to_bech32()?);
        let runtime = runtime()?;
        let reload = Arc::new(Reload::new(folders.config.clone(), self.search, level));
        let served = runtime.block_on(serve(config, folders, vault, shutdown, reload));
        // Threads that still wait for a device or the network are abandoned.
        runtime.shutdown_timeout(LAST_PATIENCE);
        served
    }
}

/// Writes a line for the program or person that started the bot. The bot serves without a reader too.
fn announce(line: &str) {
    if let Err(error) = writeln!(stdout(), "{line}") {
        tracing::warn!(%error, line, "a line could not be written");
    }
}

/// Runs the service, and again after each change of the configuration, until shutdown. A paused
/// search stays paused.
async fn serve(
    mut config: Config,
    folders: Folders,
    vault: Vault,
    mut shutdown: Shutdown,
    reload: Arc<Reload>,
) -> anyhow::Result<()> {
    let (manager, monitors) = (ServiceManager::from_environment(), Monitors::default());
    if let Some(page) = WebServer::bind(&config.web, &config.relays, vault.public_key()).await? {
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
    let (mut former, mut is_paused): (Option<Config>, bool) = (None, false);
    loop {
        let started = tokio::select! {
            started = start(&config, &folders, &vault, is_paused) => started,
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
            (Err(error), None) => return Err(error.into()),
        };
        monitors.set(Some(service.monitor()));
        let end = run(&mut service, &folders, &mut shutdown, &reload, (manager, &monitors)).await;
        monitors.set(None);
        if !matches!(end, Ok(End::Reloaded(_))) {
            manager.stopping();
        }
        is_paused = service.is_paused();
        service.stop().await;
        match end? {
            End::Stopped => return Ok(()),
            End::Reloaded(new) => former = Some(std::mem::replace(&mut config, *new)),
        }
    }
}

async fn start(config: &Config, folders: &Folders, vault: &Vault, is_paused: bool) -> Result<Service, ServiceError> {
    let (config, vault) = (config.clone(), vault.clone());
    match is_paused {
        false => Service::start(config, &folders.data, vault, Clock::System).await,
        true => Service::start_paused(config, &folders.data, vault, Clock::System).await,
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
) -> Result<End, LedgerError> {
    for device in service.devices() {
        match &device.health {
            Health::Working => tracing::info!(device = %device.id, name = device.name, kernel = device.kernel,
                threads = device.threads, rate = %device.rate.unwrap_or_default(), "searching on"),
            Health::Out(reason) => tracing::warn!(device = %device.id, reason, "a device is not in use"),
        }
    }
    if let Err(error) = service.open_door(&folders.data, reload.controls()) {
        tracing::warn!(%error, "the local socket cannot be opened, so `npubbot status` and its like do not work");
    }
    tracing::info!("serving; Ctrl-C stops");
    manager.ready();
    tokio::select! {
        () = shutdown.stopped() => Ok(End::Stopped),
        damage = damaged(service) => Err(damage),
        config = reload.wanted() => Ok(End::Reloaded(config)),
        never = manager.watch(monitors) => match never {},
    }
}

/// Returns once the ledger is found to be damaged. Serving on could damage it further.
async fn damaged(service: &Service) -> LedgerError {
    loop {
        if let Some(damage) = service.ledger().damage() {
            return LedgerError::Corrupt(damage.to_owned());
        }
        tokio::time::sleep(CHECK_EVERY).await;
    }
}
