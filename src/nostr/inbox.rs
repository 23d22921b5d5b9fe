//! Gift wraps in: a live stream that is only ever drained, and sweeps that make up for whatever it loses.

use super::NostrError;
use super::checks::{Bucket, Handled, is_recent, is_worth_opening};
use super::opening::{Opened, Openings};
use super::relays::Relays;
use super::sweep;
use super::targets::Directory;
use super::watchdog::Awaited;
use crate::clock::Clock;
use crate::config::Limits;
use crate::fault::{self, Step};
use crate::ids::Asker;
use crate::ledger::Ledger;
use crate::mail::Channel;
use crate::shutdown::Shutdown;
use crate::vault::{Rumor, Vault};
use nostr_sdk::{Event, RelayMessage, RelayPoolNotification, RelayUrl, SubscriptionId};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, broadcast, mpsc};
use tokio::task::{JoinError, JoinSet};

/// Time between two sweeps when nothing seems lost.
const SWEEP_EVERY: Duration = Duration::from_secs(180);
/// How often it is looked whether a relay has come back.
const LOOK: Duration = Duration::from_secs(2);
/// A relay that goes on closing our subscription is asked again this often at last.
const LAST_PAUSE: Duration = Duration::from_secs(60);
/// The name of our subscription.
const SUBSCRIPTION: &str = "inbox";
/// Events that may wait to be opened; more are left to a sweep.
const WAITING: usize = 4096;
/// Kinds of messages that are passed on: text, old (NIP-04) and sealed, files so that they can be declined, and deletions of wishes.
const MESSAGES: [u16; 4] = [4, 5, 14, 15];
/// How long to wait before it is looked up again whether the author of an old message reads sealed ones.
const OLD_PAUSES: [Duration; 4] =
    [Duration::from_secs(5), Duration::from_secs(30), Duration::from_secs(120), Duration::from_secs(420)];

/// A message to the bot that passed every check.
#[derive(Clone, Debug)]
pub struct Inbound {
    pub rumor: Rumor,
    /// Relays where its wrap was seen.
    pub seen_on: Vec<String>,
    /// How it came, and so how its answer goes.
    pub channel: Channel,
    /// Whether its author is known to read sealed messages: always for one that came sealed.
    pub reads_sealed: bool,
}

#[derive(Clone)]
pub struct Inbox {
    pub relays: Relays,
    pub vault: Vault,
    pub ledger: Ledger,
    pub clock: Clock,
    pub limits: Limits,
    pub directory: Arc<Directory>,
    /// Our own letters, with which the watchdog tries the relays.
    pub awaited: Awaited,
    /// The watchdog found a relay deaf.
    pub deaf: Arc<Notify>,
}

/// An event and where it came from.
type Arrival = (RelayUrl, Box<Event>);

/// What became of an event.
enum Outcome {
    /// Passed on, or nothing to answer.
    Done,
    /// The ledger could not be asked: to be fetched again.
    Later,
}

