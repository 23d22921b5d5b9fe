//! Relay lists: where an asker can be reached. A list is found, absent, or could not be looked up;
//! these are never confused.

use super::connections::Relays;
use super::query::{SlowRelays, newest};
use crate::job::Asker;
use hashlink::LruCache;
use nostr::nips::nip65::RelayMetadata;
use nostr::nips::{nip17, nip65};
use nostr_sdk::{Event, Kind, PublicKey, RelayUrl, Timestamp};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time limit for one lookup, including relays that have to be connected first.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(12);
/// The most relays used from one list; NIP-17 recommends one to three.
pub(super) const MAX_RELAYS: usize = 6;
/// A result is used for this long without another lookup.
const FRESH_FOR: Duration = Duration::from_secs(60);
/// A list stays valid for this long while lookups fail or do not return it.
const VALID_FOR: Duration = Duration::from_secs(86_400);
/// Number of attempts after which "no list" is believed even if most relays cannot be asked.
const BELIEVED_AFTER: u32 = 2;
/// Number of askers whose last lookup is remembered.
const REMEMBERED: usize = 10_000;

/// The relays to send an asker's messages to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::nostr) enum Destination {
    /// The asker's DM relays (kind 10050).
    Listed(Vec<RelayUrl>),
    /// The asker lists no DM relays.
    Fallback {
        /// The asker's read relays (NIP-65), or the relays where their message was seen if they
        /// list none.
        first: Vec<RelayUrl>,
        /// The relays where their message was seen, if none of `first` accepts the answer.
        then: Vec<RelayUrl>,
    },
    /// The asker lists no DM relays, and no fallback is known or allowed.
    Nowhere,
    /// The lookup failed and must be repeated.
    Unknown,
}

/// Options of a lookup of an asker's relays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::nostr) struct LookupOptions {
    /// Whether to ignore the remembered result. Set for keys, which are sent only once.
    pub fresh: bool,
    /// Number of attempts before this one.
    pub attempts: u32,
    /// Whether to write to askers without DM relays.
    pub fall_back: bool,
}

/// A relay list as its author published it.
#[derive(Clone, Debug)]
struct List {
    /// The relays we may connect to; empty if the author withdrew an earlier list.
    urls: Vec<RelayUrl>,
    dated: Timestamp,
    found_at: Instant,
}

/// The result of one lookup.
enum ListLookup {
    Found(List),
    Absent,
    /// Some relays have no list, but more relays could not be asked.
    Unsure,
    Failed,
}

/// The last lookup for one asker.
#[derive(Debug)]
struct KnownList {
    looked_at: Instant,
    list: Option<List>,
    /// The asker's relays accepted nothing, so the next lookup is believed even if it finds no
    /// list.
    doubted: bool,
}

/// Looks up relay lists and remembers them for a while.
#[derive(Debug)]
pub struct RelayLists {
    known: Mutex<LruCache<Asker, KnownList>>,
    slow: SlowRelays,
}

impl Default for RelayLists {
    fn default() -> RelayLists {
        RelayLists { known: Mutex::new(LruCache::new(REMEMBERED)), slow: SlowRelays::default() }
    }
}

impl RelayLists {
    /// The relays for sealed messages. `seen_on`: relays where the asker's own message was seen.
    pub(in crate::nostr) async fn destination(
        &self,
        relays: &Relays,
        asker: Asker,
        seen_on: &[String],
        options: LookupOptions,
    ) -> Destination {
        let seen: Vec<RelayUrl> = seen_on.iter().filter_map(|url| RelayUrl::parse(url).ok()).collect();
        let Ok(key) = PublicKey::from_slice(&asker.0) else { return Destination::Nowhere };
        let listed = match self.remembered(asker).filter(|_| !options.fresh) {
            Some(listed) => listed,
            None => {
                let lookup = self.look_up(relays, key, Kind::InboxRelays, &seen).await;
                let lookup = if options.attempts >= BELIEVED_AFTER { lookup.or_absent() } else { lookup };
                match self.learn(asker, lookup) {
                    Some(listed) => listed,
                    None => return Destination::Unknown,
                }
            }
        };
        if !listed.is_empty() {
            return Destination::Listed(listed);
        }
        if !options.fall_back {
            return Destination::Nowhere;
        }
        let read = match self.look_up(relays, key, Kind::RelayList, &seen).await {
            ListLookup::Found(list) => list.urls,
            ListLookup::Unsure | ListLookup::Failed if options.attempts < BELIEVED_AFTER => {
                return Destination::Unknown;
            }
            ListLookup::Absent | ListLookup::Unsure | ListLookup::Failed => Vec::new(),
        };
        match (read, usable(relays, seen)) {
            (read, seen) if read.is_empty() && seen.is_empty() => Destination::Nowhere,
            (read, seen) if read.is_empty() => Destination::Fallback { first: seen, then: Vec::new() },
            (read, mut seen) => {
                seen.retain(|url| !read.contains(url));
                Destination::Fallback { first: read, then: seen }
            }
        }
    }

