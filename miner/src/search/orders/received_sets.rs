//! The device's side of [`super::sent_sets`]: the sets of patterns that it has received from the
//! bot.

use crate::pattern::{Pattern, PatternSet};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most sets that a device keeps.
pub const SETS: usize = 8;
/// The most patterns of all sets together. The limit keeps a bot from filling a device's memory.
pub const MOST_PATTERNS: usize = 1 << 20;

/// The most bytes of the patterns of all sets together: their texts, and 64 bytes for each interval
/// of keys that they match. A bot's largest set takes half of it.
pub const MOST_BYTES: usize = 256 << 20;
/// Bytes that count for one interval.
const INTERVAL_BYTES: usize = 64;

/// The bytes that a pattern counts for.
pub fn bytes_of(pattern: &Pattern) -> usize {
    pattern.as_str().len() + INTERVAL_BYTES * pattern.interval_count()
}

/// The sets of a device.
#[derive(Default)]
pub struct ReceivedSets {
    sets: [Option<ReceivedSet>; SETS],
    coming: Option<PartialChange>,
}

struct ReceivedSet {
    generation: u64,
    patterns: BTreeMap<String, Pattern>,
    bytes: usize,
    /// The patterns for a launch.
    launch: Arc<PatternSet>,
}

/// A change whose last part has not arrived yet.
struct PartialChange {
    set: u8,
    generation: u64,
    base: Option<u64>,
    removed: Vec<String>,
    added: Vec<(String, Pattern)>,
    /// Bytes of both.
    bytes: usize,
}

/// A part of a change to a set, as the bot sends it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PatternChange {
    /// The place of the new set on the device.
    pub set: u8,
    /// The number of the new set.
    pub generation: u64,
    /// The number of the set that is changed; `None` for a whole set.
    pub base: Option<u64>,
    /// Whether this is the first part.
    pub is_first: bool,
    /// Whether this is the last part.
    pub is_last: bool,
    /// Patterns to remove.
    pub removed: Vec<String>,
    /// Patterns to add.
    pub added: Vec<String>,
    /// The places of sets to forget, once the new one is complete.
    pub forgotten: Vec<u8>,
}

impl ReceivedSets {
    /// Takes a part of a change. If a part is wrong, too large or out of sequence, the sets stay as
    /// they are, and orders that need the change are refused.
    pub fn take(&mut self, part: PatternChange) {
        let PatternChange { set, generation, base, is_first, is_last, removed, added, forgotten } = part;
        if is_first {
            self.coming =
                Some(PartialChange { set, generation, base, removed: Vec::new(), added: Vec::new(), bytes: 0 });
        }
        let Some(coming) = self.coming.as_mut().filter(|coming| coming.set == set && coming.generation == generation)
        else {
            return;
        };
        let added: Option<Vec<(String, Pattern)>> =
            added.into_iter().map(|text| text.parse().ok().map(|pattern| (text, pattern))).collect();
        let room = MOST_PATTERNS.saturating_sub(coming.added.len() + coming.removed.len());
        let removed_bytes: usize = removed.iter().map(String::len).sum();
        let fits = |added: &Vec<(String, Pattern)>| {
            coming.bytes += removed_bytes + added.iter().map(|(_, pattern)| bytes_of(pattern)).sum::<usize>();
            added.len() + removed.len() <= room && coming.bytes <= MOST_BYTES
        };
        match added.filter(fits) {
            Some(added) => coming.added.extend(added),
            None => {
                self.coming = None;
                return;
            }
        }
        coming.removed.extend(removed);
        if is_last && let Some(coming) = self.coming.take() {
            self.finish(coming, &forgotten);
        }
    }

    fn finish(&mut self, change: PartialChange, forgotten: &[u8]) {
        let PartialChange { set, generation, base, removed, added, .. } = change;
        let mut patterns = match base {
            None => BTreeMap::new(),
            Some(base) => match self.sets.iter().flatten().find(|set| set.generation == base) {
                Some(base) => base.patterns.clone(),
                None => return,
            },
        };
        for &place in forgotten.iter().chain([&set]) {
            if let Some(place) = self.sets.get_mut(usize::from(place)) {
                *place = None;
            }
        }
        removed.iter().for_each(|text| drop(patterns.remove(text)));
        patterns.extend(added);
        let others: usize = self.sets.iter().flatten().map(|set| set.patterns.len()).sum();
        let bytes: usize = patterns.values().map(bytes_of).sum();
        let other_bytes: usize = self.sets.iter().flatten().map(|set| set.bytes).sum();
        if patterns.is_empty() || others + patterns.len() > MOST_PATTERNS || other_bytes + bytes > MOST_BYTES {
            return;
        }
        if let Some(place) = self.sets.get_mut(usize::from(set)) {
            let launch = Arc::new(PatternSet::new(patterns.values().cloned().collect()));
            *place = Some(ReceivedSet { generation, patterns, bytes, launch });
        }
    }

