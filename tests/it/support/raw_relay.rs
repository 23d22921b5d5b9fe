//! A relay that has no manners: it passes on what it is told to, checked or not, and lies where a test wants it to.

use futures_util::{SinkExt, StreamExt};
use nostr_sdk::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
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
        let listener = super::until("the relay's port is free", bind).await;
        let shared = Arc::clone(&self.shared);
        tokio::spawn(listen(listener, shared, stopped));
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

async fn listen(listener: TcpListener, shared: Arc<Shared>, stopped: watch::Receiver<()>) {
    let mut end = stopped.clone();
    loop {
        tokio::select! {
            // An error means that the other end is gone: the relay is stopped.
            _ = end.changed() => return,
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                let (shared, mut end) = (Arc::clone(&shared), stopped.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        _ = end.changed() => {}
                        _ = serve(stream, shared) => {}
                    }
                });
            }
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let socket = tokio_tungstenite::accept_async(stream).await.ok()?;
    let (mut out, mut incoming) = socket.split();
    let mut news = shared.news.subscribe();
    let mut blurts = shared.blurts.subscribe();
    let number = shared.connections.fetch_add(1, Ordering::SeqCst);
    let mut session = Session {
        subscriptions: Vec::new(),
        open: Vec::new(),
        challenge: format!("challenge {number}"),
        is_challenged: false,
        is_known: false,
        is_shown_nothing: false,
        second: (Instant::now(), 0),
    };
    // A connection that is made after the relay went deaf works.
    let was_deaf = shared.deaf.load(Ordering::SeqCst);
    let mut inbox = Inbox { shared: &shared, open: false };
    if matches!(shared.manner, Manner::Forbidding | Manner::Asking(Challenge::AtOnce))
        && let Some(challenge) = session.challenge()
    {
        out.send(challenge).await.ok()?;
    }
    loop {
        tokio::select! {
            message = tokio::time::timeout(shared.patience(), incoming.next()) => {
                // Too long without a word: the connection is closed.
                let said = match message.ok()??.ok()? {
                    Message::Text(said) => said,
                    other => {
                        shared.pongs.fetch_add(usize::from(other.is_pong()), Ordering::SeqCst);
                        continue;
                    }
                };
                let Ok(Value::Array(parts)) = serde_json::from_str::<Value>(&said) else { continue };
                shared.may_answer.subscribe().wait_for(|may| *may).await.ok()?;
                if let Manner::Late(pause) = shared.manner && parts.first().is_some_and(|word| word == "REQ") {
                    tokio::time::sleep(pause).await;
                }
                for answer in shared.answer(&parts, &mut session) {
                    let is_last = answer.is_close();
                    out.send(answer).await.ok()?;
                    if is_last {
                        return None;
                    }
                }
                inbox.set(session.subscriptions.iter().any(|(id, _)| id == "inbox"));
            }
            blurt = blurts.recv() => {
                for message in blurt.ok()? {
                    out.send(message).await.ok()?;
                }
            }
            event = news.recv() => {
                let event = event.ok()?;
                session.is_shown_nothing = !was_deaf && shared.deaf.load(Ordering::SeqCst);
                // What cannot even be read goes to everybody; a bot that asked for it has to bear it.
                let read = Event::from_json(&event).ok();
                for (id, filters) in session.subscriptions.iter().filter(|_| !session.is_shown_nothing) {
                    let wanted = read.as_ref().is_none_or(|event| matches(filters, event));
                    for _ in 0..if wanted { shared.times() } else { 0 } {
                        out.send(Message::text(format!(r#"["EVENT",{},{event}]"#, json!(id)))).await.ok()?;
                    }
                }
            }
        }
    }
}

/// One connection.
struct Session {
    subscriptions: Vec<(String, Vec<Filter>)>,
    /// Queries for DM relay lists without an answer.
    open: Vec<String>,
    challenge: String,
    is_challenged: bool,
    is_known: bool,
    is_shown_nothing: bool,
    /// When the second began that is counted, and the events in it.
    second: (Instant, usize),
}

impl Session {
    /// Counts an event: how many there were this second.
    fn count(&mut self) -> usize {
        if self.second.0.elapsed() >= Duration::from_secs(1) {
            self.second = (Instant::now(), 0);
        }
        self.second.1 += 1;
        self.second.1
    }

    /// The challenge, if it was not sent yet.
    fn challenge(&mut self) -> Option<Message> {
        let is_first = !std::mem::replace(&mut self.is_challenged, true);
        is_first.then(|| text(&json!(["AUTH", self.challenge])))
    }

    /// A refusal with the challenge where it belongs; nothing if this connection may go on.
    fn refusal(&mut self, manner: Manner, refusal: &Value) -> Option<Vec<Message>> {
        let refusal = text(refusal);
        match manner {
            Manner::Forbidding => Some(vec![refusal]),
            Manner::Asking(_) if self.is_known => None,
            Manner::Asking(Challenge::AfterRefusal) => Some([refusal].into_iter().chain(self.challenge()).collect()),
            Manner::Asking(_) => Some(self.challenge().into_iter().chain([refusal]).collect()),
            _ => None,
        }
    }
}

/// Whether this connection has a subscription named `inbox`; it has none once it is gone.
struct Inbox<'a> {
    shared: &'a Shared,
    open: bool,
}

impl Inbox<'_> {
    fn set(&mut self, open: bool) {
        if open && !self.open {
            self.shared.inboxes.fetch_add(1, Ordering::SeqCst);
        } else if !open && self.open {
            self.shared.inboxes.fetch_sub(1, Ordering::SeqCst);
        }
        self.open = open;
    }
}

