//! Which job runs where.
//!
//! ```text
//! Pool ──pass──▶ worker (one thread a device) ──▶ Searcher
//!                   │ CollectedLaunch: what a launch brought, with its start points
//!                   ▼
//!               verifier (one thread): recompute every hit, judge the device,
//!                   │ Find: one start point, its hardest pattern
//!                   ▼
//!               whoever started the scheduler: redeem, record, send
//! ```
//!
//! All open jobs share one pass, as far as its start points can serve them (`plan::select`), but those on an asker's own point (split
//! keys): they take `plan::fair_share` with the others. Every start point of a launch is fresh and serves that launch only, so a start point
//! yields at most one find, and a crash loses nothing: the search has no memory.

mod plan;
mod run;
#[cfg(test)]
mod tests;

pub use plan::fair_share::Shares;
pub use plan::pass::{Lane, Owner, Pass};
pub use plan::pool::Pool;
pub use plan::wait_estimate::Queue;
pub use run::health::{DeviceView, Health};
pub use run::measure::{MeasureError, Measurement, Trial, measure};
#[doc(hidden)]
pub use run::open_devices::OpenDevice;
pub use run::verifier::FindOutcome;
pub use run::verify::{CollectedLaunch, Find, Judged, judge};
pub use run::worker::Workers;

use crate::job::{Asker, JobId, JobSpec};
use crate::pattern::Rate;
use crate::search::{self, SearchError, SearchOptions};
use crate::vault::Vault;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Launches that may wait to be verified before a device waits for the verifier.
const LAUNCHES_WAITING: usize = 64;

/// The running search: the pool, one thread a device, and the verifier.
pub struct Scheduler {
    pool: Arc<Pool>,
    workers: Workers,
    verifier: Option<JoinHandle<()>>,
}

impl Scheduler {
    /// Opens the devices and starts searching whatever the pool holds. Each find is handed to `on_find`, one at a time;
    /// its answer says whether the job is done.
    pub fn start(
        options: &SearchOptions,
        vault: Vault,
        on_find: impl FnMut(Find) -> FindOutcome + Send + 'static,
    ) -> Result<Scheduler, SearchError> {
        Scheduler::start_with(options, Arc::new(search::open), vault, on_find)
    }

    /// The same with devices that `opener` opens: for tests that look into one.
    #[doc(hidden)]
    pub fn start_with(
        options: &SearchOptions,
        opener: OpenDevice,
        vault: Vault,
        on_find: impl FnMut(Find) -> FindOutcome + Send + 'static,
    ) -> Result<Scheduler, SearchError> {
        let pool = Arc::new(Pool::default());
        let (sender, receiver) = std::sync::mpsc::sync_channel(LAUNCHES_WAITING);
        let workers = Workers::start(options, opener, Arc::clone(&pool), vault.clone(), sender)?;
        let verifier = run::verifier::spawn(receiver, Arc::clone(&pool), vault, on_find);
        Ok(Scheduler { pool, workers, verifier: Some(verifier) })
    }

    /// Adds a job; every device searches it from its next launch on, or its next turn.
    pub fn add(&self, job: JobId, spec: JobSpec) {
        self.pool.insert(job, spec);
    }

    /// The jobs and their parts of the devices as this asker sees them.
    pub fn shares(&self, asker: Asker) -> Shares {
        self.pool.shares(asker)
    }

    /// What waits before a new job of the pool; nothing as long as no device has a rate.
    pub fn queue(&self) -> Queue {
        self.workers.serving().map_or_else(Queue::default, |serving| self.pool.queue(serving))
    }

    /// Takes a job out of the pool; what devices still find for it is dropped.
    pub fn remove(&self, job: JobId) {
        self.pool.remove(job);
    }

    /// Jobs being searched.
    pub fn open_jobs(&self) -> usize {
        self.pool.len()
    }

    /// Candidates a second, all working devices together, over wall time, as last measured.
    /// `None` before the first measurement and when no device works.
    pub fn rate(&self) -> Option<Rate> {
        self.workers.rate()
    }

    /// Candidates tested since the start.
    pub fn candidates(&self) -> u64 {
        self.workers.devices().iter().map(|device| device.candidates).sum()
    }

    /// How each device fares.
    pub fn devices(&self) -> Vec<DeviceView> {
        self.workers.devices()
    }

    /// Asks every device to end after the launches in flight, and returns at once. Dropping the scheduler waits for them.
    pub fn close(&self) {
        self.pool.close();
    }
}

impl Drop for Scheduler {
    /// Ends after the launches in flight. Finds that were not settled are lost with their start points, and searched again
    /// after the next start.
    fn drop(&mut self) {
        self.pool.close();
        self.workers.join();
        if let Some(verifier) = self.verifier.take() {
            // A verifier that panicked has said so in the log.
            let _ = verifier.join();
        }
    }
}