    /// Asks our relays and those where the asker was seen, all at once. The newest list counts.
    async fn look_up(&self, relays: &Relays, key: PublicKey, kind: Kind, seen: &[RelayUrl]) -> ListLookup {
        let mut asked = relays.ours(|relay| relay.discovery || relay.inbox);
        asked.extend(seen.iter().filter(|url| relays.may_visit(url)).cloned());
        let newest = newest(relays, asked, key, kind, LOOKUP_TIMEOUT, Some(&self.slow)).await;
        match newest.event {
            Some(event) => ListLookup::Found(List {
                urls: usable(relays, urls_of(&event)),
                dated: event.created_at,
                found_at: Instant::now(),
            }),
            // A list is absent only if at least as many relays said so as did not answer.
            None if newest.answered > 0 && newest.answered >= newest.failed => ListLookup::Absent,
            None if newest.answered > 0 => ListLookup::Unsure,
            None => ListLookup::Failed,
        }
    }

    /// The result of a recent lookup, empty if there was no list.
    fn remembered(&self, asker: Asker) -> Option<Vec<RelayUrl>> {
        let mut known = self.lock();
        let known = known.get(&asker).filter(|known| !known.doubted && known.looked_at.elapsed() < FRESH_FOR)?;
        Some(known.list.as_ref().map_or_else(Vec::new, |list| list.urls.clone()))
    }

    /// Combines a lookup with the earlier result; `None` if neither says anything. A list does not
    /// disappear because the relay that has it is away, and is not replaced by an older one.
    fn learn(&self, asker: Asker, lookup: ListLookup) -> Option<Vec<RelayUrl>> {
        self.learn_at(asker, lookup, Instant::now())
    }

    fn learn_at(&self, asker: Asker, lookup: ListLookup, now: Instant) -> Option<Vec<RelayUrl>> {
        let mut known = self.lock();
        let before = known.get(&asker);
        let doubted = before.is_some_and(|known| known.doubted);
        let is_valid = |list: &List| now.saturating_duration_since(list.found_at) < VALID_FOR;
        let before = before.and_then(|known| known.list.clone()).filter(is_valid);
        let list = match (lookup, before) {
            (ListLookup::Failed | ListLookup::Unsure, before) => return before.map(|list| list.urls),
            (ListLookup::Found(found), Some(before)) if before.dated > found.dated => Some(before),
            (ListLookup::Found(found), _) => Some(found),
            (ListLookup::Absent, before) => before.filter(|_| !doubted),
        };
        let urls = list.as_ref().map_or_else(Vec::new, |list| list.urls.clone());
        known.insert(asker, KnownList { looked_at: now, list, doubted: false });
        Some(urls)
    }

