//! The inbox task: from the relays to the channel of requests.

use super::backfill::Backfill;
use super::claims::{ClaimLookups, ClaimedMessage};
use super::decrypt::{Decrypted, Decryptions, Outcome};
use super::dedup::SeenIds;
use super::flood::Flood;
use super::message::{IncomingMessage, is_acceptable, is_answerable};
use super::pages;
use super::queue::{self, Arrival, Queues, Source};
use super::subscription::Subscription;
use super::watchdog::Awaited;
use crate::clock::Clock;
use crate::config::Limits;
use crate::fault::{self, Step};
use crate::job::Asker;
use crate::ledger::Ledger;
use crate::nostr::relay::connections::Relays;
use crate::nostr::relay::encryption_keys::EncryptionKeys;
use crate::nostr::relay::timer::wait_until;
use crate::shutdown::Shutdown;
use crate::token_bucket::TokenBucket;
use crate::vault::Vault;
use nostr_sdk::Filter;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

/// Time between two checks of the connections.
const CHECK: Duration = Duration::from_secs(2);
/// The name of our subscription.
const SUBSCRIPTION: &str = "inbox";
/// Number of processed wraps whose ids are remembered. The ledger's record of messages lasts
/// longer.
const REMEMBERED: usize = 100_000;
/// Number of repeated wraps whose ids are remembered, until it is known whether the first copy was
/// genuine.
const REPEATED: usize = 1000;

/// Receives messages to the bot.
#[derive(Clone)]
pub struct Inbox {
    /// The connections to relays.
    pub relays: Relays,
    /// The vault that decrypts the messages.
    pub vault: Vault,
    /// The ledger, which has the answered messages and the last contact.
    pub ledger: Ledger,
    /// The clock that dates messages.
    pub clock: Clock,
    /// Limits on rates, from the configuration.
    pub limits: Limits,
    /// The detector of floods, which is told of overflows.
    pub flood: Flood,
    /// The announced keys that askers' clients sign seals with.
    pub encryption_keys: Arc<EncryptionKeys>,
    /// The watchdog's messages to the bot itself.
    pub awaited: Awaited,
    /// Notified when the watchdog finds a relay that does not deliver.
    pub deaf: Arc<Notify>,
}

/// The parts of a running inbox.
struct Parts {
    seen: SeenIds,
    /// Recent ids that came more than once.
    repeated: SeenIds,
    bucket: TokenBucket,
    decryptions: Decryptions,
    claims: ClaimLookups,
    backfill: Backfill,
    subscription: Subscription,
}

impl Inbox {
    /// Receives until the shutdown. Every message goes into `out`; none is dropped.
    pub async fn run(self, out: mpsc::Sender<IncomingMessage>, mut shutdown: Shutdown) {
        // Events that are in progress at the shutdown are also on the relays.
        tokio::select! {
            biased;
            () = shutdown.stopped() => {}
            () = self.receive(&out) => {}
        }
    }

    async fn receive(&self, out: &mpsc::Sender<IncomingMessage>) {
        let relays = self.relays.ours(|relay| relay.inbox);
        let source = Source { bot: self.relays.bot(), relays, subscription: SUBSCRIPTION };
        let (entrance, mut queues) = queue::open(source, self.flood.clone(), self.awaited.clone());
        let (lost, closed) = (Arc::clone(&entrance.lost), Arc::clone(&entrance.closed));
        let notifications = self.relays.notifications();
        let mut draining = JoinSet::new();
        draining.spawn(entrance.drain(notifications));
        let mut parts = Parts {
            seen: SeenIds::new(REMEMBERED),
            repeated: SeenIds::new(REPEATED),
            bucket: TokenBucket::new(self.limits.wraps_per_second, self.limits.wraps_burst),
            decryptions: Decryptions::new(self.vault.clone()),
            claims: ClaimLookups::new(
                self.relays.clone(),
                Arc::clone(&self.encryption_keys),
                self.vault.clone(),
                self.clock.clone(),
            ),
            backfill: Backfill::new(),
            subscription: Subscription::new(self.relays.clone(), SUBSCRIPTION),
        };
        parts.subscription.request(self.filter()).await;
        let mut checks = tokio::time::interval(CHECK);
        loop {
            // Rare events come first, so that an endless stream cannot delay them.
            tokio::select! {
                biased;
                () = lost.notified() => parts.backfill.overflowed(),
                () = closed.notified() => parts.subscription.closed(),
                () = self.deaf.notified() => {
                    parts.subscription.request(self.filter()).await;
                    parts.backfill.missed();
                }
                _ = checks.tick() => self.check_connections(&mut parts).await,
                Some(decrypted) = parts.decryptions.next() => self.pass_on(&mut parts, decrypted, out).await,
                next = next(&mut queues, &mut parts.backfill), if parts.decryptions.has_room() => match next {
                    Next::Event(arrival) => self.decrypt(&mut parts, arrival).await,
                    Next::BackfillEnd => self.end_backfill(&mut parts, out).await,
                    Next::StreamEnd => return end_of(draining).await,
                },
            }
        }
    }

