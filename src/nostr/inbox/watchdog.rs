//! A letter to itself through each DM relay now and then. A relay that takes it and never shows it is deaf, and one
//! connection in ten thousand is, for days, unless somebody looks.

use crate::clock::Clock;
use crate::job::Asker;
use crate::message::{Channel, OutgoingMessage};
use crate::nostr::NostrError;
use crate::nostr::relay::connections::Relays;
use crate::shutdown::Shutdown;
use crate::vault::Vault;
use nostr_sdk::{Event, JsonUtil, RelayUrl};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The first round after the start.
const FIRST: Duration = Duration::from_secs(10);
/// How long a letter may take from a relay's OK to our stream.
const PATIENCE: Duration = Duration::from_secs(20);
/// Relays may forget the letter after this, seconds.
const LIFE: u64 = 3600;

/// Letters to ourselves that are awaited. Shared with the inbox's entrance, which sees them come.
#[derive(Clone, Debug, Default)]
pub struct Awaited {
    inner: Arc<Mutex<HashMap<[u8; 32], Arc<Notify>>>>,
}

impl Awaited {
    pub(in crate::nostr) fn expect(&self, id: [u8; 32]) -> Arc<Notify> {
        let seen = Arc::new(Notify::new());
        self.lock().insert(id, Arc::clone(&seen));
        seen
    }

    /// Whether this event of a stream is one of ours; who waits for it is told.
    pub(in crate::nostr) fn arrived(&self, id: &[u8; 32]) -> bool {
        let seen = self.lock().get(id).cloned();
        if let Some(seen) = &seen {
            seen.notify_one();
        }
        seen.is_some()
    }

    fn forget(&self, id: &[u8; 32]) {
        self.lock().remove(id);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], Arc<Notify>>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone)]
pub struct Watchdog {
    pub relays: Relays,
    pub vault: Vault,
    pub clock: Clock,
    pub every: Duration,
    pub awaited: Awaited,
    /// Tells the inbox to subscribe anew and to sweep.
    pub deaf: Arc<Notify>,
}

/// What became of a letter to ourselves.
enum Heard {
    Yes,
    /// Taken, and never shown.
    Never,
    Refused(NostrError),
}

impl Watchdog {
    /// Looks at every DM relay now and then until the shutdown.
    pub async fn run(self, mut shutdown: Shutdown) {
        let mut rounds = tokio::time::interval_at(tokio::time::Instant::now() + FIRST, self.every);
        let mut said: HashSet<RelayUrl> = HashSet::new();
        loop {
            tokio::select! {
                () = shutdown.stopped() => return,
                _ = rounds.tick() => {}
            }
            for url in self.relays.ours(|relay| relay.inbox) {
                if !self.relays.is_connected(&url).await {
                    continue;
                }
                let heard = tokio::select! {
                    () = shutdown.stopped() => return,
                    heard = self.listen(&url) => heard,
                };
                match heard {
                    Heard::Yes => {
                        if said.remove(&url) {
                            tracing::info!(%url, "a DM relay works again");
                        }
                    }
                    Heard::Never => {
                        tracing::warn!(%url, "a DM relay takes letters but does not show them; connecting anew");
                        said.insert(url.clone());
                        self.relays.reconnect(&url).await;
                        self.deaf.notify_one();
                    }
                    Heard::Refused(error) if said.insert(url.clone()) => {
                        tracing::warn!(%url, %error, "a DM relay refuses sealed letters, so askers may not reach the bot \
                            there; give the role \"inbox\" to another in relays.toml");
                    }
                    Heard::Refused(_) => {}
                }
            }
        }
    }

    async fn listen(&self, url: &RelayUrl) -> Heard {
        let letter = OutgoingMessage {
            to: Asker(self.relays.bot().to_bytes()),
            channel: Channel::Sealed,
            text: String::new(),
            in_reply_to: None,
            subject: None,
            expires_at: self.clock.now() + LIFE,
        };
        let Some(event) = self.vault.seal(&letter).ok().and_then(|wrap| Event::from_json(wrap.json).ok()) else {
            return Heard::Yes;
        };
        let id = event.id.to_bytes();
        let seen = self.awaited.expect(id);
        let began = Instant::now();
        let heard = match self.relays.publish(url, &event).await {
            // A relay that went away meanwhile is not deaf.
            Err(NostrError::NotConnected(_)) => Heard::Yes,
            Err(error) => Heard::Refused(error),
            Ok(()) => match tokio::time::timeout(PATIENCE, seen.notified()).await {
                Ok(()) => Heard::Yes,
                Err(_) => Heard::Never,
            },
        };
        tracing::debug!(%url, took = ?began.elapsed(), "a letter to itself");
        self.awaited.forget(&id);
        heard
    }
}
