//! What askers publish about themselves: relay lists (kinds 10050 and 10002), encryption keys (10044),
//! requests to vanish (62), and whom the operator's people follow (3).
//!
//! A relay may withhold an event or return an old one. So several relays are asked at once, the
//! newest event counts, and an older one never replaces it later. A list is found, absent, or could
//! not be looked up; these are never confused.

use super::connections::Relays;
use super::host::Host;
use super::query::{EventRank, look_up_newest, newest_of, rank};
use crate::job::{Asker, EncryptionKey};
use crate::log_writer::LogLimit;
use crate::vault::{ANNOUNCEMENT, Announcement, VerifiedEvent};
use hashlink::LruCache;
use nostr::nips::nip65::RelayMetadata;
use nostr::nips::{nip17, nip65};
use nostr_sdk::{Event, Filter, Kind, PublicKey, RelayUrl};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time limit for looking up a list, including relays that have to be connected first.
const LIST_TIMEOUT: Duration = Duration::from_secs(12);
/// Time limit for each of the two steps of looking up an encryption key.
const KEY_STEP_TIMEOUT: Duration = Duration::from_secs(8);
/// A complete result is used for this long without another lookup.
const FRESH_FOR: Duration = Duration::from_secs(60);
/// Number of askers whose last lookup is remembered. An announcement takes about 700 bytes, and
/// 1,300 at most.
const REMEMBERED_ASKERS: usize = 10_000;
/// The most relays used from one list; NIP-17 recommends one to three.
const MAX_RELAYS: usize = 6;
/// Longest URL that is used from a list, in bytes. Lists are remembered, and written to the log.
const MAX_URL_BYTES: usize = 256;
/// A list stays valid for this long while lookups fail or do not return it.
const LIST_VALID_FOR: Duration = Duration::from_secs(86_400);
/// Number of attempts after which "no list" is believed even if most relays cannot be asked.
const BELIEVED_AFTER: u32 = 2;
/// Allowance for clocks that are ahead, seconds. Announcements with a later date are refused,
/// because none could replace them until that date.
const CLOCK_AHEAD: u64 = 600;
/// The most keys that are used from one list of follows.
const MAX_FOLLOWS: usize = 10_000;
/// The most askers in one query for requests to vanish.
const ASKERS_A_QUERY: usize = 200;
/// Time limit for one query for requests to vanish.
const VANISH_TIMEOUT: Duration = Duration::from_secs(10);

/// Limits log lines about askers without DM relays, which askers can cause, to one a minute.
static NOT_LISTED: LogLimit = LogLimit::new();

/// The relays that are asked for an asker's events: ours, and those where the asker was seen.
fn relays_to_ask(relays: &Relays, seen: &[RelayUrl]) -> HashSet<RelayUrl> {
    let seen = seen.iter().filter(|url| relays.may_visit(url)).cloned();
    relays.ours(|relay| relay.discovery || relay.inbox).into_iter().chain(seen).collect()
}

/// What the newest event of each asker says, as far as it was found.
#[derive(Debug)]
struct NewestFound<T>(Mutex<LruCache<Asker, LastLookup<T>>>);

#[derive(Debug)]
struct LastLookup<T> {
    newest: Option<(EventRank, T)>,
    /// The time of the last lookup, if it was complete.
    complete_at: Option<Instant>,
    /// Whether the next lookup is believed even if it finds nothing.
    is_invalidated: bool,
}

impl<T> Default for NewestFound<T> {
    fn default() -> NewestFound<T> {
        NewestFound(Mutex::new(LruCache::new(REMEMBERED_ASKERS)))
    }
}

impl<T: Clone> NewestFound<T> {
    /// The result of a complete lookup within [`FRESH_FOR`].
    fn fresh(&self, asker: Asker) -> Option<Option<T>> {
        let mut askers = self.lock();
        let last = askers.get(&asker).filter(|last| last.complete_at.is_some_and(|at| at.elapsed() < FRESH_FOR))?;
        Some(last.newest.as_ref().map(|(_, newest)| newest.clone()))
    }

    /// The result of all lookups so far.
    fn get(&self, asker: Asker) -> Option<T> {
        self.lock().peek(&asker)?.newest.as_ref().map(|(_, newest)| newest.clone())
    }

