//! Opening on all cores what came in one row, in the order in which it came.

use super::queue::Arrival;
use crate::fault::{self, Step};
use crate::vault::{Rumor, UnwrapError, Vault};
use nostr_sdk::{Kind, RelayUrl};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;

/// At most so many are opened at once, whatever the machine.
const MOST: usize = 16;

/// An event that was opened.
pub(in crate::nostr) struct Decrypted {
    /// Of the event, not of the message in it.
    pub id: [u8; 32],
    /// The relay it came from.
    pub url: RelayUrl,
    /// Of kind 4 (NIP-04).
    pub is_old: bool,
    /// Whether it has the proof of work that floods make dear.
    pub paid: bool,
    /// Not what its id and signature say, so the true one may be still to come: the library checks them once for each id.
    pub is_forged: bool,
    /// `None` for what could not be opened: nothing to answer.
    pub rumor: Option<Rumor>,
}

/// Events that are being opened.
#[derive(Default)]
pub(in crate::nostr) struct Decryptions {
    under_way: VecDeque<Opening>,
}

struct Opening {
    id: [u8; 32],
    url: RelayUrl,
    is_old: bool,
    paid: bool,
    /// Its place in memory.
    room: Option<OwnedSemaphorePermit>,
    /// The outer error: it panicked.
    task: JoinHandle<std::thread::Result<Result<Rumor, UnwrapError>>>,
}

impl Decryptions {
    /// Two a core, so that none has to wait for the next.
    pub fn have_room(&self) -> bool {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.under_way.len() < (2 * cores).min(MOST)
    }

    pub fn begin(&mut self, vault: &Vault, arrival: Arrival) {
        let Arrival { url, event, paid, room } = arrival;
        let id = event.id.to_bytes();
        let is_old = event.kind == Kind::EncryptedDirectMessage;
        let vault = vault.clone();
        let open = move || {
            fault::before(Step::Unwrap);
            let opened = if is_old { vault.open_nip04(&event) } else { vault.unwrap(&event) };
            fault::after(Step::Unwrap);
            opened
        };
        let twice = move || {
            catch_unwind(AssertUnwindSafe(&open)).or_else(|_| {
                tracing::error!("opening a wrap panicked; once more");
                catch_unwind(AssertUnwindSafe(&open))
            })
        };
        let task = tokio::task::spawn_blocking(twice);
        self.under_way.push_back(Opening { id, url, is_old, paid, room, task });
    }

    /// The next in the order in which they came; `None` when there is none. Nothing is lost if this is not waited for.
    pub async fn next(&mut self) -> Option<Decrypted> {
        let opened = (&mut self.under_way.front_mut()?.task).await;
        let Opening { id, url, is_old, paid, room, .. } = self.under_way.pop_front()?;
        drop(room);
        let is_forged = matches!(opened, Ok(Ok(Err(UnwrapError::BadWrap))));
        let rumor = match opened {
            Ok(Ok(Ok(rumor))) => Some(rumor),
            Ok(Ok(Err(reason))) => {
                tracing::debug!(%reason, "a wrap is ignored");
                None
            }
            Ok(Err(_)) | Err(_) => {
                tracing::error!("opening a wrap panicked twice; it is ignored");
                None
            }
        };
        Some(Decrypted { id, url, is_old, paid, is_forged, rumor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nostr_sdk::{EventBuilder, Keys, Tag};

    #[tokio::test]
    async fn what_is_forged_is_told_from_what_is_junk() {
        let vault = Vault::without_identity().unwrap();
        let (url, us) = (RelayUrl::parse("wss://relay.example").unwrap(), Tag::public_key(vault.public_key()));
        let junk = EventBuilder::new(Kind::GiftWrap, "junk").tag(us).sign_with_keys(&Keys::generate()).unwrap();
        let mut forged = junk.clone();
        forged.content = "other junk under the same id".to_owned();
        let mut openings = Decryptions::default();
        for (event, is_forged) in [(junk, false), (forged, true)] {
            openings.begin(&vault, Arrival { url: url.clone(), event: Box::new(event), paid: false, room: None });
            let opened = openings.next().await.unwrap();
            assert!(opened.rumor.is_none());
            assert_eq!(opened.is_forged, is_forged);
        }
    }
}
