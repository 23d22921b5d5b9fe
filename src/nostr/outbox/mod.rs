//! Sends the gift wraps that the ledger stores, unchanged, until their askers' relays have them.

mod delivery;

use super::relay::connections::Relays;
use super::relay::error::{NostrError, escape_for_log};
use super::relay::published::{LookupOptions, RelayLists, nip04_destination};
use super::relay::slots::Visitor;
use crate::clock::Clock;
use crate::config::BotConfig;
use crate::fault;
use crate::ledger::{Attempt, DueMessage, Ledger};
use crate::log_writer::LogLimit;
use nostr_sdk::{Event, JsonUtil, Kind, RelayUrl};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// The pause after each attempt, in seconds; the last one repeats. It is a table, because the
/// ledger stores the number of attempts.
const PAUSES: [u64; 7] = [3, 10, 30, 60, 300, 900, 3600];
/// Seconds after which a key that no relay accepted is given up.
const GIVE_UP_AFTER: u64 = 14 * 86_400;
/// The fewest attempts before a key is given up. A clock that is ahead for a while makes the 14
/// days seem over, but does not make the attempts. With a right clock there are some 300 in 14
/// days.
const LEAST_ATTEMPTS: u32 = 100;
/// Attempts after which a message that has no key is given up, so that nobody can use the bot to
/// knock at a host for days. They take some hours.
const MAX_ATTEMPTS_WITHOUT_KEY: u32 = 10;
/// Number of attempts after which a message that one relay has is not sent to the others again.
/// Attempts before that relay accepted it count too.
const ATTEMPTS_FOR_THE_REST: u32 = 3;

/// This and the next limit log lines that askers can cause, to one a minute each.
static REFUSED: LogLimit = LogLimit::new();
static GIVEN_UP: LogLimit = LogLimit::new();

/// Delivers stored messages.
#[derive(Clone)]
pub struct Outbox {
    /// The connections to relays.
    pub relays: Relays,
    /// The ledger with the messages.
    pub ledger: Ledger,
    /// The clock that decides when messages are due.
    pub clock: Clock,
    /// The bot's settings. They say whether askers without relay lists are answered.
    pub bot: BotConfig,
    /// The relay lists, which say where askers can be reached.
    pub relay_lists: Arc<RelayLists>,
}

impl Outbox {
    /// Sends a message to those of its asker's relays that do not have it. `cancel` ends the
    /// attempt early.
    pub(super) async fn attempt(&self, message: &Arc<DueMessage>, cancel: &Notify) -> Attempt {
        let first = message.wrap.events().next().unwrap_or_default();
        let Ok(kind) = Event::from_json(first).map(|event| event.kind) else {
            tracing::error!(message = message.id.0, "a message in the outbox is unreadable; it is skipped");
            return Attempt { message: message.id, reached: Vec::new(), again_at: None };
        };
        let urls = tokio::select! {
            urls = self.destination(message, kind) => urls,
            () = cancel.notified() => Vec::new(),
        };
        let (reached, refused) = self.publish(message, &urls, cancel).await;
        let has = |url: &RelayUrl| {
            let url = url.to_string();
            reached.contains(&url) || message.acknowledged_by.contains(&url)
        };
        let have_it = urls.iter().filter(|url| has(url)).count();
        let again_at = self.again_at(message, have_it, urls.len() - refused);
        Attempt { message: message.id, reached, again_at }
    }

    async fn destination(&self, message: &DueMessage, kind: Kind) -> Vec<RelayUrl> {
        let (asker, seen_on) = (message.wrap.to, &message.seen_on);
        if kind == Kind::EncryptedDirectMessage {
            return nip04_destination(&self.relays, seen_on);
        }
        let options = LookupOptions {
            fresh: message.result_of.is_some(),
            attempts: message.attempts,
            fall_back: self.bot.answer_without_relay_list,
        };
        self.relay_lists.destination(&self.relays, asker, seen_on, options).await
    }

    /// When there is another attempt, Unix seconds, if `reached` of `of` relays have the message.
    pub(super) fn again_at(&self, message: &DueMessage, reached: usize, of: usize) -> Option<u64> {
        let complete = reached > 0 && reached >= of;
        let enough = reached > 0 && message.attempts + 1 >= ATTEMPTS_FOR_THE_REST;
        if complete || enough {
            return None;
        }
        if reached == 0 {
            self.relay_lists.invalidate(message.wrap.to);
        }
        let now = self.clock.now();
        let (age, attempts) = (now.saturating_sub(message.queued_at), message.attempts + 1);
        let is_given_up = match message.result_of {
            Some(_) => age > GIVE_UP_AFTER && attempts > LEAST_ATTEMPTS,
            None => attempts >= MAX_ATTEMPTS_WITHOUT_KEY,
        };
        if is_given_up {
            if let Some(job) = message.result_of
                && let Some(skipped) = GIVEN_UP.next(Instant::now())
            {
                let message = message.id.0;
                tracing::warn!(message, ?job, skipped, "given up: no relay of its asker accepted it in 14 days");
            }
            return None;
        }
        Some(now + pause_after(message.attempts))
    }

