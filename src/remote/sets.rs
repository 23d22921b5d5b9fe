//! The bot's record of the sets of patterns that a device has been sent, and the changes that lead
//! to the next sets.
//!
//! A line is a sequence of launches for the same jobs; lines take turns. A device keeps the set of
//! each line in use and gets the changes to it. It searches waiting orders with the newest set of
//! their line, so a new job need not wait until these orders are done.

use super::differences::{Difference, Differences};
use super::wire::{LARGEST_TO_WORKER, ToWorker};
use crate::pattern::PatternSet;
use std::sync::Arc;

/// The most sets that a device keeps. The set of the least recently used line is dropped first.
pub const SETS: usize = 8;
/// The most bytes of patterns in one message.
const PART: usize = LARGEST_TO_WORKER / 2;

/// The sets of patterns that a device has.
pub struct SentSets {
    sets: Vec<SentSet>,
    last_generation: u64,
    /// Number of launches so far, to find the least recently used line.
    launches: u64,
}

struct SentSet {
    line: u64,
    generation: u64,
    patterns: Arc<PatternSet>,
    used: u64,
}

/// The set of a launch, as the device knows it.
pub struct Shared {
    /// The set's place among the sets of the device.
    pub set: u8,
    /// The set's number.
    pub generation: u64,
    /// Messages to send to the device before the order.
    pub messages: Vec<ToWorker>,
}

impl SentSets {
    /// A device without sets. Its first set gets the number after `last_generation`.
    pub fn new(last_generation: u64) -> SentSets {
        SentSets { sets: Vec::new(), last_generation, launches: 0 }
    }

    /// Notes that a launch of this line searches for these patterns. Takes constant time while the
    /// set is the same.
    ///
    /// Errors: the system gives no randomness.
    pub fn share(
        &mut self,
        line: u64,
        patterns: &Arc<PatternSet>,
        differences: &Differences,
    ) -> Result<Shared, getrandom::Error> {
        self.launches += 1;
        let at = self.sets.iter().position(|set| set.line == line).unwrap_or_else(|| self.room());
        let known = self.sets.get_mut(at).filter(|set| set.line == line);
        let change = match &known {
            Some(set) if Arc::ptr_eq(&set.patterns, patterns) => None,
            Some(set) => Some(differences.between(Some(&set.patterns), patterns)?).filter(|change| !change.is_none()),
            None => Some(differences.between(None, patterns)?),
        };
        if let (Some(set), None) = (known, &change) {
            // The set has the same patterns, but their order may differ.
            (set.patterns, set.used) = (Arc::clone(patterns), self.launches);
            return Ok(Shared { set: at as u8, generation: set.generation, messages: Vec::new() });
        }
        self.last_generation = self.last_generation.wrapping_add(1);
        let generation = self.last_generation;
        let change = change.unwrap_or_default();
        let base = self.sets.get(at).filter(|_| !change.is_whole).map(|set| set.generation);
        let sent = SentSet { line, generation, patterns: Arc::clone(patterns), used: self.launches };
        match self.sets.get_mut(at) {
            Some(set) => *set = sent,
            None => self.sets.push(sent),
        }
        let messages = parts(at as u8, generation, base, &change);
        Ok(Shared { set: at as u8, generation, messages })
    }

    /// The place for a new set: the first free one, or that of the least recently used set.
    fn room(&self) -> usize {
        let oldest = (0..self.sets.len()).min_by_key(|&at| self.sets[at].used);
        oldest.filter(|_| self.sets.len() >= SETS).unwrap_or(self.sets.len())
    }
}

/// A change as messages of the allowed size.
fn parts(set: u8, generation: u64, base: Option<u64>, change: &Difference) -> Vec<ToWorker> {
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
        ToWorker::Patterns { set, generation, base, is_first, is_last, removed, added }
    };
    parts.into_iter().enumerate().map(message).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::wire::encode;

    fn share(sets: &mut SentSets, line: u64, texts: &[String]) -> Shared {
        sets.share(line, &set(texts), &Differences::default()).unwrap()
    }

    fn set(texts: &[String]) -> Arc<PatternSet> {
        Arc::new(PatternSet::new(texts.iter().map(|text| text.parse().unwrap()).collect()))
    }

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|&text| text.to_owned()).collect()
    }

    /// The base of a change in one message, and its removed and added patterns, sorted.
    fn change(shared: &Shared) -> (Option<u64>, Vec<String>, Vec<String>) {
        let [ToWorker::Patterns { base, removed, added, is_first: true, is_last: true, .. }] = &shared.messages[..]
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
        let first = share(&mut sets, 1, &texts(&["m0ctane", "alyce", "cafe"]));
        assert_eq!((first.generation, change(&first)), (7, (None, vec![], texts(&["alyce", "cafe", "m0ctane"]))));
        let again = share(&mut sets, 1, &texts(&["m0ctane", "alyce", "cafe"]));
        assert!(again.messages.is_empty() && again.generation == 7);
        let next = share(&mut sets, 1, &texts(&["m0ctane", "cafe", "stack"]));
        assert_eq!(change(&next), (Some(7), texts(&["alyce"]), texts(&["stack"])));
        let twice = share(&mut sets, 1, &texts(&["cafe", "m0ctane", "stack", "cafe"]));
        assert!(twice.messages.is_empty() && twice.generation == 8, "another order, and two jobs with one pattern");
        let none = share(&mut sets, 1, &[]);
        assert_eq!(change(&none), (None, vec![], vec![]), "nothing is cheaper than all that goes");
    }

    #[test]
    fn lines_in_turn_change_nothing_and_the_oldest_makes_room() {
        let mut sets = SentSets::new(0);
        let set_of = |line: u64| texts(&["m0ctane", &"q".repeat(line as usize + 1)]);
        for round in 0..3 {
            for line in 0..SETS as u64 {
                let shared = share(&mut sets, line, &set_of(line));
                assert_eq!((shared.set, shared.messages.is_empty()), (line as u8, round > 0));
            }
        }
        let shared = share(&mut sets, 99, &set_of(10));
        assert_eq!((shared.set, change(&shared).0), (0, None), "the line that was not used for longest");
        assert!(share(&mut sets, 1, &set_of(1)).messages.is_empty());
        assert_eq!(share(&mut sets, 0, &set_of(0)).set, 2);
    }

    #[test]
    fn one_job_more_among_many_costs_a_few_bytes_and_a_large_set_goes_in_parts() {
        let number = |at: usize| format!("{at:012}").replace('1', "q");
        let mut all: Vec<String> = (0..200_000).map(number).collect();
        let mut sets = SentSets::new(0);
        let whole = share(&mut sets, 1, &all);
        assert!(whole.messages.len() > 4);
        let sizes: Vec<usize> = whole.messages.iter().map(|message| encode(message).unwrap().len()).collect();
        assert!(sizes.iter().all(|&size| size <= LARGEST_TO_WORKER), "{sizes:?}");
        all[77] = "m0ctane".to_owned();
        let next = share(&mut sets, 1, &all);
        assert_eq!(change(&next), (Some(1), vec![number(77)], texts(&["m0ctane"])));
        let size = encode(&next.messages[0]).unwrap().len();
        assert!(size < 64, "{size} bytes");
        let (same, differences) = (set(&all), Differences::default());
        sets.share(1, &same, &differences).unwrap();
        let began = std::time::Instant::now();
        assert!(sets.share(1, &same, &differences).unwrap().messages.is_empty());
        println!("a launch whose {} patterns have not changed: {:?}", all.len(), began.elapsed());
    }
}
