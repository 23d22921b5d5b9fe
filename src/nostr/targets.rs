//! Where an asker can be reached: found, absent, or could not look. The three are never mixed up.

use super::relays::Relays;
use crate::ids::Asker;
use nostr::nips::nip65::RelayMetadata;
use nostr::nips::{nip17, nip65};
use nostr_sdk::{Event, Filter, Kind, PublicKey, RelayUrl};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How long one relay may take to answer.
const PATIENCE: Duration = Duration::from_secs(4);
/// Relays of one asker that are used: NIP-17 wants one to three.
const MOST: usize = 6;
/// How long an answer is believed.
const FOUND_FOR: Duration = Duration::from_secs(600);
const ABSENT_FOR: Duration = Duration::from_secs(60);
/// Askers whose answer is remembered.
const REMEMBERED: usize = 10_000;

/// Where to send an asker's letters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Targets {
    /// Their own DM relays (kind 10050).
    Listed(Vec<RelayUrl>),
    /// They publish none: where their message was seen, and their read relays (NIP-65).
    Fallback(Vec<RelayUrl>),
    /// They publish none, and nothing else is known or allowed.
    Nowhere,
    /// No relay could be asked: to be tried again.
    CouldNotLook,
}

/// One look for a list.
enum Look {
    Found(Vec<RelayUrl>),
    Absent,
    Failed,
}

/// When it was looked up, and the list, if there is one.
type Known = (Instant, Option<Vec<RelayUrl>>);

/// Remembers lists for a while.
#[derive(Debug, Default)]
pub struct Directory {
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    known: HashMap<Asker, Known>,
    /// How many there were when those that are believed no more were last taken out.
    believed: usize,
}

impl Book {
    fn look_up(&self, asker: Asker, now: Instant) -> Option<Option<Vec<RelayUrl>>> {
        self.known.get(&asker).filter(|known| is_believed(known, now)).map(|(_, listed)| listed.clone())
    }

    fn write(&mut self, asker: Asker, listed: Option<Vec<RelayUrl>>, now: Instant) {
        // Not at each: looking through all of them costs as much as they are many.
        if self.known.len() >= REMEMBERED.min(2 * self.believed + 64) {
            self.known.retain(|_, known| is_believed(known, now));
            if self.known.len() >= REMEMBERED {
                self.known.clear();
            }
            self.believed = self.known.len();
        }
        self.known.insert(asker, (now, listed));
    }
}

fn is_believed((at, listed): &Known, now: Instant) -> bool {
    now < *at + if listed.is_some() { FOUND_FOR } else { ABSENT_FOR }
}

impl Directory {
    /// Whether somebody publishes DM relays (kind 10050); `None` where nobody could be asked.
    pub(super) async fn has_dm_relays(&self, relays: &Relays, asker: Asker, seen_on: &[String]) -> Option<bool> {
        match self.targets(relays, asker, seen_on, false).await {
            Targets::Listed(_) => Some(true),
            Targets::Nowhere | Targets::Fallback(_) => Some(false),
            Targets::CouldNotLook => None,
        }
    }

    /// Where messages of kind 4 are read: the relays of the asker's own list (NIP-65), and where theirs was seen.
    pub(super) async fn open_targets(&self, relays: &Relays, asker: Asker, seen_on: &[String]) -> Targets {
        let seen: Vec<RelayUrl> = seen_on.iter().filter_map(|url| RelayUrl::parse(url).ok()).collect();
        let Ok(key) = PublicKey::from_slice(&asker.0) else { return Targets::Nowhere };
        let mut urls = seen.clone();
        if let Look::Found(read) = look(relays, key, Kind::RelayList, &seen).await {
            urls.extend(read);
        }
        match usable(relays, urls) {
            urls if urls.is_empty() => Targets::Nowhere,
            urls => Targets::Listed(urls),
        }
    }

