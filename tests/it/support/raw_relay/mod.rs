//! A relay that has no manners: it passes on what it is told to, checked or not, and lies where a test wants it to.

mod connection;

use nostr_sdk::prelude::*;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, watch};
use tokio_tungstenite::tungstenite::Message;

/// How the relay behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    Honest,
    /// Says OK false to every event.
    Refusing,
    /// Takes everything and says nothing.
    Silent,
    /// Lets nobody in who has not answered its challenge (NIP-42), and never accepts an answer.
    Forbidding,
    /// Sends every event a thousand times.
    Repeating,
    /// Takes so long to answer a request for events.
    Late(Duration),
    /// Wants to know who reads and writes (NIP-42), and says so in one of the ways there are.
    Asking(Challenge),
    /// Once told to ([`RawRelay::go_deaf`]) it takes events and shows them to no connection that is open; one that is made
    /// anew works.
    Deaf,
    /// Answers no query until it may ([`RawRelay::let_answer`]).
    Waiting,
    /// Closes a connection on which nothing was said for so long.
    Impatient(Duration),
    /// Takes so many events a second on one connection; the next is refused as `rate-limited`.
    Limiting(usize),
    /// The same, and closes the connection.
    HangingUp(usize),
    /// Refuses longer events (bytes of JSON).
    Small(usize),
    /// Refuses events that are dated longer ago.
    Fresh(Duration),
    /// Hangs up at the first query for DM relay lists (kind 10050), without a word.
    Cutting,
    /// Does not answer queries for DM relay lists until it is told to ([`RawRelay::tell_lists`]).
    Reserved,
}

/// When the challenge of NIP-42 comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Challenge {
    AtOnce,
    /// With the first refusal (`OK false`, `CLOSED`), before it.
    BeforeRefusal,
    AfterRefusal,
}

pub struct RawRelay {
    port: u16,
    shared: Arc<Shared>,
    running: Option<watch::Sender<()>>,
}

/// Events in the order in which they came. One who asks for a kind must not be made to wait by thousands of another.
#[derive(Default)]
struct Stored {
    all: Vec<Event>,
    of_kind: HashMap<Kind, Vec<usize>>,
}

impl Stored {
    fn add(&mut self, event: Event) {
        self.of_kind.entry(event.kind).or_default().push(self.all.len());
        self.all.push(event);
    }

    fn matching(&self, filters: &[Filter]) -> impl Iterator<Item = &Event> {
        let kinds: Option<BTreeSet<Kind>> =
            filters.iter().try_fold(BTreeSet::new(), |kinds, filter| Some(&kinds | filter.kinds.as_ref()?));
        let places: Vec<usize> = match kinds {
            Some(kinds) => {
                let of = kinds.iter().filter_map(|kind| self.of_kind.get(kind)).flatten();
                of.copied().collect::<BTreeSet<usize>>().into_iter().collect()
            }
            None => (0..self.all.len()).collect(),
        };
        let filters = filters.to_vec();
        places.into_iter().map(|at| &self.all[at]).filter(move |event| matches(&filters, event))
    }
}

struct Shared {
    manner: Manner,
    events: Mutex<Stored>,
    /// Connections with a subscription named `inbox`.
    inboxes: AtomicUsize,
    /// Connections that were ever made.
    connections: AtomicUsize,
    /// How often somebody proved who they are.
    proofs: AtomicUsize,
    /// Events that were refused for the relay's own reasons.
    refusals: AtomicUsize,
    /// Pings that were answered.
    pongs: AtomicUsize,
    /// Queries for DM relay lists: all, and the most that were open at once on one connection.
    list_queries: AtomicUsize,
    most_open: AtomicUsize,
    tells_lists: AtomicBool,
    deaf: AtomicBool,
    /// Whether it may answer.
    may_answer: watch::Sender<bool>,
    has_cut: AtomicBool,
    /// Said to every connection as it is.
    blurts: broadcast::Sender<Vec<Message>>,
    /// Events as text, for everybody who listens.
    news: broadcast::Sender<String>,
}

