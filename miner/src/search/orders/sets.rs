//! The sets of patterns of a device: those that it has received, and the bot's record of those that
//! it has sent.
//!
//! Launches for different jobs take turns, so a device keeps several sets. Before a launch with a
//! new set, it gets the difference to the set that is most alike.

use super::messages::{LARGEST_ORDER, ToDevice};
use crate::pattern::{Pattern, PatternSet};
use crate::search::Launch;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most sets that a device keeps.
const SETS: usize = 8;
/// The most patterns of all sets together. The limit keeps a bot from filling a device's memory.
const MAX_PATTERNS: usize = 1 << 20;
/// The most bytes of the patterns of all sets together: their texts, and 64 bytes for each interval
/// of keys that they match. A bot's largest set takes half of it.
const MAX_BYTES: usize = 256 << 20;
/// Bytes that count for one interval.
const INTERVAL_BYTES: usize = 64;
/// The most bytes of patterns in one message.
const PART: usize = LARGEST_ORDER / 2;
/// A set that this many launches did not use is forgotten when another one comes.
const UNUSED_LAUNCHES: u64 = 16;

/// The bytes that a pattern counts for.
fn bytes_of(pattern: &Pattern) -> usize {
    pattern.as_str().len() + INTERVAL_BYTES * pattern.interval_count()
}

/// A part of a change to a set, as the bot sends it. Its patterns are sorted, because their order
/// in a launch tells which of them belong together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PatternChange {
    /// The number of the new set.
    pub set: u64,
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
    /// The numbers of sets to forget, once the new one is complete.
    pub forgotten: Vec<u64>,
    /// Whether to forget all others then. A bot that begins a session does not know the sets of
    /// earlier ones.
    pub is_only: bool,
}

/// The sets that a device has received, by number.
#[derive(Default)]
pub struct ReceivedSets {
    sets: BTreeMap<u64, ReceivedSet>,
    coming: Option<PartialChange>,
}

struct ReceivedSet {
    patterns: BTreeMap<String, Pattern>,
    bytes: usize,
    /// The patterns for a launch.
    launch: Arc<PatternSet>,
}

/// A change whose last part has not arrived yet.
struct PartialChange {
    set: u64,
    base: Option<u64>,
    removed: Vec<String>,
    added: Vec<(String, Pattern)>,
    /// Bytes of both.
    bytes: usize,
}

impl ReceivedSets {
    /// Takes a part of a change. If a part is wrong, too large or out of sequence, the sets stay as
    /// they are, and orders that need the change are refused.
    pub fn take(&mut self, part: PatternChange) {
        let PatternChange { set, base, is_first, is_last, removed, added, forgotten, is_only } = part;
        if is_first {
            self.coming = Some(PartialChange { set, base, removed: Vec::new(), added: Vec::new(), bytes: 0 });
        }
        let Some(mut coming) = self.coming.take_if(|coming| coming.set == set) else { return };
        let added: Option<Vec<(String, Pattern)>> =
            added.into_iter().map(|text| text.parse().ok().map(|pattern| (text, pattern))).collect();
        let Some(added) = added else { return };
        coming.bytes += removed.iter().map(String::len).sum::<usize>();
        coming.bytes += added.iter().map(|(_, pattern)| bytes_of(pattern)).sum::<usize>();
        coming.added.extend(added);
        coming.removed.extend(removed);
        if coming.added.len() + coming.removed.len() > MAX_PATTERNS || coming.bytes > MAX_BYTES {
            return;
        }
        if is_last {
            self.finish(coming, |number| is_only || forgotten.contains(number));
        } else {
            self.coming = Some(coming);
        }
    }

    fn finish(&mut self, change: PartialChange, is_forgotten: impl Fn(&u64) -> bool) {
        let PartialChange { set, base, removed, added, .. } = change;
        let mut patterns = match base.map(|base| self.sets.get(&base)) {
            None => BTreeMap::new(),
            Some(Some(base)) => base.patterns.clone(),
            Some(None) => return,
        };
        self.sets.retain(|number, _| !is_forgotten(number));
        removed.iter().for_each(|text| drop(patterns.remove(text)));
        patterns.extend(added);
        let bytes: usize = patterns.values().map(bytes_of).sum();
        let others = self.sets.values();
        let all = others.clone().map(|set| set.patterns.len()).sum::<usize>() + patterns.len();
        let all_bytes = others.map(|set| set.bytes).sum::<usize>() + bytes;
        if patterns.is_empty() || self.sets.len() >= SETS || all > MAX_PATTERNS || all_bytes > MAX_BYTES {
            return;
        }
        let launch = Arc::new(PatternSet::new(patterns.values().cloned().collect()));
        self.sets.insert(set, ReceivedSet { patterns, bytes, launch });
    }

