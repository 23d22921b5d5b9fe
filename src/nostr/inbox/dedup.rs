//! Event ids that were seen.

use hashlink::LruCache;

/// The most recently inserted ids, up to a fixed number.
#[derive(Debug)]
pub(super) struct SeenIds(LruCache<[u8; 32], ()>);

impl SeenIds {
    /// Remembers at most `capacity` ids.
    pub fn new(capacity: usize) -> SeenIds {
        SeenIds(LruCache::new(capacity))
    }

    /// Whether an id is remembered.
    pub fn contains(&self, id: &[u8; 32]) -> bool {
        self.0.contains_key(id)
    }

    /// Remembers an id. The oldest one is forgotten if there are too many.
    pub fn insert(&mut self, id: [u8; 32]) {
        self.0.insert(id, ());
    }

    /// Forgets an id, so that its event is processed again.
    pub fn forget(&mut self, id: &[u8; 32]) {
        self.0.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_remembered_up_to_the_capacity_and_the_oldest_forgotten() {
        let mut seen = SeenIds::new(1000);
        let id = |number: u32| {
            let mut id = [0; 32];
            id[..4].copy_from_slice(&number.to_be_bytes());
            id
        };
        (0..=1000).for_each(|number| seen.insert(id(number)));
        assert!(!seen.contains(&id(0)) && seen.contains(&id(1)) && seen.contains(&id(1000)));
        seen.forget(&id(1000));
        assert!(!seen.contains(&id(1000)));
    }
}
