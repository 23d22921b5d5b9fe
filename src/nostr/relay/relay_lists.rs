//! Where an asker can be reached: found, absent, or could not look. The three are never mixed up.

use super::connections::Relays;
use crate::job::Asker;
use nostr::nips::nip65::RelayMetadata;
use nostr::nips::{nip17, nip65};
use nostr_sdk::{Event, Filter, Kind, PublicKey, RelayUrl, Timestamp};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How long one relay may take to answer.
const PATIENCE: Duration = Duration::from_secs(4);
/// How long all of them together may take, those included that have to be connected first.
const LONGEST_LOOK: Duration = Duration::from_secs(12);
/// Relays of one asker that are used: NIP-17 wants one to three.
const MOST: usize = 6;
/// Once somebody has a list, the others may take this long to show a newer one.
const NEWER: Duration = Duration::from_millis(500);
/// A relay that did not in that time is not waited for again before this.
const SLOW_FOR: Duration = Duration::from_secs(600);
/// How long an answer is believed without looking again.
const BELIEVED_FOR: Duration = Duration::from_secs(60);
/// How long a list is good for when nobody can be asked, or when those who can do not have it.
const KNOWN_FOR: Duration = Duration::from_secs(86_400);
/// After so many attempts, relays that say there is no list are believed although more of them cannot be asked.
const BELIEVED_AFTER: u32 = 2;
/// Askers whose answer is remembered.
const REMEMBERED: usize = 10_000;

/// Where to send an asker's letters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::nostr) enum Targets {
    /// Their own DM relays (kind 10050).
    Listed(Vec<RelayUrl>),
    /// They publish none.
    Fallback {
        /// Their read relays (NIP-65), or where their message was seen if they have none.
        first: Vec<RelayUrl>,
        /// Where their message was seen, for a letter that none of the first takes.
        then: Vec<RelayUrl>,
    },
    /// They publish none, and nothing else is known or allowed.
    Nowhere,
    /// No relay could be asked: to be tried again.
    CouldNotLook,
}

/// How sure it has to be where a letter goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::nostr) struct Care {
    /// The list is looked up now, whatever is remembered: for a key, which is not sent twice.
    pub fresh: bool,
    /// Attempts before this one.
    pub attempts: u32,
    /// Whether somebody without DM relays is written to.
    pub fall_back: bool,
}

/// A list as somebody published it.
#[derive(Clone, Debug)]
struct List {
    /// Those that may be visited; none where the author has withdrawn what was there before.
    urls: Vec<RelayUrl>,
    dated: Timestamp,
    found_at: Instant,
}

/// One look for a list.
enum Look {
    Found(List),
    Absent,
    /// Some say that there is none, and more cannot be asked.
    Unsure,
    Failed,
}

/// What the last look for somebody's list brought.
#[derive(Debug)]
struct Known {
    looked_at: Instant,
    list: Option<List>,
    /// Its relays took nothing: the next look counts, even if it finds no list.
    doubted: bool,
}

/// Remembers lists for a while.
#[derive(Debug, Default)]
pub struct RelayLists {
    book: Mutex<Book>,
    /// Relays that showed nothing within [`NEWER`] when somebody else had a list, and when that was.
    slow: Mutex<HashMap<RelayUrl, Instant>>,
}

#[derive(Debug, Default)]
struct Book {
    of: HashMap<Asker, Known>,
    /// How many were left when those that are of no use any more were last taken out.
    left: usize,
}

impl Book {
    fn write(&mut self, asker: Asker, known: Known, now: Instant) {
        // Not at each: looking through all of them costs as much as they are many.
        if self.of.len() >= REMEMBERED.min(2 * self.left + 64) {
            self.of.retain(|_, known| known.is_of_use(now));
            if self.of.len() >= REMEMBERED {
                self.of.clear();
            }
            self.left = self.of.len();
        }
        self.of.insert(asker, known);
    }
}

impl Known {
    fn is_of_use(&self, now: Instant) -> bool {
        match &self.list {
            Some(list) => now < list.found_at + KNOWN_FOR,
            None => now < self.looked_at + BELIEVED_FOR,
        }
    }
}

impl RelayLists {
    /// Whether somebody publishes DM relays (kind 10050); `None` where nobody could be asked.
    pub(in crate::nostr) async fn has_dm_relays(
        &self,
        relays: &Relays,
        asker: Asker,
        seen_on: &[String],
    ) -> Option<bool> {
        match self.targets(relays, asker, seen_on, Care::default()).await {
            Targets::Listed(_) => Some(true),
            Targets::Nowhere | Targets::Fallback { .. } => Some(false),
            Targets::CouldNotLook => None,
        }
    }