impl Inbox {
    /// Listens until the shutdown. Every message goes into `out`, none is dropped.
    pub async fn run(self, out: mpsc::Sender<Inbound>, mut shutdown: Shutdown) {
        let (arrived, mut arrivals) = mpsc::channel(WAITING);
        let (lost, closed) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        tokio::spawn(drain(self.relays.notifications(), arrived, Arc::clone(&lost), Arc::clone(&closed)));
        self.subscribe().await;

        let mut state = State {
            handled: Handled::default(),
            bucket: Bucket::new(self.limits.wraps_per_second, self.limits.wraps_burst),
        };
        // The next ones are opened while one is attended to; their order is kept.
        let mut openings = Openings::default();
        let mut looks = tokio::time::interval(LOOK);
        let mut swept_at: Option<Instant> = None;
        let mut connected_before = 0;
        // A relay that closed our subscription (it wanted to know first who we are, say) is asked again after a pause.
        let mut again: Option<Instant> = None;
        let mut pause = LOOK;
        // Every relay is fetched beside the stream: one that says nothing must not make the bot deaf to the others.
        let mut sweep = Sweep::default();
        loop {
            tokio::select! {
                biased;
                () = shutdown.stopped() => return,
                Some(opened) = openings.next() => {
                    if let Outcome::Later = self.attend(&mut state, opened, &out).await {
                        sweep.complete = false;
                        swept_at = None;
                        tokio::time::sleep(LOOK).await;
                    }
                }
                arrival = arrivals.recv(), if openings.have_room() => {
                    let Some((url, event)) = arrival else { return };
                    self.open(&mut state, &mut openings, &url, *event).await;
                }
                () = lost.notified() => {
                    sweep.complete = false;
                    swept_at = None;
                }
                () = closed.notified() => {
                    again = again.or(Some(Instant::now() + pause));
                }
                () = self.deaf.notified() => {
                    self.subscribe().await;
                    sweep.complete = false;
                    swept_at = None;
                }
                Some(fetched) = sweep.fetching.join_next() => {
                    let done = tokio::select! {
                        () = shutdown.stopped() => return,
                        done = self.attend_fetched(&mut state, fetched, &out) => done,
                    };
                    sweep.complete &= done;
                    if sweep.fetching.is_empty() && sweep.complete {
                        self.note_contact(sweep.began);
                        swept_at = Some(Instant::now());
                        pause = LOOK;
                    }
                }
                _ = looks.tick() => {
                    if again.is_some_and(|at| Instant::now() >= at) {
                        again = None;
                        pause = (pause * 2).min(LAST_PAUSE);
                        self.subscribe().await;
                        sweep.complete = false;
                        swept_at = None;
                    }
                    let connected = self.connected().await;
                    if connected > connected_before {
                        // A relay that came back has what was sent while it was away.
                        sweep.complete = false;
                        swept_at = None;
                    }
                    connected_before = connected;
                    let due = swept_at.is_none_or(|at| at.elapsed() >= SWEEP_EVERY);
                    if due && connected > 0 && sweep.fetching.is_empty() {
                        sweep = self.start_sweep();
                    }
                }
            }
        }
    }

    /// Asks the inbox relays for gift wraps, stored and new. The library repeats this after every reconnect.
    async fn subscribe(&self) {
        let since = sweep::since(self.last_contact(), self.clock.now());
        let filter = sweep::filter(&self.relays, since);
        let urls = self.relays.ours(|relay| relay.inbox);
        let id = SubscriptionId::new(SUBSCRIPTION);
        if let Err(error) = self.relays.client().subscribe_with_id_to(urls, id, filter, None).await {
            tracing::warn!(%error, "the inbox relays could not be subscribed yet; they are swept");
        }
    }

    fn last_contact(&self) -> Option<u64> {
        self.ledger.last_contact().unwrap_or_else(|error| {
            tracing::warn!(%error, "the last contact is not known; a week is fetched");
            None
        })
    }

    async fn connected(&self) -> usize {
        let mut connected = 0;
        for url in self.relays.ours(|relay| relay.inbox) {
            connected += usize::from(self.relays.is_connected(&url).await);
        }
        connected
    }

    /// Asks every inbox relay for all that may have been missed.
    fn start_sweep(&self) -> Sweep {
        let began = self.clock.now();
        let since = sweep::since(self.last_contact(), began);
        let mut fetching = JoinSet::new();
        for url in self.relays.ours(|relay| relay.inbox) {
            let relays = self.relays.clone();
            fetching.spawn(async move {
                let events = sweep::fetch_all(&relays, &url, since).await;
                (url, events)
            });
        }
        Sweep { began, complete: true, fetching }
    }

    /// Attends to what one relay had. `false` when something is left to fetch.
    async fn attend_fetched(
        &self,
        state: &mut State,
        fetched: Result<Fetched, JoinError>,
        out: &mpsc::Sender<Inbound>,
    ) -> bool {
        let (url, events) = match fetched {
            Ok((url, Ok(events))) => (url, events),
            Ok((_, Err(error))) => {
                tracing::debug!(%error, "a sweep is incomplete");
                return false;
            }
            Err(error) => {
                tracing::error!(%error, "fetching from a relay panicked");
                return false;
            }
        };
        let (mut complete, mut openings) = (true, Openings::default());
        let mut events = events.into_iter();
        loop {
            while openings.have_room()
                && let Some(event) = events.next()
            {
                self.open(state, &mut openings, &url, event).await;
            }
            let Some(opened) = openings.next().await else { return complete };
            complete &= matches!(self.attend(state, opened, out).await, Outcome::Done);
        }
    }

    /// Only when every inbox relay was heard: one that is away may hold what the others do not.
    fn note_contact(&self, at: u64) {
        fault::before(Step::MoveCursor);
        if let Err(error) = self.ledger.set_last_contact(at) {
            tracing::warn!(%error, "the last contact could not be noted");
        }
        fault::after(Step::MoveCursor);
    }

