//! Receives gift wraps: by a live subscription, and by backfills that fetch what it missed.
//!
//! ```text
//! subscription → queue ┐
//!                      ├→ token bucket → verify and decrypt → [claims] → requests
//!             backfill ┘
//! ```

mod backfill;
mod decrypt;
mod queue;
mod seen;
mod subscription;

pub use queue::Arrival;
pub use seen::SeenIds;
pub use subscription::{Awaited, Watchdog};

use super::relay::connections::Relays;
use super::relay::published::EncryptionKeys;
use crate::clock::Clock;
use crate::config::Limits;
use crate::fault;
use crate::job::Asker;
use crate::ledger::Ledger;
use crate::shutdown::Shutdown;
use crate::vault::{Claim, Vault};
use backfill::{Backfill, BackfillEnd};
use decrypt::{ClaimLookups, Outcome};
use futures_util::{StreamExt, future, stream};
use nostr_sdk::{EventId, Filter};
use queue::{Entrance, is_acceptable, is_answerable};
use seen::Unanswered;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use subscription::InboxSubscription;
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinError, JoinSet};

/// Time between two checks of the connections.
const CHECK_CONNECTIONS_EVERY: Duration = Duration::from_secs(2);
/// The name of our subscription.
const SUBSCRIPTION: &str = "inbox";

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
    /// The announced keys that askers' clients sign seals with.
    pub encryption_keys: Arc<EncryptionKeys>,
    /// The watchdog's messages to the bot itself.
    pub awaited: Awaited,
    /// The ids of recent events.
    pub seen: SeenIds,
    /// Notified when the watchdog finds a relay that does not deliver.
    pub resubscribe: Arc<Notify>,
}

/// What passes through the inbox, in order.
enum InboxItem<T> {
    Message(Arrival<T>),
    /// Every event of a backfill passed.
    BackfillEnd(BackfillEnd),
}

/// The parts of a running inbox.
struct InboxState {
    claims: ClaimLookups,
    backfill: Backfill,
    subscription: InboxSubscription,
    unanswered: Unanswered,
}

impl InboxState {
    /// Leaves a message that the vault did not open to a backfill after a pause, if it may be tried
    /// again.
    fn fetch_again(&mut self, id: [u8; 32], seen: &SeenIds) {
        if let Some(pause) = self.unanswered.pause(id) {
            seen.forget(&id);
            self.backfill.missed(pause);
        } else {
            let event = EventId::from_byte_array(id);
            tracing::error!(%event, "a message ends every vault process; it is left out until the next start");
        }
    }
}

impl Inbox {
    /// Receives until the shutdown. Every message goes into `out`; none is dropped.
    pub async fn run(self, out: mpsc::Sender<Arrival>, mut shutdown: Shutdown) {
        // Events that are in progress at the shutdown are also on the relays.
        tokio::select! {
            biased;
            () = shutdown.stopped() => {}
            () = self.receive(&out) => {}
        }
    }

    async fn receive(&self, out: &mpsc::Sender<Arrival>) {
        let (bot, seen, inboxes) = (self.relays.bot(), self.seen.clone(), self.relays.ours(|relay| relay.inbox));
        seen.clear();
        let reports = self.relays.reports.clone();
        let (entrance, live) = Entrance::new(bot, inboxes, self.awaited.clone(), seen.clone(), reports);
        let closed = Arc::clone(&entrance.closed);
        let notifications = self.relays.notifications();
        let mut draining = JoinSet::new();
        draining.spawn(entrance.drain(notifications));
        let (backfill, stored) = Backfill::new();
        // A backfill also fetches copies of events that came before.
        let stored = stored.filter(move |item| {
            future::ready(match item {
                InboxItem::Message(arrival) => is_acceptable(&arrival.message, &bot) && seen.insert(arrival.id),
                InboxItem::BackfillEnd(_) => true,
            })
        });
        let mut opened = pin!(decrypt::open(stream::select(live, stored), self.limits.clone(), self.vault.clone()));
        let mut parts = InboxState {
            claims: ClaimLookups::new(self.clone()),
            backfill,
            subscription: InboxSubscription::new(self.relays.clone()),
            unanswered: Unanswered::default(),
        };
        parts.subscription.request(self.filter()).await;
        let mut checks = tokio::time::interval(CHECK_CONNECTIONS_EVERY);
        loop {
            // Rare events come first, so that an endless stream cannot delay them.
            tokio::select! {
                biased;
                () = self.seen.lost.notified() => parts.backfill.overflowed(),
                () = closed.notified() => parts.subscription.closed(),
                () = self.resubscribe.notified() => {
                    parts.subscription.request(self.filter()).await;
                    parts.backfill.missed(Duration::ZERO);
                }
                _ = checks.tick() => self.check_connections(&mut parts).await,
                ended = draining.join_next() => return end_of(ended),
                Some(item) = opened.next() => match item {
                    InboxItem::Message(opened) => self.forward(&mut parts, opened, out).await,
                    InboxItem::BackfillEnd(end) => self.end_backfill(&mut parts, end),
                },
            }
        }
    }