    /// Where messages of kind 4 are read: the relays of the asker's own list (NIP-65), and where theirs was seen.
    pub(in crate::nostr) async fn open_targets(&self, relays: &Relays, asker: Asker, seen_on: &[String]) -> Targets {
        let seen: Vec<RelayUrl> = seen_on.iter().filter_map(|url| RelayUrl::parse(url).ok()).collect();
        let Ok(key) = PublicKey::from_slice(&asker.0) else { return Targets::Nowhere };
        let mut urls = seen.clone();
        if let Look::Found(read) = self.look(relays, key, Kind::RelayList, &seen).await {
            urls.extend(read.urls);
        }
        match usable(relays, urls) {
            urls if urls.is_empty() => Targets::Nowhere,
            urls => Targets::Listed(urls),
        }
    }

    /// `seen_on`: relays where the asker's own message was seen.
    pub(in crate::nostr) async fn targets(
        &self,
        relays: &Relays,
        asker: Asker,
        seen_on: &[String],
        care: Care,
    ) -> Targets {
        let seen: Vec<RelayUrl> = seen_on.iter().filter_map(|url| RelayUrl::parse(url).ok()).collect();
        let Ok(key) = PublicKey::from_slice(&asker.0) else { return Targets::Nowhere };
        let listed = match self.remembered(asker).filter(|_| !care.fresh) {
            Some(listed) => listed,
            None => {
                let looked = self.look(relays, key, Kind::InboxRelays, &seen).await;
                let looked = if care.attempts >= BELIEVED_AFTER { looked.taken_at_its_word() } else { looked };
                match self.learn(asker, looked) {
                    Some(listed) => listed,
                    None => return Targets::CouldNotLook,
                }
            }
        };
        if !listed.is_empty() {
            return Targets::Listed(listed);
        }
        if !care.fall_back {
            return Targets::Nowhere;
        }
        let read = match self.look(relays, key, Kind::RelayList, &seen).await {
            Look::Found(list) => list.urls,
            Look::Unsure | Look::Failed if care.attempts < BELIEVED_AFTER => return Targets::CouldNotLook,
            Look::Absent | Look::Unsure | Look::Failed => Vec::new(),
        };
        match (read, usable(relays, seen)) {
            (read, seen) if read.is_empty() && seen.is_empty() => Targets::Nowhere,
            (read, seen) if read.is_empty() => Targets::Fallback { first: seen, then: Vec::new() },
            (read, mut seen) => {
                seen.retain(|url| !read.contains(url));
                Targets::Fallback { first: read, then: seen }
            }
        }
    }

    /// Asks our relays and those where the asker was seen, all at once. The newest list counts.
    async fn look(&self, relays: &Relays, key: PublicKey, kind: Kind, seen: &[RelayUrl]) -> Look {
        let mut asked = relays.ours(|relay| relay.discovery || relay.inbox);
        asked.extend(seen.iter().filter(|url| relays.may_visit(url)).cloned());
        let mut waited_for: HashSet<RelayUrl> = asked.into_iter().collect();
        let mut looking = JoinSet::new();
        for url in waited_for.iter().cloned() {
            let relays = relays.clone();
            let filter = Filter::new().kind(kind).author(key);
            looking.spawn(async move { (relays.fetch_one(&url, filter, PATIENCE).await, url) });
        }
        let (mut newest, mut answered, mut failed): (Option<Event>, usize, usize) = (None, 0, 0);
        // Until somebody has a list, everybody is waited for.
        let mut ends = Instant::now() + LONGEST_LOOK;
        while let Ok(Some(looked)) = tokio::time::timeout_at(ends.into(), looking.join_next()).await {
            let looked = looked.ok().and_then(|(looked, url)| {
                waited_for.remove(&url);
                looked.ok()
            });
            let Some(event) = looked else {
                failed += 1;
                continue;
            };
            answered += 1;
            let own = event.filter(|event| event.pubkey == key && event.kind == kind);
            if own.is_some() && newest.is_none() {
                ends = Instant::now() + NEWER;
            }
            newest = own.into_iter().chain(newest).max_by_key(|event| event.created_at);
            if newest.is_some() && self.are_slow(&waited_for) {
                break;
            }
        }
        failed += looking.len();
        if newest.is_some() && Instant::now() >= ends {
            let mut slow = self.slow.lock().unwrap_or_else(PoisonError::into_inner);
            slow.extend(waited_for.into_iter().map(|url| (url, Instant::now())));
        }
        match newest {
            Some(event) => Look::Found(List {
                urls: usable(relays, urls_of(&event)),
                dated: event.created_at,
                found_at: Instant::now(),
            }),
            // A list that nobody has is absent only if somebody looked, and not fewer than did not answer.
            None if answered > 0 && answered >= failed => Look::Absent,
            None if answered > 0 => Look::Unsure,
            None => Look::Failed,
        }
    }

