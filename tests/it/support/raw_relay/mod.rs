//! A relay that does not follow the rules: it forwards events of a test without checking them, and
//! misbehaves in the way that a test asks for.

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
    /// Accepts everything and sends nothing.
    Silent,
    /// Demands authentication (NIP-42) and accepts no answer to its challenge.
    Forbidding,
    /// Sends every event a thousand times.
    Repeating,
    /// Takes this long to answer a query.
    Late(Duration),
    /// Demands authentication of readers and writers (NIP-42), with the challenge at this time.
    Asking(Challenge),
    /// After [`RawRelay::go_deaf`], accepts events but does not forward them to existing
    /// connections. New connections work.
    Deaf,
    /// Answers no query until [`RawRelay::let_answer`].
    Waiting,
    /// Closes a connection on which the client sent nothing for this long.
    Impatient(Duration),
    /// Accepts this many events per second on a connection and refuses more as `rate-limited`.
    Limiting(usize),
    /// Has the limit of `Limiting`, and closes the connection at the first event beyond it.
    HangingUp(usize),
    /// Refuses events whose JSON has more bytes than this.
    Small(usize),
    /// Refuses events dated longer ago than this.
    Fresh(Duration),
    /// Closes the connection at the first query for DM relay lists (kind 10050).
    Cutting,
    /// Answers no query for DM relay lists.
    Reserved,
}

/// When the relay sends the challenge of NIP-42.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Challenge {
    AtOnce,
    /// Just before the first refusal (`OK false` or `CLOSED`).
    BeforeRefusal,
    AfterRefusal,
}

pub struct RawRelay {
    port: u16,
    shared: Arc<Shared>,
    running: Option<watch::Sender<()>>,
}

/// Events in the order of arrival, indexed by kind: a query for one kind must not be slowed down by
/// thousands of another.
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
    /// Number of connections with a subscription named `inbox`.
    inboxes: AtomicUsize,
    /// Number of connections ever made.
    connections: AtomicUsize,
    /// Number of successful authentications.
    proofs: AtomicUsize,
    /// Number of events refused for the relay's own reasons.
    refusals: AtomicUsize,
    /// Number of pings that were answered.
    pongs: AtomicUsize,
    /// Number of queries for DM relay lists.
    list_queries: AtomicUsize,
    deaf: AtomicBool,
    /// Whether queries may be answered.
    may_answer: watch::Sender<bool>,
    has_cut: AtomicBool,
    /// Messages for every connection, sent without any check.
    blurts: broadcast::Sender<Vec<Message>>,
    /// Events as text, for every subscription.
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

    pub async fn honest() -> RawRelay {
        RawRelay::start(Manner::Honest).await
    }

    pub fn url(&self) -> RelayUrl {
        RelayUrl::parse(&format!("ws://127.0.0.1:{}", self.port)).unwrap()
    }

    /// Closes every connection and accepts no more. When it returns, no connection takes in an
    /// event.
    pub async fn stop(&mut self) {
        if let Some(stopper) = self.running.take() {
            stopper.send_replace(());
            stopper.closed().await;
        }
    }

    /// Listens again on the same port, with the same events. Does nothing while it runs.
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

    /// Sends `json` as an event to every subscription, without checking it.
    pub fn push(&self, json: &str) {
        // An error means that nobody is connected, which is fine.
        let _ = self.shared.news.send(json.to_owned());
    }

    /// Accepts an event as if it had been published here.
    pub fn pour(&self, event: &Event) {
        self.shared.events.lock().unwrap().add(event.clone());
        self.push(&event.as_json());
    }

    /// Sends an unsolicited message to every connection, followed by a ping.
    pub fn blurt(&self, text: &str) {
        let _ = self.shared.blurts.send(vec![Message::text(text), Message::Ping(Vec::new().into())]);
    }

    /// Number of pings that were answered. A client that has answered a ping has processed
    /// everything sent before it.
    pub fn pongs(&self) -> usize {
        self.shared.pongs.load(Ordering::SeqCst)
    }

    /// Number of queries for DM relay lists so far.
    pub fn list_queries(&self) -> usize {
        self.shared.list_queries.load(Ordering::SeqCst)
    }

    /// Whether a client has a subscription named `inbox` here, as the bot does.
    pub fn is_subscribed(&self) -> bool {
        self.shared.inboxes.load(Ordering::SeqCst) > 0
    }

    /// From now on, existing connections receive no events.
    pub fn go_deaf(&self) {
        self.shared.deaf.store(true, Ordering::SeqCst);
    }

    /// From now on queries are answered, including the waiting ones.
    pub fn let_answer(&self) {
        self.shared.may_answer.send_replace(true);
    }

    /// Number of connections ever made.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Number of successful authentications.
    pub fn proofs(&self) -> usize {
        self.shared.proofs.load(Ordering::SeqCst)
    }

    /// Number of events refused for the relay's own reasons: too many, too long, too old.
    pub fn refusals(&self) -> usize {
        self.shared.refusals.load(Ordering::SeqCst)
    }

    /// Gift wraps to `receiver` that were published here.
    pub fn wraps_to(&self, receiver: PublicKey) -> Vec<Event> {
        self.events(&Filter::new().kind(Kind::GiftWrap).pubkey(receiver))
    }

    /// The events published here that match the filter, in order of arrival, each as often as it
    /// arrived.
    pub fn events(&self, filter: &Filter) -> Vec<Event> {
        self.shared.events.lock().unwrap().matching(std::slice::from_ref(filter)).cloned().collect()
    }
}

fn matches(filters: &[Filter], event: &Event) -> bool {
    filters.iter().any(|filter| filter.match_event(event, MatchEventOptions::new()))
}
