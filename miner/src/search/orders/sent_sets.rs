//! The bot's record of the sets of patterns that a device has been sent, and the changes that lead
//! to the next sets.
//!
//! Launches for different jobs take turns, so a device keeps several sets. Before a launch with a
//! new set, it gets the difference to the set that is most alike.

use super::messages::{LARGEST_ORDER, ToDevice};
use super::received_sets::{MOST_BYTES, MOST_PATTERNS, PatternChange, SETS, bytes_of};
use crate::pattern::PatternSet;
use crate::search::Launch;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The most bytes of patterns in one message.
const PART: usize = LARGEST_ORDER / 2;
/// A set that this many launches did not use is forgotten when another one comes.
const UNUSED_LAUNCHES: u64 = 16;
/// Number of differences that are kept. Some devices may be a few changes behind the others.
const DIFFERENCES_KEPT: usize = 16;
/// Below this total of patterns, comparing two sets is faster than looking their difference up.
const FEW: usize = 64;

/// The sets of patterns that a device has.
pub struct SentSets {
    /// By place, which is less than [`SETS`].
    sets: BTreeMap<u8, SentSet>,
    last_generation: u64,
    /// Number of launches so far, to find the least recently used set.
    launches: u64,
}

struct SentSet {
    generation: u64,
    patterns: Arc<PatternSet>,
    bytes: usize,
    /// The number of the last launch that used it.
    used: u64,
}

/// The set of a launch, as the device knows it.
struct SharedSet {
    /// The set's place among the sets of the device.
    set: u8,
    /// The set's number.
    generation: u64,
    /// Messages to send to the device before the order.
    messages: Vec<ToDevice>,
}

impl SentSets {
    /// A device without sets. Its first set gets the number after `last_generation`.
    pub fn new(last_generation: u64) -> SentSets {
        SentSets { sets: BTreeMap::new(), last_generation, launches: 0 }
    }

    /// The messages for a launch: the change of patterns that it needs, if any, and the order.
    ///
    /// Errors: the system gives no randomness.
    pub fn order(
        &mut self,
        order: u64,
        launch: &Launch,
        differences: &Differences,
    ) -> Result<Vec<ToDevice>, getrandom::Error> {
        let SharedSet { set, generation, mut messages } = self.share(&launch.patterns, differences)?;
        messages.push(ToDevice::Order { order, set, generation, starts: launch.starts.clone() });
        Ok(messages)
    }

    /// Notes that a launch searches for these patterns. Takes constant time for a set that the
    /// device has.
    ///
    /// Errors: the system gives no randomness.
    fn share(&mut self, patterns: &Arc<PatternSet>, differences: &Differences) -> Result<SharedSet, getrandom::Error> {
        self.launches += 1;
        let launches = self.launches;
        let use_again = |(&place, set): (&u8, &mut SentSet)| {
            set.used = launches;
            SharedSet { set: place, generation: set.generation, messages: Vec::new() }
        };
        if let Some(known) = self.sets.iter_mut().find(|(_, set)| Arc::ptr_eq(&set.patterns, patterns)) {
            return Ok(use_again(known));
        }
        let apart = |set: &SentSet| set.patterns.len().abs_diff(patterns.len());
        let alike = self.sets.iter_mut().min_by_key(|(_, set)| (apart(set), launches - set.used));
        let (change, base) = match alike {
            Some(alike) => {
                let change = differences.between(Some(&alike.1.patterns), patterns)?;
                if change.is_none() {
                    // The same patterns, in another order or of other jobs.
                    alike.1.patterns = Arc::clone(patterns);
                    return Ok(use_again(alike));
                }
                let base = alike.1.generation;
                let is_whole = change.is_whole;
                (change, (!is_whole).then_some(base))
            }
            None => (differences.between(None, patterns)?, None),
        };
        let bytes = patterns.iter().map(|(_, pattern)| bytes_of(pattern)).sum();
        let forgotten = self.forget(patterns.len(), bytes);
        let place = (0..SETS as u8).find(|place| !self.sets.contains_key(place)).unwrap_or_default();
        self.last_generation = self.last_generation.wrapping_add(1);
        let generation = self.last_generation;
        self.sets.insert(place, SentSet { generation, patterns: Arc::clone(patterns), bytes, used: launches });
        Ok(SharedSet { set: place, generation, messages: parts(place, generation, base, &change, &forgotten) })
    }

