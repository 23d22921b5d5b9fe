//! The rooms wired together: what `npubbot serve` runs, and the demo and the tests too.
//!
//! ```text
//! relays → inbox → desk (decide, T1) → scheduler → treasury (redeem, T2) → outbox (T3) → relays
//! ```

mod compose;
mod doctor;
mod maintenance;
mod requests;
mod results;
mod status;
mod supervise;
mod vanish;

pub use doctor::{Finding, Verdict, doctor};

use crate::clock::Clock;
use crate::config::{Config, RelayEntry};
use crate::fault::{self, Step};
use crate::ledger::{Ledger, LedgerError, Totals};
use crate::nostr::{
    Awaited, Flood, Inbox, NostrError, Outbox, Presence, Publisher, RelayLists, Relays, Watchdog, nip11,
};
use crate::pattern::Rate;
use crate::scheduler::{DeviceView, Scheduler};
use crate::search::SearchError;
use crate::shutdown::{self, Stopper};
use crate::vault::Vault;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use supervise::supervise;
use thiserror::Error;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;

/// Messages that may wait for the desk before the inbox waits.
const MESSAGES_WAITING: usize = 256;
/// How long the start waits for the first relay, and for the first announcement.
const START_PATIENCE: Duration = Duration::from_secs(3);
/// How long the start waits for the first measured rate: without one, no promise can be made and no request is too hard.
const RATE_PATIENCE: Duration = Duration::from_secs(20);
/// How long a clean stop waits for its tasks, then for the devices' launches in flight, then for the relays: with all else
/// below two seconds.
const TASKS_PATIENCE: Duration = Duration::from_millis(700);
const DEVICES_PATIENCE: Duration = Duration::from_millis(500);
const RELAYS_PATIENCE: Duration = Duration::from_millis(200);

/// The bot, running.
pub struct Service {
    scheduler: Arc<Scheduler>,
    ledger: Ledger,
    relays: Relays,
    stopper: Stopper,
    tasks: JoinSet<()>,
}

