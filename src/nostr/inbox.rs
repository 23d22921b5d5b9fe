//! Gift wraps in: a live stream that is only ever drained, and sweeps that make up for whatever it loses.

use super::checks::{Bucket, Handled, is_recent, is_worth_opening};
use super::flood::Flood;
use super::lanes::{self, Arrival, Lanes, Source};
use super::lookups::LookUps;
use super::opening::{Opened, Openings};
use super::relays::Relays;
use super::sweep;
use super::targets::Directory;
use super::watchdog::Awaited;
use super::{NostrError, wait_until};
use crate::clock::Clock;
use crate::config::Limits;
use crate::fault::{self, Step};
use crate::ids::Asker;
use crate::ledger::Ledger;
use crate::mail::Channel;
use crate::shutdown::Shutdown;
use crate::vault::{Rumor, Vault};
use nostr_sdk::SubscriptionId;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

/// Time between two sweeps when nothing seems lost.
const SWEEP_EVERY: Duration = Duration::from_secs(180);
/// How often it is looked whether a relay has come back.
const LOOK: Duration = Duration::from_secs(2);
/// A relay that goes on closing our subscription is asked again this often at last.
const LAST_PAUSE: Duration = Duration::from_secs(60);
/// The name of our subscription.
const SUBSCRIPTION: &str = "inbox";
/// While wraps run over, what the relays hold is not fetched before this long has passed without: it would run over too.
const LULL: Duration = Duration::from_secs(5);
/// Kinds of messages that are passed on: text, old (NIP-04) and sealed, files so that they can be declined, and deletions of wishes.
const MESSAGES: [u16; 4] = [4, 5, 14, 15];
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
    /// Whether its outermost event has the proof of work that floods make dear.
    pub paid: bool,
}

#[derive(Clone)]
pub struct Inbox {
    pub relays: Relays,
    pub vault: Vault,
    pub ledger: Ledger,
    pub clock: Clock,
    pub limits: Limits,
    pub flood: Flood,
    pub directory: Arc<Directory>,
    /// Our own letters, with which the watchdog tries the relays.
    pub awaited: Awaited,
    /// The watchdog found a relay deaf.
    pub deaf: Arc<Notify>,
}

