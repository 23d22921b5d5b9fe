//! The bot's public events: profile, relay lists, encryption key, handler (NIP-89), status and daily
//! note.
//!
//! They are queued in the ledger, one per topic, and sent by [`Publisher`]. An event that equals the
//! last one of its topic is not queued again, so a restart publishes nothing twice.

use super::relay::connections::Relays;
use crate::backoff::Backoff;
use crate::clock::Clock;
use crate::config::{Config, RelayEntry};
use crate::ledger::{DayFigures, Ledger, LedgerError, Post};
use crate::shutdown::Shutdown;
use crate::vault::{BotSigner, PublicRelay, PublicSettings};
use base64::prelude::{BASE64_STANDARD as STANDARD, Engine};
use nostr::nips::nip38::{LiveStatus, StatusType};
use nostr_sdk::{Event, EventBuilder, JsonUtil, Kind, RelayUrl, Tag, TagKind, Tags, Timestamp, UnsignedEvent};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// The shortest time between two statuses, in seconds.
const STATUS_PAUSE: u64 = 300;
/// Seconds after which a status is renewed.
const STATUS_RENEWAL: u64 = 600;
/// Seconds after which a status that is not renewed expires.
const STATUS_LIFE: u64 = 900;
/// The status of a stopped bot.
const ASLEEP: &str = "asleep; what you send now is answered when I wake up";
/// Seconds after which the status of a stopped bot expires.
const ASLEEP_FOR: u64 = 7 * 86_400;
/// Seconds after which unchanged events are sent again, because relays delete old ones.
const ANNOUNCE_EVERY: u64 = 86_400;
/// Seconds after which a daily note is no longer sent to relays that lack it.
const NOTE_LIFE: u64 = 86_400;
/// Pause after the ledger could not be written, seconds.
const LEDGER_PAUSE: u64 = 600;
/// Time between two checks for changes.
const CHECK_FOR_CHANGES_EVERY: Duration = Duration::from_secs(5);
/// Seconds in a day.
const DAY_SECONDS: u64 = 86_400;

/// Composes and queues the bot's public events.
#[derive(Clone)]
pub struct Presence {
    /// Our relays and their roles.
    pub relays: Relays,
    /// Signs the events with the bot's key.
    pub signer: BotSigner,
    /// The settings of the events, the same as the vault has.
    pub settings: PublicSettings,
    /// The date until which nothing is queued, because the ledger could not be written. The vault
    /// signs a bounded number of events a day.
    pub paused_until: Arc<AtomicU64>,
    /// The ledger that holds the queue of public events.
    pub ledger: Ledger,
    /// The clock that dates the events.
    pub clock: Clock,
    /// Returns the bot's current status in words.
    pub status: Arc<dyn Fn() -> String + Send + Sync>,
    /// Notified when the status may have changed.
    pub changed: Arc<Notify>,
    /// Notified when an event was queued.
    pub posted: Arc<Notify>,
    /// Notified at the shutdown, once the last event is queued.
    pub goodbye: Arc<Notify>,
}

impl Presence {
    /// Queues all events that the bot publishes at its start. They replace events still queued from
    /// an earlier run.
    pub fn wake(&self) {
        self.announce();
        self.show();
    }

    /// Queues profile, relay lists, encryption key and handler if they have changed.
    fn announce(&self) {
        let ours = |relay: &RelayEntry| relay.inbox || relay.status || relay.discovery;
        for (topic, builder) in self.settings.events(self.relays.bot()) {
            self.say(topic, builder, None, ANNOUNCE_EVERY, ours);
        }
    }

    /// Keeps all events up to date until the shutdown, then queues the last status.
    pub async fn run(self, mut shutdown: Shutdown) {
        let (mut checks, mut turns) = (tokio::time::interval(CHECK_FOR_CHANGES_EVERY), self.clock.turns());
        loop {
            tokio::select! {
                () = shutdown.stopped() => break,
                () = self.changed.notified() => {}
                () = turns.next() => {}
                _ = checks.tick() => {}
            }
            self.announce();
            self.show();
            if self.settings.daily_note {
                self.note_yesterday();
            }
        }
        if self.settings.live_status {
            self.say_status(ASLEEP, ASLEEP_FOR, 0);
        }
        self.goodbye.notify_one();
    }

