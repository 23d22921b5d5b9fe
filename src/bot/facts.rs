//! The facts that a decision depends on.

use crate::config::Limits;
use crate::job::JobId;
use crate::ledger::{AskerView, HalfUse};
use crate::message::WorkWanted;
use crate::pattern::{Pattern, Rate};
use std::time::Duration;

/// A wait that is shorter is not worth a word.
const SHORT_WAIT: Duration = Duration::from_secs(2);

/// Everything a decision depends on, beside the message.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The operator's limits.
    pub limits: &'a Limits,
    /// What the ledger knows of the asker.
    pub asker: &'a AskerView,
    /// Jobs of the pool being searched, of all askers.
    pub pool_jobs: usize,
    /// Split jobs being searched, of all askers: they take turns with the pool.
    pub split_jobs: usize,
    /// The rate measured now, all devices together; `None` before the first measurement.
    pub rate: Option<Rate>,
    /// The number the job will have, should the message become one.
    pub next_job: JobId,
    /// What the half that a split request names was used for before.
    pub half: Option<HalfUse>,
    /// The part of the devices the pool has, up to 1.
    pub pool_part: f64,
    /// The part of the devices a further split job of this asker would have.
    pub split_part: f64,
    /// The part of the devices each split job of this asker has now.
    pub own_split_part: f64,
    /// A request of the pool with a prefix of at most so many bits waits until older ones are
    /// served: a launch yields only so many keys.
    pub easy_bits: u32,
    /// For so long, were all devices the pool's.
    pub easy_wait: Duration,
    /// Whether the asker publishes DM relays (kind 10050), so that their client reads sealed
    /// messages. Matters for messages of kind 4 only.
    pub reads_sealed: bool,
    /// The proof of work this asker still owes, because there is a flood and they are new.
    pub owes: Option<WorkWanted>,
    /// Unix seconds.
    pub now: u64,
}

impl Facts<'_> {
    pub(super) fn open_jobs(&self) -> usize {
        self.pool_jobs + self.split_jobs
    }

    /// How long a request waits for its turn; nothing if that is soon.
    pub(super) fn queue_for(&self, patterns: &[Pattern]) -> Duration {
        // Were one prefix hard enough to be searched at once, the easy ones would still be what is
        // found first.
        let waits = patterns.iter().any(|pattern| pattern.bits() <= self.easy_bits);
        let wait = self.easy_wait.div_f64(self.pool_part.max(0.01));
        if waits && wait >= SHORT_WAIT { wait } else { Duration::ZERO }
    }

    /// What a job with this part of the devices is searched at.
    pub(super) fn rate_of(&self, part: f64) -> Option<Rate> {
        self.rate.map(|Rate(rate)| Rate(rate * part))
    }
}
