//! How the bot shows itself: profile, relay lists, and a status that dies with it.

use super::relays::Relays;
use crate::clock::Clock;
use crate::config::BotConfig;
use crate::pattern::Rate;
use crate::shutdown::Shutdown;
use crate::vault::BotSigner;
use nostr::nips::nip38::{LiveStatus, StatusType};
use nostr_sdk::{Event, EventBuilder, Kind, NostrSigner, RelayUrl, Tag, Timestamp};
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Two statuses are at least this far apart.
const STATUS_PAUSE: Duration = Duration::from_secs(60);
/// A status is renewed after this, and expires a little later if the bot is gone.
const STATUS_RENEWAL: Duration = Duration::from_secs(600);
const STATUS_LIFE: u64 = 900;
/// Everything is announced anew after this.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(3600);
/// Relays that missed an announcement get it when they are back; looked at this often.
const CATCH_UP: Duration = Duration::from_secs(15);
/// The start does not wait longer than this for the announcement.
const START_PATIENCE: Duration = Duration::from_secs(3);
/// The end does not wait longer than this to say so.
const END_PATIENCE: Duration = Duration::from_millis(700);

/// What the public may know.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Status {
    /// `None` before the first measurement and when no device works.
    pub rate: Option<Rate>,
    pub open_jobs: usize,
    pub searching: bool,
}

#[derive(Clone)]
pub struct Presence {
    pub relays: Relays,
    pub signer: BotSigner,
    pub bot: BotConfig,
    pub clock: Clock,
}

impl Presence {
    /// Publishes profile, relay list and DM relays to all our relays, as far as they answer within a few seconds.
    pub async fn announce(&self) {
        // Relays that are too late get it from `run`.
        let _ = tokio::time::timeout(START_PATIENCE, self.announce_to(self.relays.ours(|_| true))).await;
    }

    /// Keeps the announcement and the status up to date until the shutdown, and says when it ends.
    pub async fn run(self, mut status: watch::Receiver<Status>, mut shutdown: Shutdown) {
        let mut announced = HashSet::new();
        let mut announced_at = tokio::time::Instant::now();
        let mut catch_up = tokio::time::interval(CATCH_UP);
        let mut shown: Option<(String, tokio::time::Instant)> = None;
        loop {
            tokio::select! {
                () = shutdown.stopped() => break,
                changed = status.changed() => if changed.is_err() { break },
                _ = catch_up.tick() => {
                    if announced_at.elapsed() >= ANNOUNCE_EVERY {
                        announced.clear();
                        announced_at = tokio::time::Instant::now();
                    }
                    let left = self.relays.ours(|_| true).into_iter().filter(|url| !announced.contains(url)).collect();
                    tokio::select! {
                        () = shutdown.stopped() => break,
                        reached = self.announce_to(left) => announced.extend(reached),
                    }
                }
            }
            let text = describe(&status.borrow_and_update());
            let due = shown.as_ref().is_none_or(|(old, at)| {
                at.elapsed() >= STATUS_RENEWAL || (*old != text && at.elapsed() >= STATUS_PAUSE)
            });
            if self.bot.live_status && due {
                tokio::select! {
                    () = shutdown.stopped() => break,
                    () = self.show(&text) => {}
                }
                shown = Some((text, tokio::time::Instant::now()));
            }
        }
        if self.bot.live_status {
            // An empty status takes the old one away.
            let _ = tokio::time::timeout(END_PATIENCE, self.show("")).await;
        }
    }

    /// Returns the relays that have all of it.
    async fn announce_to(&self, urls: Vec<RelayUrl>) -> HashSet<RelayUrl> {
        if urls.is_empty() {
            return HashSet::new();
        }
        let builders = [self.profile(), self.relay_list(), self.dm_relays()];
        let mut reached: HashSet<RelayUrl> = urls.iter().cloned().collect();
        for builder in builders {
            let Some(event) = self.sign(builder).await else { return HashSet::new() };
            let took = self.publish(&event, &urls).await;
            reached.retain(|url| took.contains(url));
        }
        reached
    }

    fn profile(&self) -> EventBuilder {
        let mut profile = serde_json::json!({ "name": self.bot.name, "about": self.bot.about, "bot": true });
        for (key, value) in [("picture", &self.bot.picture), ("nip05", &self.bot.nip05)] {
            if let Some(value) = value {
                profile[key] = value.as_str().into();
            }
        }
        EventBuilder::new(Kind::Metadata, profile.to_string())
    }

    /// NIP-65: where what the bot publishes is found.
    fn relay_list(&self) -> EventBuilder {
        let urls = self.relays.ours(|relay| relay.status);
        EventBuilder::new(Kind::RelayList, "").tags(urls.into_iter().map(|url| Tag::relay_metadata(url, None)))
    }

    /// NIP-17: where the bot takes messages.
    fn dm_relays(&self) -> EventBuilder {
        let urls = self.relays.ours(|relay| relay.inbox);
        EventBuilder::new(Kind::InboxRelays, "").tags(urls.into_iter().map(Tag::relay))
    }

    /// NIP-38, with an end (NIP-40), so that a dead bot's status dies too.
    async fn show(&self, text: &str) {
        let mut status = LiveStatus::new(StatusType::General);
        status.expiration = Some(Timestamp::from(self.clock.now() + STATUS_LIFE));
        if let Some(event) = self.sign(EventBuilder::live_status(status, text)).await {
            self.publish(&event, &self.relays.ours(|relay| relay.status)).await;
        }
    }

    async fn sign(&self, builder: EventBuilder) -> Option<Event> {
        let unsigned = builder.custom_created_at(Timestamp::from(self.clock.now())).build(self.relays.bot());
        let signed = self.signer.sign_event(unsigned).await;
        signed.inspect_err(|error| tracing::error!(%error, "an announcement could not be signed")).ok()
    }

    /// Returns the relays that took it.
    async fn publish(&self, event: &Event, urls: &[RelayUrl]) -> HashSet<RelayUrl> {
        let mut sending = JoinSet::new();
        for url in urls.iter().cloned() {
            let (relays, event) = (self.relays.clone(), event.clone());
            sending.spawn(async move {
                let sent = relays.publish(&url, &event).await;
                sent.inspect_err(|error| tracing::debug!(%error, "not announced there yet")).ok().map(|()| url)
            });
        }
        sending.join_all().await.into_iter().flatten().collect()
    }
}

/// The status in words: totals only.
fn describe(status: &Status) -> String {
    let rate = status.rate.map_or_else(|| "measuring my speed".to_owned(), |rate| format!("{rate} keys tested"));
    match (status.searching, status.open_jobs) {
        (false, _) | (_, 0) => format!("ready for wishes; {rate}"),
        (true, 1) => format!("searching for 1 wish; {rate}"),
        (true, jobs) => format!("searching for {jobs} wishes; {rate}"),
    }
}
