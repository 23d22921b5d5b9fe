//! How the bot shows itself: profile, relay lists, what it handles, a status that dies with it, and a note a day.
//!
//! Everything is composed here and queued in the ledger; [`super::publisher`] sends it. What says the same as the event
//! a topic has already is not said again, so a restart repeats nothing.

use crate::clock::Clock;
use crate::config::{BotConfig, RelayEntry};
use crate::ledger::{DayFigures, Ledger, Post};
use crate::nostr::relay::connections::Relays;
use crate::pattern::{Difficulty, Rate};
use crate::shutdown::Shutdown;
use crate::vault::BotSigner;
use nostr::nips::nip38::{LiveStatus, StatusType};
use nostr_sdk::{Event, EventBuilder, JsonUtil, Kind, Tag, TagKind, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// Two statuses are at least this far apart, seconds.
const STATUS_PAUSE: u64 = 60;
/// A status is renewed after this, and expires a little later if the bot is gone, seconds.
const STATUS_RENEWAL: u64 = 600;
const STATUS_LIFE: u64 = 900;
const ASLEEP: &str = "asleep; what you send now is answered when I wake up";
/// What says that the bot sleeps is of interest for so long, seconds.
const ASLEEP_FOR: u64 = 7 * 86_400;
/// What stays the same is announced anew after this, seconds: relays forget.
const ANNOUNCE_EVERY: u64 = 86_400;
/// A note that reached nobody is of no interest after this, seconds.
const NOTE_LIFE: u64 = 86_400;
/// How often it is looked whether something is to be said.
const LOOK: Duration = Duration::from_secs(5);
const DAY: u64 = 86_400;
/// Lengths of prefix whose expected time the status tells.
const TOLD: [u32; 3] = [6, 7, 8];

/// What the public may know.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Status {
    /// `None` before the first measurement and when no device works.
    pub rate: Option<Rate>,
    pub open_jobs: usize,
}

/// The bot's public face.
#[derive(Clone)]
pub struct Presence {
    pub relays: Relays,
    pub signer: BotSigner,
    pub bot: BotConfig,
    pub ledger: Ledger,
    pub clock: Clock,
    /// Tells the billboard that something was queued.
    pub posted: Arc<Notify>,
    /// And that this was the last.
    pub goodbye: Arc<Notify>,
}

impl Presence {
    /// Queues all there is to say at the start. What waits from a run before this one and is not true any more is replaced
    /// before it is sent.
    pub fn wake(&self, status: &Status) {
        self.announce();
        self.show(status);
    }

    /// Queues profile, relay lists and handler, as far as they have changed.
    fn announce(&self) {
        let ours = |relay: &RelayEntry| relay.inbox || relay.status || relay.discovery;
        for (topic, builder) in [
            ("profile", self.profile()),
            ("relay list", self.relay_list()),
            ("dm relays", self.dm_relays()),
            ("handler", self.handler()),
        ] {
            self.say(topic, builder, None, ANNOUNCE_EVERY, ours);
        }
    }

