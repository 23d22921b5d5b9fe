//! Our subscription at the inbox relays, and how many of them are connected.
//!
//! The library repeats recorded subscriptions after a reconnect. It drops the record when the relay
//! closes the subscription or was away for long. So every check verifies that there is a record.

use crate::nostr::relay::backoff::Backoff;
use crate::nostr::relay::connections::{Connection, Relays};
use nostr_sdk::{Filter, RelayUrl, SubscriptionId};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The first pause before a closed subscription is repeated. Later pauses double up to
/// [`LAST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// The longest pause before a closed subscription is repeated.
const LAST_PAUSE: Duration = Duration::from_secs(60);
/// Time after which the log repeats that no inbox relay is connected.
const TELL_AGAIN: Duration = Duration::from_secs(3600);

/// One subscription at all inbox relays.
pub(super) struct Subscription {
    relays: Relays,
    id: SubscriptionId,
    urls: Vec<RelayUrl>,
    /// The connections at the last check.
    connected: HashMap<RelayUrl, Connection>,
    /// The time at which to repeat a closed subscription.
    repeat_at: Option<Instant>,
    backoff: Backoff,
    report: Report,
}

impl Subscription {
    /// A subscription called `name`, not yet requested.
    pub fn new(relays: Relays, name: &str) -> Subscription {
        Subscription {
            urls: relays.ours(|relay| relay.inbox),
            relays,
            id: SubscriptionId::new(name),
            connected: HashMap::new(),
            repeat_at: None,
            backoff: Backoff::new(FIRST_PAUSE, LAST_PAUSE),
            report: Report::default(),
        }
    }

    /// Requests the filter's events, stored and new, from every inbox relay.
    pub async fn request(&self, filter: Filter) {
        self.request_from(self.urls.clone(), filter).await;
    }

    async fn request_from(&self, urls: Vec<RelayUrl>, filter: Filter) {
        if let Err(error) = self.relays.client().subscribe_with_id_to(urls, self.id.clone(), filter, None).await {
            tracing::warn!(%error, "the inbox relays could not be subscribed yet; backfills continue");
        }
    }

    /// Records that a relay closed the subscription, for example to request authentication.
    pub fn closed(&mut self) {
        if self.repeat_at.is_none() {
            self.repeat_at = Some(Instant::now() + self.backoff.next_pause());
        }
    }

    /// Makes pauses short again, because all relays answered a backfill.
    pub fn works(&mut self) {
        self.backoff.reset();
    }

    /// Whether any inbox relay was connected at the last check.
    pub fn is_connected(&self) -> bool {
        !self.connected.is_empty()
    }

    /// Checks the connections and subscribes where the subscription is missing. Returns whether
    /// something may have been missed: a relay that reconnects has events from the time it was
    /// away.
    pub async fn check(&mut self, filter: impl Fn() -> Filter) -> bool {
        let mut missed = false;
        if self.repeat_at.is_some_and(|at| Instant::now() >= at) {
            self.repeat_at = None;
            self.request(filter()).await;
            missed = true;
        }
        let mut connected = HashMap::new();
        for url in &self.urls {
            let Some(connection) = self.relays.connection(url).await else { continue };
            missed |= self.connected.get(url) != Some(&connection);
            connected.insert(url.clone(), connection);
            // A relay that has just closed the subscription is not asked during the pause.
            if self.repeat_at.is_none() && !self.relays.is_subscribed(url, &self.id).await {
                self.request_from(vec![url.clone()], filter()).await;
                missed = true;
            }
        }
        self.connected = connected;
        self.report();
        missed
    }

    fn report(&mut self) {
        let (connected, of) = (self.connected.len(), self.urls.len());
        if self.report.is_news(connected, Instant::now()) {
            if connected == 0 {
                tracing::warn!("inbox relays connected: 0 of {of}; nobody can reach the bot");
            } else {
                tracing::info!("inbox relays connected: {connected} of {of}");
            }
        }
    }
}

/// The last log line: the number of connected relays, and its time.
#[derive(Default)]
struct Report {
    last: Option<(usize, Instant)>,
}

impl Report {
    fn is_news(&mut self, connected: usize, now: Instant) -> bool {
        let is_news =
            self.last.is_none_or(|(before, at)| before != connected || (connected == 0 && now >= at + TELL_AGAIN));
        if is_news {
            self.last = Some((connected, now));
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_logged_and_every_hour_that_no_relay_is_connected() {
        let (mut report, start) = (Report::default(), Instant::now());
        let mut told = |connected, seconds| report.is_news(connected, start + Duration::from_secs(seconds));
        assert!(told(2, 0) && !told(2, 2) && !told(2, 7200));
        assert!(told(1, 7202) && !told(1, 20_000));
        assert!(told(0, 20_002) && !told(0, 20_004) && !told(0, 23_601));
        assert!(told(0, 23_602) && !told(0, 23_604) && told(0, 27_202));
        assert!(told(2, 27_204));
    }
}