    /// Makes the next call look the asker's list up again. It may be out of date if its relays do
    /// not accept messages.
    pub(in crate::nostr) fn doubt(&self, asker: Asker) {
        if let Some(known) = self.lock().get_mut(&asker) {
            known.doubted = true;
        }
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<Asker, KnownList>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ListLookup {
    /// Treats an unsure result as "no list".
    fn or_absent(self) -> ListLookup {
        if let ListLookup::Unsure = self { ListLookup::Absent } else { self }
    }
}

/// The relays in a list: all of a DM relay list, the read relays of a NIP-65 list.
fn urls_of(event: &Event) -> Vec<RelayUrl> {
    if event.kind == Kind::InboxRelays {
        return nip17::extract_relay_list(event).cloned().collect();
    }
    let read = |(url, marker): (&RelayUrl, &Option<RelayMetadata>)| {
        (*marker != Some(RelayMetadata::Write)).then(|| url.clone())
    };
    nip65::extract_relay_list(event).filter_map(read).collect()
}

/// The relays for a message of kind 4: those where the asker's own message was seen.
pub(in crate::nostr) fn nip04_destination(relays: &Relays, seen_on: &[String]) -> Destination {
    match usable(relays, seen_on.iter().filter_map(|url| RelayUrl::parse(url).ok()).collect()) {
        urls if urls.is_empty() => Destination::Nowhere,
        urls => Destination::Listed(urls),
    }
}

/// The first [`MAX_RELAYS`] that we may connect to, without repeats, in the order given.
pub(super) fn usable(relays: &Relays, urls: Vec<RelayUrl>) -> Vec<RelayUrl> {
    let mut usable: Vec<RelayUrl> = Vec::new();
    for url in urls {
        if usable.len() < MAX_RELAYS && !usable.contains(&url) && relays.may_visit(&url) {
            usable.push(url);
        }
    }
    // Thousands of lists are remembered, so spare capacity would add up.
    usable.shrink_to_fit();
    usable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_recent_askers_are_remembered_and_no_more() {
        let lists = RelayLists::default();
        let asker = |number: usize| Asker(std::array::from_fn(|at| (number as u32).to_be_bytes()[at % 4]));
        let url = RelayUrl::parse("wss://relay.example").unwrap();
        let found = || List { urls: vec![url.clone()], dated: Timestamp::from(1), found_at: Instant::now() };
        for number in 0..2 * REMEMBERED {
            lists.learn(asker(number), ListLookup::Found(found()));
        }
        assert_eq!(lists.lock().len(), REMEMBERED);
        assert_eq!(lists.remembered(asker(0)), None, "the oldest are forgotten");
        assert_eq!(lists.remembered(asker(2 * REMEMBERED - 1)), Some(vec![url]));
    }

    #[test]
    fn a_list_that_was_found_a_day_ago_is_not_used_while_lookups_fail() {
        let (lists, asker, found_at) = (RelayLists::default(), Asker([1; 32]), Instant::now());
        let urls = vec![RelayUrl::parse("wss://relay.example").unwrap()];
        let list = List { urls: urls.clone(), dated: Timestamp::from(1), found_at };
        lists.learn_at(asker, ListLookup::Found(list), found_at);
        let after = |lookup, age| lists.learn_at(asker, lookup, found_at + age);
        let almost = VALID_FOR - Duration::from_secs(1);
        assert_eq!(after(ListLookup::Failed, almost), Some(urls.clone()));
        assert_eq!(after(ListLookup::Absent, almost), Some(urls));
        assert_eq!(after(ListLookup::Failed, VALID_FOR), None);
        assert_eq!(after(ListLookup::Absent, VALID_FOR), Some(Vec::new()), "there is none");
    }

    #[test]
    fn a_list_survives_a_failed_lookup_and_an_older_list() {
        let (lists, asker) = (RelayLists::default(), Asker([1; 32]));
        let list = |name: &str, dated| {
            let urls = vec![RelayUrl::parse(&format!("wss://{name}.example")).unwrap()];
            ListLookup::Found(List { urls, dated: Timestamp::from(dated), found_at: Instant::now() })
        };
        assert_eq!(lists.learn(asker, ListLookup::Failed), None);
        let newer = lists.learn(asker, list("newer", 2)).unwrap();
        for lookup in [ListLookup::Failed, ListLookup::Unsure, ListLookup::Absent, list("older", 1)] {
            assert_eq!(lists.learn(asker, lookup).as_ref(), Some(&newer));
        }
        lists.doubt(asker);
        assert_eq!(lists.remembered(asker), None);
        assert_eq!(lists.learn(asker, ListLookup::Absent), Some(Vec::new()), "a doubted list may be absent");
    }
}