    fn show(&self) {
        let said = self.ledger.posted("status").map(|said| {
            said.map(|(json, at)| (Event::from_json(json).map(|event| event.content).unwrap_or_default(), at))
        });
        match said {
            // At most one status every five minutes. That of a stopped bot is replaced at once.
            Ok(Some((text, at))) if text != ASLEEP && within(at, STATUS_PAUSE, self.clock.now()) => {}
            Ok(_) if self.settings.live_status => self.say_status(&(self.status)(), STATUS_LIFE, STATUS_RENEWAL),
            // Statuses are switched off: an empty one removes the last one (NIP-38).
            Ok(Some((text, _))) if !text.is_empty() => self.say_status("", ASLEEP_FOR, 0),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the status cannot be looked up yet"),
        }
    }

    /// Queues a status (NIP-38) that expires (NIP-40), so that it does not outlive the bot.
    fn say_status(&self, text: &str, life: u64, renew_after: u64) {
        let mut status = LiveStatus::new(StatusType::General);
        let expires_at = self.clock.now() + life;
        status.expiration = Some(Timestamp::from(expires_at));
        self.say("status", EventBuilder::live_status(status, text), Some(expires_at), renew_after, |relay| {
            relay.status
        });
    }

    /// Queues the note about yesterday, if anything happened. It has totals only.
    fn note_yesterday(&self) {
        let now = self.clock.now();
        let yesterday = (now / DAY_SECONDS).saturating_sub(1);
        let told = self.ledger.day(yesterday).and_then(|figures| {
            let Some(text) = describe_day(&figures) else { return Ok(false) };
            if self.ledger.posted_day()?.is_some_and(|day| day >= yesterday) {
                return Ok(false);
            }
            // The vault signs a dozen a day, so nothing is signed that could not be recorded.
            if self.is_paused(now) {
                return Ok(false);
            }
            let note = self.unsigned(EventBuilder::new(Kind::TextNote, text), now);
            let Some(event) = self.sign(note) else { return Ok(false) };
            let relays = self.urls(|relay| relay.status);
            let post = Post { topic: "note".into(), json: event.as_json(), relays, expires_at: Some(now + NOTE_LIFE) };
            self.ledger.post_of_day(yesterday, &post)
        });
        match told {
            Ok(true) => self.posted.notify_one(),
            Ok(false) => {}
            Err(error) => self.pause(now, &error, "note"),
        }
    }

    /// Queues an event, unless its topic has an equal one that is younger than `renew_after`
    /// seconds.
    fn say(
        &self,
        topic: &str,
        builder: EventBuilder,
        expires_at: Option<u64>,
        renew_after: u64,
        to: impl Fn(&RelayEntry) -> bool,
    ) {
        let now = self.clock.now();
        if self.is_paused(now) {
            return;
        }
        let queued = self.ledger.posted(topic).map(|before| {
            let before = before.and_then(|(json, at)| Some((Event::from_json(json).ok()?, at)));
            // Of two events with the same second, relays may keep the older one.
            let date = before.as_ref().map_or(now, |(old, _)| now.max(old.created_at.as_secs().min(now) + 1));
            let event = self.unsigned(builder, date);
            if before.is_some_and(|(old, at)| within(at, renew_after, now) && says_same(&old, &event)) {
                return None;
            }
            let json = self.sign(event)?.as_json();
            Some(Post { topic: topic.into(), json, relays: self.urls(to), expires_at })
        });
        match queued.and_then(|post| post.map(|post| self.ledger.post(&post)).transpose()) {
            Ok(Some(())) => self.posted.notify_one(),
            Ok(None) => {}
            Err(error) => self.pause(now, &error, topic),
        }
    }

    fn urls(&self, to: impl Fn(&RelayEntry) -> bool) -> Vec<String> {
        self.relays.ours(to).iter().map(ToString::to_string).collect()
    }

    fn is_paused(&self, now: u64) -> bool {
        now < self.paused_until.load(Ordering::Relaxed)
    }

    fn pause(&self, now: u64, error: &LedgerError, topic: &str) {
        tracing::warn!(%error, topic, "a public event cannot be queued yet");
        self.paused_until.store(now + LEDGER_PAUSE, Ordering::Relaxed);
    }

    fn unsigned(&self, builder: EventBuilder, date: u64) -> UnsignedEvent {
        builder.custom_created_at(Timestamp::from(date)).build(self.relays.bot())
    }

    /// Signs an event; `None` if the vault refuses or is away.
    fn sign(&self, unsigned: UnsignedEvent) -> Option<Event> {
        let signed = self.signer.sign(unsigned);
        signed.inspect_err(|error| tracing::debug!(%error, "a public event could not be signed")).ok()
    }
}

/// Whether `at` is less than `seconds` ago; `false` for a time in the future.
fn within(at: u64, seconds: u64, now: u64) -> bool {
    at <= now && now - at < seconds
}