/// Why the bot does not start.
#[derive(Debug, Error)]
pub enum ServiceError {
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Search(#[from] SearchError),
    #[error(transparent)]
    Nostr(#[from] NostrError),
}

impl Service {
    /// Starts everything: takes up the jobs that were open, measures the devices, connects, announces the bot.
    pub async fn start(config: Config, data: &Path, vault: Vault, clock: Clock) -> Result<Service, ServiceError> {
        let ledger = Ledger::open(data, clock.clone())?;
        let vault = vault.with_clock(clock.clone());
        let (stopper, shutdown) = shutdown::pair();
        let outbox_wake = Arc::new(Notify::new());
        let changed = Arc::new(Notify::new());

        let treasury = results::Results {
            vault: vault.clone(),
            ledger: ledger.clone(),
            clock: clock.clone(),
            bot: config.bot.clone(),
            outbox: Arc::clone(&outbox_wake),
            changed: Arc::clone(&changed),
            shutdown: shutdown.clone(),
        };
        let scheduler = Arc::new(Scheduler::start(&config.search, vault.clone(), move |find| treasury.settle(find))?);
        let open = ledger.open_jobs()?;
        tracing::info!(jobs = open.len(), "open jobs are taken up");
        fault::before(Step::TakeUp);
        for job in open {
            scheduler.add(job.id, job.spec);
        }
        fault::after(Step::TakeUp);

        let relays = Relays::connect(&config.relays, config.bot.visit_askers_relays, vault.signer()).await?;
        wait_for_rate(&scheduler).await;
        let connected = relays.wait_for_any(START_PATIENCE).await;
        tracing::info!(connected, of = config.relays.len(), "relays");

        tokio::spawn(warn_of_bad_relays(config.relays.clone()));
        let (posted, goodbye) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let presence = Presence {
            relays: relays.clone(),
            signer: vault.signer(),
            bot: config.bot.clone(),
            ledger: ledger.clone(),
            clock: clock.clone(),
            posted: Arc::clone(&posted),
            goodbye: Arc::clone(&goodbye),
        };
        let (relay_lists, awaited, deaf) =
            (Arc::new(RelayLists::default()), Awaited::default(), Arc::new(Notify::new()));
        let (status, status_seen) = watch::channel(status_of(&scheduler));
        let (messages, received) = mpsc::channel(MESSAGES_WAITING);
        let flood = Flood::new(config.limits.flood_work_bits, config.limits.new_askers_per_minute);
        let inbox = Inbox {
            relays: relays.clone(),
            vault: vault.clone(),
            ledger: ledger.clone(),
            clock: clock.clone(),
            limits: config.limits.clone(),
            flood: flood.clone(),
            relay_lists: Arc::clone(&relay_lists),
            awaited: awaited.clone(),
            deaf: Arc::clone(&deaf),
        };
        let outbox = Outbox {
            relays: relays.clone(),
            ledger: ledger.clone(),
            clock: clock.clone(),
            bot: config.bot.clone(),
            relay_lists,
        };
        let watchdog = Watchdog {
            relays: relays.clone(),
            vault: vault.clone(),
            clock: clock.clone(),
            every: config.bot.try_relays_every,
            awaited,
            deaf,
        };
        let desk = requests::Requests {
            vault: vault.clone(),
            ledger: ledger.clone(),
            scheduler: Arc::clone(&scheduler),
            clock: clock.clone(),
            config: config.clone(),
            flood,
            outbox: Arc::clone(&outbox_wake),
            changed: Arc::clone(&changed),
            shutdown: shutdown.clone(),
        };
        let keeper = maintenance::Maintenance {
            vault,
            ledger: ledger.clone(),
            scheduler: Arc::clone(&scheduler),
            clock,
            bot: config.bot.clone(),
            outbox: Arc::clone(&outbox_wake),
            changed,
            relays: relays.clone(),
        };
        let vanished =
            vanish::Vanish { ledger: ledger.clone(), scheduler: Arc::clone(&scheduler), relays: relays.clone() };

        presence.wake(&status_of(&scheduler));
        let mut billboard = Publisher::new(relays.clone(), ledger.clone());
        // Relays that are too late get it from `run`.
        let _ = tokio::time::timeout(START_PATIENCE, billboard.round()).await;
        let mut tasks = JoinSet::new();
        let stop = shutdown.clone();
        tasks.spawn(supervise("inbox", move || inbox.clone().run(messages.clone(), stop.clone())));
        tasks.spawn_blocking(move || desk.run(received));
        let stop = shutdown.clone();
        tasks.spawn(supervise("outbox", move || outbox.clone().run(Arc::clone(&outbox_wake), stop.clone())));
        let stop = shutdown.clone();
        tasks.spawn(supervise("presence", move || presence.clone().run(status_seen.clone(), stop.clone())));
        let stop = shutdown.clone();
        let speak = move || billboard.clone().run(Arc::clone(&posted), Arc::clone(&goodbye), stop.clone());
        tasks.spawn(supervise("billboard", speak));
        let stop = shutdown.clone();
        tasks.spawn(supervise("watchdog", move || watchdog.clone().run(stop.clone())));
        let stop = shutdown.clone();
        tasks.spawn(supervise("vanished", move || vanished.clone().run(stop.clone())));
        tasks.spawn(supervise("keeper", move || keeper.clone().run(status.clone(), shutdown.clone())));
        Ok(Service { scheduler, ledger, relays, stopper, tasks })
    }

    /// The rate all devices together were measured at.
    pub fn rate(&self) -> Option<Rate> {
        self.scheduler.rate()
    }

    /// Candidates tested since the start.
    pub fn candidates(&self) -> u64 {
        self.scheduler.candidates()
    }

    pub fn devices(&self) -> Vec<DeviceView> {
        self.scheduler.devices()
    }

    pub fn totals(&self) -> Result<Totals, LedgerError> {
        self.ledger.totals()
    }

    /// For tests of a full disk.
    #[doc(hidden)]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Ends cleanly within two seconds. What is not sent yet is in the ledger and goes out after the next start.
    pub async fn stop(mut self) {
        fault::before(Step::Stop);
        self.stopper.stop();
        self.scheduler.close();
        let tasks_end = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(TASKS_PATIENCE, tasks_end).await.is_err() {
            tracing::warn!("some tasks did not end in time; what they held is in the ledger or still on the relays");
            self.tasks.abort_all();
        }
        let scheduler = self.scheduler;
        let devices_end = tokio::task::spawn_blocking(move || drop(scheduler));
        if tokio::time::timeout(DEVICES_PATIENCE, devices_end).await.is_err() {
            tracing::warn!(
                "a device does not end its launch in time; its jobs are searched again after the next start"
            );
        }
        let _ = tokio::time::timeout(RELAYS_PATIENCE, self.relays.disconnect()).await;
        // A thread that hangs may still hold the ledger: whatever it does later is not to touch the file.
        self.ledger.close();
        fault::after(Step::Stop);
    }
}

/// The public status in words.
fn status_of(scheduler: &Scheduler) -> String {
    status::describe(scheduler.rate(), scheduler.open_jobs())
}

/// Names DM relays that say of themselves that they cannot serve (NIP-11).
async fn warn_of_bad_relays(entries: Vec<RelayEntry>) {
    for entry in entries.into_iter().filter(|entry| entry.inbox) {
        let Some(document) = nip11::read(&entry.url).await else { continue };
        for problem in nip11::problems(&document) {
            tracing::warn!(url = %entry.url, "a DM relay cannot serve: {problem}");
        }
    }
}

async fn wait_for_rate(scheduler: &Scheduler) {
    let deadline = Instant::now() + RATE_PATIENCE;
    while scheduler.rate().is_none() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