    /// The patterns of the set at this place, if its number is `generation`.
    pub fn get(&self, set: u8, generation: u64) -> Option<Arc<PatternSet>> {
        let set = self.sets.get(usize::from(set))?.as_ref()?;
        (set.generation == generation).then(|| Arc::clone(&set.launch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(set: u8, generation: u64, base: Option<u64>, removed: &[&str], added: &[&str]) -> PatternChange {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        let (removed, added) = (owned(removed), owned(added));
        PatternChange { set, generation, base, is_first: true, is_last: true, removed, added, forgotten: Vec::new() }
    }

    fn texts(sets: &ReceivedSets, set: u8, generation: u64) -> Option<Vec<String>> {
        let set = sets.get(set, generation)?;
        Some(set.iter().map(|(_, pattern)| pattern.to_string()).collect())
    }

    fn some(texts: &[&str]) -> Option<Vec<String>> {
        Some(texts.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_changed_set_stands_beside_the_old_one_until_that_is_forgotten() {
        let mut sets = ReceivedSets::default();
        sets.take(part(0, 1, None, &[], &["qq", "pp"]));
        sets.take(part(1, 2, Some(1), &["qq"], &["zz"]));
        assert_eq!((texts(&sets, 0, 1), texts(&sets, 1, 2)), (some(&["pp", "qq"]), some(&["pp", "zz"])));
        sets.take(PatternChange { forgotten: vec![0, 9], ..part(2, 3, Some(1), &[], &["cafe"]) });
        assert_eq!((texts(&sets, 0, 1), texts(&sets, 2, 3)), (None, some(&["cafe", "pp", "qq"])));
        sets.take(part(1, 4, None, &[], &["cafe"]));
        assert_eq!((texts(&sets, 1, 2), texts(&sets, 1, 4)), (None, some(&["cafe"])));
    }

    #[test]
    fn a_change_whose_parts_or_base_are_missing_changes_nothing() {
        let mut sets = ReceivedSets::default();
        sets.take(part(0, 1, None, &[], &["qq"]));
        sets.take(part(0, 3, Some(2), &[], &["zz"]));
        sets.take(PatternChange { is_last: false, ..part(0, 4, Some(1), &[], &["zz"]) });
        sets.take(PatternChange { is_first: false, ..part(0, 5, Some(1), &[], &["zz"]) });
        sets.take(part(0, 6, Some(1), &[], &["b"]));
        sets.take(part(SETS as u8, 7, None, &[], &["zz"]));
        assert_eq!(texts(&sets, 0, 1), some(&["qq"]));
        for generation in 2..8 {
            assert!(sets.get(0, generation).is_none() && sets.get(SETS as u8, generation).is_none());
        }
        sets.take(PatternChange { is_last: false, ..part(0, 8, Some(1), &["qq"], &["zz"]) });
        assert_eq!(texts(&sets, 0, 1), some(&["qq"]), "half a change is none");
        sets.take(PatternChange { is_first: false, ..part(0, 8, Some(1), &[], &["pp"]) });
        assert_eq!(texts(&sets, 0, 8), some(&["pp", "zz"]));
        sets.take(part(1, 9, None, &[], &[]));
        assert!(sets.get(1, 9).is_none(), "a launch has a pattern");
    }

    #[test]
    fn all_sets_together_are_bounded() {
        let mut sets = ReceivedSets::default();
        let half = || (0..MOST_PATTERNS / 2).map(|at| format!("{at:07}").replace('1', "q")).collect();
        sets.take(PatternChange { added: half(), ..part(0, 1, None, &[], &[]) });
        assert!(sets.get(0, 1).is_some());
        let too_many = vec!["qq".to_owned(); MOST_PATTERNS + 1];
        sets.take(PatternChange { added: too_many, ..part(1, 2, None, &[], &[]) });
        assert!(sets.get(1, 2).is_none() && sets.coming.is_none());
        sets.take(part(2, 3, Some(1), &[], &["zzzzzzzz"]));
        assert!(sets.get(2, 3).is_none() && sets.get(0, 1).is_some(), "two of them are more than all");
        sets.take(PatternChange { forgotten: vec![0], ..part(2, 4, Some(1), &[], &["zzzzzzzz"]) });
        assert!(sets.get(2, 4).is_some_and(|set| set.len() > MOST_PATTERNS / 4));
    }

    /// A pattern with `?` before fixed characters has many intervals in few characters.
    #[test]
    fn the_bytes_of_all_sets_together_are_bounded() {
        let wide = |at: usize| {
            let letters: Vec<char> = "qpzry9x8gf2tvdw0s3jn54khce6mua7l".chars().collect();
            format!("??{}{}{}", letters[at % 32], letters[at / 32 % 32], letters[at / 1024 % 32])
        };
        let one = bytes_of(&wide(0).parse().unwrap());
        assert!(one > 60_000, "{one} bytes for 5 characters");
        let count = MOST_BYTES / one;
        assert!(count < 20_480, "far fewer than the most patterns");
        let all = |count: usize| -> Vec<String> { (0..count).map(wide).collect() };
        let mut sets = ReceivedSets::default();
        sets.take(PatternChange { added: all(count + 1), ..part(0, 1, None, &[], &[]) });
        assert!(sets.get(0, 1).is_none() && sets.coming.is_none(), "one change");
        sets.take(PatternChange { added: all(count - 1), ..part(0, 2, None, &[], &[]) });
        assert!(sets.get(0, 2).is_some());
        sets.take(PatternChange { added: all(2), ..part(1, 3, None, &[], &[]) });
        assert!(sets.get(1, 3).is_none() && sets.get(0, 2).is_some(), "all sets");
        let long = vec!["q".repeat(MOST_BYTES / 8); 9];
        sets.take(PatternChange { removed: long, ..part(1, 4, None, &[], &["qq"]) });
        assert!(sets.get(1, 4).is_none() && sets.coming.is_none(), "texts to remove");
    }
}
