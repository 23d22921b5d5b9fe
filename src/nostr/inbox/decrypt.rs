//! From an event to a message: verification and decryption on all cores, in order of arrival, and for
//! messages whose author must be confirmed by an announcement (kind 10044) its lookup.
//!
//! Anybody can claim to be anybody, so lookups and memory are bounded. A claim that finds no room
//! is left to a backfill.

use super::queue::{Arrival, ArrivedEvent};
use super::seen::SeenIds;
use crate::clock::Clock;
use crate::fault;
use crate::nostr::relay::connections::Relays;
use crate::nostr::relay::published::EncryptionKeys;
use crate::vault::{Claim, Opened, Rumor, UnwrapError, Vault, VerifiedEvent};
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{Id, JoinHandle, JoinSet};

/// The most events in a batch, and so the most that wait for the next one.
const MAX_BATCH: usize = 16;
/// The most batches processed at once.
const MAX_BATCHES: usize = 8;

/// The result of verifying and decrypting an event.
pub(super) enum Outcome {
    /// A message.
    Message(Rumor),
    /// A message whose author must be looked up.
    Claim(Claim),
    /// The event holds nothing that can be answered.
    Ignored,
    /// The vault process ended before it answered.
    Unanswered,
    /// The id or signature is wrong. The genuine event with this id may still arrive.
    Forged,
}

/// Events being verified and decrypted, in batches. Those that arrive while no further batch may
/// start share the next one, so that the vault gets them in one call.
pub(super) struct Decryptions {
    vault: Vault,
    /// Events for the next batch.
    waiting: Vec<ArrivedEvent>,
    batches: FuturesOrdered<JoinHandle<Vec<Arrival<Outcome>>>>,
    /// The most batches in progress.
    most: usize,
    /// Processed events that were not taken yet.
    done: VecDeque<Arrival<Outcome>>,
}

impl Decryptions {
    /// Decrypts with the key in `vault`. At most one batch per core is processed at a time, and
    /// never more than [`MAX_BATCHES`].
    pub fn new(vault: Vault) -> Decryptions {
        let most = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_BATCHES);
        Decryptions { vault, waiting: Vec::new(), batches: FuturesOrdered::new(), most, done: VecDeque::new() }
    }

    /// Whether another event may be added.
    pub fn has_room(&self) -> bool {
        self.waiting.len() < MAX_BATCH
    }

    /// Adds an event.
    pub fn add(&mut self, arrival: ArrivedEvent) {
        self.waiting.push(arrival);
        self.start();
    }

    /// The next processed event in order of arrival; `None` if none is being processed.
    /// Cancel-safe.
    pub async fn next(&mut self) -> Option<Arrival<Outcome>> {
        loop {
            if let Some(decrypted) = self.done.pop_front() {
                return Some(decrypted);
            }
            match self.batches.next().await? {
                Ok(batch) => self.done.extend(batch),
                Err(error) => tracing::error!(%error, "wraps are ignored"),
            }
            self.start();
        }
    }

    /// Starts a batch with the waiting events, if another batch may run.
    fn start(&mut self) {
        if self.batches.len() < self.most && !self.waiting.is_empty() {
            let (vault, batch) = (self.vault.clone(), std::mem::take(&mut self.waiting));
            // The vault may be another process, so this call blocks.
            self.batches.push_back(tokio::task::spawn_blocking(move || decrypt(&vault, batch)));
        }
    }
}

/// Verifies events and opens the genuine ones.
fn decrypt(vault: &Vault, batch: Vec<ArrivedEvent>) -> Vec<Arrival<Outcome>> {
    let (mut decrypted, mut genuine) = (Vec::new(), Vec::new());
    for arrival in batch {
        let (event, arrival) = arrival.take();
        let event = VerifiedEvent::check(*event);
        decrypted.push(arrival.with(if event.is_some() { Outcome::Ignored } else { Outcome::Forged }));
        genuine.extend(event);
    }
    let to_open = decrypted.iter_mut().filter(|arrival| matches!(arrival.message, Outcome::Ignored));
    for (arrival, outcome) in to_open.zip(open_all(vault, &genuine)) {
        arrival.message = outcome;
    }
    decrypted
}