    /// Keeps everything up to date until the shutdown, and says when it ends.
    pub async fn run(self, mut status: watch::Receiver<Status>, mut shutdown: Shutdown) {
        let mut looks = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                () = shutdown.stopped() => break,
                changed = status.changed() => if changed.is_err() { break },
                _ = looks.tick() => {}
            }
            self.announce();
            self.show(&status.borrow_and_update());
            if self.bot.daily_note {
                self.note_yesterday();
            }
        }
        if self.bot.live_status {
            self.say_status(ASLEEP, ASLEEP_FOR, 0);
        }
        self.goodbye.notify_one();
    }

    fn show(&self, status: &Status) {
        let said = self.ledger.posted("status").map(|said| {
            said.map(|(json, at)| (Event::from_json(json).map(|event| event.content).unwrap_or_default(), at))
        });
        match said {
            // Not more often than once a minute, whatever changes; but nobody is told that the bot sleeps when it does not.
            Ok(Some((text, at))) if text != ASLEEP && within(at, STATUS_PAUSE, self.clock.now()) => {}
            Ok(_) if self.bot.live_status => self.say_status(&describe(status), STATUS_LIFE, STATUS_RENEWAL),
            // Switched off: what was said before is taken back (NIP-38), or it would stay as it is.
            Ok(Some((text, _))) if !text.is_empty() => self.say_status("", ASLEEP_FOR, 0),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "the status cannot be looked up yet"),
        }
    }

    /// NIP-38, with an end (NIP-40), so that a dead bot's status dies too.
    fn say_status(&self, text: &str, life: u64, renew_after: u64) {
        let mut status = LiveStatus::new(StatusType::General);
        let expires_at = self.clock.now() + life;
        status.expiration = Some(Timestamp::from(expires_at));
        self.say("status", EventBuilder::live_status(status, text), Some(expires_at), renew_after, |relay| {
            relay.status
        });
    }

    /// One note for each day in which something happened: totals only.
    fn note_yesterday(&self) {
        let now = self.clock.now();
        let yesterday = (now / DAY).saturating_sub(1);
        let told = self.ledger.day(yesterday).and_then(|figures| {
            let Some(text) = describe_day(&figures) else { return Ok(false) };
            if self.ledger.noted_day()?.is_some_and(|day| day >= yesterday) {
                return Ok(false);
            }
            let Some(event) = self.sign(EventBuilder::new(Kind::TextNote, text), now) else { return Ok(false) };
            let relays = self.urls(|relay| relay.status);
            let post = Post { topic: "note".into(), json: event.as_json(), relays, expires_at: Some(now + NOTE_LIFE) };
            self.ledger.post_note(yesterday, &post)
        });
        match told {
            Ok(true) => self.posted.notify_one(),
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "the daily note cannot be written yet"),
        }
    }

    /// Queues an event unless its topic says the same already, and that not longer ago than `renew_after` seconds.
    fn say(
        &self,
        topic: &str,
        builder: EventBuilder,
        expires_at: Option<u64>,
        renew_after: u64,
        to: impl Fn(&RelayEntry) -> bool,
    ) {
        let now = self.clock.now();
        let queued = self.ledger.posted(topic).map(|before| {
            let before = before.and_then(|(json, at)| Some((Event::from_json(json).ok()?, at)));
            // Of two events of one second relays may keep the older.
            let date = before.as_ref().map_or(now, |(old, _)| now.max(old.created_at.as_secs().min(now) + 1));
            let event = self.sign(builder, date)?;
            let is_said = before.is_some_and(|(old, at)| within(at, renew_after, now) && says_same(&old, &event));
            (!is_said).then(|| Post { topic: topic.into(), json: event.as_json(), relays: self.urls(to), expires_at })
        });
        match queued.and_then(|post| post.map(|post| self.ledger.post(&post)).transpose()) {
            Ok(Some(())) => self.posted.notify_one(),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, topic, "an announcement cannot be queued yet"),
        }
    }

    fn urls(&self, to: impl Fn(&RelayEntry) -> bool) -> Vec<String> {
        self.relays.ours(to).iter().map(ToString::to_string).collect()
    }

    fn sign(&self, builder: EventBuilder, date: u64) -> Option<Event> {
        let unsigned = builder.custom_created_at(Timestamp::from(date)).build(self.relays.bot());
        let signed = self.signer.sign(unsigned);
        signed.inspect_err(|error| tracing::error!(%error, "an announcement could not be signed")).ok()
    }

    fn profile(&self) -> EventBuilder {
        EventBuilder::new(Kind::Metadata, self.profile_json().to_string())
    }

    fn profile_json(&self) -> serde_json::Value {
        let mut profile = serde_json::json!({ "name": self.bot.name, "about": self.bot.about, "bot": true });
        for (key, value) in [("picture", &self.bot.picture), ("nip05", &self.bot.nip05)] {
            if let Some(value) = value {
                profile[key] = value.as_str().into();
            }
        }
        profile
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

    /// NIP-89: it handles private messages.
    fn handler(&self) -> EventBuilder {
        let kind = Tag::custom(TagKind::custom("k"), ["14"]);
        EventBuilder::new(Kind::from(31990u16), self.profile_json().to_string())
            .tags([Tag::identifier("npubbot"), kind])
    }
}