impl Drop for Inbox<'_> {
    fn drop(&mut self) {
        self.set(false);
    }
}

impl Shared {
    fn patience(&self) -> Duration {
        if let Manner::Impatient(patience) = self.manner { patience } else { super::PATIENCE * 10 }
    }

    /// Why this relay does not want an event, if it does not.
    fn objection(&self, event: &Event, session: &mut Session) -> Option<&'static str> {
        match self.manner {
            Manner::Refusing => Some("blocked: I take nothing"),
            Manner::Limiting(most) | Manner::HangingUp(most) if session.count() > most => {
                Some("rate-limited: slow down")
            }
            Manner::Small(bytes) if event.as_json().len() > bytes => Some("invalid: event too large"),
            Manner::Fresh(age) if event.created_at + age < Timestamp::now() => Some("invalid: created_at too far back"),
            _ => None,
        }
    }

    fn times(&self) -> usize {
        if self.manner == Manner::Repeating { 1000 } else { 1 }
    }

    fn answer(&self, parts: &[Value], session: &mut Session) -> Vec<Message> {
        let word = parts.first().and_then(Value::as_str).unwrap_or_default();
        let id = parts.get(1).and_then(Value::as_str).unwrap_or_default().to_owned();
        match (word, self.manner) {
            (_, Manner::Silent) => Vec::new(),
            ("EVENT", _) => self.take(&parts[1], session),
            ("AUTH", _) => self.judge(&parts[1], session),
            ("REQ", _) => {
                if let Some(refusal) = session.refusal(self.manner, &json!(["CLOSED", id, "auth-required: not you"])) {
                    return refusal;
                }
                let filters: Vec<Filter> =
                    parts[2..].iter().filter_map(|filter| Filter::from_json(filter.to_string()).ok()).collect();
                let is_list =
                    |filter: &Filter| filter.kinds.as_ref().is_some_and(|kinds| kinds.contains(&Kind::InboxRelays));
                if filters.iter().any(is_list) {
                    self.list_queries.fetch_add(1, Ordering::SeqCst);
                    if self.manner == Manner::Cutting && !self.has_cut.swap(true, Ordering::SeqCst) {
                        return vec![Message::Close(None)];
                    }
                    if !self.tells_lists.load(Ordering::SeqCst) {
                        session.open.push(id);
                        self.most_open.fetch_max(session.open.len(), Ordering::SeqCst);
                        return Vec::new();
                    }
                }
                let events = self.events.lock().unwrap();
                let mut wanted: Vec<&Event> = events.matching(&filters).collect();
                wanted.sort_by_key(|event| std::cmp::Reverse(event.created_at));
                wanted.truncate(filters.iter().filter_map(|filter| filter.limit).max().unwrap_or(usize::MAX));
                let stored = |event: &&Event| vec![text(&json!(["EVENT", id, event])); self.times()];
                let mut answers: Vec<Message> = wanted.iter().flat_map(stored).collect();
                answers.push(text(&json!(["EOSE", id])));
                session.subscriptions.retain(|(known, _)| *known != id);
                session.subscriptions.push((id, filters));
                answers
            }
            ("CLOSE", _) => {
                session.open.retain(|known| *known != id);
                session.subscriptions.retain(|(known, _)| *known != id);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn take(&self, event: &Value, session: &mut Session) -> Vec<Message> {
        let Ok(event) = Event::from_json(event.to_string()) else { return Vec::new() };
        if let Some(refusal) = session.refusal(self.manner, &json!(["OK", event.id, false, "auth-required: not you"])) {
            return refusal;
        }
        if let Some(objection) = self.objection(&event, session) {
            self.refusals.fetch_add(1, Ordering::SeqCst);
            return match self.manner {
                Manner::HangingUp(_) => vec![text(&json!(["NOTICE", objection])), Message::Close(None)],
                _ => vec![text(&json!(["OK", event.id, false, objection]))],
            };
        }
        self.events.lock().unwrap().add(event.clone());
        let _ = self.news.send(event.as_json());
        vec![text(&json!(["OK", event.id, true, ""]))]
    }

    /// An answer to the challenge.
    fn judge(&self, proof: &Value, session: &mut Session) -> Vec<Message> {
        let Ok(proof) = Event::from_json(proof.to_string()) else { return Vec::new() };
        let names_it = proof.tags.iter().any(|tag| tag.content() == Some(session.challenge.as_str()));
        let is_good = names_it && proof.verify().is_ok() && self.manner != Manner::Forbidding;
        session.is_known |= is_good;
        self.proofs.fetch_add(usize::from(is_good), Ordering::SeqCst);
        vec![text(&json!(["OK", proof.id, is_good, if is_good { "" } else { "auth-required: not you" }]))]
    }
}

fn matches(filters: &[Filter], event: &Event) -> bool {
    filters.iter().any(|filter| filter.match_event(event, MatchEventOptions::new()))
}

fn text(value: &Value) -> Message {
    Message::text(value.to_string())
}