/// Opens events together, and after a panic one by one.
fn open_all(vault: &Vault, events: &[VerifiedEvent]) -> Vec<Outcome> {
    try_open(vault, events).unwrap_or_else(|| {
        tracing::error!("decrypting wraps panicked; trying once more, one by one");
        let alone = |event| try_open(vault, std::slice::from_ref(event)).and_then(|mut outcomes| outcomes.pop());
        let or_ignored = |outcome: Option<Outcome>| {
            outcome.unwrap_or_else(|| {
                tracing::error!("decrypting a wrap panicked twice; it is ignored");
                Outcome::Ignored
            })
        };
        events.iter().map(alone).map(or_ignored).collect()
    })
}

/// Opens events; `None` after a panic.
fn try_open(vault: &Vault, events: &[VerifiedEvent]) -> Option<Vec<Outcome>> {
    let attempt = || {
        fault::before("unwrap");
        let opened = vault.open_all(events);
        fault::after("unwrap");
        opened
    };
    let outcome = |opened| match opened {
        Ok(Opened::Message(rumor)) => Outcome::Message(rumor),
        Ok(Opened::Claim(claim)) => Outcome::Claim(claim),
        Err(UnwrapError::Unanswered) => Outcome::Unanswered,
        Err(reason) => {
            tracing::debug!(%reason, "a wrap is ignored");
            Outcome::Ignored
        }
    };
    Some(catch_unwind(AssertUnwindSafe(attempt)).ok()?.into_iter().map(outcome).collect())
}

/// The most authors looked up at a time. Each is looked up at our relays and at most six of the
/// author's own.
const MAX_LOOKUPS: usize = 16;
/// Memory for waiting claims, in KiB: their text, and [`KIBIBYTES_A_CLAIM`] each for the rest.
const CLAIM_KIBIBYTES: usize = 2 * 1024;
/// Memory counted per claim besides its text, in KiB.
const KIBIBYTES_A_CLAIM: usize = 2;
/// Pauses after lookups that some relay did not answer.
const LOOKUP_PAUSES: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];

/// Lookups in progress. They end with the inbox; the relays still have the messages.
pub(super) struct ClaimLookups {
    relays: Relays,
    keys: Arc<EncryptionKeys>,
    vault: Vault,
    clock: Clock,
    turns: Arc<Semaphore>,
    room: Arc<Semaphore>,
    seen: SeenIds,
    under_way: JoinSet<()>,
    /// When each lookup under way began, Unix seconds, by the number of its task.
    began: HashMap<Id, u64>,
}

impl ClaimLookups {
    /// Looks up authors in `keys`. `vault` decides whether an announcement confirms a claim.
    pub fn new(relays: Relays, keys: Arc<EncryptionKeys>, vault: Vault, clock: Clock, seen: SeenIds) -> ClaimLookups {
        let (turns, room) = (Arc::new(Semaphore::new(MAX_LOOKUPS)), Arc::new(Semaphore::new(CLAIM_KIBIBYTES)));
        ClaimLookups { relays, keys, vault, clock, turns, room, seen, under_way: JoinSet::new(), began: HashMap::new() }
    }

    /// When the longest lookup under way began, Unix seconds; `None` if there is none.
    pub fn oldest(&mut self) -> Option<u64> {
        while let Some(ended) = self.under_way.try_join_next_with_id() {
            self.began.remove(&ended.map_or_else(|error| error.id(), |(task, ())| task));
        }
        self.began.values().min().copied()
    }

