//! Whether the authors of old messages (NIP-04) read sealed ones: looked up beside the stream, which does not wait.
//!
//! Anybody can write from a new key each time, so what is under way is bounded: in look-ups and in memory. What finds no
//! room is left to a sweep, for the relay still has it, and nobody is told something that may not be true.

use super::run::IncomingMessage;
use crate::nostr::relay::connections::Relays;
use crate::nostr::relay::relay_lists::RelayLists;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// Authors looked up at once, each at every discovery and inbox relay.
const AT_ONCE: usize = 64;
/// Memory that messages under way may have, in KiB: their text and this for the rest of each.
const KIBIBYTES: usize = 8 * 1024;
const KIBIBYTES_A_MESSAGE: usize = 2;
/// How long to wait before it is looked up again.
const PAUSES: [Duration; 4] =
    [Duration::from_secs(5), Duration::from_secs(30), Duration::from_secs(120), Duration::from_secs(420)];

/// Ends with the inbox: what is under way then is on the relay.
pub(in crate::nostr) struct Nip04Lookups {
    relays: Relays,
    directory: Arc<RelayLists>,
    turns: Arc<Semaphore>,
    room: Arc<Semaphore>,
    under_way: JoinSet<()>,
}

impl Nip04Lookups {
    pub fn new(relays: Relays, directory: Arc<RelayLists>) -> Nip04Lookups {
        let (turns, room) = (Arc::new(Semaphore::new(AT_ONCE)), Arc::new(Semaphore::new(KIBIBYTES)));
        Nip04Lookups { relays, directory, turns, room, under_way: JoinSet::new() }
    }

    /// Whether nothing is under way.
    pub fn is_idle(&mut self) -> bool {
        // Those that have ended.
        while self.under_way.try_join_next().is_some() {}
        self.under_way.is_empty()
    }

    /// Begins to look up the author of a message, and passes it on when that is done; where nobody could say in ten minutes,
    /// as it is. `false` where there is no room.
    pub fn begin(&mut self, mut message: IncomingMessage, out: &mpsc::Sender<IncomingMessage>) -> bool {
        self.is_idle();
        let size = (message.rumor.content.len() / 1024 + KIBIBYTES_A_MESSAGE) as u32;
        let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(size) else { return false };
        let (relays, directory, turns) = (self.relays.clone(), Arc::clone(&self.directory), Arc::clone(&self.turns));
        let out = out.clone();
        self.under_way.spawn(async move {
            for pause in PAUSES {
                let turn = turns.acquire().await;
                let known = directory.has_dm_relays(&relays, message.rumor.author, &message.seen_on).await;
                drop(turn);
                if let Some(reads_sealed) = known {
                    message.reads_sealed = reads_sealed;
                    break;
                }
                tokio::time::sleep(pause).await;
            }
            // Where nobody takes messages any more the end is near, and the relay keeps this one.
            let _ = out.send(message).await;
            drop(room);
        });
        true
    }
}
