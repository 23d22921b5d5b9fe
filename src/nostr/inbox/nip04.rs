//! Looks up whether the authors of NIP-04 messages read sealed messages. A message waits here,
//! while the stream goes on.
//!
//! Anybody can write from a new key each time, so lookups and memory are bounded. A message that
//! finds no room is left to a backfill.

use super::message::IncomingMessage;
use crate::nostr::relay::connections::Relays;
use crate::nostr::relay::relay_lists::RelayLists;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// The most authors looked up at a time. Each is looked up at every discovery and inbox relay.
const AT_ONCE: usize = 64;
/// Memory for waiting messages, in KiB: their text, and [`KIBIBYTES_A_MESSAGE`] each for the rest.
const KIBIBYTES: usize = 8 * 1024;
/// Memory counted per message besides its text, in KiB.
const KIBIBYTES_A_MESSAGE: usize = 2;
/// Pauses after lookups that failed. They are written out, because an exponential schedule of four
/// steps would not be shorter.
const PAUSES: [Duration; 4] =
    [Duration::from_secs(5), Duration::from_secs(30), Duration::from_secs(120), Duration::from_secs(420)];

/// Lookups in progress. They end with the inbox; the relays still have the messages.
pub(super) struct Nip04Lookups {
    relays: Relays,
    relay_lists: Arc<RelayLists>,
    turns: Arc<Semaphore>,
    room: Arc<Semaphore>,
    under_way: JoinSet<()>,
}

impl Nip04Lookups {
    /// Looks up authors in `relay_lists`.
    pub fn new(relays: Relays, relay_lists: Arc<RelayLists>) -> Nip04Lookups {
        let (turns, room) = (Arc::new(Semaphore::new(AT_ONCE)), Arc::new(Semaphore::new(KIBIBYTES)));
        Nip04Lookups { relays, relay_lists, turns, room, under_way: JoinSet::new() }
    }

    /// Whether no lookup is under way.
    pub fn is_idle(&mut self) -> bool {
        // Removes finished lookups.
        while self.under_way.try_join_next().is_some() {}
        self.under_way.is_empty()
    }

    /// Looks up in a task whether the author of a message reads sealed messages, then forwards the
    /// message. If lookups fail for ten minutes, the author counts as one who does not. Returns
    /// `false` if there is no room.
    pub fn begin(&mut self, mut message: IncomingMessage, out: &mpsc::Sender<IncomingMessage>) -> bool {
        self.is_idle();
        let size = (message.rumor.content.len() / 1024 + KIBIBYTES_A_MESSAGE) as u32;
        let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(size) else { return false };
        let (relays, relay_lists, turns) =
            (self.relays.clone(), Arc::clone(&self.relay_lists), Arc::clone(&self.turns));
        let out = out.clone();
        self.under_way.spawn(async move {
            for pause in PAUSES {
                let turn = turns.acquire().await;
                let known = relay_lists.has_dm_relays(&relays, message.rumor.author, &message.seen_on).await;
                drop(turn);
                if let Some(reads_sealed) = known {
                    message.reads_sealed = reads_sealed;
                    break;
                }
                tokio::time::sleep(pause).await;
            }
            // An error means that the bot is stopping. The relay still has the message.
            let _ = out.send(message).await;
            drop(room);
        });
        true
    }
}
