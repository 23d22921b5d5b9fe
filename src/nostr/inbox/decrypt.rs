//! Verification and decryption on all cores, in order of arrival.

use super::queue::Arrival;
use crate::fault::{self, Step};
use crate::vault::{Claim, Opened, Rumor, Vault, VerifiedEvent};
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use nostr_sdk::{Kind, RelayUrl};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tokio::task::JoinHandle;

/// The most events processed at once.
const MOST: usize = 16;

/// A processed event.
pub(super) struct Decrypted {
    /// The id of the event, not of the message in it.
    pub id: [u8; 32],
    /// The relay it came from.
    pub url: RelayUrl,
    /// Whether it is of kind 4 (NIP-04).
    pub is_nip04: bool,
    /// Whether it has the proof of work that is required in a flood.
    pub paid: bool,
    /// The message in it, if any.
    pub outcome: Outcome,
}

/// The result of verifying and decrypting an event.
pub(super) enum Outcome {
    /// A message.
    Message(Rumor),
    /// A message whose author is to be looked up.
    Claim(Claim),
    /// The event holds nothing that can be answered.
    Ignored,
    /// The id or signature is wrong. The genuine event with this id may still arrive.
    Forged,
}

/// Events being verified and decrypted, each as a task of its own.
pub(super) struct Decryptions {
    vault: Vault,
    tasks: FuturesOrdered<JoinHandle<Decrypted>>,
    most: usize,
}

impl Decryptions {
    /// Decrypts with the key in `vault`. Two events per core are processed at once, so that no core
    /// waits.
    pub fn new(vault: Vault) -> Decryptions {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Decryptions { vault, tasks: FuturesOrdered::new(), most: MOST.min(2 * cores) }
    }

    /// Whether another event may be added.
    pub fn has_room(&self) -> bool {
        self.tasks.len() < self.most
    }

    /// Starts to process an event. Its share of the queue's memory is released at the end.
    pub fn add(&mut self, arrival: Arrival) {
        let vault = self.vault.clone();
        // The vault may be a process of its own, so this waits. What waits at the same time crosses
        // to it together.
        self.tasks.push_back(tokio::task::spawn_blocking(move || {
            let Arrival { url, event, paid, room } = arrival;
            let (id, is_nip04) = (event.id.to_bytes(), event.kind == Kind::EncryptedDirectMessage);
            let outcome = VerifiedEvent::check(*event).map_or(Outcome::Forged, |event| open(&vault, &event));
            drop(room);
            Decrypted { id, url, is_nip04, paid, outcome }
        }));
    }

    /// The next processed event in order of arrival; `None` if none is being processed.
    /// Cancel-safe.
    pub async fn next(&mut self) -> Option<Decrypted> {
        loop {
            match self.tasks.next().await? {
                Ok(decrypted) => return Some(decrypted),
                Err(error) => tracing::error!(%error, "a wrap is ignored"),
            }
        }
    }
}

/// Decrypts an event, and once more after a panic.
fn open(vault: &Vault, event: &VerifiedEvent) -> Outcome {
    let attempt = || {
        fault::before(Step::Unwrap);
        let is_nip04 = event.kind == Kind::EncryptedDirectMessage;
        let opened = if is_nip04 { vault.open_nip04(event).map(Opened::Message) } else { vault.unwrap(event) };
        fault::after(Step::Unwrap);
        opened
    };
    let opened = catch_unwind(AssertUnwindSafe(attempt)).or_else(|_| {
        tracing::error!("decrypting a wrap panicked; trying once more");
        catch_unwind(AssertUnwindSafe(attempt))
    });
    match opened {
        Ok(Ok(Opened::Message(rumor))) => return Outcome::Message(rumor),
        Ok(Ok(Opened::Claim(claim))) => return Outcome::Claim(claim),
        Ok(Err(reason)) => tracing::debug!(%reason, "a wrap is ignored"),
        Err(_) => tracing::error!("decrypting a wrap panicked twice; it is ignored"),
    }
    Outcome::Ignored
}

#[cfg(test)]
mod tests {
    use super::*;
    use nostr_sdk::{EventBuilder, Keys, Tag};

    #[tokio::test]
    async fn a_forged_event_is_told_from_an_undecryptable_one() {
        let vault = Vault::without_identity().unwrap();
        let (url, us) = (RelayUrl::parse("wss://relay.example").unwrap(), Tag::public_key(vault.public_key()));
        let junk = EventBuilder::new(Kind::GiftWrap, "junk").tag(us).sign_with_keys(&Keys::generate()).unwrap();
        let mut forged = junk.clone();
        forged.content = "other junk under the same id".to_owned();
        let mut decryptions = Decryptions::new(vault);
        for event in [junk, forged] {
            decryptions.add(Arrival { url: url.clone(), event: Box::new(event), paid: false, room: None });
        }
        assert!(matches!(decryptions.next().await.unwrap().outcome, Outcome::Ignored));
        assert!(matches!(decryptions.next().await.unwrap().outcome, Outcome::Forged));
        assert!(decryptions.next().await.is_none());
    }
}
