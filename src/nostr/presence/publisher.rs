//! Sends queued public events to each relay that does not have them yet.

use crate::ledger::{DuePost, Ledger};
use crate::nostr::relay::backoff::Backoff;
use crate::nostr::relay::connections::Relays;
use crate::shutdown::Shutdown;
use nostr_sdk::{Event, JsonUtil, RelayUrl};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// The longest time between two rounds. Each round sends the events that are due.
const ROUND: Duration = Duration::from_secs(15);
/// The first pause before an event is sent again to a relay that did not accept it. Later pauses
/// double up to [`LAST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(15);
/// The longest pause before an event is sent again to a relay that did not accept it.
const LAST_PAUSE: Duration = Duration::from_secs(3600);
/// Time limit at shutdown for the last status to be queued, and again for it to be sent.
const END_PATIENCE: Duration = Duration::from_millis(700);

/// Sends public events.
#[derive(Clone)]
pub struct Publisher {
    relays: Relays,
    ledger: Ledger,
    /// The time of the next attempt, by event and relay that did not accept it.
    refused: HashMap<(i64, String), (Instant, Backoff)>,
}

impl Publisher {
    /// Sends the events queued in `ledger`.
    pub fn new(relays: Relays, ledger: Ledger) -> Publisher {
        Publisher { relays, ledger, refused: HashMap::new() }
    }

    /// Sends queued events until the shutdown, then the last status. `posted` announces new events,
    /// `goodbye` the last one.
    pub async fn run(mut self, posted: Arc<Notify>, goodbye: Arc<Notify>, mut shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = shutdown.stopped() => break,
                () = self.round() => {}
            }
            tokio::select! {
                () = shutdown.stopped() => break,
                () = posted.notified() => {}
                () = tokio::time::sleep(ROUND) => {}
            }
        }
        let _ = tokio::time::timeout(END_PATIENCE, goodbye.notified()).await;
        let _ = tokio::time::timeout(END_PATIENCE, self.round()).await;
    }

    /// Sends every due event to each relay that lacks it. Skips relays whose pause is not over.
    pub async fn round(&mut self) {
        let due = self.ledger.due_posts().unwrap_or_else(|error| {
            tracing::warn!(%error, "public events cannot be read yet");
            Vec::new()
        });
        let known: Vec<i64> = due.iter().map(|post| post.id).collect();
        self.refused.retain(|(post, _), _| known.contains(post));
        let mut sending = JoinSet::new();
        for (post, url) in due.iter().flat_map(|post| post.left.iter().map(move |url| (post, url))) {
            self.start(&mut sending, post, url);
        }
        while let Some(sent) = sending.join_next().await {
            let Ok((post, url, accepted)) = sent else { continue };
            if accepted {
                self.refused.remove(&(post, url.clone()));
                if let Err(error) = self.ledger.post_reached(post, &url) {
                    tracing::warn!(%error, "a public event could not be recorded as sent; it is sent again");
                }
            } else {
                let new = || (Instant::now(), Backoff::new(FIRST_PAUSE, LAST_PAUSE));
                let (again, backoff) = self.refused.entry((post, url)).or_insert_with(new);
                *again = Instant::now() + backoff.next_pause();
            }
        }
    }

    fn start(&self, sending: &mut JoinSet<(i64, String, bool)>, post: &DuePost, url: &str) {
        let waits = self.refused.get(&(post.id, url.to_owned())).is_some_and(|(at, _)| *at > Instant::now());
        let (Ok(event), Ok(parsed), false) = (Event::from_json(&post.json), RelayUrl::parse(url), waits) else {
            return;
        };
        let (relays, topic, id, url) = (self.relays.clone(), post.topic.clone(), post.id, url.to_owned());
        sending.spawn(async move {
            let sent = relays.publish(&parsed, &event).await;
            if let Err(error) = &sent {
                tracing::debug!(%error, topic, "a public event is not accepted yet");
            }
            (id, url, sent.is_ok())
        });
    }
}