    /// Subscribes where the subscription is missing, and starts a backfill when one is due.
    async fn check_connections(&self, parts: &mut Parts) {
        if parts.subscription.check(|| self.filter()).await {
            parts.backfill.missed();
        }
        if parts.subscription.is_connected() && parts.backfill.is_due() {
            let began = self.clock.now();
            parts.backfill.start(&self.relays, &self.flood, pages::since(self.last_contact(), began), began);
        }
    }

    /// The filter for messages to us, stored and new.
    fn filter(&self) -> Filter {
        pages::filter(&self.relays, pages::since(self.last_contact(), self.clock.now()))
    }

    fn last_contact(&self) -> Option<u64> {
        self.ledger.last_contact().unwrap_or_else(|error| {
            tracing::warn!(%error, "the last contact is unknown; a week is fetched");
            None
        })
    }

    /// Forwards the rest of a backfill. Then records the last contact, if nothing was missed and no
    /// lookup is still under way.
    async fn end_backfill(&self, parts: &mut Parts, out: &mpsc::Sender<IncomingMessage>) {
        while let Some(decrypted) = parts.decryptions.next().await {
            self.pass_on(parts, decrypted, out).await;
        }
        let Some(began) = parts.backfill.end().await else { return };
        parts.subscription.works();
        if !parts.claims.is_idle() {
            return;
        }
        fault::before(Step::MoveCursor);
        if let Err(error) = self.ledger.set_last_contact(began) {
            tracing::warn!(%error, "the last contact could not be recorded");
        }
        fault::after(Step::MoveCursor);
    }

    /// Starts to decrypt an event, unless it was seen or is not acceptable.
    async fn decrypt(&self, parts: &mut Parts, arrival: Arrival) {
        let id = arrival.event.id.to_bytes();
        if !is_acceptable(&arrival.event, &self.relays.bot()) {
            return;
        }
        if parts.seen.contains(&id) {
            return parts.repeated.insert(id);
        }
        fault::before(Step::Receive);
        let now = Instant::now();
        wait_until(now + parts.bucket.take(now)).await;
        fault::after(Step::Receive);
        // From now on the same event from another relay is skipped.
        parts.seen.insert(id);
        parts.decryptions.add(arrival);
    }

    /// Forwards a message; a claim waits for its author to be looked up. The ledger detects
    /// duplicates later, for all waiting requests at once.
    async fn pass_on(&self, parts: &mut Parts, decrypted: Decrypted, out: &mpsc::Sender<IncomingMessage>) {
        let Decrypted { id, url, paid, outcome } = decrypted;
        let rumor = match outcome {
            Outcome::Message(rumor) => rumor,
            Outcome::Claim(claim) => {
                let claimed = ClaimedMessage { claim, seen_on: vec![url.to_string()], paid };
                return self.look_up_author(parts, id, claimed, out);
            }
            Outcome::Ignored => return,
            Outcome::Forged => {
                parts.seen.forget(&id);
                if parts.repeated.contains(&id) {
                    // The genuine event may have been skipped as a repeat. A backfill brings it.
                    parts.repeated.forget(&id);
                    parts.backfill.missed();
                }
                return;
            }
        };
        let from_us = rumor.author == Asker(self.relays.bot().to_bytes());
        if from_us || !is_answerable(&rumor, self.clock.now()) {
            return;
        }
        // An error means that the bot is stopping. The relay still has the message.
        let _ = out.send(IncomingMessage { rumor, seen_on: vec![url.to_string()], paid }).await;
    }

    /// Looks up the author of a claim, unless its message was answered before. A claim that finds
    /// no room is left to a backfill. `id`: the id of its wrap.
    fn look_up_author(
        &self,
        parts: &mut Parts,
        id: [u8; 32],
        claimed: ClaimedMessage,
        out: &mpsc::Sender<IncomingMessage>,
    ) {
        let rumor = claimed.claim.unverified();
        let was_answered = self.ledger.has_seen(rumor.author, rumor.id).unwrap_or(false);
        if was_answered || !is_answerable(rumor, self.clock.now()) {
            return;
        }
        if !parts.claims.begin(claimed, out) {
            parts.seen.forget(&id);
            parts.backfill.overflowed();
        }
    }
}

/// Passes a panic of the entrance on, so that the inbox task is restarted. Returns if the library
/// has stopped.
async fn end_of(mut draining: JoinSet<()>) {
    if let Some(Err(error)) = draining.join_next().await
        && error.is_panic()
    {
        std::panic::resume_unwind(error.into_panic());
    }
}

/// The next input.
enum Next {
    Event(Arrival),
    BackfillEnd,
    StreamEnd,
}

/// Wraps with proof of work first; then live and backfilled wraps, chosen at random.
async fn next(queues: &mut Queues, backfill: &mut Backfill) -> Next {
    let rest = async {
        tokio::select! {
            arrival = queues.plain.recv() => arrival.map_or(Next::StreamEnd, Next::Event),
            fetched = backfill.next() => fetched.map_or(Next::BackfillEnd, Next::Event),
        }
    };
    tokio::select! {
        biased;
        arrival = queues.paid.recv() => arrival.map_or(Next::StreamEnd, Next::Event),
        next = rest => next,
    }
}