    /// Whether nobody is left who is worth waiting for.
    fn are_slow(&self, relays: &HashSet<RelayUrl>) -> bool {
        let slow = self.slow.lock().unwrap_or_else(PoisonError::into_inner);
        relays.iter().all(|url| slow.get(url).is_some_and(|at| at.elapsed() < SLOW_FOR))
    }

    /// The list as it was looked up a moment ago, empty if there was none.
    fn remembered(&self, asker: Asker) -> Option<Vec<RelayUrl>> {
        let known = self.lock();
        let known = known.of.get(&asker).filter(|known| !known.doubted && known.looked_at.elapsed() < BELIEVED_FOR)?;
        Some(known.list.as_ref().map_or_else(Vec::new, |list| list.urls.clone()))
    }

    /// What a look means beside what was known before; `None` where that is nothing. A list does not vanish because the
    /// relay that has it is away, and does not become older.
    fn learn(&self, asker: Asker, looked: Look) -> Option<Vec<RelayUrl>> {
        let mut known = self.lock();
        let before = known.of.get(&asker);
        let doubted = before.is_some_and(|known| known.doubted);
        let before = before.and_then(|known| known.list.clone()).filter(|list| list.found_at.elapsed() < KNOWN_FOR);
        let list = match (looked, before) {
            (Look::Failed | Look::Unsure, before) => return before.map(|list| list.urls),
            (Look::Found(found), Some(before)) if before.dated > found.dated => Some(before),
            (Look::Found(found), _) => Some(found),
            (Look::Absent, before) => before.filter(|_| !doubted),
        };
        let urls = list.as_ref().map_or_else(Vec::new, |list| list.urls.clone());
        known.write(asker, Known { looked_at: Instant::now(), list, doubted: false }, Instant::now());
        Some(urls)
    }

    /// The next look is a fresh one: the list may be out of date when its relays do not take letters.
    pub(in crate::nostr) fn doubt(&self, asker: Asker) {
        if let Some(known) = self.lock().of.get_mut(&asker) {
            known.doubted = true;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Look {
    /// Where only some could be asked, what they say is all there is to know.
    fn taken_at_its_word(self) -> Look {
        if let Look::Unsure = self { Look::Absent } else { self }
    }
}

/// The relays a list names: all of a DM relay list, those for reading of a relay list.
fn urls_of(event: &Event) -> Vec<RelayUrl> {
    if event.kind == Kind::InboxRelays {
        return nip17::extract_relay_list(event).cloned().collect();
    }
    let read = |(url, use_of): (&RelayUrl, &Option<RelayMetadata>)| {
        (*use_of != Some(RelayMetadata::Write)).then(|| url.clone())
    };
    nip65::extract_relay_list(event).filter_map(read).collect()
}

/// Without repeats and without what must not be visited, in the order given.
fn usable(relays: &Relays, urls: Vec<RelayUrl>) -> Vec<RelayUrl> {
    let mut usable: Vec<RelayUrl> = Vec::new();
    for url in urls {
        if usable.len() < MOST && !usable.contains(&url) && relays.may_visit(&url) {
            usable.push(url);
        }
    }
    usable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_forgotten_when_they_are_of_no_use() {
        let (mut book, start) = (Book::default(), Instant::now());
        let asker = |number: u32| Asker(std::array::from_fn(|at| number.to_be_bytes()[at % 4]));
        let nothing = |looked_at: Instant| Known { looked_at, list: None, doubted: false };
        let something = |found_at: Instant| Known {
            list: Some(List { urls: Vec::new(), dated: Timestamp::from(0), found_at }),
            ..nothing(found_at)
        };
        for number in 0..1000 {
            let known = if number % 2 == 0 { something(start) } else { nothing(start) };
            book.write(asker(number), known, start);
        }
        for number in 1000..2100 {
            book.write(asker(number), nothing(start + BELIEVED_FOR), start + BELIEVED_FOR);
        }
        assert!(book.of.len() <= 1600, "{}", book.of.len());
        assert!(book.of.contains_key(&asker(0)) && !book.of.contains_key(&asker(1)));
        for number in 2100..5000 {
            book.write(asker(number), nothing(start + KNOWN_FOR), start + KNOWN_FOR);
        }
        assert!(!book.of.contains_key(&asker(0)) && book.of.contains_key(&asker(4000)));
        for number in 0..2 * REMEMBERED as u32 {
            book.write(asker(number), something(start), start);
        }
        assert!(book.of.len() <= REMEMBERED);
    }
}
