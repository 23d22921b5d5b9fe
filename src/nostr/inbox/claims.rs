//! Lookups for claims: messages whose author must be confirmed by an announcement (kind 10044). A
//! claim waits here, while the stream goes on.
//!
//! Anybody can claim to be anybody, so lookups and memory are bounded. A claim that finds no room
//! is left to a backfill.

use super::arrival::Arrival;
use crate::clock::Clock;
use crate::nostr::relay::connections::Relays;
use crate::nostr::relay::encryption_keys::EncryptionKeys;
use crate::vault::{Claim, UnwrapError, Vault};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

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
    under_way: JoinSet<()>,
}

impl ClaimLookups {
    /// Looks up authors in `keys`. `vault` decides whether an announcement confirms a claim.
    pub fn new(relays: Relays, keys: Arc<EncryptionKeys>, vault: Vault, clock: Clock) -> ClaimLookups {
        let (turns, room) = (Arc::new(Semaphore::new(MAX_LOOKUPS)), Arc::new(Semaphore::new(CLAIM_KIBIBYTES)));
        ClaimLookups { relays, keys, vault, clock, turns, room, under_way: JoinSet::new() }
    }

    /// Whether no lookup is under way.
    pub fn is_idle(&mut self) -> bool {
        // Removes finished lookups.
        while self.under_way.try_join_next().is_some() {}
        self.under_way.is_empty()
    }

    /// Starts to look up the author of a claim, and forwards its message if their announcement
    /// confirms it. Otherwise the message counts as an impostor's and is dropped. Returns `false`
    /// if there is no room.
    pub fn begin(&mut self, claimed: Arrival<Claim>, out: &mpsc::Sender<Arrival>) -> bool {
        self.is_idle();
        let size = (claimed.message.unverified().content.len() / 1024 + KIBIBYTES_A_CLAIM) as u32;
        let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(size) else { return false };
        let (relays, keys, turns) = (self.relays.clone(), Arc::clone(&self.keys), Arc::clone(&self.turns));
        let (vault, clock, out) = (self.vault.clone(), self.clock.clone(), out.clone());
        self.under_way.spawn(async move {
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
                Err(reason) => tracing::debug!(%reason, "a wrap is ignored"),
            }
            drop(room);
        });
        true
    }
}
