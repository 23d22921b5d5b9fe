//! `serve` where the system has no supervisor: one process, and its vault.

use super::{Bot, MAX_RELOADS, Serve, listen_for_stop, public_settings, read_again, runtime};
use crate::cli::log::RunningLog;
use crate::config::{Config, Walls};
use crate::control::ControlServer;
use crate::os::{manager, walls};
use crate::service::{MetricsServer, ServiceManager};
use crate::vault::{DirectSpawner, MissingWall, NEEDS_PERSON, PublicSettings, Vault, VaultError};
use crate::web::WebServer;
use tokio::sync::mpsc;

impl Serve {
    /// Runs the command as the bot itself.
    pub fn run(self, log: RunningLog) -> anyhow::Result<()> {
        let folders = self.identity.folders.find()?;
        let config = self.search.in_config(Config::load(&folders.config)?);
        let identity = self.identity.find(&folders.data)?;
        let are_required = config.vault.walls == Walls::Required;
        let missing = "this system has no wall around the process that talks to strangers; Linux has";
        walls::check("network", vec![MissingWall::sandbox(missing)], are_required)?;
        let again = identity.clone();
        let vault = Vault::start(identity, Some(public_settings(&config)))?;
        walls::check("vault", vault.missing_walls(), are_required)?;
        // Signals are caught from here on, before the npub is printed, because a program that reads
        // the npub may send one at once. Before this point there is nothing to shut down.
        let shutdown = listen_for_stop()?;
        let start_vault = move |settings: PublicSettings| match again.means.is_person() {
            true => Err(VaultError::Process { reason: NEEDS_PERSON.to_owned() }),
            false => Vault::start(again.clone(), Some(settings)),
        };
        let (file, flags) = (folders.config, self.search);
        let read = move || read_again(&file).map(|(_, config)| flags.in_config(config));
        let runtime = runtime()?;
        let (page, metrics) = (WebServer::listen(&config.web)?, config.web.metrics);
        let metrics = metrics.map(MetricsServer::bind).transpose()?;
        // On Windows its first pipe belongs to the runtime.
        let control = {
            let _within = runtime.enter();
            ControlServer::open(&folders.data)
        };
        let bot = Bot {
            devices: DirectSpawner::of_devices(Some(folders.data.clone()))?,
            data: folders.data,
            vault,
            start_vault: Box::new(start_vault),
            shutdown,
            read: Box::new(read),
            reloads: mpsc::channel(MAX_RELOADS),
            recent_log: log.recent,
            manager: ServiceManager::new(manager::watchdog(), manager::tell),
            page,
            metrics,
            control,
        };
        bot.run(config, runtime)
    }
}
