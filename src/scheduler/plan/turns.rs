//! One level of a weighted fair queue.

use std::collections::BTreeMap;

/// One level of a weighted fair queue. The key that was served least, relative to its part, is
/// next. A level has few keys (seats are bounded), so a linear scan is fastest.
#[derive(Debug)]
pub struct Turns<K> {
    entries: BTreeMap<K, Entry>,
    /// The largest `served` of any key so far.
    most_served: f64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The key's weight, above 0.
    part: f64,
    /// Candidates so far, divided by `part`.
    served: f64,
}

impl<K> Default for Turns<K> {
    fn default() -> Turns<K> {
        Turns { entries: BTreeMap::new(), most_served: 0.0 }
    }
}

impl<K: Ord + Copy> Turns<K> {
    /// Replaces the keys and their parts. Old keys keep their accounts. The account of a new key
    /// starts at `most_served`, so old keys need not wait until it has caught up. A new key waits
    /// for at most one launch of each old key. However many new keys come, none overtakes an old
    /// one twice.
    pub fn renew(&mut self, parts: impl IntoIterator<Item = (K, f64)>) {
        let start = self.most_served;
        let before = std::mem::take(&mut self.entries);
        let entry = |(key, part)| {
            let served = before.get(&key).map_or(start, |entry: &Entry| entry.served);
            (key, Entry { part, served })
        };
        self.entries = parts.into_iter().map(entry).collect();
    }

    /// The key whose turn it is; the smallest in a tie.
    pub fn next(&self) -> Option<K> {
        let least = self.entries.iter().min_by(|(_, a), (_, b)| a.served.total_cmp(&b.served));
        least.map(|(&key, _)| key)
    }

    /// Adds candidates to a key's account, or subtracts them. An unknown key is ignored.
    pub fn charge(&mut self, key: K, candidates: f64) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.served += candidates / entry.part;
            self.most_served = self.most_served.max(entry.served);
        }
    }
}
