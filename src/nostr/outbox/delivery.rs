//! Stored wraps out: each as it lies in the ledger, to its asker's relays, again and again until they have it.

use crate::clock::Clock;
use crate::config::BotConfig;
use crate::fault::{self, Step};
use crate::ledger::{Attempt, DueMessage, Ledger, MessageId, Next};
use crate::nostr::NostrError;
use crate::nostr::relay::connections::Relays;
use crate::nostr::relay::relay_lists::{Care, RelayLists, Targets};
use crate::shutdown::Shutdown;
use nostr_sdk::{Event, JsonUtil, Kind, RelayUrl};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::{Id, JoinHandle, JoinSet};

/// Letters under way at once: more than a relay that says nothing can take up before that is noticed.
const AT_ONCE: usize = 512;
/// How long attempts that have ended wait for others, to be noted together.
const GATHER: Duration = Duration::from_millis(10);
/// The longest sleep: a clock may be set meanwhile.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// The wait after each attempt, in seconds; the last one repeats.
const PAUSES: [u64; 7] = [3, 10, 30, 60, 300, 900, 3600];
/// An asker nobody reached for so long, in seconds, is given up.
const GIVE_UP_AFTER: u64 = 14 * 86_400;
/// How long the read relays of somebody without DM relays are waited for, before the letter goes where theirs was seen.
const FIRST_CHOICE: Duration = Duration::from_secs(3);
/// Attempts for the relays that are left once one of them has the letter.
const ATTEMPTS_FOR_THE_REST: u32 = 3;

#[derive(Clone)]
pub struct Outbox {
    pub relays: Relays,
    pub ledger: Ledger,
    pub clock: Clock,
    pub bot: BotConfig,
    pub directory: Arc<RelayLists>,
}

impl Outbox {
    /// Sends what is due until the shutdown; `wake` says that something new is.
    pub async fn run(self, wake: Arc<Notify>, mut shutdown: Shutdown) {
        let courier = Arc::new(Courier {
            relays: self.relays,
            ledger: self.ledger,
            clock: self.clock,
            bot: self.bot,
            directory: self.directory,
        });
        // Until what became of them is noted.
        let mut under_way: HashSet<MessageId> = HashSet::new();
        let mut letters: HashMap<Id, DueMessage> = HashMap::new();
        let mut sending: JoinSet<Attempt> = JoinSet::new();
        let mut notes = Notes::new(Arc::clone(&courier));
        // When it is to be looked for letters that are due: reading them costs as much as sending a few.
        let mut look_at = Instant::now();
        loop {
            fault::before(Step::Round);
            if Instant::now() >= look_at {
                let has_room = under_way.len() < AT_ONCE;
                for mail in if has_room { courier.due(AT_ONCE) } else { Vec::new() } {
                    if under_way.len() < AT_ONCE && under_way.insert(mail.id) {
                        let (courier, letter) = (Arc::clone(&courier), mail.clone());
                        let task = sending.spawn(async move { courier.attempt(&letter).await });
                        letters.insert(task.id(), mail);
                    }
                }
                courier.relays.leave_idle_strangers().await;
                look_at = Instant::now() + courier.until_next_due();
            }
            let all_have_ended = sending.is_empty();
            fault::after(Step::Round);
            tokio::select! {
                () = shutdown.stopped() => return notes.finish().await,
                () = wake.notified() => look_at = Instant::now(),
                Some(ended) = sending.join_next_with_id() => {
                    let (task, attempt) = match ended {
                        Ok((task, attempt)) => (task, Some(attempt)),
                        Err(error) => (error.id(), None),
                    };
                    if let Some(mail) = letters.remove(&task) {
                        notes.add(attempt.unwrap_or_else(|| {
                            // As one that nobody took: the other letters do not wait for it.
                            tracing::error!(mail = mail.id.0, "sending a letter panicked; it is tried again");
                            Attempt { message: mail.id, reached: Vec::new(), next: courier.next(&mail, 0, 0) }
                        }));
                    }
                }
                noted = notes.next(all_have_ended) => {
                    let was_full = under_way.len() == AT_ONCE;
                    if was_full {
                        look_at = Instant::now();
                    } else if noted.iter().any(|attempt| attempt.next != Next::Finished) {
                        look_at = look_at.min(Instant::now() + courier.until_next_due());
                    }
                    for attempt in noted {
                        under_way.remove(&attempt.message);
                    }
                }
                () = tokio::time::sleep_until(look_at.into()) => {}
            }
        }
    }
}