    /// Subscribes where the subscription is missing, and starts a backfill when one is due.
    async fn check_connections(&self, parts: &mut InboxState) {
        if parts.subscription.check(|| self.filter()).await {
            parts.backfill.missed(Duration::ZERO);
        }
        if parts.subscription.is_connected() && parts.backfill.is_due() {
            let began = self.clock.now();
            parts.backfill.start(&self.relays, backfill::since(self.last_contact(), began), began);
        }
    }

    /// The filter for messages to us, stored and new.
    fn filter(&self) -> Filter {
        backfill::filter(&self.relays, backfill::since(self.last_contact(), self.clock.now()))
    }

    fn last_contact(&self) -> Option<u64> {
        self.ledger.last_contact().unwrap_or_else(|error| {
            tracing::warn!(%error, "the last contact is unknown; a week is fetched");
            None
        })
    }

    /// Records the last contact after a backfill, if nothing was missed: after a crash, messages whose
    /// authors are still being looked up are fetched again.
    fn end_backfill(&self, parts: &mut InboxState, end: BackfillEnd) {
        let Some(began) = parts.backfill.end(end) else { return };
        parts.subscription.works();
        let contact = parts.claims.oldest().map_or(began, |lookup| lookup.min(began));
        fault::before("movecursor");
        if let Err(error) = self.ledger.set_last_contact(contact) {
            tracing::warn!(%error, "the last contact could not be recorded");
        }
        fault::after("movecursor");
    }

    /// Forwards a message; a claim waits for its author to be looked up. The ledger detects
    /// duplicates later, for all waiting requests at once.
    async fn forward(&self, parts: &mut InboxState, decrypted: Arrival<Outcome>, out: &mpsc::Sender<Arrival>) {
        let (outcome, arrival) = decrypted.take();
        match outcome {
            Outcome::Message(rumor) => {
                let from_us = rumor.author == Asker(self.relays.bot().to_bytes());
                if !from_us && is_answerable(&rumor, self.clock.now()) {
                    // An error means that the bot is stopping. The relay still has the message.
                    let _ = out.send(arrival.with(rumor)).await;
                }
            }
            Outcome::Claim(claim) => self.look_up_author(parts, arrival.with(claim), out),
            Outcome::Ignored => {}
            Outcome::Unanswered => parts.fetch_again(arrival.id, &self.seen),
            Outcome::Forged => {
                if self.seen.forget(&arrival.id) {
                    // The genuine event may have been skipped as a copy. A backfill brings it.
                    parts.backfill.missed(Duration::ZERO);
                }
            }
        }
    }

    /// Looks up the author of a claim, unless its message was answered before. A claim that finds
    /// no room is left to a backfill.
    fn look_up_author(&self, parts: &mut InboxState, claimed: Arrival<Claim>, out: &mpsc::Sender<Arrival>) {
        let (id, rumor) = (claimed.id, claimed.message.unverified());
        let was_answered = self.ledger.has_seen(rumor.author, rumor.id).unwrap_or(false);
        let is_too_old = self.ledger.is_too_old(rumor.created_at).unwrap_or(false);
        if was_answered || is_too_old || !is_answerable(rumor, self.clock.now()) {
            return;
        }
        if !parts.claims.begin(claimed, out) {
            self.seen.give_back(&id);
        }
    }
}

/// Passes a panic of the entrance on, so that the inbox task is restarted. Returns if the library
/// has stopped.
fn end_of(draining: Option<Result<(), JoinError>>) {
    if let Some(Err(error)) = draining
        && error.is_panic()
    {
        std::panic::resume_unwind(error.into_panic());
    }
}
