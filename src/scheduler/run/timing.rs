//! The times that the measurement of a device's rates needs.

use crate::scheduler::plan::duty::Duty;
use crate::scheduler::plan::pass::Pass;
use std::sync::Arc;
use std::time::Instant;

/// The times for measuring rates.
pub(super) struct Timing {
    /// When the device began to work after a break, or ended the previous launch. The time since
    /// then is the wall time of the next launch.
    pub busy_since: Instant,
    /// When the warm-up ends.
    pub measure_from: Instant,
    /// The measurement of whole keys, once it began.
    pub whole: Option<WholeKeysTrial>,
    /// The device's alternation of work and rest.
    pub duty: Duty,
}

/// The measurement of the rate at which whole keys are compared.
pub(super) struct WholeKeysTrial {
    /// The pass of the canary.
    pub pass: Arc<Pass>,
    /// When the warm-up ends.
    pub measure_from: Instant,
}

impl Timing {
    /// The time from which launches of this pass count in the rate.
    pub fn measure_from(&self, pass: &Arc<Pass>) -> Instant {
        let trial = self.whole.as_ref().filter(|trial| Arc::ptr_eq(&trial.pass, pass));
        trial.map_or(self.measure_from, |trial| trial.measure_from)
    }
}