/// Attempts that have ended, noted together: each note waits for the disk, and acceptances (T1) wait behind it.
struct Notes {
    courier: Arc<Courier>,
    ended: Vec<Attempt>,
    /// When they are noted, whatever else is under way.
    at: Instant,
    noting: Option<(Vec<Attempt>, JoinHandle<()>)>,
}

impl Notes {
    fn new(courier: Arc<Courier>) -> Notes {
        Notes { courier, ended: Vec::new(), at: Instant::now(), noting: None }
    }

    fn add(&mut self, attempt: Attempt) {
        if self.ended.is_empty() {
            self.at = Instant::now() + GATHER;
        }
        self.ended.push(attempt);
    }

    /// The next that were noted; waits for ever while there is nothing to note. May be given up at any time.
    async fn next(&mut self, all_have_ended: bool) -> Vec<Attempt> {
        if self.noting.is_none() {
            if self.ended.is_empty() {
                return std::future::pending().await;
            }
            if !all_have_ended {
                tokio::time::sleep_until(self.at.into()).await;
            }
            let (courier, ended) = (Arc::clone(&self.courier), std::mem::take(&mut self.ended));
            let attempts = ended.clone();
            self.noting = Some((ended, tokio::task::spawn_blocking(move || courier.note(&attempts))));
        }
        if let Some((_, noting)) = &mut self.noting
            && let Err(error) = noting.await
        {
            tracing::error!(%error, "noting attempts panicked; they stay due");
        }
        self.noting.take().map_or_else(Vec::new, |(noted, _)| noted)
    }

    /// Notes what is left.
    async fn finish(mut self) {
        while self.noting.is_some() || !self.ended.is_empty() {
            self.next(true).await;
        }
    }
}

struct Courier {
    relays: Relays,
    ledger: Ledger,
    clock: Clock,
    bot: BotConfig,
    directory: Arc<RelayLists>,
}

impl Courier {
    fn due(&self, limit: usize) -> Vec<DueMessage> {
        self.ledger.due_messages(limit).unwrap_or_else(|error| {
            tracing::warn!(%error, "the outbox cannot be read yet");
            Vec::new()
        })
    }

