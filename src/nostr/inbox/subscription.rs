//! Our subscription at the inbox relays, and which of them are there.
//!
//! The library subscribes again after a reconnect where it has the subscription in its book. It has not where the relay
//! closed it, nor where the relay had been away for long when it was to be asked. So every look makes sure.

use crate::nostr::relay::connections::{Connection, Relays};
use nostr_sdk::{Filter, RelayUrl, SubscriptionId};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A relay that closed the subscription is asked again after this, doubling up to the last.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LAST_PAUSE: Duration = Duration::from_secs(60);
/// How often the operator is told that no inbox relay is there.
const TELL_AGAIN: Duration = Duration::from_secs(3600);

pub(in crate::nostr) struct Subscription {
    relays: Relays,
    id: SubscriptionId,
    urls: Vec<RelayUrl>,
    /// Those that were connected at the last look.
    connected: HashMap<RelayUrl, Connection>,
    /// When relays that closed the subscription are asked again, and how long after that the next time.
    again: Option<Instant>,
    pause: Duration,
    tally: Tally,
}

impl Subscription {
    pub fn new(relays: Relays, name: &str) -> Subscription {
        Subscription {
            urls: relays.ours(|relay| relay.inbox),
            relays,
            id: SubscriptionId::new(name),
            connected: HashMap::new(),
            again: None,
            pause: FIRST_PAUSE,
            tally: Tally::default(),
        }
    }

    /// Asks every inbox relay for what the filter selects, stored and new.
    pub async fn ask(&self, filter: Filter) {
        self.ask_some(self.urls.clone(), filter).await;
    }

    async fn ask_some(&self, urls: Vec<RelayUrl>, filter: Filter) {
        if let Err(error) = self.relays.client().subscribe_with_id_to(urls, self.id.clone(), filter, None).await {
            tracing::warn!(%error, "the inbox relays could not be subscribed yet; they are swept");
        }
    }

    /// A relay closed the subscription: it wanted to know first who we are, say.
    pub fn closed(&mut self) {
        self.again = self.again.or(Some(Instant::now() + self.pause));
    }

    /// All relays were heard to the end.
    pub fn works(&mut self) {
        self.pause = FIRST_PAUSE;
    }

    pub fn is_connected(&self) -> bool {
        !self.connected.is_empty()
    }

    /// Looks which relays are there, and asks those that have no subscription. Says whether something may have been missed: a
    /// relay that came back has what was sent while it was away.
    pub async fn look(&mut self, filter: impl Fn() -> Filter) -> bool {
        let mut missed = false;
        if self.again.is_some_and(|at| Instant::now() >= at) {
            self.again = None;
            self.pause = (self.pause * 2).min(LAST_PAUSE);
            self.ask(filter()).await;
            missed = true;
        }
        let mut connected = HashMap::new();
        for url in &self.urls {
            let Some(connection) = self.relays.connection(url).await else { continue };
            missed |= self.connected.get(url) != Some(&connection);
            connected.insert(url.clone(), connection);
            // One that has just closed it is not asked before the pause is over.
            if self.again.is_none() && !self.relays.is_subscribed(url, &self.id).await {
                self.ask_some(vec![url.clone()], filter()).await;
                missed = true;
            }
        }
        self.connected = connected;
        self.tell();
        missed
    }

    fn tell(&mut self) {
        let (here, of) = (self.connected.len(), self.urls.len());
        if self.tally.is_news(here, Instant::now()) {
            if here == 0 {
                tracing::warn!("inbox relays connected: 0 of {of}; nobody reaches the bot");
            } else {
                tracing::info!("inbox relays connected: {here} of {of}");
            }
        }
    }
}

/// When the operator is told how many are there.
#[derive(Default)]
struct Tally {
    told: Option<(usize, Instant)>,
}

impl Tally {
    fn is_news(&mut self, here: usize, now: Instant) -> bool {
        let is_news = self.told.is_none_or(|(before, at)| before != here || (here == 0 && now >= at + TELL_AGAIN));
        if is_news {
            self.told = Some((here, now));
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_is_told_each_change_and_every_hour_that_nobody_is_there() {
        let (mut tally, start) = (Tally::default(), Instant::now());
        let mut told = |here, seconds| tally.is_news(here, start + Duration::from_secs(seconds));
        assert!(told(2, 0) && !told(2, 2) && !told(2, 7200));
        assert!(told(1, 7202) && !told(1, 20_000));
        assert!(told(0, 20_002) && !told(0, 20_004) && !told(0, 23_601));
        assert!(told(0, 23_602) && !told(0, 23_604) && told(0, 27_202));
        assert!(told(2, 27_204));
    }
}
