//! The rooms wired together: the service that `npubbot serve`, the demo and the tests run.
//!
//! ```text
//! relays → inbox → requests (decide, T1) → scheduler → results (redeem, T2) → outbox (T3) → relays
//! ```

mod backlog;
mod doctor;
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
#[cfg(feature = "fleet")]
use crate::fleet::{Credentials, Fleet};
use crate::ledger::{self, Job, Ledger, LedgerError, Totals};
use crate::message::{Answered, OutgoingMessage};
use crate::nostr::{Arrival, EncryptionKeys, Reach, Relays, nip11};
use crate::roster::Roster;
use crate::scheduler::{DeviceOpener, Scheduler};
use crate::search::Surroundings;
use crate::shutdown::{self, Shutdown, Stopper};
use crate::vault::{DirectSpawner, PublicSettings, Spawner, Vault};
use crate::web::PAGE_SHA256;
use backlog::NewAskers;
use monitor::Pulse;
use results::Results;
use std::collections::HashSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
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
            new_askers: NewAskers::new(config.limits.new_askers_per_minute),
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

/// The least time after which relays may delete a message about a job. The outbox tries for 14 days,
/// and the date of a wrap is up to two days back.
const RESULT_LIFE: Duration = Duration::from_secs(16 * 86_400);

/// The value of a result. Its error is a warning in the log, with this text.
fn or_warn<T>(result: Result<T, impl Display>, text: &str) -> Option<T> {
    result.inspect_err(|error| tracing::warn!(%error, "{text}")).ok()
}

/// The wake-ups by which parts of the service tell each other of new work. Each has one waiting
/// task. A call made while it does not wait is kept, and several such calls count as one.
#[derive(Clone, Debug, Default)]
struct Wakes {
    /// The outbox has a new message.
    pub outbox: Arc<Notify>,
    /// A job was added or removed: the public status may have changed.
    pub status: Arc<Notify>,
    /// A public event is ready to be published.
    pub post: Arc<Notify>,
    /// The last status of this run is published; the publisher may end.
    pub goodbye: Arc<Notify>,
    /// The watchdog found a relay that no longer delivers: subscribe again.
    pub resubscribe: Arc<Notify>,
    /// Somebody wants to know whether the maintenance task still runs ([`Pulse`]).
    pub ping: Arc<Notify>,
}

/// The state that all parts of the service share. Cheap to clone.
#[derive(Clone)]
struct ServiceContext {
    pub vault: Vault,
    pub ledger: Ledger,
    pub clock: Clock,
    pub config: Arc<Config>,
    pub wakes: Wakes,
    pub encryption_keys: Arc<EncryptionKeys>,
    pub pulse: Arc<Pulse>,
    pub new_askers: NewAskers,
    /// The tasks and threads of the service; those of the search are on the scheduler's roster.
    pub roster: Roster,
    /// The workers on other machines and the bot's credentials, if the configuration has a server for
    /// them.
    #[cfg(feature = "fleet")]
    pub fleet: Option<(Fleet, Arc<Credentials>)>,
    pub shutdown: Shutdown,
}

/// The handles of a running service. Cheap to clone.
#[derive(Clone)]
struct Handles {
    pub context: ServiceContext,
    pub scheduler: Arc<Scheduler>,
    pub relays: Relays,
}

impl Handles {
    /// The tasks and threads of the service and of the search.
    pub fn rosters(&self) -> impl Iterator<Item = &Roster> {
        [&self.context.roster, self.scheduler.roster()].into_iter()
    }

    /// The tasks and threads that are gone now.
    pub fn gone(&self) -> Vec<String> {
        self.rosters().flat_map(Roster::gone).collect()
    }

    /// Each task and thread with the number of times it was started again.
    pub fn restarts(&self) -> Vec<(String, u64)> {
        self.rosters().flat_map(Roster::restarts).collect()
    }
}

impl ServiceContext {
    /// The answer to a message.
    pub fn answer_to(&self, arrival: &Arrival, text: String, now: u64) -> OutgoingMessage {
        let message = &arrival.message;
        OutgoingMessage {
            to: message.author,
            encryption_key: message.encryption_key,
            text,
            in_reply_to: Some(Answered::seen(message.id, &arrival.seen_on())),
            subject: message.subject.clone(),
            expires_at: now + self.config.bot.answers_expire_after.as_secs(),
            not_before: 0,
        }
    }

    /// A message that the bot sends on its own about a job: a result or a notice. It is encrypted
    /// to the asker's key that is in force now.
    pub fn message_about(&self, job: &Job, text: String, now: u64) -> OutgoingMessage {
        let (asker, used) = (job.spec.asker, job.spec.encryption_key);
        OutgoingMessage {
            to: asker,
            encryption_key: self.encryption_keys.in_force(asker, used, job.accepted_at),
            text,
            in_reply_to: Some(Answered::seen(job.rumor, &job.seen_on)),
            subject: job.spec.subject.clone(),
            // If the clock has gone back, relays and clients would otherwise treat the message as
            // expired.
            expires_at: now.max(job.accepted_at) + self.config.bot.answers_expire_after.max(RESULT_LIFE).as_secs(),
            not_before: job.accepted_at + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A context with the ledger in `folder` and the default configuration.
    pub(super) fn context(folder: &std::path::Path, clock: Clock, shutdown: Shutdown) -> ServiceContext {
        ServiceContext {
            vault: Vault::without_identity().unwrap().with_clock(clock.clone()),
            ledger: Ledger::open(folder, clock.clone()).unwrap(),
            clock,
            config: Arc::new(Config::embedded_default().unwrap()),
            wakes: Wakes::default(),
            encryption_keys: Arc::default(),
            pulse: Arc::default(),
            new_askers: NewAskers::new(1000),
            roster: Roster::default(),
            #[cfg(feature = "fleet")]
            fleet: None,
            shutdown,
        }
    }
}
