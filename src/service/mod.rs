//! The rooms wired together: the service that `npubbot serve`, the demo and the tests run.
//!
//! ```text
//! relays → inbox → requests (decide, T1) → scheduler → results (redeem, T2) → outbox (T3) → relays
//! ```

mod askers;
mod backlog;
mod context;
mod doctor;
mod maintenance;
mod monitor;
mod operator;
mod requests;
mod results;
mod tasks;
#[cfg(feature = "fleet")]
pub(crate) mod workers;

pub use doctor::{FULL_DISK_BYTES, doctor, need_identity};
pub use monitor::{MetricsServer, Monitor, Monitors, ServiceManager};
pub use operator::{ProcessControls, ReloadRequest};

use crate::clock::Clock;
use crate::config::{Config, RelayEntry};
use crate::device_cache;
use crate::device_process;
use crate::fault;
use crate::ledger::{self, Ledger, LedgerError, Totals};
use crate::nostr::{Reach, Relays, nip11};
use crate::roster::Roster;
use crate::scheduler::{DeviceOpener, Scheduler};
use crate::search::Surroundings;
use crate::shutdown::{self, Stopper};
use crate::vault::{DirectSpawner, PublicSettings, Spawner, Vault};
use crate::web::PAGE_SHA256;
use context::{Handles, ServiceContext, Wakes};
use results::Results;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Time limit for the first measured rate at the start. Without a rate the bot cannot tell an
/// expected time.
const FIRST_RATE_TIMEOUT: Duration = Duration::from_secs(if cfg!(feature = "test-util") { 200 } else { 20 });
/// Time limits of a clean stop: first for its tasks, then for launches in flight, then for the
/// relays. All together it takes less than two seconds.
const TASKS_END_TIMEOUT: Duration = Duration::from_millis(700);
const DEVICES_END_TIMEOUT: Duration = Duration::from_millis(500);
const RELAYS_END_TIMEOUT: Duration = Duration::from_millis(200);

/// The settings of the bot's public events. A vault gets them at its start.
pub fn public_settings(config: &Config) -> PublicSettings {
    crate::nostr::public_settings(config, config.web.listen.map(|_| PAGE_SHA256))
}

/// The files that a bot reads besides those of its ledger's folder.
#[cfg_attr(not(feature = "fleet"), expect(unused_variables))]
pub fn files_to_read(config: &Config, data: &Path) -> Vec<PathBuf> {
    #[cfg(feature = "fleet")]
    return workers::credentials_file(config, data).into_iter().collect();
    #[cfg(not(feature = "fleet"))]
    Vec::new()
}

/// The running bot.
pub struct Service {
    handles: Handles,
    stopper: Stopper,
    tasks: JoinSet<()>,
}

impl Service {
    /// Starts everything: takes up the jobs still open, measures the devices, connects, and
    /// announces the bot.
    ///
    /// Errors: a ledger or devices that cannot be opened, or a relay whose address cannot be used.
    pub async fn start(config: Config, data: &Path, vault: Vault, clock: Clock) -> anyhow::Result<Service> {
        let devices = DirectSpawner::of_devices(Some(data.to_owned()))?;
        Service::start_with(config, data, vault, clock, devices).await
    }

    /// [`Service::start`] with another way to start the processes of GPUs.
    ///
    /// Errors: as [`Service::start`].
    pub async fn start_with(
        mut config: Config,
        data: &Path,
        vault: Vault,
        clock: Clock,
        devices: Arc<dyn Spawner>,
    ) -> anyhow::Result<Service> {
        config.search.calibrations = device_cache::calibrations_in(&ledger::folder(data));
        let ledger = Ledger::open(&ledger::folder(data), clock.clone())?;
        ledger.claim(&vault.public_key())?;
        if config.bot.friends_of.is_empty() {
            ledger.set_followed(&HashSet::new())?;
        }
        #[cfg(feature = "fleet")]
        let fleet = workers::open(&config, data)?;
        #[cfg(not(feature = "fleet"))]
        anyhow::ensure!(
            config.fleet.is_none(),
            "this npubbot is built without workers (feature `fleet`); leave `server` of [fleet] empty"
        );
        let (stopper, shutdown) = shutdown::pair();
        let context = ServiceContext {
            vault,
            ledger,
            clock,
            new_askers: backlog::NewAskers::new(config.limits.new_askers_per_minute),
            config: Arc::new(config),
            wakes: Wakes::default(),
            encryption_keys: Arc::default(),
            pulse: Arc::default(),
            roster: Roster::default(),
            #[cfg(feature = "fleet")]
            fleet,
            shutdown,
        };
        let scheduler = start_search(&context, device_process::opener(devices, context.config.vault.walls))?;
        let config = &context.config;
        let reach = Reach {
            visits_external: config.bot.visit_askers_relays,
            allow_private: config.allow_private_relays,
            proxy: config.network.proxy,
        };
        let relays = Relays::connect(&config.relays, reach, context.vault.signer()).await?;
        wait_for_rate(&scheduler).await;
        let connected = relays.wait_for_any(tasks::FIRST_RELAY_TIMEOUT).await;
        tracing::info!(connected, of = config.relays.len(), "relays");
        // Relays' descriptions are read without the proxy. That would show the operator's address,
        // so none is read where a proxy is set.
        if config.network.proxy.is_none() {
            tokio::spawn(warn_of_bad_relays(config.relays.clone()));
        }
        let handles = Handles { context, scheduler, relays };
        let tasks = tasks::start(handles.clone()).await;
        Ok(Service { handles, stopper, tasks })
    }

