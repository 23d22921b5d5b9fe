//! The decoys that all workers share.

use super::health::Record;
use crate::pattern::Pattern;
use crate::scheduler::plan::decoys::Decoys;
use crate::scheduler::plan::pass::Pass;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// [`Decoys`] for all threads.
#[derive(Debug, Default)]
pub(in crate::scheduler) struct SharedDecoys(Mutex<Decoys>);

impl SharedDecoys {
    /// Sets how many there are beside the patterns of jobs.
    pub fn set_wanted(&self, wanted: usize) {
        self.lock().set_wanted(wanted);
    }

    /// The pass of a launch for a device that is not trusted.
    pub fn pass_of(&self, pass: &Pass, record: &Record) -> Pass {
        let decoys = self.lock().beside(pass, Instant::now());
        pass.for_a_stranger(record.rate_of(pass.compared()), decoys)
    }

    /// Takes decoys out of use that were found.
    pub fn found(&self, patterns: &[Pattern]) {
        let now = Instant::now();
        let mut decoys = self.lock();
        patterns.iter().for_each(|pattern| decoys.found(pattern, now));
    }

    fn lock(&self) -> MutexGuard<'_, Decoys> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