    /// What could not be noted stays due.
    fn note(&self, attempts: &[Attempt]) {
        if let Err(error) = self.ledger.note_attempts(attempts) {
            tracing::warn!(%error, "attempts could not be noted");
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn until_next_due(&self) -> Duration {
        let due = self.ledger.next_due().ok().flatten();
        let wait = due.map_or(LOOK_AGAIN, |due| Duration::from_secs(due.saturating_sub(self.clock.now())));
        // What is due already is under way, or the ledger failed: not at once again.
        wait.clamp(Duration::from_millis(200), LOOK_AGAIN)
    }

    /// Sends a letter once to whoever does not have it; says what is to be noted.
    async fn attempt(&self, mail: &DueMessage) -> Attempt {
        let Ok(event) = Event::from_json(&mail.wrap.json) else {
            tracing::error!(mail = mail.id.0, "a letter in the outbox is unreadable; it is left out");
            return Attempt { message: mail.id, reached: Vec::new(), next: Next::Finished };
        };
        let targets = if event.kind == Kind::EncryptedDirectMessage {
            self.directory.open_targets(&self.relays, mail.wrap.to, &mail.seen_on).await
        } else {
            let fall_back = self.bot.answer_without_relay_list;
            let care = Care { fresh: mail.result_of.is_some(), attempts: mail.attempts, fall_back };
            self.directory.targets(&self.relays, mail.wrap.to, &mail.seen_on, care).await
        };
        let (first, then) = match targets {
            Targets::Listed(urls) => (urls, Vec::new()),
            Targets::Fallback { first, then } => {
                tracing::info!(mail = mail.id.0, "its receiver lists no DM relays; sent where they read, or wrote");
                (first, then)
            }
            Targets::Nowhere | Targets::CouldNotLook => Default::default(),
        };
        let Published { tried, reached, refused } = self.publish(mail, &event, first, then).await;
        let has = |url: &RelayUrl| reached.iter().chain(&mail.acknowledged_by).any(|known| *known == url.to_string());
        let reached_now_or_before = tried.iter().filter(|url| has(url)).count();
        let next = self.next(mail, reached_now_or_before, tried.len() - refused);
        Attempt { message: mail.id, reached, next }
    }

    fn next(&self, mail: &DueMessage, reached: usize, of: usize) -> Next {
        let complete = reached > 0 && reached >= of;
        let enough = reached > 0 && mail.attempts + 1 >= ATTEMPTS_FOR_THE_REST;
        if complete || enough {
            return Next::Finished;
        }
        if reached == 0 {
            self.directory.doubt(mail.wrap.to);
        }
        let now = self.clock.now();
        if now.saturating_sub(mail.queued_at) > GIVE_UP_AFTER {
            tracing::warn!(mail = mail.id.0, job = ?mail.result_of, "given up: no relay of its receiver took it in 14 days");
            return Next::Finished;
        }
        Next::Again(now + pause_after(mail.attempts))
    }

    /// Sends to every relay of `first` that has not acknowledged yet, all at once; if none of them takes it soon, to those of
    /// `then` as well.
    async fn publish(
        &self,
        mail: &DueMessage,
        event: &Event,
        first: Vec<RelayUrl>,
        mut then: Vec<RelayUrl>,
    ) -> Published {
        let mut sending = JoinSet::new();
        if mail.result_of.is_some() {
            fault::before(Step::Send);
        }
        self.send(&mut sending, mail, event, &first);
        if first.iter().any(|url| mail.acknowledged_by.contains(&url.to_string())) {
            then.clear();
        }
        let mut published = Published { tried: first, ..Published::default() };
        let patience = tokio::time::sleep(FIRST_CHOICE);
        tokio::pin!(patience);
        loop {
            let sent = tokio::select! {
                sent = sending.join_next() => sent,
                () = &mut patience, if !then.is_empty() => None,
            };
            match sent {
                None if then.is_empty() => return published,
                None => {
                    self.send(&mut sending, mail, event, &then);
                    published.tried.append(&mut then);
                }
                Some(Ok((url, Ok(())))) => {
                    then.clear();
                    // A key that has arrived is delivered, whatever the slower relays do. Other letters can wait for them.
                    if mail.result_of.is_some()
                        && !sending.is_empty()
                        && let Err(error) = self.ledger.acknowledge(mail.id, &url.to_string())
                    {
                        tracing::warn!(%error, "a delivery is noted later");
                    }
                    published.reached.push(url.to_string());
                }
                Some(Ok((url, Err(NostrError::Refused { reason, .. })))) => {
                    tracing::warn!(mail = mail.id.0, %url, reason, "a relay of its receiver refuses a letter and is left out");
                    published.refused += 1;
                }
                Some(Ok((_, Err(error)))) => tracing::debug!(mail = mail.id.0, %error, "not delivered there yet"),
                Some(Err(error)) => tracing::error!(mail = mail.id.0, %error, "sending panicked"),
            }
        }
    }

    /// Starts to send to those that have not acknowledged yet.
    fn send(&self, sending: &mut JoinSet<Sent>, mail: &DueMessage, event: &Event, urls: &[RelayUrl]) {
        let is_result = mail.result_of.is_some();
        for url in urls.iter().filter(|url| !mail.acknowledged_by.contains(&url.to_string())).cloned() {
            let (relays, event) = (self.relays.clone(), event.clone());
            sending.spawn(async move {
                let sent = relays.publish(&url, &event).await;
                if sent.is_ok() && is_result {
                    fault::after(Step::Send);
                }
                (url, sent)
            });
        }
    }
}

/// What one relay said.
type Sent = (RelayUrl, Result<(), NostrError>);

/// What came of sending a letter once.
#[derive(Default)]
struct Published {
    /// Relays it is meant for, those included that have it from before.
    tried: Vec<RelayUrl>,
    /// Those that say OK now.
    reached: Vec<String>,
    /// How many will never take this letter.
    refused: usize,
}

/// Seconds to wait after the attempt that follows `attempts` others, with up to a quarter of jitter, so that a relay
/// that returns is not stormed.
fn pause_after(attempts: u32) -> u64 {
    let pause = PAUSES[(attempts as usize).min(PAUSES.len() - 1)];
    let mut random = [0u8; 2];
    // Without randomness there is no jitter, and that does no harm.
    let _ = getrandom::fill(&mut random);
    pause + u64::from(u16::from_le_bytes(random)) * (pause / 4) / u64::from(u16::MAX)
}
