//! The differences between sets of patterns, each computed once for all devices.
//!
//! When a job comes or goes, every device needs the same difference between the same two sets.
//! Computing it takes time in proportion to the sets, and a whole set must also be shuffled.

use crate::pattern::PatternSet;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Number of differences that are kept. Some devices may be a few changes behind the others.
const KEPT: usize = 16;
/// Below this total of patterns, comparing two sets is faster than looking their difference up.
const FEW: usize = 64;

/// The change from one set to another, in random order, because the order of a set tells which
/// patterns belong together.
#[derive(Debug, Default)]
pub struct Difference {
    /// Patterns that go.
    pub removed: Vec<String>,
    /// Patterns that come.
    pub added: Vec<String>,
    /// Whether the whole set is replaced. Then `added` is the new set.
    pub is_whole: bool,
}

impl Difference {
    /// Whether both sets have the same patterns.
    pub fn is_none(&self) -> bool {
        !self.is_whole && self.removed.is_empty() && self.added.is_empty()
    }

    fn new(before: Option<&PatternSet>, now: &PatternSet) -> Result<Difference, getrandom::Error> {
        let texts = |set: &PatternSet| set.iter().map(|(_, pattern)| pattern.to_string()).collect::<BTreeSet<String>>();
        let (old, new) = (before.map(texts).unwrap_or_default(), texts(now));
        let mut removed: Vec<String> = old.difference(&new).cloned().collect();
        let mut added: Vec<String> = new.difference(&old).cloned().collect();
        let is_whole = before.is_none() || removed.len() + added.len() > new.len();
        if is_whole {
            (removed, added) = (Vec::new(), new.into_iter().collect());
        }
        shuffle(&mut removed)?;
        shuffle(&mut added)?;
        Ok(Difference { removed, added, is_whole })
    }
}

/// The newest differences. Cheap to clone; clones share them.
#[derive(Clone, Default)]
pub struct Differences(Arc<Mutex<Vec<Known>>>);

struct Known {
    before: Option<Weak<PatternSet>>,
    now: Weak<PatternSet>,
    difference: Arc<Difference>,
}

impl Differences {
    /// The change from `before` to `now`. With `None`, the change from an empty set.
    ///
    /// Errors: the system gives no randomness.
    pub fn between(
        &self,
        before: Option<&Arc<PatternSet>>,
        now: &Arc<PatternSet>,
    ) -> Result<Arc<Difference>, getrandom::Error> {
        let make = || Ok(Arc::new(Difference::new(before.map(AsRef::as_ref), now)?));
        if before.map_or(0, |set| set.len()) + now.len() < FEW {
            return make();
        }
        let is = |weak: &Weak<PatternSet>, set: &Arc<PatternSet>| weak.as_ptr() == Arc::as_ptr(set);
        let is_it = |known: &&Known| {
            let same_before = match (&known.before, before) {
                (Some(weak), Some(set)) => is(weak, set),
                (None, None) => true,
                _ => false,
            };
            same_before && is(&known.now, now)
        };
        // Stays locked while the difference is computed, because the other devices want the same
        // one.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().find(is_it) {
            return Ok(Arc::clone(&known.difference));
        }
        let difference = make()?;
        let is_in_use = |weak: &Weak<PatternSet>| weak.strong_count() > 0;
        all.retain(|known| is_in_use(&known.now) && known.before.as_ref().is_none_or(is_in_use));
        let surplus = (all.len() + 1).saturating_sub(KEPT);
        all.drain(..surplus);
        let (before, now) = (before.map(Arc::downgrade), Arc::downgrade(now));
        all.push(Known { before, now, difference: Arc::clone(&difference) });
        Ok(difference)
    }
}

/// Shuffles texts. All orders are equally likely, up to an error of one part in 2^40.
fn shuffle(texts: &mut [String]) -> Result<(), getrandom::Error> {
    for last in (1..texts.len()).rev() {
        texts.swap(last, (getrandom::u64()? % (last as u64 + 1)) as usize);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(patterns: usize) -> Arc<PatternSet> {
        let text = |at: usize| format!("{at:08}").replace('1', "q");
        Arc::new(PatternSet::new((0..patterns).map(|at| text(at).parse().unwrap()).collect()))
    }

    #[test]
    fn a_difference_is_found_once_for_all_devices() {
        let (all, old, new) = (Differences::default(), set(1000), set(1001));
        let first = all.between(Some(&old), &new).unwrap();
        assert_eq!((first.removed.len(), first.added.len(), first.is_whole), (0, 1, false));
        assert!(Arc::ptr_eq(&first, &all.clone().between(Some(&old), &new).unwrap()));
        let whole = all.between(None, &new).unwrap();
        assert!(whole.is_whole && whole.added.len() == 1001 && Arc::ptr_eq(&whole, &all.between(None, &new).unwrap()));
        assert!(all.between(Some(&new), &set(1001)).unwrap().is_none(), "another set of the same patterns");
        let back = all.between(Some(&new), &old).unwrap();
        assert_eq!((back.removed.len(), back.added.len()), (1, 0));
    }

    #[test]
    fn the_order_tells_nothing() {
        let sorted: Vec<String> = set(200).iter().map(|(_, pattern)| pattern.to_string()).collect();
        let order = || Difference::new(None, &set(200)).unwrap().added;
        let (one, other) = (order(), order());
        assert!(one != other && one != sorted && other != sorted);
        assert_eq!(one.into_iter().collect::<BTreeSet<_>>(), sorted.into_iter().collect());
    }

    #[test]
    fn few_differences_are_kept_and_none_of_sets_that_are_gone() {
        let (all, old) = (Differences::default(), set(100));
        let sets: Vec<_> = (0..3 * KEPT).map(|more| set(101 + more)).collect();
        for new in &sets {
            all.between(Some(&old), new).unwrap();
            assert!(all.0.lock().unwrap().len() <= KEPT);
        }
        assert_eq!(all.0.lock().unwrap().len(), KEPT);
        drop(sets);
        all.between(None, &old).unwrap();
        assert_eq!(all.0.lock().unwrap().len(), 1);
    }
}
