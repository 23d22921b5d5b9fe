//! `serve` where the system has no supervisor: one process, and its vault.

use super::{Bot, ConfiguredVault, Reload, RunningLog, Serve, Sockets, listen_for_stop, read_again, runtime};
use crate::config::{Config, Walls};
use crate::control::ControlServer;
use crate::os::signals::Hangups;
use crate::os::walls;
use crate::service::{MetricsServer, ServiceManager, public_settings};
use crate::vault::{DirectSpawner, MissingWall, PublicSettings, Vault};
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
        let start = move |settings: &PublicSettings| match again.means.is_person() {
            true => Ok(None),
            false => Vault::start(again.clone(), Some(settings.clone())).map(Some),
        };
        let vault = ConfiguredVault { vault, start: Box::new(start) };
        let file = folders.config;
        let read = move |reload: &Reload| reload.take(read_again(&file).map(|(_, config)| config), &file);
        let reload = Arc::new(Reload::new(Box::new(read), self.search, log));
        let runtime = runtime()?;
        let (page, metrics) = (WebServer::listen(&config.web)?, config.web.metrics);
        let metrics = metrics.map(MetricsServer::bind).transpose()?;
        let control = {
            let _within = runtime.enter();
            listen_for_hangup(&reload)?;
            ControlServer::open(&folders.data)
        };
        let manager = ServiceManager::from_environment();
        let sockets = Sockets { page, metrics, control };
        let devices = DirectSpawner::of_devices(Some(folders.data.clone()))?;
        Bot { data: folders.data, vault, devices, shutdown, reload, manager, sockets }.run(config, runtime)
    }
}

/// Reads the configuration at each SIGHUP, from now on. A program with a terminal does not:
/// there the signal means that the terminal is gone, and ends the program as usual.
fn listen_for_hangup(reload: &Arc<Reload>) -> std::io::Result<()> {
    let Some(mut hangups) = Hangups::listen()? else { return Ok(()) };
    let reload = Arc::clone(reload);
    tokio::spawn(async move {
        while hangups.next().await.is_some() {
            let reload = Arc::clone(&reload);
            // The log has the outcome. A panic ends this one attempt.
            let _ = tokio::task::spawn_blocking(move || (reload.read)(&reload)).await;
        }
    });
    Ok(())
}