    /// Ends a task or thread by a panic. Returns whether there is one of this name.
    #[doc(hidden)]
    #[cfg(any(test, feature = "test-util"))]
    pub fn kill_part(&self, name: &str) -> bool {
        self.handles.rosters().any(|roster| roster.kill(name))
    }

    /// The tasks and threads, with the number of times each was started again.
    #[doc(hidden)]
    pub fn parts(&self) -> Vec<(String, u64)> {
        self.handles.restarts()
    }

    /// The view of the running service for monitoring.
    pub fn monitor(&self) -> Monitor {
        Monitor::new(self.handles.clone())
    }

    /// The search: rates, devices, candidates and open jobs.
    pub fn scheduler(&self) -> &Scheduler {
        &self.handles.scheduler
    }

    /// The workers on other machines; `None` if the configuration has no server for them.
    #[cfg(feature = "fleet")]
    pub fn fleet(&self) -> Option<crate::fleet::FleetStatus> {
        self.handles.fleet_status()
    }

    /// Jobs in each state, and unsent messages.
    pub fn totals(&self) -> Result<Totals, LedgerError> {
        self.ledger().totals()
    }

    /// The ledger, for tests: a test of a full disk limits its size.
    #[doc(hidden)]
    pub fn ledger(&self) -> &Ledger {
        &self.handles.context.ledger
    }

    /// Ends cleanly within two seconds. Unsent messages are in the ledger and are sent after the
    /// next start.
    pub async fn stop(mut self) {
        fault::before("stop");
        self.stopper.stop();
        let Handles { context, scheduler, relays } = self.handles;
        scheduler.close();
        #[cfg(feature = "fleet")]
        if let Some((fleet, _)) = &context.fleet {
            // Workers have orders for the next seconds. Nobody waits for their results.
            fleet.close();
        }
        let tasks_end = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(TASKS_END_TIMEOUT, tasks_end).await.is_err() {
            tracing::warn!("some tasks did not end in time; what they held is in the ledger or still on the relays");
            self.tasks.abort_all();
        }
        let devices_end = tokio::task::spawn_blocking(move || drop(scheduler));
        if tokio::time::timeout(DEVICES_END_TIMEOUT, devices_end).await.is_err() {
            tracing::warn!(
                "a device does not end its launch in time; its jobs are searched again after the next start"
            );
        }
        let _ = tokio::time::timeout(RELAYS_END_TIMEOUT, relays.disconnect()).await;
        // A thread that hangs may still hold the ledger. It must not touch the file later.
        context.ledger.close();
        fault::after("stop");
    }
}

/// Starts the devices on the jobs still open.
fn start_search(context: &ServiceContext, opener: DeviceOpener) -> anyhow::Result<Arc<Scheduler>> {
    let results = Results::new(context.clone());
    let (options, vault) = (&context.config.search, context.vault.clone());
    let surroundings = Surroundings::new(context.clock.clone());
    let scheduler = Scheduler::start_with(options, opener, surroundings, vault, results)?;
    scheduler.pause(context.ledger.paused_until()?.is_some());
    let open = context.ledger.open_jobs()?;
    tracing::info!(jobs = open.len(), "open jobs are taken up");
    fault::before("takeup");
    for job in open {
        scheduler.add(job.id, job.spec);
    }
    fault::after("takeup");
    Ok(Arc::new(scheduler))
}

/// Warns of DM relays whose own description says that they cannot serve (NIP-11).
async fn warn_of_bad_relays(entries: Vec<RelayEntry>) {
    for entry in entries.into_iter().filter(|entry| entry.inbox) {
        let Some(document) = nip11::read(&entry.url).await else { continue };
        for problem in nip11::problems(&document) {
            tracing::warn!(url = %entry.url, "a DM relay cannot serve: {problem}");
        }
    }
}

async fn wait_for_rate(scheduler: &Scheduler) {
    let deadline = Instant::now() + FIRST_RATE_TIMEOUT;
    while scheduler.rate().is_none() && !scheduler.is_paused() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