    /// Begins to open an event that is worth it; whatever else it is, it is dealt with.
    async fn open(&self, state: &mut State, openings: &mut Openings, url: &RelayUrl, event: Event) {
        let id = event.id.to_bytes();
        if self.awaited.arrived(&id) {
            state.handled.insert(id);
        } else if !state.handled.contains(&id) && is_worth_opening(&event, &self.relays.bot()) {
            fault::before(Step::Receive);
            tokio::time::sleep(state.bucket.take(Instant::now())).await;
            fault::after(Step::Receive);
            // From now on: the same event from another relay is not opened beside it.
            state.handled.insert(id);
            openings.begin(&self.vault, url, event);
        }
    }

    async fn attend(&self, state: &mut State, opened: Opened, out: &mpsc::Sender<Inbound>) -> Outcome {
        let Opened { id, url, is_old, rumor } = opened;
        let Some(rumor) = rumor else { return Outcome::Done };
        let url = &url;
        match self.is_to_be_answered(&rumor) {
            Ok(true) if is_old => {
                self.look_up_and_pass(rumor, url, out);
            }
            Ok(true) => {
                let inbound =
                    Inbound { rumor, seen_on: vec![url.to_string()], channel: Channel::Sealed, reads_sealed: true };
                if out.send(inbound).await.is_err() {
                    // Nobody takes messages any more: the end is near, and the relay keeps this one.
                    return Outcome::Done;
                }
            }
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "a message waits until the ledger can be asked");
                state.handled.forget(&id);
                return Outcome::Later;
            }
        }
        Outcome::Done
    }

    /// How an old message is answered depends on whether its author reads sealed ones: looked up beside the stream, which
    /// does not wait. Where nobody can be asked, the next sweep brings the message again after a restart, at the latest.
    fn look_up_and_pass(&self, rumor: Rumor, url: &RelayUrl, out: &mpsc::Sender<Inbound>) {
        let (relays, directory, out) = (self.relays.clone(), Arc::clone(&self.directory), out.clone());
        let seen_on = vec![url.to_string()];
        tokio::spawn(async move {
            for pause in OLD_PAUSES {
                if let Some(reads_sealed) = directory.has_dm_relays(&relays, rumor.author, &seen_on).await {
                    let _ = out.send(Inbound { rumor, seen_on, channel: Channel::Nip04, reads_sealed }).await;
                    return;
                }
                tokio::time::sleep(pause).await;
            }
            // Nobody could say in ten minutes: as good as no.
            let _ = out.send(Inbound { rumor, seen_on, channel: Channel::Nip04, reads_sealed: false }).await;
        });
    }

    fn is_to_be_answered(&self, rumor: &Rumor) -> Result<bool, crate::ledger::LedgerError> {
        let from_us = rumor.author == Asker(self.relays.bot().to_bytes());
        if from_us || !MESSAGES.contains(&rumor.kind) || !is_recent(rumor.created_at, self.clock.now()) {
            return Ok(false);
        }
        Ok(!self.ledger.has_seen(rumor.author, rumor.id)?)
    }
}

/// What one relay had.
type Fetched = (RelayUrl, Result<Vec<Event>, NostrError>);

/// A sweep under way, or the one before.
#[derive(Default)]
struct Sweep {
    began: u64,
    /// Whether nothing was missed so far.
    complete: bool,
    fetching: JoinSet<Fetched>,
}

struct State {
    handled: Handled,
    bucket: Bucket,
}

/// Does nothing but forward: a slow reader of the library's stream loses events that are never announced again.
async fn drain(
    mut notifications: broadcast::Receiver<RelayPoolNotification>,
    arrived: mpsc::Sender<Arrival>,
    lost: Arc<Notify>,
    closed: Arc<Notify>,
) {
    loop {
        match notifications.recv().await {
            Ok(RelayPoolNotification::Event { relay_url, event, .. }) => match arrived.try_send((relay_url, event)) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(_)) => lost.notify_one(),
                Err(mpsc::error::TrySendError::Closed(_)) => return,
            },
            Ok(RelayPoolNotification::Message { message: RelayMessage::Closed { subscription_id, .. }, .. })
                if subscription_id.as_str() == SUBSCRIPTION =>
            {
                closed.notify_one();
            }
            Ok(RelayPoolNotification::Shutdown) | Err(broadcast::error::RecvError::Closed) => return,
            Ok(_) => {}
            Err(broadcast::error::RecvError::Lagged(count)) => {
                tracing::debug!(count, "the stream ran over; sweeping");
                lost.notify_one();
            }
        }
    }
}
