//! What our relays say in words, and what they show of the time, for the operator.

use super::error::escape_for_log;
use nostr_sdk::message::MachineReadablePrefix;
use nostr_sdk::{RelayMessage, RelayUrl};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Difference between the wall clock and the monotonic one after which a comparison is void.
const MAX_DRIFT: Duration = Duration::from_secs(30);

/// The last words of a relay: a refusal or a notice.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RelayWords {
    /// `CLOSED`, `OK false` (also to a proof of the bot's key) or `NOTICE`, then the relay's reason,
    /// cut and escaped.
    pub text: String,
    /// Whether the relay closed the subscription to messages for the bot, and has not taken it up
    /// again.
    pub refuses_inbox: bool,
}

/// What our relays tell. Cheap to clone; clones share it.
#[derive(Clone, Debug, Default)]
pub(in crate::nostr) struct RelayReports(Arc<Mutex<Reports>>);

#[derive(Debug, Default)]
struct Reports {
    words: HashMap<RelayUrl, RelayWords>,
    /// The clock of each relay, by its host, when it was connected.
    relay_clocks: HashMap<String, ClockReading>,
}

/// Another clock, compared with ours.
#[derive(Clone, Copy, Debug)]
struct ClockReading {
    /// Seconds by which the other is ahead.
    ahead: i64,
    ours: SystemTime,
    at: Instant,
}

impl ClockReading {
    fn now(ahead: i64) -> ClockReading {
        ClockReading { ahead, ours: SystemTime::now(), at: Instant::now() }
    }

    /// The difference, unless our clock was set or the machine slept since.
    fn valid(self) -> Option<i64> {
        let by_clock = self.ours.elapsed().ok()?;
        (by_clock.abs_diff(self.at.elapsed()) < MAX_DRIFT).then_some(self.ahead)
    }
}

impl RelayReports {
    /// Records what a relay of ours says. `is_inbox`: whether a subscription is the inbox's.
    pub fn hear(&self, url: &RelayUrl, message: &RelayMessage<'_>, is_inbox: impl Fn(&str) -> bool) {
        let (kind, reason, refuses_inbox) = match message {
            RelayMessage::Closed { subscription_id, message } => {
                ("CLOSED", message.as_ref(), is_inbox(subscription_id.as_str()))
            }
            // Another copy of an event that the relay has.
            RelayMessage::Ok { status: false, message, .. }
                if MachineReadablePrefix::parse(message) != Some(MachineReadablePrefix::Duplicate) =>
            {
                ("OK false", message.as_ref(), false)
            }
            RelayMessage::Notice(text) => ("NOTICE", text.as_ref(), false),
            RelayMessage::EndOfStoredEvents(id) if is_inbox(id.as_str()) => {
                self.lock().words.remove(url);
                return;
            }
            _ => return,
        };
        let mut reports = self.lock();
        let refuses_inbox = refuses_inbox || reports.words.get(url).is_some_and(|words| words.refuses_inbox);
        let text = escape_for_log(format!("{kind} {reason}")).trim_end().to_owned();
        if reports.words.get(url).is_none_or(|words| words.text != text) {
            tracing::debug!(relay = %url, text, "a relay says");
        }
        reports.words.insert(url.clone(), RelayWords { text, refuses_inbox });
    }

    /// The last words of a relay.
    pub fn words_of(&self, url: &RelayUrl) -> Option<RelayWords> {
        self.lock().words.get(url).cloned()
    }

    /// Records the seconds by which the clock of a relay is ahead of ours.
    pub fn record_relay_clock(&self, host: &str, ahead: i64) {
        let mut reports = self.lock();
        // Our own relays only, so the number of hosts has a bound.
        reports.relay_clocks.insert(host.to_owned(), ClockReading::now(ahead));
    }

    /// Seconds by which our clock is behind those of our relays, negative if it is ahead: the median.
    /// `None` if no relay has told.
    pub fn clock_behind(&self) -> Option<i64> {
        let reports = self.lock();
        let mut clocks: Vec<i64> = reports.relay_clocks.values().filter_map(|clock| clock.valid()).collect();
        clocks.sort_unstable();
        clocks.get(clocks.len() / 2).copied()
    }

    fn lock(&self) -> MutexGuard<'_, Reports> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nostr_sdk::{EventId, SubscriptionId};

    #[test]
    fn a_relays_words_stay_until_it_takes_the_subscription() {
        let (reports, url) = (RelayReports::default(), RelayUrl::parse("wss://a.example").unwrap());
        let hear = |message| reports.hear(&url, &message, |id| id == "inbox");
        let inbox = || SubscriptionId::new("inbox");
        hear(RelayMessage::ok(EventId::all_zeros(), false, "duplicate: have it"));
        assert_eq!(reports.words_of(&url), None);
        hear(RelayMessage::ok(EventId::all_zeros(), false, "blocked: pay\n\u{1b}[31m me"));
        let words = reports.words_of(&url).unwrap();
        assert!(words.text.starts_with("OK false blocked: pay\\n\\u{1b}[31m") && !words.refuses_inbox, "{words:?}");
        hear(RelayMessage::closed(SubscriptionId::new("query"), "error: no such kind"));
        assert!(!reports.words_of(&url).unwrap().refuses_inbox);
        hear(RelayMessage::closed(inbox(), "restricted: ".to_owned() + &"x".repeat(1000)));
        hear(RelayMessage::notice("bye"));
        let words = reports.words_of(&url).unwrap();
        assert!(words.text == "NOTICE bye" && words.refuses_inbox, "{words:?}");
        hear(RelayMessage::eose(inbox()));
        assert_eq!(reports.words_of(&url), None);
    }

    #[test]
    fn the_clock_is_compared_with_the_median_of_the_relays() {
        let reports = RelayReports::default();
        assert_eq!(reports.clock_behind(), None);
        for (host, ahead) in [("a", -600), ("b", -598), ("c", 90_000)] {
            reports.record_relay_clock(host, ahead);
        }
        assert_eq!(reports.clock_behind(), Some(-598));
    }
}
