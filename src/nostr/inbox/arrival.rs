//! A message on its way from a relay to its answer, and the cheap checks on this way.

use crate::vault::Rumor;
use hashlink::LruCache;
use nostr_sdk::{Event, Kind, PublicKey, RelayUrl};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Largest encrypted content of a wrap, in bytes. The longest message that NIP-44 allows in
/// ordinary clients needs less.
const MAX_CONTENT: usize = 128 * 1024;
/// The most tags of a wrap.
const MAX_TAGS: usize = 64;
/// Age beyond which messages are not answered.
const MAX_AGE: Duration = Duration::from_secs(7 * 86_400);
/// Allowance for clocks that are ahead.
const CLOCK_ALLOWANCE: Duration = Duration::from_secs(3600);
/// Kinds of messages that are forwarded: text by NIP-04 (4) and by NIP-17 (14), deletions of
/// requests (5), and files (15) and invitations to MLS groups (444), which the bot declines.
const ANSWERABLE_KINDS: [u16; 5] = [4, 5, 14, 15, 444];

/// A message from the socket to the backlog: at first its event, then what the vault found in it, at
/// last the decrypted message, which passed every check.
#[derive(Debug)]
pub struct Arrival<T = Rumor> {
    /// What is known of the message.
    pub message: T,
    /// Id of the event, not of the message in it.
    pub id: [u8; 32],
    /// The relay that sent the event.
    pub relay: RelayUrl,
    /// Whether the event has the proof of work that is required in a flood.
    pub paid: bool,
}

impl<T> Arrival<T> {
    /// The message, and the arrival without it.
    pub(super) fn take(self) -> (T, Arrival<()>) {
        (self.message, Arrival { message: (), id: self.id, relay: self.relay, paid: self.paid })
    }

    /// The arrival with the next form of its message.
    pub(super) fn with<U>(self, message: U) -> Arrival<U> {
        Arrival { message, id: self.id, relay: self.relay, paid: self.paid }
    }

    /// The relays where the message was seen.
    pub fn seen_on(&self) -> Vec<String> {
        vec![self.relay.to_string()]
    }
}

/// Whether an event has the right size, kind and receiver.
pub(super) fn is_acceptable(event: &Event, bot: &PublicKey) -> bool {
    matches!(event.kind, Kind::GiftWrap | Kind::EncryptedDirectMessage)
        && event.content.len() <= MAX_CONTENT
        && event.tags.len() <= MAX_TAGS
        && event.tags.public_keys().any(|key| key == bot)
}

/// Whether a decrypted message may be answered: of a known kind, and recent.
pub(super) fn is_answerable(rumor: &Rumor, now: u64) -> bool {
    ANSWERABLE_KINDS.contains(&rumor.kind) && is_recent(rumor.created_at, now)
}

/// Whether a message is at most a week old and at most an hour in the future.
fn is_recent(created_at: u64, now: u64) -> bool {
    created_at <= now.saturating_add(CLOCK_ALLOWANCE.as_secs()) && created_at.saturating_add(MAX_AGE.as_secs()) >= now
}

/// The ids of recent events. Of several copies of an event, only the first is processed. Cheap to
/// clone; clones share the ids. The ledger's record of messages lasts longer.
#[derive(Clone, Debug)]
pub(super) struct SeenIds(Arc<Mutex<LruCache<[u8; 32], bool>>>);

impl SeenIds {
    /// Remembers at most `capacity` ids, the most recent ones.
    pub fn new(capacity: usize) -> SeenIds {
        SeenIds(Arc::new(Mutex::new(LruCache::new(capacity))))
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
    pub fn forget(&self, id: &[u8; 32]) -> bool {
        self.lock().remove(id) == Some(true)
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<[u8; 32], bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How often the vault process ended before it answered, by the id of the event.
pub(super) struct Unanswered(LruCache<[u8; 32], u32>);

impl Unanswered {
    /// How often an event is tried. It stops a message that makes every vault process end, and keeps
    /// one that met processes which ended for another reason.
    const MAX_TRIES: u32 = 4;
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
    fn dates_are_compared_without_overflow() {
        let now = 1_800_000_000;
        assert!(is_recent(now, now) && is_recent(now + 1, now) && is_recent(now - 604_800, now));
        assert!(!is_recent(now - 604_801, now) && !is_recent(now + 3601, now));
        assert!(!is_recent(u64::MAX, now) && !is_recent(0, now) && is_recent(0, 0) && is_recent(u64::MAX, u64::MAX));
    }

    #[test]
    fn an_event_without_an_answer_is_tried_four_times() {
        let mut unanswered = Unanswered::default();
        let tries = [1, 2, 1, 1, 1].map(|id| unanswered.may_try_again([id; 32]));
        assert_eq!(tries, [true, true, true, true, false]);
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
