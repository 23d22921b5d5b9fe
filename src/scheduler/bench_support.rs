//! Plans launches without devices, for `benches/`. The scheduler itself does not use it.

use super::plan::profile::Lane;
use super::run::pool::{Next, Pool, Subscription};
use crate::job::{Asker, JobId, JobSpec};
use crate::key::HalfPoint;
use crate::pattern::{Pattern, Rate};
use crate::search::LaunchReport;

/// A pool, and one simulated device that only counts candidates.
pub struct Planning {
    pool: Pool,
    device: Subscription,
    half: HalfPoint,
}

impl Planning {
    /// A pool with one open job and `split_jobs` split jobs. All split jobs search at `half`; each
    /// belongs to a different asker.
    pub fn new(pattern: &Pattern, half: HalfPoint, split_jobs: usize) -> Planning {
        let pool = Pool::default();
        let mut device = pool.subscribe(Lane::All);
        device.set_device(2, false);
        let planning = Planning { pool, device, half };
        planning.pool.insert(JobId(0), JobSpec::local(vec![pattern.clone()]));
        (1..=split_jobs).for_each(|job| planning.add(job, pattern));
        planning
    }

    /// Adds a split job of a new asker.
    pub fn add(&self, job: usize, pattern: &Pattern) {
        let mut asker = [0; 32];
        asker[..8].copy_from_slice(&(job as u64).to_be_bytes());
        let spec = JobSpec { asker: Asker(asker), half: Some(self.half), ..JobSpec::local(vec![pattern.clone()]) };
        self.pool.insert(JobId(job as i64), spec);
    }

    /// Removes a job.
    pub fn remove(&self, job: usize) {
        self.pool.remove(JobId(job as i64));
    }

    /// Plans a launch and records it as collected.
    pub fn launch(&mut self) {
        if let Next::Search(planned) = self.pool.next(&mut self.device, Some(Rate(80e6))) {
            let report = LaunchReport { candidates: 4_000_000, ..LaunchReport::default() };
            self.device.settle(&planned, &report, 2);
        }
    }

    /// Computes the share and the place in line that a new asker would be told.
    pub fn tell(&self) -> (f64, usize) {
        let asker = Asker([0xff; 32]);
        (self.pool.shares(asker).part_of_one_more, self.pool.split_queue(asker).open)
    }
}
