//! The worker's side of [`super::sets`]: the sets of patterns that a device has received from the
//! bot.

use super::sets::SETS;
use crate::pattern::{Pattern, PatternSet};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The most patterns of all sets together. The limit keeps a bot from filling a worker's memory.
const MOST_PATTERNS: usize = 1 << 20;

/// The sets of a device.
#[derive(Default)]
pub struct Known {
    sets: [Option<SharedSet>; SETS],
    coming: Option<Coming>,
}

/// A set, shared with the orders that wait to be searched, so that changes to the set reach them.
pub type SharedSet = Rc<RefCell<Set>>;

/// A set of patterns.
#[derive(Default)]
pub struct Set {
    generation: u64,
    patterns: BTreeMap<String, Pattern>,
}

/// A change whose last part has not arrived yet.
struct Coming {
    set: u8,
    generation: u64,
    base: Option<u64>,
    removed: Vec<String>,
    added: Vec<(String, Pattern)>,
}

/// A part of a change, as the bot sends it.
pub struct Part {
    /// The place of the set on the device.
    pub set: u8,
    /// The number that the set has after the change.
    pub generation: u64,
    /// The number that the set has before the change; `None` for a new set.
    pub base: Option<u64>,
    /// Whether this is the first part.
    pub is_first: bool,
    /// Whether this is the last part.
    pub is_last: bool,
    /// Patterns to remove.
    pub removed: Vec<String>,
    /// Patterns to add.
    pub added: Vec<String>,
}

impl Known {
    /// Takes a part of a change. If a part is wrong, too large or out of sequence, the sets stay as
    /// they are, and orders that need the change are refused.
    pub fn take(&mut self, part: Part) {
        let Part { set, generation, base, is_first, is_last, removed, added } = part;
        if is_first {
            self.coming = Some(Coming { set, generation, base, removed: Vec::new(), added: Vec::new() });
        }
        let others = self.sets.iter().enumerate().filter(|(at, _)| *at != usize::from(set) || base.is_some());
        let known: usize = others.filter_map(|(_, set)| Some(set.as_ref()?.borrow().patterns.len())).sum();
        let Some(coming) = self.coming.as_mut().filter(|coming| coming.set == set && coming.generation == generation)
        else {
            return;
        };
        let added: Option<Vec<(String, Pattern)>> =
            added.into_iter().map(|text| text.parse().ok().map(|pattern| (text, pattern))).collect();
        let room = MOST_PATTERNS.saturating_sub(known + coming.added.len() + coming.removed.len());
        match added.filter(|added| added.len() + removed.len() <= room) {
            Some(added) => coming.added.extend(added),
            None => {
                self.coming = None;
                return;
            }
        }
        coming.removed.extend(removed);
        if is_last && let Some(coming) = self.coming.take() {
            self.finish(coming);
        }
    }

    fn finish(&mut self, coming: Coming) {
        let Some(place) = self.sets.get_mut(usize::from(coming.set)) else { return };
        let set = match (coming.base, &mut *place) {
            // Waiting orders keep the old set, because another line has taken its place.
            (None, place) => place.insert(SharedSet::default()),
            (Some(base), Some(set)) if set.borrow().generation == base => set,
            _ => return,
        };
        let mut set = set.borrow_mut();
        for text in &coming.removed {
            set.patterns.remove(text);
        }
        set.patterns.extend(coming.added);
        set.generation = coming.generation;
    }

    /// The set at this place, if its present number is `generation`.
    pub fn get(&self, set: u8, generation: u64) -> Option<SharedSet> {
        let set = self.sets.get(usize::from(set))?.as_ref()?;
        (set.borrow().generation == generation).then(|| Rc::clone(set))
    }
}

impl Set {
    /// The number of the set.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// A pattern set of the `own` patterns, followed by those of this set; `None` if there are
    /// none.
    pub fn with(&self, own: &[Pattern]) -> Option<PatternSet> {
        let patterns: Vec<Pattern> = own.iter().chain(self.patterns.values()).cloned().collect();
        (!patterns.is_empty()).then(|| PatternSet::new(patterns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(generation: u64, base: Option<u64>, removed: &[&str], added: &[&str]) -> Part {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        let (removed, added) = (owned(removed), owned(added));
        Part { set: 0, generation, base, is_first: true, is_last: true, removed, added }
    }

    fn texts(set: &SharedSet) -> Vec<String> {
        set.borrow().patterns.keys().cloned().collect()
    }

    #[test]
    fn a_change_reaches_the_orders_that_wait_and_a_new_set_does_not() {
        let mut known = Known::default();
        known.take(part(1, None, &[], &["qq", "pp"]));
        let waiting = known.get(0, 1).unwrap();
        known.take(part(2, Some(1), &["qq"], &["zz"]));
        assert_eq!((texts(&waiting), waiting.borrow().generation()), (vec!["pp".into(), "zz".into()], 2));
        known.take(part(3, None, &[], &["cafe"]));
        assert_eq!((texts(&waiting).len(), waiting.borrow().generation()), (2, 2));
        assert_eq!(texts(&known.get(0, 3).unwrap()), ["cafe"]);
    }

    #[test]
    fn a_change_whose_parts_or_base_are_missing_changes_nothing() {
        let mut known = Known::default();
        known.take(part(1, None, &[], &["qq"]));
        known.take(part(3, Some(2), &[], &["zz"]));
        known.take(Part { is_last: false, ..part(4, Some(1), &[], &["zz"]) });
        known.take(Part { is_first: false, ..part(5, Some(1), &[], &["zz"]) });
        known.take(part(6, Some(1), &[], &["b"]));
        known.take(Part { set: SETS as u8, ..part(7, None, &[], &["zz"]) });
        assert_eq!(texts(&known.get(0, 1).unwrap()), ["qq"]);
        for generation in 2..8 {
            assert!(known.get(0, generation).is_none() && known.get(SETS as u8, generation).is_none());
        }
        known.take(Part { is_last: false, ..part(8, Some(1), &["qq"], &["zz"]) });
        assert_eq!(texts(&known.get(0, 1).unwrap()), ["qq"], "half a change is none");
        known.take(Part { is_first: false, ..part(8, Some(1), &[], &["pp"]) });
        assert_eq!(texts(&known.get(0, 8).unwrap()), ["pp", "zz"]);
    }

    #[test]
    fn all_sets_together_are_bounded() {
        let mut known = Known::default();
        let many = |set: u8| {
            let added = (0..MOST_PATTERNS / 2).map(|at| format!("{at:06}").replace('1', "q")).collect();
            Part { set, added, ..part(1, None, &[], &[]) }
        };
        known.take(many(0));
        assert!(known.get(0, 1).is_some());
        for set in [1, SETS as u8 - 1] {
            let added: Vec<String> = vec!["qq".to_owned(); MOST_PATTERNS / 2 + 1];
            let before: usize = known.sets.iter().flatten().map(|set| set.borrow().patterns.len()).sum();
            known.take(Part { set, added, ..part(1, None, &[], &[]) });
            assert_eq!(known.get(set, 1).is_some(), before + MOST_PATTERNS / 2 < MOST_PATTERNS, "{before}");
        }
    }
}