    /// The patterns of the set with this number.
    pub fn get(&self, set: u64) -> Option<Arc<PatternSet>> {
        self.sets.get(&set).map(|set| Arc::clone(&set.launch))
    }
}

/// The bot's record of the sets that a device has, by number.
pub struct SentSets {
    sets: BTreeMap<u64, SentSet>,
    last: u64,
    /// Number of launches so far, to find the least recently used set.
    launches: u64,
}

struct SentSet {
    patterns: Arc<PatternSet>,
    bytes: usize,
    /// The number of the last launch that used it.
    used: u64,
}

impl SentSets {
    /// A device without sets. Its first set gets the number after `last`.
    pub fn new(last: u64) -> SentSets {
        SentSets { sets: BTreeMap::new(), last, launches: 0 }
    }

    /// The messages for a launch: the change of patterns that it needs, if any, and the order.
    pub fn order(&mut self, order: u64, launch: &Launch) -> Vec<ToDevice> {
        let (set, mut messages) = self.share(&launch.patterns);
        messages.push(ToDevice::Order { order, set, starts: launch.starts.clone() });
        messages
    }

    /// Notes that a launch searches for these patterns. Returns the number of their set, and the
    /// messages that the device needs before the order. Takes constant time for a set that the
    /// device has.
    fn share(&mut self, patterns: &Arc<PatternSet>) -> (u64, Vec<ToDevice>) {
        self.launches += 1;
        let launches = self.launches;
        if let Some((&number, set)) = self.sets.iter_mut().find(|(_, set)| Arc::ptr_eq(&set.patterns, patterns)) {
            set.used = launches;
            return (number, Vec::new());
        }
        let apart = |set: &SentSet| set.patterns.len().abs_diff(patterns.len());
        let alike = self.sets.iter_mut().min_by_key(|(_, set)| (apart(set), launches - set.used));
        let (change, base) = match alike {
            Some((&number, set)) => {
                let change = Difference::new(&set.patterns, patterns);
                if change.is_none() {
                    // The same patterns, in another order or of other jobs.
                    (set.patterns, set.used) = (Arc::clone(patterns), launches);
                    return (number, Vec::new());
                }
                let base = (!change.is_whole).then_some(number);
                (change, base)
            }
            None => (Difference::whole(texts_of(patterns)), None),
        };
        let bytes = patterns.iter().map(|(_, pattern)| bytes_of(pattern)).sum();
        let forgotten = self.forget(patterns.len(), bytes);
        let is_only = self.sets.is_empty();
        self.last = self.last.wrapping_add(1);
        self.sets.insert(self.last, SentSet { patterns: Arc::clone(patterns), bytes, used: launches });
        (self.last, parts(self.last, base, &change, &forgotten, is_only))
    }