impl Inbox {
    /// Listens until the shutdown. Every message goes into `out`, none is dropped.
    pub async fn run(self, out: mpsc::Sender<Inbound>, mut shutdown: Shutdown) {
        let relays = self.relays.ours(|relay| relay.inbox);
        let source = Source { bot: self.relays.bot(), relays, subscription: SUBSCRIPTION };
        let (entrance, mut lanes) = lanes::open(source, self.flood.clone(), self.awaited.clone());
        let (lost, closed) = (Arc::clone(&entrance.lost), Arc::clone(&entrance.closed));
        let notifications = self.relays.notifications();
        let mut draining = JoinSet::new();
        draining.spawn(entrance.drain(notifications));
        self.subscribe().await;

        let mut state = State {
            handled: Handled::default(),
            bucket: Bucket::new(self.limits.wraps_per_second, self.limits.wraps_burst),
            lookups: LookUps::new(self.relays.clone(), Arc::clone(&self.directory)),
        };
        // The next ones are opened while one is attended to; their order is kept.
        let mut openings = Openings::default();
        let mut looks = tokio::time::interval(LOOK);
        let mut swept_at: Option<Instant> = None;
        let mut ran_over: Option<Instant> = None;
        let mut connected_before = 0;
        // A relay that closed our subscription (it wanted to know first who we are, say) is asked again after a pause.
        let mut again: Option<Instant> = None;
        let mut pause = LOOK;
        // Every relay is fetched beside the stream: one that says nothing must not make the bot deaf to the others.
        let mut sweep = Sweep::default();
        loop {
            // What is rare comes first: a stream that never ends must not put it off.
            tokio::select! {
                biased;
                () = shutdown.stopped() => return,
                () = lost.notified() => {
                    ran_over = Some(Instant::now());
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
                    let lull = ran_over.is_none_or(|at| at.elapsed() >= LULL) || sweep.started.elapsed() >= SWEEP_EVERY;
                    if due && lull && connected > 0 && !sweep.is_running {
                        sweep = self.start_sweep();
                    }
                }
                Some(opened) = openings.next() => {
                    tokio::select! {
                        () = shutdown.stopped() => return,
                        has_room = self.pass_on(&mut state, opened, &out) => {
                            if !has_room {
                                lost.notify_one();
                            }
                        }
                    }
                }
                next = next(&mut lanes, &mut sweep), if openings.have_room() => {
                    let arrival = match next {
                        Next::Live(None) => {
                            // The library is at its end; or the entrance panicked, and then all of this starts anew.
                            if let Some(Err(error)) = draining.join_next().await
                                && error.is_panic()
                            {
                                std::panic::resume_unwind(error.into_panic());
                            }
                            return;
                        }
                        Next::Live(Some(arrival)) | Next::Fetched(Some(arrival)) => arrival,
                        Next::Fetched(None) => {
                            // The contact is noted when all that it brought has been passed on.
                            while let Some(opened) = openings.next().await {
                                tokio::select! {
                                    () = shutdown.stopped() => return,
                                    has_room = self.pass_on(&mut state, opened, &out) => {
                                        if !has_room {
                                            lost.notify_one();
                                            sweep.complete = false;
                                        }
                                    }
                                }
                            }
                            if sweep.end().await {
                                self.note_contact(sweep.began);
                                swept_at = Some(Instant::now());
                                pause = LOOK;
                            }
                            continue;
                        }
                    };
                    tokio::select! {
                        () = shutdown.stopped() => return,
                        () = self.open(&mut state, &mut openings, arrival) => {}
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
        let (fetched, events) = mpsc::channel(1);
        for url in self.relays.ours(|relay| relay.inbox) {
            let (relays, flood, fetched) = (self.relays.clone(), self.flood.clone(), fetched.clone());
            fetching.spawn(async move { sweep::fetch_all(&relays, &url, since, &flood, &fetched).await });
        }
        Sweep { began, started: Instant::now(), complete: true, is_running: true, events, fetching }
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
    async fn open(&self, state: &mut State, openings: &mut Openings, arrival: Arrival) {
        let event = &arrival.event;
        let id = event.id.to_bytes();
        if !state.handled.contains(&id) && is_worth_opening(event, &self.relays.bot()) {
            fault::before(Step::Receive);
            let now = Instant::now();
            wait_until(now + state.bucket.take(now)).await;
            fault::after(Step::Receive);
            // From now on: the same event from another relay is not opened beside it.
            state.handled.insert(id);
            openings.begin(&self.vault, arrival);
        }
    }

    /// Passes a message on; an old one when it is known whether its author reads sealed ones. Whether it was answered before is
    /// the desk's to ask, for all that wait there at once. `false` for an old one that finds no room and is left to a sweep.
    async fn pass_on(&self, state: &mut State, opened: Opened, out: &mpsc::Sender<Inbound>) -> bool {
        let Opened { id, url, is_old, paid, rumor } = opened;
        let Some(rumor) = rumor.filter(|rumor| self.is_message(rumor)) else { return true };
        // An old one that was answered before is no reason to ask the relays; the desk asks for certain.
        if is_old && self.ledger.has_seen(rumor.author, rumor.id).unwrap_or(false) {
            return true;
        }
        let seen_on = vec![url.to_string()];
        let channel = if is_old { Channel::Nip04 } else { Channel::Sealed };
        let inbound = Inbound { rumor, seen_on, channel, reads_sealed: !is_old, paid };
        if !is_old {
            // Where nobody takes messages any more the end is near, and the relay keeps this one.
            let _ = out.send(inbound).await;
            return true;
        }
        let has_room = state.lookups.begin(inbound, out);
        if !has_room {
            state.handled.forget(&id);
        }
        has_room
    }

    /// Whether a rumor is something that may be answered: not by us, of a known kind, and not too old.
    fn is_message(&self, rumor: &Rumor) -> bool {
        let from_us = rumor.author == Asker(self.relays.bot().to_bytes());
        !from_us && MESSAGES.contains(&rumor.kind) && is_recent(rumor.created_at, self.clock.now())
    }
}

/// A sweep under way, or the one before.
struct Sweep {
    began: u64,
    started: Instant,
    /// Whether nothing was missed so far.
    complete: bool,
    is_running: bool,
    /// What the relays had, page by page: they wait until it is attended to.
    events: mpsc::Receiver<Arrival>,
    fetching: JoinSet<Result<(), NostrError>>,
}

impl Default for Sweep {
    fn default() -> Sweep {
        let (_, events) = mpsc::channel(1);
        Sweep { began: 0, started: Instant::now(), complete: true, is_running: false, events, fetching: JoinSet::new() }
    }
}

impl Sweep {
    /// After the last event: whether nothing is left to fetch.
    async fn end(&mut self) -> bool {
        self.is_running = false;
        while let Some(ended) = self.fetching.join_next().await {
            match ended {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => tracing::debug!(%error, "a sweep is incomplete"),
                Err(error) => tracing::error!(%error, "fetching from a relay panicked"),
            }
            self.complete = false;
        }
        self.complete
    }
}

/// What is attended to next.
enum Next {
    /// `None` at the end of all.
    Live(Option<Arrival>),
    /// `None` at the end of the sweep.
    Fetched(Option<Arrival>),
}

/// Who has worked comes first; the others and what a sweep fetched take turns by lot.
async fn next(lanes: &mut Lanes, sweep: &mut Sweep) -> Next {
    let rest = async {
        tokio::select! {
            arrival = lanes.plain.recv() => Next::Live(arrival),
            fetched = sweep.events.recv(), if sweep.is_running => Next::Fetched(fetched),
        }
    };
    tokio::select! {
        biased;
        arrival = lanes.paid.recv() => Next::Live(arrival),
        next = rest => next,
    }
}

struct State {
    handled: Handled,
    bucket: Bucket,
    lookups: LookUps,
}