impl RawRelay {
    pub async fn start(manner: Manner) -> RawRelay {
        let shared = Shared {
            manner,
            events: Mutex::default(),
            inboxes: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            proofs: AtomicUsize::new(0),
            refusals: AtomicUsize::new(0),
            pongs: AtomicUsize::new(0),
            list_queries: AtomicUsize::new(0),
            most_open: AtomicUsize::new(0),
            tells_lists: AtomicBool::new(manner != Manner::Reserved),
            deaf: AtomicBool::new(false),
            may_answer: watch::channel(manner != Manner::Waiting).0,
            has_cut: AtomicBool::new(false),
            blurts: broadcast::channel(64).0,
            news: broadcast::channel(65_536).0,
        };
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut relay = RawRelay { port, shared: Arc::new(shared), running: None };
        relay.start_again().await;
        relay
    }

    pub fn url(&self) -> RelayUrl {
        RelayUrl::parse(&format!("ws://127.0.0.1:{}", self.port)).unwrap()
    }

    /// Breaks every connection and takes no more.
    pub fn stop(&mut self) {
        self.running = None;
    }

    /// Listens again on the same port, with the events it had. Does nothing while it runs.
    pub async fn start_again(&mut self) {
        if self.running.is_some() {
            return;
        }
        let (stopper, stopped) = watch::channel(());
        let port = self.port;
        let bind = || async move { TcpListener::bind(("127.0.0.1", port)).await.ok() };
        let listener = crate::support::until("the relay's port is free", bind).await;
        let shared = Arc::clone(&self.shared);
        tokio::spawn(connection::listen(listener, shared, stopped));
        self.running = Some(stopper);
    }

    /// Sends `json` as an event to every subscription, whatever it is.
    pub fn push(&self, json: &str) {
        // Nobody listening is fine: there is nobody to lie to.
        let _ = self.shared.news.send(json.to_owned());
    }

    /// Takes an event as if somebody had published it.
    pub fn pour(&self, event: &Event) {
        self.shared.events.lock().unwrap().add(event.clone());
        self.push(&event.as_json());
    }

    /// Says something to every connection that nobody asked for, and a ping behind it.
    pub fn blurt(&self, text: &str) {
        let _ = self.shared.blurts.send(vec![Message::text(text), Message::Ping(Vec::new().into())]);
    }

    /// Pings that were answered: who answers one has attended to all that was said before.
    pub fn pongs(&self) -> usize {
        self.shared.pongs.load(Ordering::SeqCst)
    }

    /// From now on queries for DM relay lists are answered.
    pub fn tell_lists(&self) {
        self.shared.tells_lists.store(true, Ordering::SeqCst);
    }

    /// Queries for DM relay lists that were asked.
    pub fn list_queries(&self) -> usize {
        self.shared.list_queries.load(Ordering::SeqCst)
    }

    /// The most of them that one connection had open at once.
    pub fn most_list_queries_open(&self) -> usize {
        self.shared.most_open.load(Ordering::SeqCst)
    }

    /// Whether somebody holds a subscription named `inbox` here, as the bot does.
    pub fn is_subscribed(&self) -> bool {
        self.shared.inboxes.load(Ordering::SeqCst) > 0
    }

    /// From now on the connections that are open are shown nothing any more.
    pub fn go_deaf(&self) {
        self.shared.deaf.store(true, Ordering::SeqCst);
    }

    /// From now on queries are answered, those asked before too.
    pub fn let_answer(&self) {
        self.shared.may_answer.send_replace(true);
    }

    /// Connections that were ever made.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// How often somebody proved who they are.
    pub fn proofs(&self) -> usize {
        self.shared.proofs.load(Ordering::SeqCst)
    }

    /// Events that were refused for the relay's own reasons: too many, too long, too old.
    pub fn refusals(&self) -> usize {
        self.shared.refusals.load(Ordering::SeqCst)
    }

    /// Gift wraps to `receiver` that were published here.
    pub fn wraps_to(&self, receiver: PublicKey) -> Vec<Event> {
        self.events(&Filter::new().kind(Kind::GiftWrap).pubkey(receiver))
    }

    /// What was published here, in the order in which it came, each as often as it came.
    pub fn events(&self, filter: &Filter) -> Vec<Event> {
        self.shared.events.lock().unwrap().matching(std::slice::from_ref(filter)).cloned().collect()
    }
}

fn matches(filters: &[Filter], event: &Event) -> bool {
    filters.iter().any(|filter| filter.match_event(event, MatchEventOptions::new()))
}
