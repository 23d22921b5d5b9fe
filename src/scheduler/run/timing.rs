//! The times by which the rates of a device are measured.

use crate::scheduler::plan::duty::Duty;
use crate::scheduler::plan::pass::Pass;
use std::sync::Arc;
use std::time::Instant;

/// The times that rates are measured by.
pub(super) struct Timing {
    /// When the device began to work without a break, or ended the launch before: rates are by wall
    /// time.
    pub busy_since: Instant,
    /// The warm-up ends.
    pub measure_from: Instant,
    /// The measurement of whole keys, once it began.
    pub whole: Option<WholeKeysTrial>,
    /// Its work and rest in turn.
    pub duty: Duty,
}

/// The measurement of the rate at which whole keys are compared.
pub(super) struct WholeKeysTrial {
    /// Its canary.
    pub pass: Arc<Pass>,
    /// The warm-up ends.
    pub measure_from: Instant,
}

impl Timing {
    /// Launches of this pass count from this time on.
    pub fn measure_from(&self, pass: &Arc<Pass>) -> Instant {
        let trial = self.whole.as_ref().filter(|trial| Arc::ptr_eq(&trial.pass, pass));
        trial.map_or(self.measure_from, |trial| trial.measure_from)
    }
}
