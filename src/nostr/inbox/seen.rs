//! The ids of events that came before, and of those that the vault did not answer.

use crate::backoff::Backoff;
use hashlink::LruCache;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The ids of recent events. Of several copies of an event, only the first is processed. Cheap to
/// clone; clones share the ids. The ledger's record of messages lasts longer.
#[derive(Clone, Debug)]
pub struct SeenIds {
    ids: Arc<Mutex<LruCache<[u8; 32], bool>>>,
    /// Notified when an event was given back, or the library dropped events: a backfill is due.
    pub(super) lost: Arc<Notify>,
}

/// Number of ids that are remembered, the most recent ones.
const REMEMBERED_IDS: usize = 100_000;

impl Default for SeenIds {
    fn default() -> SeenIds {
        SeenIds { ids: Arc::new(Mutex::new(LruCache::new(REMEMBERED_IDS))), lost: Arc::default() }
    }
}

impl SeenIds {
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

/// The pauses of events for which the vault process ended before it answered, by their ids.
pub(super) struct Unanswered(LruCache<[u8; 32], Backoff>);

impl Unanswered {
    /// The first pause, and the one that is too long. So an event is tried eight times in two
    /// minutes. That stops a message that makes every vault process end, and keeps one that met
    /// processes which ended for another reason.
    const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(128)];
    /// The most events whose pauses are kept. Beyond it the oldest start again.
    const CAPACITY: usize = 1024;

    /// The pause after a try without an answer; `None` if the event is not tried any more.
    pub fn pause(&mut self, id: [u8; 32]) -> Option<Duration> {
        let [first, too_long] = Unanswered::PAUSES;
        let pause = self.0.entry(id).or_insert_with(|| Backoff::new(first, too_long)).next_pause();
        (pause < too_long).then_some(pause)
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
    fn an_event_without_an_answer_is_tried_eight_times_with_pauses() {
        let mut unanswered = Unanswered::default();
        let pauses = [1; 9].map(|id| unanswered.pause([id; 32]).map(|pause| pause.as_secs()));
        assert_eq!(pauses, [Some(1), Some(2), Some(4), Some(8), Some(16), Some(32), Some(64), None, None]);
        assert_eq!(unanswered.pause([2; 32]), Some(Duration::from_secs(1)), "the other event has its own count");
    }

    #[test]
    fn ids_are_remembered_up_to_the_capacity_and_the_oldest_forgotten() {
        let (seen, last) = (SeenIds::default(), 100_000);
        let id = |number: u32| {
            let mut id = [0; 32];
            id[..4].copy_from_slice(&number.to_be_bytes());
            id
        };
        assert!((0..=last).all(|number| seen.insert(id(number))));
        assert!(!seen.insert(id(1)) && !seen.clone().insert(id(last)));
        assert!(seen.insert(id(0)), "the oldest is forgotten");
        assert!(seen.forget(&id(last)), "a copy was skipped");
        assert!(seen.insert(id(last)) && !seen.forget(&id(last)));
    }
}