    /// Forgets sets to make room for one of `coming` patterns and `bytes`. Returns their places.
    fn forget(&mut self, coming: usize, bytes: usize) -> Vec<u8> {
        let mut forgotten = Vec::new();
        while let Some((&oldest, set)) = self.sets.iter().min_by_key(|(_, set)| set.used) {
            let all: usize = self.sets.values().map(|set| set.patterns.len()).sum();
            let all_bytes: usize = self.sets.values().map(|set| set.bytes).sum();
            let is_full = self.sets.len() >= SETS || all + coming > MOST_PATTERNS || all_bytes + bytes > MOST_BYTES;
            if !is_full && set.used + UNUSED_LAUNCHES >= self.launches {
                break;
            }
            self.sets.remove(&oldest);
            forgotten.push(oldest);
        }
        forgotten
    }
}

/// A change as messages of the allowed size.
fn parts(set: u8, generation: u64, base: Option<u64>, change: &Difference, forgotten: &[u8]) -> Vec<ToDevice> {
    let mut parts: Vec<(Vec<String>, Vec<String>)> = vec![Default::default()];
    let mut bytes = 0;
    let removed = change.removed.iter().map(|text| (true, text.clone()));
    let all = removed.chain(change.added.iter().map(|text| (false, text.clone())));
    for (is_removed, text) in all {
        bytes += text.len() + 5;
        if bytes > PART {
            parts.push(Default::default());
            bytes = text.len() + 5;
        }
        if let Some((removed, added)) = parts.last_mut() {
            if is_removed { removed.push(text) } else { added.push(text) }
        }
    }
    let last = parts.len() - 1;
    let message = |(at, (removed, added))| {
        let (is_first, is_last) = (at == 0, at == last);
        let forgotten = if is_last { forgotten.to_vec() } else { Vec::new() };
        ToDevice::Patterns(PatternChange { set, generation, base, is_first, is_last, removed, added, forgotten })
    };
    parts.into_iter().enumerate().map(message).collect()
}

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

/// The newest differences. When a job comes or goes, every device needs the same one, and computing
/// it takes time in proportion to the sets. Cheap to clone; clones share them.
#[derive(Clone, Default)]
pub struct Differences(Arc<Mutex<Vec<KnownDifference>>>);