/// Whether two events are equal except for their dates.
fn says_same(one: &Event, other: &UnsignedEvent) -> bool {
    let lasting =
        |tags: &Tags| -> Vec<Tag> { tags.iter().filter(|tag| tag.kind() != TagKind::Expiration).cloned().collect() };
    one.kind == other.kind && one.content == other.content && lasting(&one.tags) == lasting(&other.tags)
}

/// The text of a daily note; `None` if nothing happened.
fn describe_day(day: &DayFigures) -> Option<String> {
    let DayFigures { candidates, jobs_accepted: accepted, jobs_delivered: delivered, .. } = *day;
    if accepted == 0 && delivered == 0 {
        return None;
    }
    let plural = |count: u64, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    Some(format!(
        "Yesterday: {} accepted, {} delivered, {:.2e} keys tested. Send me a prefix by private message and I find you an \
         npub that starts with it.",
        plural(accepted, "request"),
        plural(delivered, "key"),
        candidates as f64
    ))
}

/// The default picture: a white key, 64 by 64 pixels. The page's server has it at a real address.
const PICTURE: &[u8] = include_bytes!("picture.png");

/// The settings of the bot's public events. `page_sha256`: SHA-256 of the page that the bot serves,
/// hex. The vault gets them at its start, and signs nothing else.
pub fn public_settings(config: &Config, page_sha256: Option<&str>) -> PublicSettings {
    let (bot, page) = (&config.bot, config.web.public_url.clone());
    let relays = config.relays.iter();
    PublicSettings {
        name: bot.name.clone(),
        about: bot.about.clone(),
        picture: bot.picture.clone().unwrap_or_else(|| picture(page.as_deref())),
        nip05: bot.nip05.clone(),
        lud16: bot.lud16.clone(),
        page,
        page_sha256: page_sha256.map(str::to_owned),
        relays: relays
            .map(|relay| PublicRelay { url: relay.url.clone(), inbox: relay.inbox, status: relay.status })
            .collect(),
        live_status: bot.live_status,
        daily_note: bot.daily_note,
    }
}

/// The address of the default picture: at the page's server, if it has all paths of a host. Without
/// one the picture is in the profile itself, which not every client shows.
fn picture(page: Option<&str>) -> String {
    match page {
        Some(page) if page.starts_with("https://") && page.ends_with('/') => format!("{page}picture.png"),
        _ => format!("data:image/png;base64,{}", STANDARD.encode(PICTURE)),
    }
}

/// The first pause before a round that sends what some relay did not accept. Later pauses double up
/// to [`LAST_ROUND_PAUSE`]; a new event has its round at once.
const FIRST_ROUND_PAUSE: Duration = Duration::from_secs(15);
/// The longest pause between two rounds.
const LAST_ROUND_PAUSE: Duration = Duration::from_secs(3600);
/// Time limit at shutdown for the last status to be queued, and again for it to be sent.
const GOODBYE_TIMEOUT: Duration = Duration::from_millis(700);

/// Sends public events.
#[derive(Clone)]
pub struct Publisher {
    /// The connections to relays.
    pub relays: Relays,
    /// The ledger that holds the queue.
    pub ledger: Ledger,
}

impl Publisher {
    /// Sends queued events until the shutdown, then the last status. `posted` announces new events,
    /// `goodbye` the last one.
    pub async fn run(self, posted: Arc<Notify>, goodbye: Arc<Notify>, mut shutdown: Shutdown) {
        let mut pauses = Backoff::new(FIRST_ROUND_PAUSE, LAST_ROUND_PAUSE);
        loop {
            let is_complete = tokio::select! {
                () = shutdown.stopped() => break,
                is_complete = self.round() => is_complete,
            };
            if is_complete {
                pauses.reset();
            }
            tokio::select! {
                () = shutdown.stopped() => break,
                () = posted.notified() => {}
                () = tokio::time::sleep(pauses.next_pause()), if !is_complete => {}
            }
        }
        let _ = tokio::time::timeout(GOODBYE_TIMEOUT, goodbye.notified()).await;
        let _ = tokio::time::timeout(GOODBYE_TIMEOUT, self.round()).await;
    }