    /// Forgets sets to make room for one of `coming` patterns and `bytes`. Returns their numbers.
    fn forget(&mut self, coming: usize, bytes: usize) -> Vec<u64> {
        let mut forgotten = Vec::new();
        while let Some((&oldest, set)) = self.sets.iter().min_by_key(|(_, set)| set.used) {
            let all: usize = self.sets.values().map(|set| set.patterns.len()).sum();
            let all_bytes: usize = self.sets.values().map(|set| set.bytes).sum();
            let is_full = self.sets.len() >= SETS || all + coming > MAX_PATTERNS || all_bytes + bytes > MAX_BYTES;
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
fn parts(set: u64, base: Option<u64>, change: &Difference, forgotten: &[u64], is_only: bool) -> Vec<ToDevice> {
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
        ToDevice::Patterns(PatternChange { set, base, is_first, is_last, removed, added, forgotten, is_only })
    };
    parts.into_iter().enumerate().map(message).collect()
}

/// The change from one set to another, sorted.
#[derive(Debug)]
struct Difference {
    removed: Vec<String>,
    added: Vec<String>,
    /// Whether the whole set is replaced. Then `added` is the new set.
    is_whole: bool,
}

impl Difference {
    fn is_none(&self) -> bool {
        !self.is_whole && self.removed.is_empty() && self.added.is_empty()
    }

    fn whole(texts: BTreeSet<String>) -> Difference {
        Difference { removed: Vec::new(), added: texts.into_iter().collect(), is_whole: true }
    }

    fn new(before: &PatternSet, now: &PatternSet) -> Difference {
        let (old, new) = (texts_of(before), texts_of(now));
        let removed: Vec<String> = old.difference(&new).cloned().collect();
        let added: Vec<String> = new.difference(&old).cloned().collect();
        match removed.len() + added.len() > new.len() {
            true => Difference::whole(new),
            false => Difference { removed, added, is_whole: false },
        }
    }
}

fn texts_of(set: &PatternSet) -> BTreeSet<String> {
    set.iter().map(|(_, pattern)| pattern.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::messages::encode;
    use super::*;

    fn set(texts: &[&str]) -> Arc<PatternSet> {
        Arc::new(PatternSet::new(texts.iter().map(|text| text.parse().unwrap()).collect()))
    }

    /// A bot and a device that takes its messages.
    struct Pair {
        sent: SentSets,
        received: ReceivedSets,
    }

    impl Pair {
        fn new() -> Pair {
            Pair { sent: SentSets::new(6), received: ReceivedSets::default() }
        }

        /// Searches for these patterns. Returns the number of their set, and the messages before the
        /// order. The device has the patterns then.
        fn share(&mut self, patterns: &Arc<PatternSet>) -> (u64, Vec<PatternChange>) {
            let (number, messages) = self.sent.share(patterns);
            let change = |message| match message {
                ToDevice::Patterns(change) => change,
                ToDevice::Order { .. } => panic!("an order"),
            };
            let changes: Vec<PatternChange> = messages.into_iter().map(change).collect();
            changes.iter().for_each(|change| self.received.take(change.clone()));
            assert_eq!(texts_of(&self.received.get(number).unwrap()), texts_of(patterns));
            assert_eq!(self.received.sets.keys().collect::<Vec<_>>(), self.sent.sets.keys().collect::<Vec<_>>());
            (number, changes)
        }
    }

    #[test]
    fn a_set_is_sent_once_and_then_what_changes_in_it() {
        let mut pair = Pair::new();
        let (number, changes) = pair.share(&set(&["m0ctane", "alyce", "cafe"]));
        let sorted = ["alyce", "cafe", "m0ctane"];
        assert_eq!((number, changes[0].base, &changes[0].added[..]), (7, None, &sorted.map(str::to_owned)[..]));
        assert_eq!(pair.share(&set(&["m0ctane", "alyce", "cafe"])), (7, vec![]));
        let (number, changes) = pair.share(&set(&["m0ctane", "cafe", "stack"]));
        let [PatternChange { base: Some(7), removed, added, .. }] = &changes[..] else { panic!("{changes:?}") };
        assert_eq!((number, removed[0].as_str(), added[0].as_str()), (8, "alyce", "stack"));
        let again = pair.share(&set(&["cafe", "m0ctane", "stack", "cafe"]));
        assert_eq!(again, (8, vec![]), "another order, and two jobs with one pattern");
        assert_eq!(pair.share(&set(&["m0ctane", "alyce", "cafe"])).0, 7, "both sets are kept");
        let (_, changes) = pair.share(&set(&["zz"]));
        assert_eq!(changes[0].base, None, "one pattern is cheaper than all that goes");
    }

    #[test]
    fn sets_in_turn_change_nothing_and_the_least_used_make_room() {
        let mut pair = Pair::new();
        let all: Vec<_> = (0..SETS).map(|at| set(&["m0ctane", &"q".repeat(at + 1)])).collect();
        for round in 0..3 {
            for (at, set) in all.iter().enumerate() {
                let (number, changes) = pair.share(set);
                assert_eq!((number, changes.is_empty()), (7 + at as u64, round > 0));
            }
        }
        assert_eq!(pair.share(&set(&["stack"])).1[0].forgotten, [7], "the one that was not used for longest");
        (0..=UNUSED_LAUNCHES).for_each(|_| drop(pair.share(&all[1])));
        assert_eq!(pair.share(&set(&["cafe"])).1[0].forgotten.len(), SETS - 1, "those that no launch uses");
        let large = |text: &str| Arc::new(PatternSet::new(vec![text.parse().unwrap(); MAX_PATTERNS / 2 - 1]));
        let mut sets = SentSets::new(0);
        for text in ["qq", "pp"] {
            sets.share(&large(text));
        }
        let third = sets.share(&large("zz")).1;
        assert!(matches!(&third[..], [ToDevice::Patterns(change)] if change.forgotten == [1]), "too large together");
    }

    #[test]
    fn a_session_makes_room_for_its_sets_whatever_earlier_ones_left() {
        let mut pair = Pair::new();
        for session in 0..3 {
            pair.sent = SentSets::new(1000 * session);
            for at in 0..SETS {
                pair.share(&set(&["m0ctane", &"q".repeat(at + 1)]));
            }
        }
    }

    #[test]
    fn one_job_more_among_many_costs_a_few_bytes_and_a_large_set_goes_in_parts() {
        let number = |at: usize| format!("{at:012}").replace('1', "q").parse().unwrap();
        let mut all: Vec<Pattern> = (0..100_000).map(number).collect();
        let mut pair = Pair::new();
        let (_, whole) = pair.share(&Arc::new(PatternSet::new(all.clone())));
        let sizes = whole.iter().map(|change| encode(&ToDevice::Patterns(change.clone())).unwrap().len());
        let sizes: Vec<usize> = sizes.collect();
        assert!(sizes.len() > 2 && sizes.iter().all(|&size| size <= PART + 64), "{sizes:?}");
        all[77] = "m0ctane".parse().unwrap();
        let (_, next) = pair.share(&Arc::new(PatternSet::new(all)));
        assert_eq!(next.len(), 1);
        let size = encode(&ToDevice::Patterns(next[0].clone())).unwrap().len();
        assert!(size < 64, "{size} bytes");
    }

    fn part(set: u64, base: Option<u64>, removed: &[&str], added: &[&str]) -> PatternChange {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        let (removed, added) = (owned(removed), owned(added));
        let (is_first, is_last, is_only) = (true, true, false);
        PatternChange { set, base, is_first, is_last, removed, added, forgotten: Vec::new(), is_only }
    }

    #[test]
    fn a_change_whose_parts_or_base_are_missing_changes_nothing() {
        let mut sets = ReceivedSets::default();
        sets.take(part(1, None, &[], &["qq"]));
        for wrong in [
            part(3, Some(2), &[], &["zz"]),
            PatternChange { is_last: false, ..part(4, Some(1), &[], &["zz"]) },
            PatternChange { is_first: false, ..part(5, Some(1), &[], &["zz"]) },
            part(6, Some(1), &[], &["b"]),
            part(7, None, &[], &[]),
        ] {
            sets.take(wrong);
            assert_eq!(sets.sets.keys().collect::<Vec<_>>(), [&1]);
        }
        sets.take(PatternChange { is_last: false, ..part(8, Some(1), &["qq"], &["zz"]) });
        assert!(sets.get(8).is_none(), "half a change is none");
        sets.take(PatternChange { is_first: false, ..part(8, Some(1), &[], &["pp"]) });
        assert_eq!(texts_of(&sets.get(8).unwrap()), ["pp", "zz"].map(str::to_owned).into());
        (9..20).for_each(|number| sets.take(part(number, None, &[], &["qq"])));
        assert_eq!(sets.sets.len(), SETS, "more are refused");
    }

    /// A pattern with `?` before fixed characters has many intervals in few characters.
    #[test]
    fn all_sets_together_are_bounded() {
        let mut sets = ReceivedSets::default();
        let half = || (0..MAX_PATTERNS / 2).map(|at| format!("{at:07}").replace('1', "q")).collect();
        sets.take(PatternChange { added: half(), ..part(1, None, &[], &[]) });
        assert!(sets.get(1).is_some());
        sets.take(PatternChange { added: vec!["qq".to_owned(); MAX_PATTERNS + 1], ..part(2, None, &[], &[]) });
        assert!(sets.get(2).is_none() && sets.coming.is_none());
        sets.take(part(3, Some(1), &[], &["zzzzzzzz"]));
        assert!(sets.get(3).is_none() && sets.get(1).is_some(), "two of them are more than all");
        sets.take(PatternChange { forgotten: vec![1], ..part(4, Some(1), &[], &["zzzzzzzz"]) });
        assert!(sets.get(4).is_some_and(|set| set.len() > MAX_PATTERNS / 4));
        let wide = |at: usize| {
            let letters: Vec<char> = "qpzry9x8gf2tvdw0s3jn54khce6mua7l".chars().collect();
            format!("??{}{}{}", letters[at % 32], letters[at / 32 % 32], letters[at / 1024 % 32])
        };
        let one = bytes_of(&wide(0).parse().unwrap());
        assert!(one > 60_000, "{one} bytes for 5 characters");
        let all = |count: usize| -> Vec<String> { (0..count).map(wide).collect() };
        let mut sets = ReceivedSets::default();
        sets.take(PatternChange { added: all(MAX_BYTES / one + 1), ..part(1, None, &[], &[]) });
        assert!(sets.get(1).is_none() && sets.coming.is_none(), "one change");
        sets.take(PatternChange { added: all(MAX_BYTES / one - 1), ..part(2, None, &[], &[]) });
        sets.take(PatternChange { added: all(2), ..part(3, None, &[], &[]) });
        assert!(sets.get(3).is_none() && sets.get(2).is_some(), "all sets");
        sets.take(PatternChange { removed: vec!["q".repeat(MAX_BYTES / 8); 9], ..part(4, None, &[], &["qq"]) });
        assert!(sets.get(4).is_none() && sets.coming.is_none(), "texts to remove");
    }
}
