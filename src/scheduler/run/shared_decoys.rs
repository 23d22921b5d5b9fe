//! The decoys that all workers share.

use super::health::Record;
use crate::pattern::Pattern;
use crate::scheduler::plan::decoys::Decoys;
use crate::scheduler::plan::pass::{Pass, SharedPatterns};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

/// The most sets of patterns that are kept for later launches. The pool's launches have a few sets,
/// and each split job has one.
const KEPT: usize = 64;

/// The [`Decoys`], shared by all threads.
#[derive(Debug, Default)]
pub(in crate::scheduler) struct SharedDecoys(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    decoys: Decoys,
    /// The patterns of passes with their decoys; the most recently used entry is the last.
    kept: Vec<Kept>,
}

#[derive(Debug)]
struct Kept {
    pass: Weak<Pass>,
    /// The number that [`Decoys::beside`] returned with the decoys.
    number: u64,
    patterns: Arc<SharedPatterns>,
}

impl Kept {
    fn is_of(&self, pass: &Arc<Pass>) -> bool {
        self.pass.as_ptr() == Arc::as_ptr(pass)
    }
}

impl SharedDecoys {
    /// Sets the number of decoys beside the patterns of jobs.
    pub fn set_wanted(&self, wanted: usize) {
        self.lock().decoys.set_wanted(wanted);
    }

    /// The pass of a launch for an untrusted device.
    pub fn pass_of(&self, pass: &Arc<Pass>, record: &Record) -> Pass {
        let shared = self.patterns_of(pass, Instant::now());
        pass.for_a_stranger(record.rate_of(pass.compared()), &shared)
    }

    /// The patterns of a pass, with decoys. All launches of the pass share them until the decoys
    /// change.
    fn patterns_of(&self, pass: &Arc<Pass>, now: Instant) -> Arc<SharedPatterns> {
        let State { decoys, kept } = &mut *self.lock();
        let (number, decoys) = decoys.beside(pass, now);
        let found = match kept.iter().position(|kept| kept.number == number && kept.is_of(pass)) {
            Some(at) => kept.remove(at),
            None => {
                let patterns = Arc::new(SharedPatterns::new(pass, &decoys));
                Kept { pass: Arc::downgrade(pass), number, patterns }
            }
        };
        // A pass with new decoys no longer needs its old set.
        kept.retain(|kept| kept.pass.strong_count() > 0 && !kept.is_of(pass));
        kept.drain(..(kept.len() + 1).saturating_sub(KEPT));
        let patterns = Arc::clone(&found.patterns);
        kept.push(found);
        patterns
    }

    /// Removes found decoys.
    pub fn found(&self, patterns: &[Pattern]) {
        let now = Instant::now();
        let mut state = self.lock();
        patterns.iter().for_each(|pattern| state.decoys.found(pattern, now));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::JobId;
    use crate::scheduler::plan::decoys::UNCHANGED_FOR;

    fn pass(job: i64) -> Arc<Pass> {
        let pattern: Pattern = "m0ctanev0st0".parse().unwrap();
        let rare = std::iter::once((JobId(job), &pattern));
        Arc::new(Pass::new(rare, std::iter::empty(), None, "zz".parse::<Pattern>().unwrap()))
    }

    #[test]
    fn the_launches_of_a_pass_share_their_patterns_until_the_decoys_change() {
        let (decoys, pass, now) = (SharedDecoys::default(), pass(1), Instant::now());
        decoys.set_wanted(2);
        let first = decoys.patterns_of(&pass, now);
        assert!(Arc::ptr_eq(&first, &decoys.patterns_of(&pass, now)));
        let launch = pass.for_a_stranger(None, &first);
        let decoy = launch.patterns.iter().last().unwrap().1.clone();
        decoys.found(std::slice::from_ref(&decoy));
        let later = Instant::now() + UNCHANGED_FOR;
        let second = decoys.patterns_of(&pass, later);
        assert!(!Arc::ptr_eq(&first, &second) && Arc::ptr_eq(&second, &decoys.patterns_of(&pass, later)));
        let launch = pass.for_a_stranger(None, &second);
        assert!(launch.patterns.len() == 4 && launch.patterns.iter().all(|(_, pattern)| *pattern != decoy));
        assert_eq!(decoys.lock().kept.len(), 1, "the former ones are not kept");
    }

    #[test]
    fn few_sets_of_patterns_are_kept_and_none_of_passes_that_are_gone() {
        let (decoys, now) = (SharedDecoys::default(), Instant::now());
        let passes: Vec<Arc<Pass>> = (0..3 * KEPT as i64).map(pass).collect();
        let often = decoys.patterns_of(&passes[0], now);
        for pass in &passes {
            decoys.patterns_of(pass, now);
            assert!(Arc::ptr_eq(&often, &decoys.patterns_of(&passes[0], now)), "one that is used stays");
            assert!(decoys.lock().kept.len() <= KEPT);
        }
        assert_eq!(decoys.lock().kept.len(), KEPT);
        let last = pass(7);
        drop(passes);
        decoys.patterns_of(&last, now);
        assert_eq!(decoys.lock().kept.len(), 1);
    }
}
