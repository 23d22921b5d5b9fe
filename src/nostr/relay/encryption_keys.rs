//! Encryption keys that askers announce (kind 10044), looked up and remembered for a while.
//!
//! A relay may withhold an announcement or return an old one. So both our relays and the asker's
//! own are asked, the newest announcement counts, and an older one never replaces it later.

use super::connections::Relays;
use super::query::{newest, newest_of};
use super::relay_lists::{MAX_RELAYS, usable};
use crate::job::{Asker, EncryptionKey};
use crate::vault::{ANNOUNCEMENT, Announcement, VerifiedEvent};
use hashlink::LruCache;
use nostr::nips::nip65::RelayMetadata;
use nostr::nips::{nip17, nip65};
use nostr_sdk::{Kind, PublicKey, RelayUrl};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time limit for each of the two steps of a lookup, including relays that have to be connected
/// first.
const LOOKUP_STEP_TIMEOUT: Duration = Duration::from_secs(8);
/// A complete result is used for this long without another lookup.
const FRESH_FOR: Duration = Duration::from_secs(60);
/// Allowance for clocks that are ahead, seconds. Announcements with a later date are refused,
/// because none could replace them until that date.
const AHEAD: u64 = 600;
/// Number of askers whose announcement is remembered. Each takes about 700 bytes, and 1,300 at
/// most.
const REMEMBERED: usize = 10_000;

/// The result of a lookup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::nostr) struct KeyLookup {
    /// The newest announcement.
    pub announcement: Option<Announcement>,
    /// Whether every relay answered.
    pub is_complete: bool,
}

/// The newest announcement of one asker.
#[derive(Debug)]
struct KnownAnnouncement {
    announcement: Option<Announcement>,
    /// The time of the last lookup, if every relay answered.
    complete_at: Option<Instant>,
}

/// Looks up announcements and remembers them for a while.
#[derive(Debug)]
pub struct EncryptionKeys(Mutex<LruCache<Asker, KnownAnnouncement>>);

impl Default for EncryptionKeys {
    fn default() -> EncryptionKeys {
        EncryptionKeys(Mutex::new(LruCache::new(REMEMBERED)))
    }
}

impl EncryptionKeys {
    /// Returns the newest announcement of an asker, from a recent lookup or a new one. `seen_on`:
    /// relays where their message was seen; `now`: Unix seconds.
    pub(in crate::nostr) async fn look_up(
        &self,
        relays: &Relays,
        asker: Asker,
        seen_on: &[String],
        now: u64,
    ) -> KeyLookup {
        if let Some(announcement) = self.remembered(asker) {
            return KeyLookup { announcement, is_complete: true };
        }
        let Ok(key) = PublicKey::from_slice(&asker.0) else {
            return KeyLookup { announcement: None, is_complete: true };
        };
        let mut ours = relays.ours(|relay| relay.discovery || relay.inbox);
        ours.extend(seen_on.iter().filter_map(|url| RelayUrl::parse(url).ok()).filter(|url| relays.may_visit(url)));
        let ours: BTreeSet<RelayUrl> = ours.into_iter().collect();
        let (near, inboxes, lists) = tokio::join!(
            newest(relays, ours.clone(), key, ANNOUNCEMENT, LOOKUP_STEP_TIMEOUT, None),
            newest(relays, ours.clone(), key, Kind::InboxRelays, LOOKUP_STEP_TIMEOUT, None),
            newest(relays, ours.clone(), key, Kind::RelayList, LOOKUP_STEP_TIMEOUT, None),
        );
        let theirs = own_relays(relays, inboxes.event.as_ref(), lists.event.as_ref(), &ours);
        let far = newest(relays, theirs, key, ANNOUNCEMENT, LOOKUP_STEP_TIMEOUT, None).await;
        let is_complete = [&near, &inboxes, &lists, &far].iter().all(|lookup| lookup.failed == 0);
        let found = in_force([near.event, far.event].into_iter().flatten(), now);
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
        let known = self.lock().peek(&asker).and_then(|known| known.announcement.clone());
        known.filter(|announcement| announcement.dated() > since)
    }

    /// Looks up the announcements of these askers again.
    pub async fn refresh(&self, relays: &Relays, askers: &[(Asker, Vec<String>)], now: u64) {
        for (asker, seen_on) in askers {
            self.look_up(relays, *asker, seen_on, now).await;
        }
    }

    /// Remembers an announcement as if a lookup had found it.
    #[cfg(test)]
    pub(crate) fn note_for_tests(&self, announcement: Announcement) {
        self.learn(announcement.identity(), Some(announcement), true);
    }

    /// The result of a recent complete lookup.
    fn remembered(&self, asker: Asker) -> Option<Option<Announcement>> {
        let mut known = self.lock();
        let known = known.get(&asker)?;
        known.complete_at.filter(|at| at.elapsed() < FRESH_FOR).map(|_| known.announcement.clone())
    }

