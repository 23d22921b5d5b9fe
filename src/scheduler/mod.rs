//! The scheduler: decides which device searches for which job, and verifies the hits.
//!
//! ```text
//! Pool ──pass──▶ DeviceThread (one a device) ──▶ Searcher
//!                   │ CollectedLaunch: the device's claims, with the start points
//!                   ▼
//!               verifier (one thread): recompute every hit, judge the device
//!                   │ Find: one start point, one job
//!                   ▼
//!               `FindHandler`: redeem, record, send
//! ```
//!
//! The jobs of the pool share one pass, as many of them as its start points can serve
//! (`plan::jobs`). Split jobs are searched at their askers' points, in launches of their own
//! (`plan::device_plan`, `plan::split_line`). Every start point is fresh and serves one launch, so
//! it yields at most one find, and a crash loses nothing: the search has no memory.
//!
//! A job without a target (`best`) is in the passes with patterns rarer than its best key so far.
//! When a rarer key is found, the handler keeps it, and the job goes on with rarer patterns. When
//! the job's time is up, the handler is told.

/// Planning, without threads, clocks or devices: which patterns and start points a launch gets.
/// [`plan::prospects`] is what askers are told.
mod plan {
    pub(super) mod device_plan;
    pub(super) mod jobs;
    pub(super) mod pass;
    pub(super) mod profile;
    pub(super) mod prospects;
    pub(super) mod rest;
    pub(super) mod split_line;
}

/// Runs the search: one thread per device, and one that verifies the hits they claim.
mod run {
    pub(super) mod device_thread;
    pub(super) mod device_threads;
    pub(super) mod health;
    pub(super) mod measure;
    pub(super) mod pool;
    pub(super) mod verify;
    pub(super) mod watch;
}

#[cfg(test)]
mod tests;

pub use plan::jobs::{PatternLoad, RoomTaken};
pub use plan::pass::Pass;
pub use plan::profile::Lane;
pub use plan::prospects::{Shares, WaitEstimate};
pub use plan::rest::Rest;
pub use run::device_threads::{DeviceOpener, open_devices};
pub use run::health::{DeviceStatus, Health};
pub use run::measure::{MeasureError, Measurement, Trial, measure};
pub use run::verify::{CollectedLaunch, Find, PatternMatch, VerifiedFinds, verify};
pub use run::verify::{FindHandler, FindOutcome};

/// For `benches/scheduler.rs`.
#[doc(hidden)]
pub use run::pool::{NextStep, Pool, PoolDevice};

use crate::clock::Clock;
use crate::job::{Asker, BestSearch, JobId, JobSpec, Priority};
use crate::pattern::{Effort, Pattern, Rate, rate_in_turns};
use crate::roster::Roster;
use crate::search::{Restraints, SearchError, SearchOptions, Surroundings};
use crate::vault::Vault;
use run::device_threads::DeviceEntry;
use run::verify::Delivered;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// The most steps for computing the difficulties of one job. A step takes some tens of nanoseconds.
const STEPS: usize = 1 << 20;

/// The running search: the pool, one thread a device, and the verifier.
pub struct Scheduler {
    pool: Arc<Pool>,
    /// The devices opened at the start, and those attached later.
    devices: Mutex<Vec<DeviceEntry>>,
    /// Locked while a device is added, so that each device has one thread at a time.
    attaching: Mutex<()>,
    /// What attached devices keep to: the hours. Their own machines watch power supply and heat.
    for_attached: (Restraints, Arc<Surroundings>),
    vault: Vault,
    /// The channel to the verifier, for devices added later; `None` at the end.
    launches: Option<SyncSender<Delivered>>,
    verifier: Option<JoinHandle<()>>,
    roster: Roster,
}

impl Scheduler {
    /// Opens the devices and starts the search. `handler` gets the finds, one at a time, and
    /// answers whether the job is done. It may be a closure.
    pub fn start(options: &SearchOptions, vault: Vault, handler: impl FindHandler) -> Result<Scheduler, SearchError> {
        let surroundings = Surroundings::new(Clock::System);
        Scheduler::start_with(options, DeviceOpener::here(), surroundings, vault, handler)
    }

    /// [`Scheduler::start`] with a given clock and power supply. `opener` opens the devices.
    pub fn start_with(
        options: &SearchOptions,
        opener: DeviceOpener,
        surroundings: Surroundings,
        vault: Vault,
        handler: impl FindHandler,
    ) -> Result<Scheduler, SearchError> {
        let (mut scheduler, launches) =
            Scheduler::start_devices(options, opener, surroundings, Pool::default(), vault)?;
        let (pool, vault, roster) = (Arc::clone(&scheduler.pool), scheduler.vault.clone(), scheduler.roster.clone());
        scheduler.verifier = Some(run::verify::spawn_verifier(launches, pool, vault, handler, roster));
        Ok(scheduler)
    }

    /// The threads of the search on this machine.
    pub(crate) fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Adds a job. Every device includes it from the next launch in which the job has a turn.
    pub fn add(&self, job: JobId, spec: JobSpec) {
        self.pool.insert(job, spec);
    }

    /// The open jobs without a target, with their best keys so far.
    pub fn best(&self) -> Vec<(JobId, BestSearch)> {
        self.pool.best()
    }

    /// The open jobs and their shares of the devices, as this asker is told them.
    pub fn shares(&self, asker: Asker) -> Shares {
        self.pool.shares(asker)
    }

    /// Estimates how long a new job of the pool waits for those before it. Zero while no device has
    /// a measured rate.
    pub fn wait_estimate(&self, priority: Priority) -> WaitEstimate {
        self.serving().map_or_else(WaitEstimate::default, |serving| self.pool.wait_estimate(serving, priority))
    }

    /// Removes a job. Later finds for it are dropped.
    pub fn remove(&self, job: JobId) {
        self.pool.remove(job);
    }

    /// Number of open jobs.
    pub fn open_jobs(&self) -> usize {
        self.pool.len()
    }

    /// The rate of a job of the pool with these patterns. Patterns of both kinds take turns.
    pub fn rate_for(&self, patterns: &[Pattern]) -> Option<Rate> {
        rate_in_turns(patterns, self.rate()?, self.whole_keys_rate()?, &mut Effort::steps(STEPS))
    }

    /// Pauses the search after the launches in flight, or resumes it. During a pause jobs stay
    /// open, and new ones can be added. Devices resume within half a second.
    pub fn pause(&self, paused: bool) {
        self.pool.pause(paused);
    }

    /// Whether the search stands still and nobody knows until when: because of the operator's
    /// pause, heat or the battery.
    pub fn is_stopped(&self) -> bool {
        self.is_paused() || self.rest().is_some_and(|rest| !matches!(rest, Rest::Hours { .. }))
    }

    /// Whether the search is paused.
    pub fn is_paused(&self) -> bool {
        self.pool.is_paused()
    }

    /// Asks every device to end after the launches in flight, and returns at once. Dropping the
    /// scheduler waits for them.
    pub fn close(&self) {
        self.pool.close();
    }
}

impl Drop for Scheduler {
    /// Waits for the launches in flight. Finds that did not reach the handler are lost with their
    /// start points; their jobs are searched again after the next start.
    fn drop(&mut self) {
        self.pool.close();
        self.join_devices();
        drop(self.launches.take());
        if let Some(verifier) = self.verifier.take() {
            // If the verifier panicked, the log has the panic.
            let _ = verifier.join();
        }
    }
}