/// Whether `at` is at most `seconds` ago. A clock that has gone back since makes it long ago.
fn within(at: u64, seconds: u64, now: u64) -> bool {
    at <= now && now - at < seconds
}

/// All but the dates.
fn says_same(one: &Event, other: &Event) -> bool {
    let tags = |event: &Event| -> Vec<Vec<String>> {
        let dated = |tag: &&Tag| tag.kind() != TagKind::Expiration;
        event.tags.iter().filter(dated).map(|tag| tag.as_slice().to_vec()).collect()
    };
    one.kind == other.kind && one.content == other.content && tags(one) == tags(other)
}

/// The status in words: totals only. The rate is rounded, so that its jitter is no news.
fn describe(status: &Status) -> String {
    let Some(rate) = status.rate.map(rounded) else {
        return match status.open_jobs {
            0 => "no request is open; my speed is not known now".to_owned(),
            1 => "1 request is open; my speed is not known now".to_owned(),
            jobs => format!("{jobs} requests are open; my speed is not known now"),
        };
    };
    let doing = match status.open_jobs {
        0 => "ready for requests".to_owned(),
        1 => "searching for 1 request".to_owned(),
        jobs => format!("searching for {jobs} requests"),
    };
    let seconds: Vec<String> = TOLD.iter().map(|&characters| expected(characters, rate)).collect();
    format!("{doing}; {rate} keys tested; 6, 7, 8 characters take about {} s", seconds.join(", "))
}

/// Two digits.
fn rounded(Rate(rate): Rate) -> Rate {
    let unit = 10f64.powf(rate.max(1.0).log10().floor() - 1.0);
    Rate((rate / unit).round() * unit)
}

/// Expected seconds, with two digits at least; no finer than hundredths.
fn expected(characters: u32, Rate(rate): Rate) -> String {
    let seconds = Difficulty::from_bits(5 * characters).candidates() / rate;
    match seconds {
        ..0.01 => "0.01".to_owned(),
        ..1.0 => format!("{seconds:.2}"),
        ..10.0 => format!("{seconds:.1}"),
        _ => format!("{seconds:.0}"),
    }
}

/// A day in words; `None` for one on which nothing happened.
fn describe_day(day: &DayFigures) -> Option<String> {
    let DayFigures { candidates, accepted, delivered } = *day;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_tells_rate_jobs_and_times() {
        let text = |rate: Option<f64>, open_jobs| describe(&Status { rate: rate.map(Rate), open_jobs });
        insta::assert_snapshot!(text(Some(110.2e9), 3), @"searching for 3 requests; 110 G/s keys tested; 6, 7, 8 characters take about 0.01, 0.31, 10.0 s");
        insta::assert_snapshot!(text(Some(84.9e6), 0), @"ready for requests; 85.0 M/s keys tested; 6, 7, 8 characters take about 13, 404, 12935 s");
        insta::assert_snapshot!(text(None, 1), @"1 request is open; my speed is not known now");
        assert_eq!(text(Some(110.2e9), 1), text(Some(109.8e9), 1), "jitter is no news");
    }

    #[test]
    fn a_day_is_told_in_totals_and_a_quiet_one_is_not() {
        let day = DayFigures { candidates: 9_400_000_000_000_000, accepted: 41, delivered: 1 };
        insta::assert_snapshot!(describe_day(&day).unwrap(), @"Yesterday: 41 requests accepted, 1 key delivered, 9.40e15 keys tested. Send me a prefix by private message and I find you an npub that starts with it.");
        assert_eq!(describe_day(&DayFigures { candidates: 5, ..DayFigures::default() }), None);
    }
}