    /// `seen_on`: relays where the asker's own message was seen.
    pub(super) async fn targets(&self, relays: &Relays, asker: Asker, seen_on: &[String], fall_back: bool) -> Targets {
        let seen: Vec<RelayUrl> = seen_on.iter().filter_map(|url| RelayUrl::parse(url).ok()).collect();
        let Ok(key) = PublicKey::from_slice(&asker.0) else { return Targets::Nowhere };
        let listed = match self.remembered(asker) {
            Some(listed) => listed,
            None => match look(relays, key, Kind::InboxRelays, &seen).await {
                Look::Found(urls) => self.remember(asker, Some(urls)),
                Look::Absent => self.remember(asker, None),
                Look::Failed => return Targets::CouldNotLook,
            },
        };
        if let Some(urls) = listed {
            return Targets::Listed(urls);
        }
        if !fall_back {
            return Targets::Nowhere;
        }
        let mut urls = seen.clone();
        if let Look::Found(read) = look(relays, key, Kind::RelayList, &seen).await {
            urls.extend(read);
        }
        match usable(relays, urls) {
            urls if urls.is_empty() => Targets::Nowhere,
            urls => Targets::Fallback(urls),
        }
    }

    fn remembered(&self, asker: Asker) -> Option<Option<Vec<RelayUrl>>> {
        self.book().look_up(asker, Instant::now())
    }

    fn remember(&self, asker: Asker, listed: Option<Vec<RelayUrl>>) -> Option<Vec<RelayUrl>> {
        self.book().write(asker, listed.clone(), Instant::now());
        listed
    }

    /// The next look is a fresh one: the list may be out of date when its relays do not take letters.
    pub(super) fn forget(&self, asker: Asker) {
        self.book().known.remove(&asker);
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks our relays and those where the asker was seen, all at once. The newest list counts.
async fn look(relays: &Relays, key: PublicKey, kind: Kind, seen: &[RelayUrl]) -> Look {
    let mut asked = relays.ours(|relay| relay.discovery || relay.inbox);
    asked.extend(seen.iter().filter(|url| relays.may_visit(url)).cloned());
    asked.sort();
    asked.dedup();
    let mut looking = JoinSet::new();
    for url in asked {
        let relays = relays.clone();
        let filter = Filter::new().kind(kind).author(key);
        looking.spawn(async move { relays.fetch_one(&url, filter, PATIENCE).await });
    }
    let (mut newest, mut answered, mut failed): (Option<Event>, usize, usize) = (None, 0, 0);
    while let Some(looked) = looking.join_next().await {
        match looked {
            Ok(Ok(event)) => {
                answered += 1;
                // The library takes an id it has seen for good, whatever it stands under.
                let is_own = |event: &Event| event.pubkey == key && event.kind == kind && event.verify().is_ok();
                let own = event.into_iter().filter(is_own);
                newest = own.chain(newest).max_by_key(|event| event.created_at);
                if newest.is_some() && answered > failed {
                    break;
                }
            }
            Ok(Err(_)) | Err(_) => failed += 1,
        }
    }
    match newest {
        Some(event) => match usable(relays, urls_of(&event)) {
            urls if urls.is_empty() => Look::Absent,
            urls => Look::Found(urls),
        },
        // A list that nobody has is absent only if somebody looked, and not fewer than did not answer.
        None if answered > 0 && answered >= failed => Look::Absent,
        None => Look::Failed,
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
    fn lists_are_forgotten_when_they_are_believed_no_more() {
        let (mut book, start) = (Book::default(), Instant::now());
        let asker = |number: u32| Asker(std::array::from_fn(|at| number.to_be_bytes()[at % 4]));
        let url = RelayUrl::parse("wss://relay.example").unwrap();
        for number in 0..1000 {
            book.write(asker(number), Some(vec![url.clone()]), start);
        }
        assert_eq!(book.look_up(asker(0), start + FOUND_FOR / 2), Some(Some(vec![url])));
        assert_eq!(book.look_up(asker(0), start + FOUND_FOR), None);
        for number in 1000..2100 {
            book.write(asker(number), None, start + FOUND_FOR);
        }
        assert!(book.known.len() <= 1100, "{}", book.known.len());
        assert_eq!(book.look_up(asker(2000), start + FOUND_FOR), Some(None));
        for number in 0..2 * REMEMBERED as u32 {
            book.write(asker(number), None, start);
        }
        assert!(book.known.len() <= REMEMBERED);
    }
}