    /// Sends a message to these relays at once. Returns those that accepted it now, and the number of
    /// those that never will.
    async fn publish(&self, message: &Arc<DueMessage>, urls: &[RelayUrl], cancel: &Notify) -> (Vec<String>, usize) {
        if message.result_of.is_some() {
            fault::before("send");
        }
        let (mut sending, mut reached, mut refused) = (self.send(message, urls), Vec::new(), 0);
        loop {
            let sent = tokio::select! {
                sent = sending.join_next() => sent,
                // Another message needs the place. This counts as an attempt.
                () = cancel.notified() => None,
            };
            match sent {
                None => return (reached, refused),
                Some(Ok((url, Ok(())))) => {
                    // A key counts as delivered with the first OK, so that is recorded at once.
                    // Other messages are recorded at the end of the attempt.
                    if message.result_of.is_some()
                        && !sending.is_empty()
                        && let Err(error) = self.ledger.acknowledge(message.id, &url.to_string())
                    {
                        tracing::warn!(%error, "a delivery is recorded later");
                    }
                    reached.push(url.to_string());
                }
                Some(Ok((url, Err(NostrError::Refused { reason, .. })))) => {
                    if let Some(skipped) = REFUSED.next(Instant::now()) {
                        let (message, url) = (message.id.0, escape_for_log(url));
                        tracing::warn!(message, url, reason, skipped, "a relay refuses a message and is left out");
                    }
                    refused += 1;
                }
                Some(Ok((_, Err(error)))) => tracing::debug!(message = message.id.0, %error, "not delivered yet"),
                Some(Err(error)) => tracing::error!(message = message.id.0, %error, "sending panicked"),
            }
        }
    }

    /// Starts to send to the relays that have not acknowledged the message yet.
    fn send(&self, message: &Arc<DueMessage>, urls: &[RelayUrl]) -> JoinSet<(RelayUrl, Result<(), NostrError>)> {
        let mut sending = JoinSet::new();
        let is_result = message.result_of.is_some();
        let visitor = Visitor { asker: message.wrap.to, urgent: message.urgent, retries: message.attempts > 0 };
        for url in urls.iter().filter(|url| !message.acknowledged_by.contains(&url.to_string())).cloned() {
            let (relays, message) = (self.relays.clone(), Arc::clone(message));
            sending.spawn(async move {
                let mut sent = Ok(());
                for (at, event) in message.wrap.events().enumerate() {
                    if at > 0 {
                        fault::before("sendkey");
                    }
                    sent = relays.publish_for(&url, event, visitor).await;
                    if sent.is_err() {
                        break;
                    }
                    if at > 0 {
                        fault::after("sendkey");
                    }
                }
                if sent.is_ok() && is_result {
                    fault::after("send");
                }
                (url, sent)
            });
        }
        sending
    }
}

/// Seconds to wait after an attempt, with up to a quarter of jitter, so that a returning relay does
/// not get everything at once. `attempts`: number of attempts before this one.
fn pause_after(attempts: u32) -> u64 {
    let pause = PAUSES[(attempts as usize).min(PAUSES.len() - 1)];
    let mut random = [0u8; 2];
    // Without randomness there is no jitter, which does no harm.
    let _ = getrandom::fill(&mut random);
    pause + u64::from(u16::from_le_bytes(random)) * (pause / 4) / u64::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::job::{Asker, JobId};
    use crate::ledger::MessageId;
    use crate::message::GiftWrap;
    use crate::nostr::relay::connections::Reach;
    use crate::nostr::tests::{PATIENCE, accept, listen, ours, unconnected};
    use futures_util::FutureExt;
    use nostr_sdk::{EventBuilder, Keys};

    async fn outbox(relays: Relays, clock: Clock) -> (Outbox, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(folder.path(), Clock::System).unwrap();
        let bot = Config::embedded_default().unwrap().bot;
        (Outbox { relays, ledger, clock, bot, relay_lists: Arc::default() }, folder)
    }

    fn message(result_of: Option<JobId>, attempts: u32) -> Arc<DueMessage> {
        let json = EventBuilder::text_note("").sign_with_keys(&Keys::generate()).unwrap().as_json();
        let to = Asker(Keys::generate().public_key().to_bytes());
        Arc::new(DueMessage {
            id: MessageId(1),
            result_of,
            urgent: false,
            wrap: GiftWrap { id: [0; 32], to, json, expires_at: 0 },
            queued_at: Clock::System.now(),
            attempts,
            seen_on: Vec::new(),
            acknowledged_by: Vec::new(),
        })
    }

    #[tokio::test]
    async fn a_key_is_given_up_after_many_attempts_and_two_weeks_and_chatter_after_ten() {
        let (key, chatter) = (Some(JobId(1)), None);
        for (result_of, days, attempts, is_given_up) in [
            (key, 365, LEAST_ATTEMPTS - 1, false), // A wrong clock alone gives no key up.
            (key, 365, LEAST_ATTEMPTS, true),
            (key, 13, 1000, false),
            (chatter, 365, 0, false),
            (chatter, 0, MAX_ATTEMPTS_WITHOUT_KEY - 2, false),
            (chatter, 0, MAX_ATTEMPTS_WITHOUT_KEY - 1, true),
        ] {
            let clock = Clock::at(Clock::System.now() + days * 86_400);
            let (outbox, _folder) = outbox(unconnected(&[], Reach::anywhere()).await, clock).await;
            let next = outbox.again_at(&message(result_of, attempts), 0, 1);
            assert_eq!(next.is_none(), is_given_up, "{result_of:?}, {days} days, {attempts} attempts");
        }
    }

    #[tokio::test]
    async fn an_attempt_ends_when_it_is_told_to_while_relay_lists_are_looked_up() {
        // A relay that accepts connections and says nothing more.
        let (listener, url) = listen().await;
        let relays = unconnected(&[ours(&url)], Reach::anywhere()).await;
        let (_socket, connected) = tokio::join!(accept(&listener), relays.wait_for_any(PATIENCE));
        assert_eq!(connected, 1);
        let (outbox, _folder) = outbox(relays, Clock::System).await;
        let cancel = Notify::new();
        cancel.notify_one();
        let attempt = outbox.attempt(&message(None, 0), &cancel).now_or_never().expect("it ends at once");
        assert!(attempt.again_at.is_some() && attempt.reached.is_empty());
        outbox.relays.disconnect().await;
    }
}
