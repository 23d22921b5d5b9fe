//! One level of a weighted fair queue.

use std::collections::BTreeMap;

/// One level of a weighted fair queue: the key that has had least for its part is next. A level has
/// few keys (seats are bounded), so a linear scan is fastest.
#[derive(Debug)]
pub struct Turns<K> {
    entries: BTreeMap<K, Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Relative to the parts of the others, above 0.
    part: f64,
    /// Candidates so far, divided by the part.
    served: f64,
}

impl<K> Default for Turns<K> {
    fn default() -> Turns<K> {
        Turns { entries: BTreeMap::new() }
    }
}

impl<K: Ord + Copy> Turns<K> {
    /// Replaces the keys and their parts. Keys that stay keep their account. A new key starts where
    /// the least served stands: it is next soon, and nobody waits until it has caught up.
    pub fn renew(&mut self, parts: impl IntoIterator<Item = (K, f64)>) {
        let start = self.entries.values().map(|entry| entry.served).reduce(f64::min).unwrap_or(0.0);
        let before = std::mem::take(&mut self.entries);
        let entry = |(key, part)| {
            let served = before.get(&key).map_or(start, |entry: &Entry| entry.served);
            (key, Entry { part, served })
        };
        self.entries = parts.into_iter().map(entry).collect();
    }

    /// The key whose turn it is, the smallest among equals.
    pub fn next(&self) -> Option<K> {
        let least = self.entries.iter().min_by(|(_, a), (_, b)| a.served.total_cmp(&b.served));
        least.map(|(&key, _)| key)
    }

    /// Adds candidates to a key's account, or takes them off. Unknown keys are ignored.
    pub fn charge(&mut self, key: K, candidates: f64) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.served += candidates / entry.part;
        }
    }
}