    /// Adds the result of a lookup, and returns the newest announcement known.
    fn learn(&self, asker: Asker, found: Option<Announcement>, is_complete: bool) -> Option<Announcement> {
        let mut known = self.lock();
        let before = known.get(&asker).and_then(|known| known.announcement.clone());
        // If both have the same date, the one known before counts.
        let announcement = found.into_iter().chain(before).max_by_key(Announcement::dated);
        known.insert(
            asker,
            KnownAnnouncement { announcement: announcement.clone(), complete_at: is_complete.then(Instant::now) },
        );
        announcement
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<Asker, KnownAnnouncement>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The relays where an asker publishes and receives, without those that were `asked`; at most
/// [`MAX_RELAYS`].
fn own_relays(
    relays: &Relays,
    inboxes: Option<&VerifiedEvent>,
    list: Option<&VerifiedEvent>,
    asked: &BTreeSet<RelayUrl>,
) -> BTreeSet<RelayUrl> {
    let written = list.into_iter().flat_map(|event| nip65::extract_relay_list(event));
    let written = written.filter(|(_, marker)| **marker != Some(RelayMetadata::Read)).map(|(url, _)| url);
    let read = inboxes.into_iter().flat_map(|event| nip17::extract_relay_list(event));
    // The relays where the asker publishes get at most half of the room, so that a long list does
    // not hide the others.
    let urls = written.take(MAX_RELAYS / 2).chain(read).filter(|url| !asked.contains(*url));
    usable(relays, urls.cloned().collect()).into_iter().collect()
}

/// The newest announcement that is not dated in the future.
fn in_force(events: impl Iterator<Item = VerifiedEvent>, now: u64) -> Option<Announcement> {
    let past = events.filter(|event| event.created_at.as_secs() <= now.saturating_add(AHEAD));
    newest_of(past).and_then(|event| Announcement::read(&event))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nostr_sdk::{EventBuilder, Keys, Tag};

    const NOW: u64 = 1_800_000_000;

    fn event(by: &Keys, key: Option<&Keys>, dated: u64) -> VerifiedEvent {
        let tags = key.map(|key| Tag::parse(["n", &key.public_key().to_hex()]).unwrap());
        let builder = EventBuilder::new(ANNOUNCEMENT, "").tags(tags).custom_created_at(dated.into());
        VerifiedEvent::check(builder.sign_with_keys(by).unwrap()).unwrap()
    }

    fn announcement(by: &Keys, key: Option<&Keys>, dated: u64) -> Announcement {
        Announcement::read(&event(by, key, dated)).unwrap()
    }

    fn key(keys: &Keys) -> Option<EncryptionKey> {
        Some(EncryptionKey(keys.public_key().to_bytes()))
    }

    #[test]
    fn the_newest_announcement_counts_and_none_of_the_future() {
        let (by, old, new) = (Keys::generate(), Keys::generate(), Keys::generate());
        let [first, second] = [(&old, NOW - 9), (&new, NOW - 5)].map(|(key, at)| event(&by, Some(key), at));
        let future = event(&by, Some(&old), NOW + AHEAD + 1);
        let newest = in_force([second.clone(), future.clone(), first].into_iter(), NOW);
        assert_eq!(newest.and_then(|newest| newest.key()), key(&new));
        assert_eq!(in_force([future.clone()].into_iter(), NOW), None);
        assert_eq!(in_force([future].into_iter(), u64::MAX).and_then(|one| one.key()), key(&old), "no overflow");
    }

    #[test]
    fn a_relay_that_returns_an_old_announcement_or_none_changes_nothing() {
        let (keys, by) = (EncryptionKeys::default(), Keys::generate());
        let asker = Asker(by.public_key().to_bytes());
        let (old, new) = (Keys::generate(), Keys::generate());
        let newer = Some(announcement(&by, Some(&new), NOW - 5));
        assert_eq!(keys.learn(asker, newer.clone(), true), newer);
        assert_eq!(keys.remembered(asker), Some(newer.clone()));
        for found in [Some(announcement(&by, Some(&old), NOW - 9)), Some(announcement(&by, Some(&old), NOW - 5)), None]
        {
            assert_eq!(keys.learn(asker, found, true), newer);
        }
        assert_eq!(keys.learn(asker, None, false), newer);
        assert_eq!(keys.remembered(asker), None, "an incomplete lookup is repeated");
    }

    #[test]
    fn the_key_in_force_is_the_one_used_or_a_later_announcement() {
        let (keys, by) = (EncryptionKeys::default(), Keys::generate());
        let asker = Asker(by.public_key().to_bytes());
        let (used, other) = (Keys::generate(), Keys::generate());
        assert_eq!(keys.in_force(asker, key(&used), NOW), key(&used), "nothing is known");
        keys.learn(asker, Some(announcement(&by, Some(&other), NOW)), true);
        assert_eq!(keys.in_force(asker, key(&used), NOW), key(&used), "an announcement before the message");
        assert_eq!(keys.in_force(asker, key(&used), NOW - 1), key(&other), "one after it");
        assert_eq!(keys.in_force(asker, None, NOW - 1), None, "who writes with their own key reads with it");
        keys.learn(asker, Some(announcement(&by, None, NOW + 1)), true);
        assert_eq!(keys.in_force(asker, key(&used), NOW), None, "withdrawn");
    }

    #[test]
    fn the_most_recent_announcements_are_remembered_and_no_more() {
        let keys = EncryptionKeys::default();
        for number in 0..2 * REMEMBERED as u32 {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&number.to_be_bytes());
            keys.learn(Asker(bytes), None, true);
        }
        assert_eq!(keys.lock().len(), REMEMBERED);
    }
}
