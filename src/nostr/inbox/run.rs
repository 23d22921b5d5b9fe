//! Gift wraps in: a live stream that is only ever drained, and sweeps that make up for whatever it loses.

use super::backfill::Backfill;
use super::decrypt::{Decrypted, Decryptions};
use super::dedup::{SeenIds, TokenBucket, is_genuine, is_recent, is_worth_opening};
use super::flood::Flood;
use super::nip04::Nip04Lookups;
use super::pages;
use super::queue::{self, Arrival, Queues, Source};
use super::subscription::Subscription;
use super::watchdog::Awaited;
use crate::clock::Clock;
use crate::config::Limits;
use crate::fault::{self, Step};
use crate::job::Asker;
use crate::ledger::Ledger;
use crate::message::Channel;
use crate::nostr::relay::connections::Relays;
use crate::nostr::relay::relay_lists::RelayLists;
use crate::nostr::wait_until;
use crate::shutdown::Shutdown;
use crate::vault::{Rumor, Vault};
use nostr_sdk::Filter;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

/// How often it is looked which relays are there.
const LOOK: Duration = Duration::from_secs(2);
/// The name of our subscription.
const SUBSCRIPTION: &str = "inbox";
/// Kinds of messages that are passed on: text, old (NIP-04) and sealed, files so that they can be declined, and deletions of requests.
const MESSAGES: [u16; 4] = [4, 5, 14, 15];
/// A message to the bot that passed every check.
#[derive(Clone, Debug)]
pub struct IncomingMessage {
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
    pub directory: Arc<RelayLists>,
    /// Our own letters, with which the watchdog tries the relays.
    pub awaited: Awaited,
    /// The watchdog found a relay deaf.
    pub deaf: Arc<Notify>,
}

