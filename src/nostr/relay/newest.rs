//! The newest replaceable event of an author that some relays have: relay lists, and announcements of
//! encryption keys.

use super::connections::Relays;
use crate::vault::VerifiedEvent;
use hashlink::LruCache;
use nostr_sdk::{Event, EventId, Filter, Kind, PublicKey, RelayUrl, Timestamp};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Time limit for one relay's answer.
const RELAY_TIMEOUT: Duration = Duration::from_secs(4);
/// Once a relay has returned an event, the others have this long to return a newer one.
const NEWER_TIMEOUT: Duration = Duration::from_millis(500);
/// Time for which a relay that was slower than [`NEWER_TIMEOUT`] is not waited for.
const SLOW_FOR: Duration = Duration::from_secs(600);
/// Number of slow relays that are remembered.
const SLOW_RELAYS: usize = 64;

/// The newest event, and how many relays answered.
pub(super) struct Newest {
    pub event: Option<VerifiedEvent>,
    /// Relays that returned an event or said that they have none.
    pub answered: usize,
    /// Relays that did not.
    pub failed: usize,
}

/// Relays that returned nothing within [`NEWER_TIMEOUT`] while another relay had an event.
#[derive(Debug)]
pub(super) struct SlowRelays(Mutex<LruCache<RelayUrl, Instant>>);

impl Default for SlowRelays {
    fn default() -> SlowRelays {
        SlowRelays(Mutex::new(LruCache::new(SLOW_RELAYS)))
    }
}

impl SlowRelays {
    /// Whether all of these relays were slow recently.
    fn are_all(&self, relays: &HashSet<RelayUrl>) -> bool {
        let slow = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        relays.iter().all(|url| slow.peek(url).is_some_and(|at| at.elapsed() < SLOW_FOR))
    }

    fn remember(&self, relays: HashSet<RelayUrl>) {
        let mut slow = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        relays.into_iter().for_each(|url| _ = slow.insert(url, Instant::now()));
    }
}

/// Asks relays, all at once, for the newest event of a kind and author. `limit`: for all of them,
/// including those that have to be connected first. With `slow`, relays that are slower than the
/// first one with an event are waited for only [`NEWER_TIMEOUT`], or not at all.
pub(super) async fn newest(
    relays: &Relays,
    urls: impl IntoIterator<Item = RelayUrl>,
    author: PublicKey,
    kind: Kind,
    limit: Duration,
    slow: Option<&SlowRelays>,
) -> Newest {
    let mut waited_for: HashSet<RelayUrl> = urls.into_iter().collect();
    let mut lookups = JoinSet::new();
    for url in waited_for.iter().cloned() {
        let (relays, filter) = (relays.clone(), Filter::new().kind(kind).author(author));
        lookups.spawn(async move { (relays.fetch_one(&url, filter, RELAY_TIMEOUT).await, url) });
    }
    let mut newest = Newest { event: None, answered: 0, failed: 0 };
    let mut ends = Instant::now() + limit;
    while let Ok(Some(lookup)) = tokio::time::timeout_at(ends.into(), lookups.join_next()).await {
        let answer = lookup.ok().and_then(|(answer, url)| {
            waited_for.remove(&url);
            answer.ok()
        });
        let Some(event) = answer else {
            newest.failed += 1;
            continue;
        };
        newest.answered += 1;
        let own = event.filter(|event| event.pubkey == author && event.kind == kind);
        if slow.is_some() && own.is_some() && newest.event.is_none() {
            ends = Instant::now() + NEWER_TIMEOUT;
        }
        newest.event = newest_of(own.into_iter().chain(newest.event));
        if newest.event.is_some() && slow.is_some_and(|slow| slow.are_all(&waited_for)) {
            break;
        }
    }
    newest.failed += lookups.len();
    if let Some(slow) = slow
        && newest.event.is_some()
        && Instant::now() >= ends
    {
        slow.remember(waited_for);
    }
    newest
}

/// The newest of several events; of those with the same date, the one with the lower id (NIP-01).
pub(super) fn newest_of(events: impl IntoIterator<Item = VerifiedEvent>) -> Option<VerifiedEvent> {
    events.into_iter().max_by_key(|event| rank(event))
}

fn rank(event: &Event) -> (Timestamp, Reverse<EventId>) {
    (event.created_at, Reverse(event.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nostr_sdk::{EventBuilder, Keys};

    #[test]
    fn of_two_events_with_the_same_date_the_lower_id_counts_in_any_order() {
        let keys = Keys::generate();
        let event = |text: &str, date: u64| {
            let event = EventBuilder::new(Kind::InboxRelays, text).custom_created_at(date.into());
            VerifiedEvent::check(event.sign_with_keys(&keys).unwrap()).unwrap()
        };
        let mut same: Vec<VerifiedEvent> = (0..8).map(|number| event(&number.to_string(), 7)).collect();
        let lowest = same.iter().map(|event| event.id).min().unwrap();
        for _ in 0..same.len() {
            same.rotate_left(1);
            assert_eq!(newest_of(same.clone()).unwrap().id, lowest);
        }
        let newer = event("newer", 8);
        assert_eq!(newest_of(same.into_iter().chain([newer.clone()])).unwrap().id, newer.id);
        assert!(newest_of([]).is_none());
    }
}