    /// Sends every due event to each relay that lacks it. Returns whether all accepted theirs.
    pub async fn round(&self) -> bool {
        let due = match self.ledger.due_posts() {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(%error, "public events cannot be read yet");
                return false;
            }
        };
        let mut sending = JoinSet::new();
        for (post, url) in due.iter().flat_map(|post| post.left.iter().map(move |url| (post, url))) {
            let (Ok(event), Ok(parsed)) = (Event::from_json(&post.json), RelayUrl::parse(url)) else { continue };
            let (relays, topic, id, url) = (self.relays.clone(), post.topic.clone(), post.id, url.to_owned());
            sending.spawn(async move {
                let sent = relays.publish(&parsed, &event).await;
                if let Err(error) = &sent {
                    tracing::debug!(%error, topic, "a public event is not accepted yet");
                }
                (id, url, sent.is_ok())
            });
        }
        let mut is_complete = true;
        while let Some(sent) = sending.join_next().await {
            let Ok((post, url, true)) = sent else {
                is_complete = false;
                continue;
            };
            if let Err(error) = self.ledger.post_reached(post, &url) {
                tracing::warn!(%error, "a public event could not be recorded as sent; it is sent again");
                is_complete = false;
            }
        }
        is_complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::Vault;
    use nostr_sdk::{Keys, ToBech32};

    #[test]
    fn a_note_has_totals_and_a_quiet_day_has_none() {
        let day = DayFigures {
            candidates: 9_400_000_000_000_000,
            jobs_accepted: 41,
            jobs_delivered: 1,
            ..DayFigures::default()
        };
        insta::assert_snapshot!(describe_day(&day).unwrap(), @"Yesterday: 41 requests accepted, 1 key delivered, 9.40e15 keys tested. Send me a prefix by private message and I find you an npub that starts with it.");
        assert_eq!(describe_day(&DayFigures { candidates: 5, ..DayFigures::default() }), None);
        // The vault knows the words.
        let settings = public_settings(&Config::embedded_default().unwrap(), None);
        let vault = Vault::without_identity().unwrap().with_settings(settings);
        for (accepted, delivered) in [(1, 0), (2, 1), (1000, 1000)] {
            let text = describe_day(&DayFigures {
                candidates: 1,
                jobs_accepted: accepted,
                jobs_delivered: delivered,
                ..DayFigures::default()
            })
            .unwrap();
            vault.signer().sign(EventBuilder::text_note(text).build(vault.public_key())).unwrap();
        }
    }

    fn tags(builder: EventBuilder, keys: &Keys) -> Vec<Vec<String>> {
        let event = builder.build(keys.public_key());
        event.tags.iter().map(|tag| tag.as_slice().to_vec()).collect()
    }

    #[test]
    fn a_profile_has_a_picture_and_leads_to_the_page_if_there_is_one() {
        let (mut config, keys) = (Config::embedded_default().unwrap(), Keys::generate());
        let (key, npub) = (keys.public_key(), keys.public_key().to_bech32().unwrap());
        let json = |settings: &PublicSettings| -> serde_json::Value {
            let [(_, profile), ..] = settings.events(key);
            serde_json::from_str(&profile.build(key).content).unwrap()
        };
        let alone = public_settings(&config, None);
        let profile = json(&alone);
        assert_eq!((&profile["display_name"], &profile["bot"]), (&config.bot.name.clone().into(), &true.into()));
        assert!(profile["picture"].as_str().unwrap().starts_with("data:image/png;base64,"));
        assert!(profile.get("website").is_none());
        let [.., (_, handler), _] = alone.events(key);
        assert_eq!(tags(handler, &keys), [["d", "npubbot"], ["k", "14"]]);

        config.web.public_url = Some("https://bot.example/".to_owned());
        let with_page = public_settings(&config, Some("00ff"));
        assert_eq!(json(&with_page)["picture"], "https://bot.example/picture.png");
        let chat = format!("https://bot.example/#{npub}");
        assert_eq!(json(&with_page)["website"], chat);
        let relay = PublicRelay { url: RelayUrl::parse("wss://relay.example").unwrap(), inbox: false, status: true };
        let [.., (_, handler), (_, recommendation)] = PublicSettings { relays: vec![relay], ..with_page }.events(key);
        assert_eq!(tags(handler, &keys)[2..], [["web", &chat], ["x", "00ff"]]);
        let address = format!("31990:{key}:npubbot");
        let recommended = tags(recommendation, &keys);
        assert_eq!(recommended[0], ["d", "14"]);
        assert_eq!(recommended[1], ["a", &address, "wss://relay.example"]);

        config.web.public_url = Some("https://bot.example/ask".to_owned());
        let within = public_settings(&config, None);
        assert_eq!(within.picture, alone.picture, "the host may have another picture.png");
        config.bot.picture = Some("https://bot.example/picture.png".to_owned());
        assert_eq!(public_settings(&config, None).picture, "https://bot.example/picture.png");
    }
}