impl Inbox {
    /// Listens until the shutdown. Every message goes into `out`, none is dropped.
    pub async fn run(self, out: mpsc::Sender<IncomingMessage>, mut shutdown: Shutdown) {
        let relays = self.relays.ours(|relay| relay.inbox);
        let source = Source { bot: self.relays.bot(), relays, subscription: SUBSCRIPTION };
        let (entrance, mut lanes) = queue::open(source, self.flood.clone(), self.awaited.clone());
        let (lost, closed) = (Arc::clone(&entrance.lost), Arc::clone(&entrance.closed));
        let notifications = self.relays.notifications();
        let mut draining = JoinSet::new();
        draining.spawn(entrance.drain(notifications));
        let mut subscription = Subscription::new(self.relays.clone(), SUBSCRIPTION);
        subscription.ask(self.filter()).await;
        let mut sweeper = Backfill::new();
        let mut state = State {
            handled: SeenIds::default(),
            bucket: TokenBucket::new(self.limits.wraps_per_second, self.limits.wraps_burst),
            lookups: Nip04Lookups::new(self.relays.clone(), Arc::clone(&self.directory)),
        };
        // The next ones are opened while one is attended to; their order is kept.
        let mut openings = Decryptions::default();
        let mut looks = tokio::time::interval(LOOK);
        loop {
            // What is rare comes first: a stream that never ends must not put it off.
            tokio::select! {
                biased;
                () = shutdown.stopped() => return,
                () = lost.notified() => sweeper.ran_over(),
                () = closed.notified() => subscription.closed(),
                () = self.deaf.notified() => {
                    subscription.ask(self.filter()).await;
                    sweeper.missed();
                }
                _ = looks.tick() => {
                    if subscription.look(|| self.filter()).await {
                        sweeper.missed();
                    }
                    if subscription.is_connected() && sweeper.is_due() {
                        let began = self.clock.now();
                        sweeper.start(&self.relays, &self.flood, pages::since(self.last_contact(), began), began);
                    }
                }
                Some(opened) = openings.next() => {
                    tokio::select! {
                        () = shutdown.stopped() => return,
                        () = self.pass_on(&mut state, &mut sweeper, opened, &out) => {}
                    }
                }
                next = next(&mut lanes, &mut sweeper), if openings.have_room() => {
                    let arrival = match next {
                        Next::Live(None) => return end_of(draining).await,
                        Next::Live(Some(arrival)) | Next::Fetched(Some(arrival)) => arrival,
                        Next::Fetched(None) => {
                            // The contact is noted when all that it brought has been passed on.
                            while let Some(opened) = openings.next().await {
                                tokio::select! {
                                    () = shutdown.stopped() => return,
                                    () = self.pass_on(&mut state, &mut sweeper, opened, &out) => {}
                                }
                            }
                            if let Some(began) = sweeper.end().await {
                                subscription.works();
                                if state.lookups.is_idle() {
                                    self.note_contact(began);
                                }
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

    /// Wraps to us, stored and new.
    fn filter(&self) -> Filter {
        pages::filter(&self.relays, pages::since(self.last_contact(), self.clock.now()))
    }

    fn last_contact(&self) -> Option<u64> {
        self.ledger.last_contact().unwrap_or_else(|error| {
            tracing::warn!(%error, "the last contact is not known; a week is fetched");
            None
        })
    }

    fn note_contact(&self, at: u64) {
        fault::before(Step::MoveCursor);
        if let Err(error) = self.ledger.set_last_contact(at) {
            tracing::warn!(%error, "the last contact could not be noted");
        }
        fault::after(Step::MoveCursor);
    }

    /// Begins to open an event that is worth it; whatever else it is, it is dealt with.
    async fn open(&self, state: &mut State, openings: &mut Decryptions, arrival: Arrival) {
        let event = &arrival.event;
        let id = event.id.to_bytes();
        if !state.handled.contains(&id) && is_worth_opening(event, &self.relays.bot()) && is_genuine(event) {
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
    /// the desk's to ask, for all that wait there at once. An old one that finds no room is left to a sweep.
    async fn pass_on(
        &self,
        state: &mut State,
        sweeper: &mut Backfill,
        opened: Decrypted,
        out: &mpsc::Sender<IncomingMessage>,
    ) {
        let Decrypted { id, url, is_old, paid, is_forged, rumor } = opened;
        if is_forged {
            // A sweep brings what truly has this id.
            state.handled.forget(&id);
        }
        let Some(rumor) = rumor.filter(|rumor| self.is_message(rumor)) else { return };
        // An old one that was answered before is no reason to ask the relays; the desk asks for certain.
        if is_old && self.ledger.has_seen(rumor.author, rumor.id).unwrap_or(false) {
            return;
        }
        let seen_on = vec![url.to_string()];
        let channel = if is_old { Channel::Nip04 } else { Channel::Sealed };
        let inbound = IncomingMessage { rumor, seen_on, channel, reads_sealed: !is_old, paid };
        if !is_old {
            // Where nobody takes messages any more the end is near, and the relay keeps this one.
            let _ = out.send(inbound).await;
        } else if !state.lookups.begin(inbound, out) {
            state.handled.forget(&id);
            sweeper.ran_over();
        }
    }

    /// Whether a rumor is something that may be answered: not by us, of a known kind, and not too old.
    fn is_message(&self, rumor: &Rumor) -> bool {
        let from_us = rumor.author == Asker(self.relays.bot().to_bytes());
        !from_us && MESSAGES.contains(&rumor.kind) && is_recent(rumor.created_at, self.clock.now())
    }
}

/// The library is at its end, or the entrance panicked: then all of this panics too, and is started anew.
async fn end_of(mut draining: JoinSet<()>) {
    if let Some(Err(error)) = draining.join_next().await
        && error.is_panic()
    {
        std::panic::resume_unwind(error.into_panic());
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
async fn next(lanes: &mut Queues, sweeper: &mut Backfill) -> Next {
    let rest = async {
        tokio::select! {
            arrival = lanes.plain.recv() => Next::Live(arrival),
            fetched = sweeper.next() => Next::Fetched(fetched),
        }
    };
    tokio::select! {
        biased;
        arrival = lanes.paid.recv() => Next::Live(arrival),
        next = rest => next,
    }
}

struct State {
    handled: SeenIds,
    bucket: TokenBucket,
    lookups: Nip04Lookups,
}
