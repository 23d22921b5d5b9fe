//! The ids of events that came before, and of those that the vault did not answer.

use hashlink::LruCache;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The ids of recent events. Of several copies of an event, only the first is processed. Cheap to
/// clone; clones share the ids. The ledger's record of messages lasts longer.
#[derive(Clone, Debug)]
pub struct SeenIds {
    ids: Arc<Mutex<LruCache<[u8; 32], bool>>>,
    /// Notified when an event was given back, or the library dropped events: a backfill is due.
    pub(super) lost: Arc<Notify>,
}

impl Default for SeenIds {
    /// Remembers the 100,000 most recent ids.
    fn default() -> SeenIds {
        SeenIds::new(100_000)
    }
}

impl SeenIds {
    /// Remembers at most `capacity` ids, the most recent ones.
    pub fn new(capacity: usize) -> SeenIds {
        SeenIds { ids: Arc::new(Mutex::new(LruCache::new(capacity))), lost: Arc::default() }
    }

    /// Leaves an event that found no room, or was not processed for another reason, to a backfill.
    pub fn give_back(&self, id: &[u8; 32]) {
        self.forget(id);
        self.lost.notify_one();
    }

    /// Forgets all ids: after a panic, what was in progress has to come again.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    /// Remembers an id. Returns whether it was unknown, so that its event is to be processed.
    pub fn insert(&self, id: [u8; 32]) -> bool {
        let mut ids = self.lock();
        match ids.get_mut(&id) {
            Some(is_repeated) => {
                *is_repeated = true;
                false
            }
            None => {
                ids.insert(id, false);
                true
            }
        }
    }

    /// Forgets an id, so that another copy of its event is processed. Returns whether a copy came
    /// meanwhile and was skipped.
    pub(super) fn forget(&self, id: &[u8; 32]) -> bool {
        self.lock().remove(id) == Some(true)
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<[u8; 32], bool>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How often the vault process ended before it answered, by the id of the event.
pub(super) struct Unanswered(LruCache<[u8; 32], u32>);

impl Unanswered {
    /// How often an event is tried. It stops a message that makes every vault process end, and
    /// keeps one that met processes which ended for another reason.
    const MAX_TRIES: u32 = 8;
    /// The most events whose tries are counted. Beyond it the oldest count starts again.
    const CAPACITY: usize = 1024;

    /// Counts a try without an answer. Returns whether the event may be tried once more.
    pub fn may_try_again(&mut self, id: [u8; 32]) -> bool {
        let tries = self.0.get(&id).map_or(1, |tries| tries + 1);
        self.0.insert(id, tries);
        tries < Unanswered::MAX_TRIES
    }
}

impl Default for Unanswered {
    fn default() -> Unanswered {
        Unanswered(LruCache::new(Unanswered::CAPACITY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_without_an_answer_is_tried_eight_times() {
        let mut unanswered = Unanswered::default();
        let tries = [1; 8].map(|id| unanswered.may_try_again([id; 32]));
        assert_eq!(tries, [true, true, true, true, true, true, true, false]);
        assert!(unanswered.may_try_again([2; 32]), "the other event has its own count");
    }

    #[test]
    fn ids_are_remembered_up_to_the_capacity_and_the_oldest_forgotten() {
        let seen = SeenIds::new(1000);
        let id = |number: u32| {
            let mut id = [0; 32];
            id[..4].copy_from_slice(&number.to_be_bytes());
            id
        };
        assert!((0..=1000).all(|number| seen.insert(id(number))));
        assert!(!seen.insert(id(1)) && !seen.clone().insert(id(1000)));
        assert!(seen.insert(id(0)), "the oldest is forgotten");
        assert!(seen.forget(&id(1000)), "a copy was skipped");
        assert!(seen.insert(id(1000)) && !seen.forget(&id(1000)));
    }
}