    /// Starts to look up the author of a claim, and forwards its message if their announcement
    /// confirms it. Otherwise the message counts as an impostor's and is dropped. Returns `false`
    /// if there is no room.
    pub fn begin(&mut self, claimed: Arrival<Claim>, out: &mpsc::Sender<Arrival>) -> bool {
        self.oldest();
        let size = (claimed.message.unverified().content.len() / 1024 + KIBIBYTES_A_CLAIM) as u32;
        let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(size) else { return false };
        let (relays, keys, turns) = (self.relays.clone(), Arc::clone(&self.keys), Arc::clone(&self.turns));
        let (vault, clock, out) = (self.vault.clone(), self.clock.clone(), out.clone());
        let (seen, id) = (self.seen.clone(), claimed.id);
        let task = self.under_way.spawn(async move {
            let (author, seen_on) = (claimed.message.unverified().author, claimed.seen_on());
            let mut pauses = LOOKUP_PAUSES.iter();
            let announcement = loop {
                let turn = turns.acquire().await;
                let found = keys.look_up(&relays, author, &seen_on, clock.now()).await;
                drop(turn);
                let is_confirmed =
                    found.announcement.as_ref().is_some_and(|found| claimed.message.is_confirmed_by(found));
                match pauses.next() {
                    Some(pause) if !is_confirmed && !found.is_complete => tokio::time::sleep(*pause).await,
                    _ => break found.announcement,
                }
            };
            // The vault may be another process, so this call blocks.
            let confirming = tokio::task::spawn_blocking(move || {
                let (claim, arrival) = claimed.take();
                vault.confirm(claim, announcement.as_ref()).map(|rumor| arrival.with(rumor))
            });
            match confirming.await.unwrap_or(Err(UnwrapError::Impostor)) {
                // An error means that the bot is stopping. The relay still has the message.
                Ok(confirmed) => _ = out.send(confirmed).await,
                Err(UnwrapError::Unanswered) => seen.give_back(&id),
                Err(reason) => tracing::debug!(%reason, "a wrap is ignored"),
            }
            drop(room);
        });
        self.began.insert(task.id(), self.clock.now());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nostr_sdk::{Event, EventBuilder, Keys, Kind, RelayUrl, Tag};

    fn arrived(event: Event, relay: &RelayUrl) -> ArrivedEvent {
        Arrival { id: event.id.to_bytes(), message: Box::new(event), relay: relay.clone() }
    }

    #[tokio::test]
    async fn a_forged_event_is_told_from_an_undecryptable_one() {
        let vault = Vault::without_identity().unwrap();
        let (url, us) = (RelayUrl::parse("wss://relay.example").unwrap(), Tag::public_key(vault.public_key()));
        let junk = EventBuilder::new(Kind::GiftWrap, "junk").tag(us).sign_with_keys(&Keys::generate()).unwrap();
        let mut forged = junk.clone();
        forged.content = "other junk under the same id".to_owned();
        let mut decryptions = Decryptions::new(vault);
        for event in [junk, forged] {
            decryptions.add(arrived(event, &url));
        }
        assert!(matches!(decryptions.next().await.unwrap().message, Outcome::Ignored));
        assert!(matches!(decryptions.next().await.unwrap().message, Outcome::Forged));
        assert!(decryptions.next().await.is_none());
    }

    #[tokio::test]
    async fn events_wait_for_a_batch_in_bounded_number_and_come_out_in_order() {
        let vault = Vault::without_identity().unwrap();
        let (url, us) = (RelayUrl::parse("wss://relay.example").unwrap(), Tag::public_key(vault.public_key()));
        let mut decryptions = Decryptions::new(vault);
        let (mut added, mut most) = (Vec::new(), 0);
        while decryptions.has_room() {
            let event = EventBuilder::new(Kind::GiftWrap, added.len().to_string()).tag(us.clone());
            let event = event.sign_with_keys(&Keys::generate()).unwrap();
            added.push(event.id.to_bytes());
            decryptions.add(arrived(event, &url));
            most = most.max(decryptions.batches.len());
        }
        // `next` was not called, so no batch has ended and each has one event.
        assert_eq!((most, added.len()), (decryptions.most, decryptions.most + MAX_BATCH));
        let mut ended = Vec::new();
        while let Some(decrypted) = decryptions.next().await {
            ended.push(decrypted.id);
        }
        assert_eq!(ended, added);
    }
}
