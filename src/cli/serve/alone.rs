//! `serve` where the system has no supervisor: one process, and its vault.

use super::{Bot, ConfiguredVault, Reload, RunningLog, Serve, Sockets, listen_for_stop, read_again, runtime};
use crate::config::{Config, Walls};
use crate::control::ControlServer;
use crate::os::walls;
use crate::service::{MetricsServer, ServiceManager, public_settings};
use crate::vault::{DirectSpawner, MissingWall, NEEDS_PERSON, PublicSettings, Vault, VaultError};
use crate::web::WebServer;
use std::sync::Arc;

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
        let start = move |settings: PublicSettings| match again.means.is_person() {
            true => Err(VaultError::Process { reason: NEEDS_PERSON.to_owned() }),
            false => Vault::start(again.clone(), Some(settings)),
        };
        let vault = ConfiguredVault { vault, start: Box::new(start) };
        let file = folders.config;
        let read = move |reload: &Reload| reload.take(read_again(&file).map(|(_, config)| config));
        let reload = Arc::new(Reload::new(Box::new(read), self.search, log));
        let runtime = runtime()?;
        let (page, metrics) = (WebServer::listen(&config.web)?, config.web.metrics);
        let metrics = metrics.map(MetricsServer::bind).transpose()?;
        // On Windows its first pipe belongs to the runtime.
        let control = {
            let _within = runtime.enter();
            ControlServer::open(&folders.data)
        };
        let manager = ServiceManager::from_environment();
        let sockets = Sockets { page, metrics, control };
        let devices = DirectSpawner::of_devices(Some(folders.data.clone()))?;
        Bot { data: folders.data, vault, devices, shutdown, reload, manager, sockets }.run(config, runtime)
    }
}
