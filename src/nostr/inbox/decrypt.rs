//! From an event to a message: verification and decryption on all cores, in order of arrival, and for
//! messages whose author must be confirmed by an announcement (kind 10044) its lookup.
//!
//! Anybody can claim to be anybody, so lookups and memory are bounded. A claim that finds no room
//! is left to a backfill.

use super::queue::Arrival;
use super::{Inbox, InboxItem};
use crate::config::Limits;
use crate::fault;
use crate::nostr::relay::connections::wait_until;
use crate::token_bucket::TokenBucket;
use crate::vault::{Claim, Opened, Rumor, UnwrapError, Vault, VerifiedEvent};
use futures_util::stream::{self, Stream, StreamExt};
use nostr_sdk::Event;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{Id, JoinSet};

/// The most events in a batch.
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

/// Verifies and decrypts events at the rate of `limits`, in order of arrival. At most one batch per
/// core is processed at a time, and never more than [`MAX_BATCHES`]. Events that arrive meanwhile
/// share the next one, so that the vault gets them in one call.
pub(super) fn open(
    events: impl Stream<Item = InboxItem<Box<Event>>>,
    limits: Limits,
    vault: Vault,
) -> impl Stream<Item = InboxItem<Outcome>> {
    let mut bucket = TokenBucket::new(limits.wraps_per_second, limits.wraps_burst);
    let limited = events.then(move |item| {
        let now = Instant::now();
        let turn = if matches!(item, InboxItem::Message(_)) { now + bucket.take(now) } else { now };
        async move {
            fault::before("receive");
            wait_until(turn).await;
            fault::after("receive");
            item
        }
    });
    let batches = limited.ready_chunks(MAX_BATCH).map(move |batch| {
        let vault = vault.clone();
        // The vault may be another process, so this call blocks.
        tokio::task::spawn_blocking(move || decrypt(&vault, batch))
    });
    let most = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_BATCHES);
    // An error means that the bot is stopping.
    batches.buffered(most).flat_map(|batch| stream::iter(batch.unwrap_or_default()))
}

/// Verifies events and opens the genuine ones.
fn decrypt(vault: &Vault, batch: Vec<InboxItem<Box<Event>>>) -> Vec<InboxItem<Outcome>> {
    let mut genuine = Vec::new();
    let mut verify = |item| match item {
        InboxItem::BackfillEnd(end) => InboxItem::BackfillEnd(end),
        InboxItem::Message(arrival) => {
            let (event, arrival): (Box<Event>, _) = arrival.take();
            let event = catch_unwind(|| VerifiedEvent::check(*event)).ok().flatten();
            let outcome = if event.is_some() { Outcome::Ignored } else { Outcome::Forged };
            genuine.extend(event);
            InboxItem::Message(arrival.with(outcome))
        }
    };
    let mut decrypted: Vec<InboxItem<Outcome>> = batch.into_iter().map(&mut verify).collect();
    let to_open = decrypted.iter_mut().filter_map(|item| match item {
        InboxItem::Message(Arrival { message: outcome @ Outcome::Ignored, .. }) => Some(outcome),
        _ => None,
    });
    to_open.zip(open_all(vault, &genuine)).for_each(|(outcome, opened)| *outcome = opened);
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
    inbox: Inbox,
    turns: Arc<Semaphore>,
    room: Arc<Semaphore>,
    under_way: JoinSet<()>,
    /// When each lookup under way began, Unix seconds, by the number of its task.
    began: HashMap<Id, u64>,
}

impl ClaimLookups {
    /// Looks up the authors of an inbox's claims.
    pub fn new(inbox: Inbox) -> ClaimLookups {
        let (turns, room) = (Arc::new(Semaphore::new(MAX_LOOKUPS)), Arc::new(Semaphore::new(CLAIM_KIBIBYTES)));
        ClaimLookups { inbox, turns, room, under_way: JoinSet::new(), began: HashMap::new() }
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
        let (inbox, turns, out, id) = (self.inbox.clone(), Arc::clone(&self.turns), out.clone(), claimed.id);
        let task = self.under_way.spawn(async move {
            let (author, seen_on) = (claimed.message.unverified().author, claimed.seen_on());
            let mut pauses = LOOKUP_PAUSES.iter();
            let announcement = loop {
                let turn = turns.acquire().await;
                let found = inbox.encryption_keys.look_up(&inbox.relays, author, &seen_on, inbox.clock.now()).await;
                drop(turn);
                let is_confirmed =
                    found.announcement.as_ref().is_some_and(|found| claimed.message.is_confirmed_by(found));
                match pauses.next() {
                    Some(pause) if !is_confirmed && !found.is_complete => tokio::time::sleep(*pause).await,
                    _ => break found.announcement,
                }
            };
            let (vault, seen) = (inbox.vault, inbox.seen);
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
        self.began.insert(task.id(), self.inbox.clock.now());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use futures_util::{FutureExt, future};
    use nostr_sdk::{EventBuilder, Keys, Kind, RelayUrl, Tag};
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn arrived(event: Event) -> InboxItem<Box<Event>> {
        let relay = RelayUrl::parse("wss://relay.example").unwrap();
        InboxItem::Message(Arrival { id: event.id.to_bytes(), message: Box::new(event), relay })
    }

    /// A wrap that cannot be decrypted.
    fn junk(vault: &Vault, text: &str) -> Event {
        let junk = EventBuilder::new(Kind::GiftWrap, text).tag(Tag::public_key(vault.public_key()));
        junk.sign_with_keys(&Keys::generate()).unwrap()
    }

    fn limits() -> Limits {
        Config::embedded_default().unwrap().limits
    }

    async fn outcomes(vault: Vault, events: Vec<Event>) -> Vec<Arrival<Outcome>> {
        let opened = open(stream::iter(events.into_iter().map(arrived)), limits(), vault);
        let message = |item| future::ready(if let InboxItem::Message(arrival) = item { Some(arrival) } else { None });
        opened.filter_map(message).collect().await
    }

    #[tokio::test]
    async fn a_forged_event_is_told_from_an_undecryptable_one() {
        let vault = Vault::without_identity().unwrap();
        let junk = junk(&vault, "junk");
        let mut forged = junk.clone();
        forged.content = "other junk under the same id".to_owned();
        let outcomes = outcomes(vault, vec![junk, forged]).await;
        assert!(matches!(outcomes[0].message, Outcome::Ignored) && matches!(outcomes[1].message, Outcome::Forged));
        assert_eq!(outcomes.len(), 2);
    }

    #[tokio::test]
    async fn events_come_out_in_order_and_few_are_processed_at_once() {
        let vault = Vault::without_identity().unwrap();
        let events: Vec<Event> = (0..3 * MAX_BATCH).map(|number| junk(&vault, &number.to_string())).collect();
        let ids: Vec<[u8; 32]> = events.iter().map(|event| event.id.to_bytes()).collect();
        let opened: Vec<[u8; 32]> = outcomes(vault.clone(), events.clone()).await.iter().map(|one| one.id).collect();
        assert_eq!(opened, ids);
        let taken = AtomicUsize::new(0);
        let endless = stream::repeat_with(|| {
            taken.fetch_add(1, Ordering::Relaxed);
            arrived(events[0].clone())
        });
        let mut opened = std::pin::pin!(open(endless, limits(), vault));
        // One poll fills all places.
        let _ = opened.next().now_or_never();
        assert!(taken.load(Ordering::Relaxed) <= MAX_BATCH * MAX_BATCHES);
    }
}