struct KnownDifference {
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
        let is_it = |known: &&KnownDifference| {
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
        let surplus = (all.len() + 1).saturating_sub(DIFFERENCES_KEPT);
        all.drain(..surplus);
        let (before, now) = (before.map(Arc::downgrade), Arc::downgrade(now));
        all.push(KnownDifference { before, now, difference: Arc::clone(&difference) });
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
    use super::super::messages::encode;
    use super::*;

    fn share(sets: &mut SentSets, texts: &[String]) -> SharedSet {
        sets.share(&set(texts), &Differences::default()).unwrap()
    }

    fn set(texts: &[String]) -> Arc<PatternSet> {
        Arc::new(PatternSet::new(texts.iter().map(|text| text.parse().unwrap()).collect()))
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    /// The base of a change in one message, and its removed and added patterns, sorted.
    fn change(shared: &SharedSet) -> (Option<u64>, Vec<String>, Vec<String>) {
        let [ToDevice::Patterns(PatternChange { base, removed, added, is_first: true, is_last: true, .. })] =
            &shared.messages[..]
        else {
            panic!("{} messages", shared.messages.len())
        };
        let sorted = |texts: &Vec<String>| {
            let mut texts = texts.clone();
            texts.sort();
            texts
        };
        (*base, sorted(removed), sorted(added))
    }

    #[test]
    fn a_set_is_sent_once_and_then_what_changes_in_it() {
        let mut sets = SentSets::new(6);
        let first = share(&mut sets, &texts(&["m0ctane", "alyce", "cafe"]));
        assert_eq!((first.generation, change(&first)), (7, (None, vec![], texts(&["alyce", "cafe", "m0ctane"]))));
        let again = share(&mut sets, &texts(&["m0ctane", "alyce", "cafe"]));
        assert!(again.messages.is_empty() && again.generation == 7);
        let next = share(&mut sets, &texts(&["m0ctane", "cafe", "stack"]));
        assert_eq!(change(&next), (Some(7), texts(&["alyce"]), texts(&["stack"])));
        let twice = share(&mut sets, &texts(&["cafe", "m0ctane", "stack", "cafe"]));
        assert!(twice.messages.is_empty() && twice.generation == 8, "another order, and two jobs with one pattern");
        assert_eq!(share(&mut sets, &texts(&["m0ctane", "alyce", "cafe"])).generation, 7, "both sets are kept");
        let none = share(&mut sets, &[]);
        assert_eq!(change(&none), (None, vec![], vec![]), "nothing is cheaper than all that goes");
    }

    #[test]
    fn sets_in_turn_change_nothing_and_the_least_used_make_room() {
        let mut sets = SentSets::new(0);
        let all: Vec<_> = (0..SETS).map(|at| set(&texts(&["m0ctane", &"q".repeat(at + 1)]))).collect();
        let differences = Differences::default();
        for round in 0..3 {
            for (place, set) in all.iter().enumerate() {
                let shared = sets.share(set, &differences).unwrap();
                assert_eq!((shared.set, shared.messages.is_empty()), (place as u8, round > 0));
            }
        }
        let forgotten = |shared: &SharedSet| match &shared.messages[..] {
            [ToDevice::Patterns(PatternChange { forgotten, .. })] => forgotten.clone(),
            _ => panic!("{} messages", shared.messages.len()),
        };
        let shared = share(&mut sets, &texts(&["stack"]));
        assert_eq!((shared.set, forgotten(&shared)), (0, vec![0]), "the one that was not used for longest");
        assert!(sets.share(&all[1], &differences).unwrap().messages.is_empty());
        (0..UNUSED_LAUNCHES).for_each(|_| drop(sets.share(&all[1], &differences).unwrap()));
        let shared = share(&mut sets, &texts(&["cafe"]));
        assert_eq!(forgotten(&shared).len(), SETS - 1, "those that no launch uses");
    }

    #[test]
    fn sets_that_are_too_large_together_are_forgotten() {
        let mut sets = SentSets::new(0);
        let large = |text: &str| set(&vec![text.to_owned(); MOST_PATTERNS / 2 - 1]);
        let differences = Differences::default();
        for text in ["qq", "pp"] {
            sets.share(&large(text), &differences).unwrap();
        }
        let third = sets.share(&large("zz"), &differences).unwrap();
        let [ToDevice::Patterns(PatternChange { forgotten, .. })] = &third.messages[..] else { panic!("one message") };
        assert_eq!(*forgotten, [0]);
    }

    #[test]
    fn one_job_more_among_many_costs_a_few_bytes_and_a_large_set_goes_in_parts() {
        let number = |at: usize| format!("{at:012}").replace('1', "q");
        let mut all: Vec<String> = (0..200_000).map(number).collect();
        let mut sets = SentSets::new(0);
        let whole = share(&mut sets, &all);
        assert!(whole.messages.len() > 4);
        let sizes: Vec<usize> = whole.messages.iter().map(|message| encode(message).unwrap().len()).collect();
        assert!(sizes.iter().all(|&size| size <= LARGEST_ORDER), "{sizes:?}");
        all[77] = "m0ctane".to_owned();
        let next = share(&mut sets, &all);
        assert_eq!(change(&next), (Some(1), vec![number(77)], texts(&["m0ctane"])));
        let size = encode(&next.messages[0]).unwrap().len();
        assert!(size < 64, "{size} bytes");
    }

    fn numbered(patterns: usize) -> Arc<PatternSet> {
        let text = |at: usize| format!("{at:08}").replace('1', "q");
        Arc::new(PatternSet::new((0..patterns).map(|at| text(at).parse().unwrap()).collect()))
    }

    #[test]
    fn a_difference_is_found_once_for_all_devices() {
        let (all, old, new) = (Differences::default(), numbered(1000), numbered(1001));
        let first = all.between(Some(&old), &new).unwrap();
        assert_eq!((first.removed.len(), first.added.len(), first.is_whole), (0, 1, false));
        assert!(Arc::ptr_eq(&first, &all.clone().between(Some(&old), &new).unwrap()));
        let whole = all.between(None, &new).unwrap();
        assert!(whole.is_whole && whole.added.len() == 1001 && Arc::ptr_eq(&whole, &all.between(None, &new).unwrap()));
        assert!(all.between(Some(&new), &numbered(1001)).unwrap().is_none(), "another set of the same patterns");
        let back = all.between(Some(&new), &old).unwrap();
        assert_eq!((back.removed.len(), back.added.len()), (1, 0));
    }

    #[test]
    fn the_order_tells_nothing() {
        let sorted: Vec<String> = numbered(200).iter().map(|(_, pattern)| pattern.to_string()).collect();
        let order = || Difference::new(None, &numbered(200)).unwrap().added;
        let (one, other) = (order(), order());
        assert!(one != other && one != sorted && other != sorted);
        assert_eq!(one.into_iter().collect::<BTreeSet<_>>(), sorted.into_iter().collect());
    }

    #[test]
    fn few_differences_are_kept_and_none_of_sets_that_are_gone() {
        let (all, old) = (Differences::default(), numbered(100));
        let sets: Vec<_> = (0..3 * DIFFERENCES_KEPT).map(|more| numbered(101 + more)).collect();
        for new in &sets {
            all.between(Some(&old), new).unwrap();
            assert!(all.0.lock().unwrap().len() <= DIFFERENCES_KEPT);
        }
        assert_eq!(all.0.lock().unwrap().len(), DIFFERENCES_KEPT);
        drop(sets);
        all.between(None, &old).unwrap();
        assert_eq!(all.0.lock().unwrap().len(), 1);
    }
}
