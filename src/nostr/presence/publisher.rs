//! Public events out: whatever the ledger has queued, to each relay that does not have it yet.

use crate::ledger::{DuePost, Ledger};
use crate::nostr::relay::connections::Relays;
use crate::shutdown::Shutdown;
use nostr_sdk::{Event, JsonUtil, RelayUrl};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// How often it is looked whether a relay has come back.
const LOOK: Duration = Duration::from_secs(15);
/// A relay that refused an event gets it again after this, doubling up to the last.
const FIRST_PAUSE: Duration = Duration::from_secs(15);
const LAST_PAUSE: Duration = Duration::from_secs(3600);
/// The end does not wait longer than this for the last word to be written, and as long again for it to be sent.
const END_PATIENCE: Duration = Duration::from_millis(700);

#[derive(Clone)]
pub struct Publisher {
    relays: Relays,
    ledger: Ledger,
    /// When to try again, and the pause that led there.
    refused: HashMap<(i64, String), (Instant, Duration)>,
}

impl Publisher {
    pub fn new(relays: Relays, ledger: Ledger) -> Publisher {
        Publisher { relays, ledger, refused: HashMap::new() }
    }

    /// Sends what is queued until the shutdown, and then what is queued for it. `posted` says that something new is, `goodbye`
    /// that nothing comes any more.
    pub async fn run(mut self, posted: Arc<Notify>, goodbye: Arc<Notify>, mut shutdown: Shutdown) {
        loop {
            tokio::select! {
                () = shutdown.stopped() => break,
                () = self.round() => {}
            }
            tokio::select! {
                () = shutdown.stopped() => break,
                () = posted.notified() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
        let _ = tokio::time::timeout(END_PATIENCE, goodbye.notified()).await;
        let _ = tokio::time::timeout(END_PATIENCE, self.round()).await;
    }

    /// One attempt for everything that is due.
    pub async fn round(&mut self) {
        let due = self.ledger.due_posts().unwrap_or_else(|error| {
            tracing::warn!(%error, "what is to be announced cannot be read yet");
            Vec::new()
        });
        let known: Vec<i64> = due.iter().map(|post| post.id).collect();
        self.refused.retain(|(post, _), _| known.contains(post));
        let mut sending = JoinSet::new();
        for (post, url) in due.iter().flat_map(|post| post.left.iter().map(move |url| (post, url))) {
            self.start(&mut sending, post, url);
        }
        while let Some(sent) = sending.join_next().await {
            let Ok((post, url, took)) = sent else { continue };
            if took {
                self.refused.remove(&(post, url.clone()));
                if let Err(error) = self.ledger.post_reached(post, &url) {
                    tracing::warn!(%error, "an announcement could not be noted; it is repeated");
                }
            } else {
                let before = self.refused.get(&(post, url.clone())).map(|(_, pause)| *pause);
                let pause = before.map_or(FIRST_PAUSE, |pause| (pause * 2).min(LAST_PAUSE));
                self.refused.insert((post, url), (Instant::now() + pause, pause));
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
            // A relay that is away is not a refusal: it gets everything as soon as it is back.
            let sent = relays.publish(&parsed, &event).await;
            if let Err(error) = &sent {
                tracing::debug!(%error, topic, "not announced there yet");
            }
            (id, url, sent.is_ok())
        });
    }
}