    /// Adds the result of a lookup, and returns the newest one known. Earlier results count only if
    /// they are valid.
    fn learn(
        &self,
        asker: Asker,
        found: Option<(EventRank, T)>,
        is_complete: bool,
        is_valid: impl Fn(&T) -> bool,
    ) -> Option<T> {
        let mut askers = self.lock();
        let before = askers.remove(&asker).filter(|last| found.is_some() || !last.is_invalidated);
        let before = before.and_then(|last| last.newest).filter(|(_, newest)| is_valid(newest));
        let newest = before.into_iter().chain(found).max_by_key(|&(rank, _)| rank);
        let known = newest.as_ref().map(|(_, newest)| newest.clone());
        let complete_at = is_complete.then(Instant::now);
        askers.insert(asker, LastLookup { newest, complete_at, is_invalidated: false });
        known
    }

    /// Makes the next lookup count even if it finds nothing.
    fn invalidate(&self, asker: Asker) {
        if let Some(last) = self.lock().get_mut(&asker) {
            (last.complete_at, last.is_invalidated) = (None, true);
        }
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<Asker, LastLookup<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

/// A relay list.
#[derive(Clone, PartialEq, Debug)]
struct RelayList {
    /// The relays we may connect to; empty if the author withdrew an earlier list.
    urls: Vec<RelayUrl>,
    found_at: Instant,
}

/// A list that was looked up: `None` if relays could not be asked, `Some(None)` if there is none.
type ListLookup = Option<Option<(EventRank, RelayList)>>;

/// Looks up relay lists and remembers them for a while.
#[derive(Debug, Default)]
pub struct RelayLists {
    lists: NewestFound<RelayList>,
}

impl RelayLists {
    /// The relays for sealed messages: the asker's DM relays, or, if they list none, their read relays
    /// and those where their own message was seen (`seen_on`). None if no relay is known or allowed,
    /// or the lookup must be repeated.
    pub(in crate::nostr) async fn destination(
        &self,
        relays: &Relays,
        asker: Asker,
        seen_on: &[String],
        options: LookupOptions,
    ) -> Vec<RelayUrl> {
        let seen = parsed(seen_on);
        let Ok(key) = PublicKey::from_slice(&asker.0) else { return Vec::new() };
        let listed = match self.lists.fresh(asker).filter(|_| !options.fresh) {
            Some(list) => list.map_or_else(Vec::new, |list| list.urls),
            None => {
                let lookup = look_up_list(relays, key, Kind::InboxRelays, &seen, options.attempts).await;
                let Some(listed) = self.learn(asker, lookup, Instant::now()) else { return Vec::new() };
                listed
            }
        };
        if !listed.is_empty() || !options.fall_back {
            return listed;
        }
        let mut urls = match look_up_list(relays, key, Kind::RelayList, &seen, options.attempts).await {
            None if options.attempts < BELIEVED_AFTER => return Vec::new(),
            lookup => lookup.flatten().map_or_else(Vec::new, |(_, list)| list.urls),
        };
        let seen = usable(relays, seen).into_iter().filter(|url| !urls.contains(url));
        urls.extend(seen.collect::<Vec<_>>());
        if let Some(skipped) = NOT_LISTED.next(Instant::now()).filter(|_| !urls.is_empty()) {
            tracing::info!(skipped, "an asker lists no DM relays; messages go where they read or wrote");
        }
        urls
    }

    /// Combines a lookup with earlier ones; `None` if nothing is known. A list does not disappear
    /// because the relay that has it is away.
    fn learn(&self, asker: Asker, lookup: ListLookup, now: Instant) -> Option<Vec<RelayUrl>> {
        let is_valid = |list: &RelayList| now.saturating_duration_since(list.found_at) < LIST_VALID_FOR;
        match lookup {
            None => self.lists.get(asker).filter(is_valid).map(|list| list.urls),
            Some(found) => Some(self.lists.learn(asker, found, true, is_valid).map_or_else(Vec::new, |list| list.urls)),
        }
    }

    /// Makes the next call look the asker's list up again. It may be out of date if its relays do
    /// not accept messages.
    pub(in crate::nostr) fn invalidate(&self, asker: Asker) {
        self.lists.invalidate(asker);
    }
}

async fn look_up_list(relays: &Relays, key: PublicKey, kind: Kind, seen: &[RelayUrl], attempts: u32) -> ListLookup {
    let asked = relays_to_ask(relays, seen);
    let newest = look_up_newest(relays, &asked, key, kind, LIST_TIMEOUT, true).await;
    // A list is absent if at least as many relays said so as did not answer. After some attempts any
    // relay is enough.
    let is_sure = newest.answered >= newest.failed || attempts >= BELIEVED_AFTER;
    let listed = |event: VerifiedEvent| {
        (rank(&event), RelayList { urls: usable(relays, urls_of(&event)), found_at: Instant::now() })
    };
    match newest.event {
        None if newest.answered == 0 || !is_sure => None,
        event => Some(event.map(listed)),
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
pub(in crate::nostr) fn nip04_destination(relays: &Relays, seen_on: &[String]) -> Vec<RelayUrl> {
    usable(relays, parsed(seen_on))
}

fn parsed(urls: &[String]) -> Vec<RelayUrl> {
    urls.iter().filter_map(|url| RelayUrl::parse(url).ok()).collect()
}

/// The first [`MAX_RELAYS`] that we may connect to, one URL a host, in the order given. None is
/// longer than [`MAX_URL_BYTES`]. With more URLs of a host, an asker could make the bot send
/// everything to it several times.
fn usable(relays: &Relays, urls: Vec<RelayUrl>) -> Vec<RelayUrl> {
    let mut hosts = HashSet::new();
    let short = urls.into_iter().filter(|url| url.as_str().len() <= MAX_URL_BYTES);
    let usable = short.filter(|url| relays.may_visit(url) && hosts.insert(Host::from_url(url)));
    let mut usable: Vec<RelayUrl> = usable.take(MAX_RELAYS).collect();
    // Thousands of lists are remembered, so spare capacity would add up.
    usable.shrink_to_fit();
    usable
}

/// The result of looking up an announcement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::nostr) struct KeyLookup {
    /// The newest announcement.
    pub announcement: Option<Announcement>,
    /// Whether every relay answered.
    pub is_complete: bool,
}

/// Looks up the encryption keys that askers announce, and remembers them for a while.
#[derive(Debug, Default)]
pub struct EncryptionKeys(NewestFound<Announcement>);

impl EncryptionKeys {
    /// Returns the newest announcement of an asker, from a recent lookup or a new one. Asks our
    /// relays and the asker's own. `seen_on`: relays where their message was seen; `now`: Unix
    /// seconds.
    pub(in crate::nostr) async fn look_up(
        &self,
        relays: &Relays,
        asker: Asker,
        seen_on: &[String],
        now: u64,
    ) -> KeyLookup {
        if let Some(announcement) = self.0.fresh(asker) {
            return KeyLookup { announcement, is_complete: true };
        }
        let Ok(key) = PublicKey::from_slice(&asker.0) else {
            return KeyLookup { announcement: None, is_complete: true };
        };
        let near_relays = relays_to_ask(relays, &parsed(seen_on));
        let ask = |kind| look_up_newest(relays, &near_relays, key, kind, KEY_STEP_TIMEOUT, false);
        let (near, inboxes, lists) = tokio::join!(ask(ANNOUNCEMENT), ask(Kind::InboxRelays), ask(Kind::RelayList));
        let own = own_relays(relays, inboxes.event.as_ref(), lists.event.as_ref(), &near_relays);
        let far = look_up_newest(relays, &own, key, ANNOUNCEMENT, KEY_STEP_TIMEOUT, false).await;
        let is_complete = [&near, &inboxes, &lists, &far].iter().all(|lookup| lookup.failed == 0);
        let found = newest_announcement([near.event, far.event].into_iter().flatten(), now);
        KeyLookup { announcement: self.learn(asker, found, is_complete), is_complete }
    }

    /// The key to encrypt messages to an asker with. It is `used`, the key of their message dated
    /// `since`, unless a later announcement is known. `None` means the asker's own key.
    pub fn in_force(&self, asker: Asker, used: Option<EncryptionKey>, since: u64) -> Option<EncryptionKey> {
        used?;
        self.newer(asker, since).map_or(used, |announcement| announcement.key())
    }

    /// The announcement of an asker, if one later than `since` is known.
    pub fn newer(&self, asker: Asker, since: u64) -> Option<Announcement> {
        self.0.get(asker).filter(|announcement| announcement.dated() > since)
    }

    /// Looks up the announcements of these askers again.
    pub async fn refresh(&self, relays: &Relays, askers: &[(Asker, Vec<String>)], now: u64) {
        for (asker, seen_on) in askers {
            self.look_up(relays, *asker, seen_on, now).await;
        }
    }

    /// Remembers an announcement as if a lookup had found it.
    #[cfg(test)]
    pub(crate) fn note_for_tests(&self, event: &VerifiedEvent) {
        let found = newest_announcement([event.clone()], u64::MAX);
        self.learn(Asker(event.pubkey.to_bytes()), found, true);
    }

    fn learn(&self, asker: Asker, found: Option<(EventRank, Announcement)>, is_complete: bool) -> Option<Announcement> {
        self.0.learn(asker, found, is_complete, |_| true)
    }
}

/// The relays where an asker publishes and receives, without those that were `asked`; at most
/// [`MAX_RELAYS`].
fn own_relays(
    relays: &Relays,
    inboxes: Option<&VerifiedEvent>,
    list: Option<&VerifiedEvent>,
    asked: &HashSet<RelayUrl>,
) -> HashSet<RelayUrl> {
    let written = list.into_iter().flat_map(|event| nip65::extract_relay_list(event));
    let written = written.filter(|(_, marker)| **marker != Some(RelayMetadata::Read)).map(|(url, _)| url);
    let read = inboxes.into_iter().flat_map(|event| nip17::extract_relay_list(event));
    // The relays where the asker publishes get at most half of the room, so that a long list does
    // not hide the others.
    let urls = written.take(MAX_RELAYS / 2).chain(read).filter(|url| !asked.contains(*url));
    usable(relays, urls.cloned().collect()).into_iter().collect()
}

/// The newest announcement that is not dated in the future.
fn newest_announcement(events: impl IntoIterator<Item = VerifiedEvent>, now: u64) -> Option<(EventRank, Announcement)> {
    let is_past = |event: &VerifiedEvent| event.created_at.as_secs() <= now.saturating_add(CLOCK_AHEAD);
    let newest = newest_of(events.into_iter().filter(is_past))?;
    Some((rank(&newest), Announcement::read(&newest)?))
}

/// Finds the askers who published a request to vanish (NIP-62) from one of our relays or from all
/// relays, with its date in Unix seconds. Relays that cannot be queried are skipped, because the
/// caller repeats this regularly.
pub async fn vanish_requests(relays: &Relays, askers: &[Asker]) -> HashMap<Asker, u64> {
    let ours = relays.ours(|_| true);
    let mut requests = HashMap::new();
    for chunk in askers.chunks(ASKERS_A_QUERY) {
        let authors: Vec<PublicKey> = chunk.iter().filter_map(|asker| PublicKey::from_slice(&asker.0).ok()).collect();
        let filter = Filter::new().kind(Kind::RequestToVanish).authors(authors);
        for url in &ours {
            let answer = relays.fetch(url, filter.clone(), VANISH_TIMEOUT).await;
            for event in answer.events.iter().filter(|event| asks_us_to_vanish(event, &ours)) {
                let asker = Asker(event.pubkey.to_bytes());
                if chunk.contains(&asker) {
                    let newest = requests.entry(asker).or_default();
                    *newest = event.created_at.as_secs().max(*newest);
                }
            }
        }
    }
    requests
}

/// Whom these authors follow (kind 3), as far as our relays know. Also returns the number of authors
/// without a list there.
pub async fn follows(relays: &Relays, authors: &[PublicKey]) -> (HashSet<Asker>, usize) {
    let (asked, mut found, mut missing) = (relays_to_ask(relays, &[]), HashSet::new(), 0);
    for &author in authors {
        let newest = look_up_newest(relays, &asked, author, Kind::ContactList, LIST_TIMEOUT, false).await;
        missing += usize::from(newest.event.is_none());
        let tags = newest.event.iter().flat_map(|event| event.tags.public_keys()).take(MAX_FOLLOWS);
        found.extend(tags.map(|key| Asker(key.to_bytes())));
    }
    (found, missing)
}

fn asks_us_to_vanish(event: &Event, ours: &[RelayUrl]) -> bool {
    event.kind == Kind::RequestToVanish
        && event.tags.iter().any(|tag| match tag.as_slice() {
            [name, relay, ..] if name == "relay" => {
                relay == "ALL_RELAYS" || RelayUrl::parse(relay).is_ok_and(|relay| ours.contains(&relay))
            }
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nostr::relay::connections::Reach;
    use crate::nostr::tests::unconnected;
    use nostr_sdk::{EventBuilder, EventId, Keys, Tag};
    use std::cmp::Reverse;

    const NOW: u64 = 1_800_000_000;

    fn asker(number: u32) -> Asker {
        Asker(std::array::from_fn(|at| number.to_be_bytes()[at % 4]))
    }

    fn url(text: &str) -> RelayUrl {
        RelayUrl::parse(text).unwrap()
    }

    fn event(by: &Keys, kind: Kind, tags: Option<Tag>, text: &str, dated: u64) -> VerifiedEvent {
        let event = EventBuilder::new(kind, text).tags(tags).custom_created_at(dated.into());
        VerifiedEvent::check(event.sign_with_keys(by).unwrap()).unwrap()
    }

    fn announcement(by: &Keys, key: Option<&Keys>, dated: u64) -> VerifiedEvent {
        let tag = key.map(|key| Tag::parse(["n", &key.public_key().to_hex()]).unwrap());
        event(by, ANNOUNCEMENT, tag, "", dated)
    }

    fn key(keys: &Keys) -> Option<EncryptionKey> {
        Some(EncryptionKey(keys.public_key().to_bytes()))
    }

    #[test]
    fn the_newest_event_counts_and_of_the_same_date_the_lower_id_in_any_order() {
        let keys = Keys::generate();
        let mut same: Vec<VerifiedEvent> =
            (0..8).map(|number| event(&keys, Kind::InboxRelays, None, &number.to_string(), 7)).collect();
        let lowest = same.iter().map(|event| event.id).min().unwrap();
        for _ in 0..same.len() {
            same.rotate_left(1);
            assert_eq!(newest_of(same.clone()).unwrap().id, lowest);
            // So it is if the events are found one by one.
            let found = NewestFound::default();
            let known = same.iter().map(|event| found.learn(asker(1), Some((rank(event), event.id)), true, |_| true));
            assert_eq!(known.last().unwrap(), Some(lowest));
        }
        let newer = event(&keys, Kind::InboxRelays, None, "newer", 8);
        assert_eq!(newest_of(same.into_iter().chain([newer.clone()])).unwrap().id, newer.id);
        assert!(newest_of([]).is_none());
    }

    #[test]
    fn the_most_recent_askers_are_remembered_and_no_more() {
        let found = NewestFound::default();
        let last = 2 * REMEMBERED_ASKERS as u32 - 1;
        for number in 0..=last {
            found.learn(asker(number), Some(((NOW.into(), Reverse(EventId::all_zeros())), number)), true, |_| true);
        }
        assert_eq!(found.lock().len(), REMEMBERED_ASKERS);
        assert_eq!((found.fresh(asker(0)), found.fresh(asker(last))), (None, Some(Some(last))));
    }

    #[test]
    fn a_list_survives_failed_lookups_and_an_older_list_for_a_day() {
        let (lists, asker, now) = (RelayLists::default(), asker(1), Instant::now());
        let list = |name: &str, dated: u64| {
            let urls = vec![url(&format!("wss://{name}.example"))];
            Some(Some(((dated.into(), Reverse(EventId::all_zeros())), RelayList { urls, found_at: now })))
        };
        assert_eq!(lists.learn(asker, None, now), None);
        let newer = lists.learn(asker, list("newer", 2), now).unwrap();
        let almost = now + LIST_VALID_FOR - Duration::from_secs(1);
        for at in [now, almost] {
            for lookup in [None, Some(None), list("older", 1)] {
                assert_eq!(lists.learn(asker, lookup, at).as_ref(), Some(&newer));
            }
        }
        assert_eq!(lists.learn(asker, None, now + LIST_VALID_FOR), None);
        assert_eq!(lists.learn(asker, Some(None), now + LIST_VALID_FOR), Some(Vec::new()), "there is none");
        lists.learn(asker, list("newer", 2), now);
        lists.invalidate(asker);
        assert_eq!(lists.lists.fresh(asker), None);
        assert_eq!(lists.learn(asker, None, now).as_ref(), Some(&newer));
        assert_eq!(lists.learn(asker, Some(None), now), Some(Vec::new()), "a doubted list may be absent");
    }

    #[tokio::test]
    async fn a_list_counts_with_one_url_a_host() {
        let reach = Reach { allow_private: false, ..Reach::anywhere() };
        let relays = unconnected(&[], reach).await;
        let listed =
            ["wss://a.example/1", "wss://A.example:8080/2", "ws://127.0.0.1", "wss://b.example", "wss://a.example"];
        let used = usable(&relays, listed.map(url).to_vec());
        assert_eq!(used, ["wss://a.example/1", "wss://b.example"].map(url));
        let of_length = |length| url(&format!("wss://a.example/{}", "a".repeat(length - 16)));
        let longest = of_length(MAX_URL_BYTES);
        assert_eq!(usable(&relays, vec![of_length(MAX_URL_BYTES + 1), longest.clone()]), [longest]);
        let many = (0..99).map(|number| url(&format!("wss://{number}.example"))).collect();
        assert_eq!(usable(&relays, many).len(), MAX_RELAYS);
    }

    #[test]
    fn no_announcement_of_the_future_counts_nor_an_older_one_later() {
        let (by, old, new) = (Keys::generate(), Keys::generate(), Keys::generate());
        let [first, second] = [(&old, NOW - 9), (&new, NOW - 5)].map(|(key, at)| announcement(&by, Some(key), at));
        let future = announcement(&by, Some(&old), NOW + CLOCK_AHEAD + 1);
        let newest = |events: &[&VerifiedEvent], now| newest_announcement(events.iter().copied().cloned(), now);
        let newer = newest(&[&second, &future, &first], NOW);
        assert_eq!(newer.as_ref().and_then(|(_, newest)| newest.key()), key(&new));
        assert_eq!(newest(&[&future], NOW), None);
        assert_eq!(newest(&[&future], u64::MAX).and_then(|(_, one)| one.key()), key(&old), "no overflow");

        let (keys, asker) = (EncryptionKeys::default(), asker(1));
        let known = keys.learn(asker, newer, true);
        assert_eq!(keys.0.fresh(asker), Some(known.clone()));
        for found in [newest(&[&first], NOW), None] {
            assert_eq!(keys.learn(asker, found, true), known);
        }
        assert_eq!(keys.learn(asker, None, false), known);
        assert_eq!(keys.0.fresh(asker), None, "an incomplete lookup is repeated");
    }

    #[test]
    fn the_key_in_force_is_the_one_used_or_a_later_announcement() {
        let (keys, by) = (EncryptionKeys::default(), Keys::generate());
        let asker = Asker(by.public_key().to_bytes());
        let (used, other) = (Keys::generate(), Keys::generate());
        assert_eq!(keys.in_force(asker, key(&used), NOW), key(&used), "nothing is known");
        keys.note_for_tests(&announcement(&by, Some(&other), NOW));
        assert_eq!(keys.in_force(asker, key(&used), NOW), key(&used), "an announcement before the message");
        assert_eq!(keys.in_force(asker, key(&used), NOW - 1), key(&other), "one after it");
        assert_eq!(keys.in_force(asker, None, NOW - 1), None, "who writes with their own key reads with it");
        keys.note_for_tests(&announcement(&by, None, NOW + 1));
        assert_eq!(keys.in_force(asker, key(&used), NOW), None, "withdrawn");
    }
}
