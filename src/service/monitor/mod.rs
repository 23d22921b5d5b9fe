//! Monitoring: whether the bot lives, whether it can serve, and its metrics, over HTTP and for the
//! service manager.

pub(in crate::service) mod metrics;
mod pulse;
mod server;
mod watchdog;

pub(super) use pulse::Pulse;
pub use server::MetricsServer;
pub use watchdog::ServiceManager;

use super::doctor::FULL;
use crate::roster::Roster;
use crate::scheduler::Health;
use crate::service::context::Handles;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};
use tokio::sync::Mutex;
use tokio::time::timeout;

/// Longest time that a batch of messages may take. Waiting for room on a full disk is no part of a
/// batch.
const LONGEST_BATCH: Duration = Duration::from_secs(60);
/// Time to answer a health check over HTTP.
const HEALTH_PATIENCE: Duration = Duration::from_secs(5);

/// A running service. Cheap to clone.
#[derive(Clone)]
pub struct Monitor {
    bot: Handles,
    since: SystemTime,
    /// Locked during a query of the ledger, so that only one can hang.
    asking: Arc<Mutex<()>>,
}

impl Monitor {
    /// A service that is ready now.
    pub(super) fn new(bot: Handles) -> Monitor {
        Monitor { bot, since: SystemTime::now(), asking: Arc::default() }
    }

    /// Whether the bot lives: all its tasks and threads are there, its maintenance task answers, its
    /// ledger answers a query, and the thread that answers requests is not stuck in a batch.
    ///
    /// Errors: the part that did not answer within `patience`.
    pub async fn check(&self, patience: Duration) -> Result<(), String> {
        let context = &self.bot.context;
        gone(self.bot.gone())?;
        let mut beats = context.pulse.beats();
        context.wakes.ping.wake();
        if timeout(patience, beats.changed()).await.is_err() {
            return Err("the maintenance task does not answer".to_owned());
        }
        if context.pulse.attending_for().is_some_and(|time| time > LONGEST_BATCH) {
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
        gone(self.bot.gone())?;
        if self.bot.context.vault.trouble().is_some() {
            return Err("the vault does not answer".to_owned());
        }
        let is_connected = self.bot.relays.states().await.iter().any(|(_, is_connected)| *is_connected);
        let works = self.bot.scheduler.devices().iter().any(|device| device.health == Health::Working);
        let ledger = self.bot.context.ledger.clone();
        let free = tokio::task::spawn_blocking(move || ledger.free_bytes()).await.ok().flatten();
        missing(is_connected, works, free).map_or(Ok(()), |part| Err(part.to_owned()))
    }

    /// All metrics in Prometheus's text format.
    ///
    /// Errors: the reason, if the ledger cannot be read.
    pub async fn metrics(&self) -> Result<String, String> {
        let relays = self.bot.relays.states().await;
        let (bot, since) = (self.bot.clone(), self.since);
        let collect = move || metrics::collect(&bot, &relays, since);
        let collected = tokio::task::spawn_blocking(collect).await.map_err(|error| error.to_string())?;
        collected.map_err(|error| error.to_string())
    }
}

/// The missing part without which the bot serves nobody. `free`: bytes left on its disk, if known.
fn missing(is_connected: bool, works: bool, free: Option<u64>) -> Option<&'static str> {
    match (is_connected, works) {
        (false, _) => Some("no relay is connected"),
        (true, false) => Some("no device works"),
        (true, true) => free.filter(|&bytes| bytes < FULL).map(|_| "the disk of the data folder is full"),
    }
}

/// The running service, if there is one, and what runs beside it: the servers for monitoring and of
/// the page. A change of the configuration replaces the service. Cheap to clone; clones share all.
#[derive(Clone, Default)]
pub struct Monitors {
    running: Arc<RwLock<Option<Monitor>>>,
    roster: Roster,
}

impl Monitors {
    /// Sets the running service; `None` while one starts or stops.
    pub fn set(&self, monitor: Option<Monitor>) {
        *self.running.write().unwrap_or_else(PoisonError::into_inner) = monitor;
    }

    fn get(&self) -> Option<Monitor> {
        self.running.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The tasks and threads beside the service.
    pub(crate) fn roster(&self) -> &Roster {
        &self.roster
    }

    /// All metrics in Prometheus's text format.
    ///
    /// Errors: the bot starts, or its ledger cannot be read.
    async fn metrics(&self) -> Result<String, String> {
        let metrics = self.get().ok_or("the bot starts")?.metrics().await;
        metrics.inspect_err(|error| tracing::warn!(%error, "metrics cannot be collected"))
    }

    /// Whether the bot works. A bot that is still starting counts as healthy, because the service
    /// manager limits the time of a start.
    ///
    /// Errors: the part that is gone or does not answer within `patience`.
    async fn health(&self, patience: Duration) -> Result<(), String> {
        gone(self.roster.gone())?;
        match self.get() {
            Some(monitor) => monitor.check(patience).await,
            None => Ok(()),
        }
    }

    /// Whether the bot can serve askers now.
    ///
    /// Errors: the missing part.
    async fn readiness(&self) -> Result<(), String> {
        self.get().ok_or("the bot starts")?.readiness().await
    }
}

/// Errors: there are such parts.
fn gone(parts: Vec<String>) -> Result<(), String> {
    if parts.is_empty() { Ok(()) } else { Err(format!("{}: gone, and started again soon", parts.join(", "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bot_is_ready_with_a_relay_a_device_and_room_on_its_disk() {
        let cases = [
            (true, true, None, None),
            (true, true, Some(FULL), None),
            (true, true, Some(FULL - 1), Some("disk")),
            (true, true, Some(0), Some("disk")),
            (true, false, Some(0), Some("device")),
            (false, true, Some(FULL), Some("relay")),
        ];
        for (is_connected, works, free, expected) in cases {
            let part = missing(is_connected, works, free);
            assert_eq!(part.is_some(), expected.is_some());
            assert!(part.is_none_or(|part| part.contains(expected.unwrap())), "{part:?}");
        }
    }
}
