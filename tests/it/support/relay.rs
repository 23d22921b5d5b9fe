//! A relay on loopback. It checks no event, keeps what it has when it is stopped and started again on
//! the same port, and misbehaves in the way that a test asks for.

use super::asker::is_late_notice;
use futures_util::{SinkExt, StreamExt};
use nostr_sdk::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, watch};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};

/// How the relay behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    Honest,
    /// Keeps only so many events of a kind, the newest.
    Forgetful(usize),
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
    /// Answers no query until [`TestRelay::let_answer`].
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
    /// Names the time (`Date`) when a connection opens, this far ahead.
    Ahead(Duration),
}

/// When the relay sends the challenge of NIP-42.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Challenge {
    AtOnce,
    /// Just before the first refusal (`OK false` or `CLOSED`).
    BeforeRefusal,
    AfterRefusal,
}

pub struct TestRelay {
    port: u16,
    shared: Arc<Shared>,
    running: Mutex<Option<watch::Sender<()>>>,
}

/// What a relay has seen so far.
#[derive(Clone, Copy, Default, Debug)]
pub struct Counts {
    pub connections: usize,
    /// Successful authentications.
    pub proofs: usize,
    /// Events refused for the relay's own reasons: too many, too long, too old.
    pub refusals: usize,
    /// Pings that were answered. A client that has answered a ping has processed everything sent
    /// before it.
    pub pongs: usize,
    /// Queries for DM relay lists.
    pub list_queries: usize,
}

/// Events of a kind in the order of arrival.
type Stored = BTreeMap<Kind, Vec<Event>>;

struct Shared {
    manner: Manner,
    events: Mutex<Stored>,
    counts: Mutex<Counts>,
    /// Shared with each connection that has a subscription named `inbox`, as the bot has it.
    inbox: Arc<()>,
    deaf: AtomicBool,
    /// Whether queries may be answered.
    may_answer: watch::Sender<bool>,
    has_cut: AtomicBool,
    /// Messages for every connection, sent without any check.
    blurts: broadcast::Sender<Vec<Message>>,
    /// Events for every subscription: their text, and the event if the text is one.
    news: broadcast::Sender<Arc<(String, Option<Event>)>>,
}

impl TestRelay {
    pub async fn start() -> TestRelay {
        TestRelay::start_with(Manner::Honest).await
    }

    pub async fn start_with(manner: Manner) -> TestRelay {
        let mut relay = TestRelay::away(manner);
        relay.start_again().await;
        relay
    }

    /// A relay that is away until [`TestRelay::start_again`].
    pub fn away(manner: Manner) -> TestRelay {
        let shared = Shared {
            manner,
            events: Mutex::default(),
            counts: Mutex::default(),
            inbox: Arc::default(),
            deaf: AtomicBool::new(false),
            may_answer: watch::channel(manner != Manner::Waiting).0,
            has_cut: AtomicBool::new(false),
            blurts: broadcast::channel(64).0,
            news: broadcast::channel(65_536).0,
        };
        TestRelay { port: free_port(), shared: Arc::new(shared), running: Mutex::default() }
    }

    pub fn url(&self) -> RelayUrl {
        RelayUrl::parse(&format!("ws://127.0.0.1:{}", self.port)).unwrap()
    }

    /// Closes every connection and accepts no more. When it returns, no connection takes in an
    /// event.
    pub async fn stop(&self) {
        let running = self.running.lock().unwrap().take();
        if let Some(stopper) = running {
            stopper.send_replace(());
            stopper.closed().await;
        }
    }

    /// Listens again on the same port, with the same events. Does nothing while it runs.
    pub async fn start_again(&mut self) {
        if self.running.get_mut().unwrap().is_some() {
            return;
        }
        let (stopper, stopped) = watch::channel(());
        let port = self.port;
        let bind = || async move { TcpListener::bind(("127.0.0.1", port)).await.ok() };
        let listener = super::until("the relay's port is free", bind).await;
        let shared = Arc::clone(&self.shared);
        tokio::spawn(listen(listener, shared, stopped));
        *self.running.get_mut().unwrap() = Some(stopper);
    }

    /// Sends `json` as an event to every subscription, without checking it.
    pub fn push(&self, json: &str) {
        self.shared.tell(json.to_owned(), Event::from_json(json).ok());
    }

    /// Accepts an event as if it had been published here.
    pub fn pour(&self, event: &Event) {
        self.shared.keep(event.clone());
    }

    /// Sends an unsolicited message to every connection, followed by a ping.
    pub fn blurt(&self, text: &str) {
        let _ = self.shared.blurts.send(vec![Message::text(text), Message::Ping(Vec::new().into())]);
    }

    pub fn counts(&self) -> Counts {
        *self.shared.counts()
    }

    /// Whether a client has a subscription named `inbox` here, as the bot does.
    pub fn is_subscribed(&self) -> bool {
        Arc::strong_count(&self.shared.inbox) > 1
    }

    /// From now on the relay accepts events but does not forward them to existing connections. New
    /// connections work.
    pub fn go_deaf(&self) {
        self.shared.deaf.store(true, Ordering::SeqCst);
    }

    /// From now on queries are answered, including the waiting ones.
    pub fn let_answer(&self) {
        self.shared.may_answer.send_replace(true);
    }

    /// Gift wraps to `receiver` that were published here, each once.
    pub fn wraps_to(&self, receiver: PublicKey) -> Vec<Event> {
        let mut wraps = self.events(&Filter::new().kind(Kind::GiftWrap).pubkey(receiver));
        let mut seen = HashSet::new();
        wraps.retain(|wrap| seen.insert(wrap.id));
        wraps
    }

    /// The texts of the messages to a reader that were published here, except notices of late jobs.
    pub async fn texts_to(&self, reader: &Keys) -> Vec<String> {
        let mut texts = Vec::new();
        for wrap in self.wraps_to(reader.public_key()) {
            texts.push(UnwrappedGift::from_gift_wrap(reader, &wrap).await.unwrap().rumor.content);
        }
        texts.retain(|text| !is_late_notice(text));
        texts
    }

    /// Waits until so many of these messages are here, and returns them. Fails if there are more.
    pub async fn has(&self, messages: usize, reader: &Keys) -> Vec<String> {
        let texts = super::until("messages", || async {
            Some(self.texts_to(reader).await).filter(|texts| texts.len() >= messages)
        })
        .await;
        assert_eq!(texts.len(), messages, "{texts:?}");
        texts
    }

    /// The events published here that match the filter, those of a kind in the order of arrival,
    /// each as often as it arrived.
    pub fn events(&self, filter: &Filter) -> Vec<Event> {
        matching(&self.shared.events.lock().unwrap(), std::slice::from_ref(filter)).cloned().collect()
    }
}

pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn matches(filters: &[Filter], event: &Event) -> bool {
    filters.iter().any(|filter| filter.match_event(event, MatchEventOptions::new()))
}

/// The events that match a filter. A query for one kind is not slowed down by thousands of another.
fn matching<'a>(stored: &'a Stored, filters: &[Filter]) -> impl Iterator<Item = &'a Event> {
    let wants = |kind: &Kind| filters.iter().any(|filter| filter.kinds.as_ref().is_none_or(|all| all.contains(kind)));
    stored
        .iter()
        .filter(move |(kind, _)| wants(kind))
        .flat_map(|(_, events)| events)
        .filter(|event| matches(filters, event))
}

async fn listen(listener: TcpListener, shared: Arc<Shared>, stopped: watch::Receiver<()>) {
    let mut end = stopped.clone();
    loop {
        tokio::select! {
            // A change, or an error because the other end was dropped: the relay is stopped.
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
    let manner = shared.manner;
    #[expect(clippy::result_large_err, reason = "the type is the library's")]
    let date = move |_: &Request, mut response: Response| {
        if let Manner::Ahead(by) = manner {
            let date = httpdate::fmt_http_date(SystemTime::now() + by);
            response.headers_mut().insert("date", date.parse().unwrap());
        }
        Ok(response)
    };
    let socket = tokio_tungstenite::accept_hdr_async(stream, date).await.ok()?;
    let (mut out, mut incoming) = socket.split();
    let mut news = shared.news.subscribe();
    let mut blurts = shared.blurts.subscribe();
    let number = {
        let mut counts = shared.counts();
        counts.connections += 1;
        counts.connections
    };
    let mut session = Session {
        subscriptions: Vec::new(),
        inbox: None,
        challenge: format!("challenge {number}"),
        is_challenged: false,
        is_known: false,
        second: (Instant::now(), 0),
    };
    let was_deaf = shared.deaf.load(Ordering::SeqCst);
    if matches!(shared.manner, Manner::Forbidding | Manner::Asking(Challenge::AtOnce))
        && let Some(challenge) = session.challenge()
    {
        out.send(challenge).await.ok()?;
    }
    loop {
        tokio::select! {
            message = tokio::time::timeout(shared.patience(), incoming.next()) => {
                // Nothing was sent for too long: the connection is closed.
                let said = match message.ok()??.ok()? {
                    Message::Text(said) => said,
                    other => {
                        shared.counts().pongs += usize::from(other.is_pong());
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
                let has_inbox = session.subscriptions.iter().any(|(id, _)| id == "inbox");
                session.inbox = has_inbox.then(|| Arc::clone(&shared.inbox));
            }
            blurt = blurts.recv() => {
                for message in blurt.ok()? {
                    out.send(message).await.ok()?;
                }
            }
            event = news.recv() => {
                let event = event.ok()?;
                let (text, read) = &*event;
                // Connections made after the relay went deaf work normally.
                let is_shown_nothing = !was_deaf && shared.deaf.load(Ordering::SeqCst);
                for (id, filters) in session.subscriptions.iter().filter(|_| !is_shown_nothing) {
                    // An event that cannot be parsed is sent to everybody, as a hostile relay would.
                    let wanted = read.as_ref().is_none_or(|event| matches(filters, event));
                    for _ in 0..if wanted { shared.times() } else { 0 } {
                        out.send(Message::text(format!(r#"["EVENT",{},{text}]"#, json!(id)))).await.ok()?;
                    }
                }
            }
        }
    }
}

/// The state of one connection.
struct Session {
    subscriptions: Vec<(String, Vec<Filter>)>,
    inbox: Option<Arc<()>>,
    challenge: String,
    is_challenged: bool,
    is_known: bool,
    /// The beginning of the second that is being counted, and the events in it.
    second: (Instant, usize),
}

impl Session {
    /// Counts an event. Returns the number of events in this second.
    fn count(&mut self) -> usize {
        if self.second.0.elapsed() >= Duration::from_secs(1) {
            self.second = (Instant::now(), 0);
        }
        self.second.1 += 1;
        self.second.1
    }

    /// The challenge, unless it was already sent.
    fn challenge(&mut self) -> Option<Message> {
        let is_first = !std::mem::replace(&mut self.is_challenged, true);
        is_first.then(|| text(&json!(["AUTH", self.challenge])))
    }

    /// The refusal for a client that must authenticate first, with the challenge if it is due;
    /// `None` if the client may go on.
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

impl Shared {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap()
    }

    /// Sends a text as an event to every subscription.
    fn tell(&self, text: String, event: Option<Event>) {
        // An error means that nobody is connected, which is fine.
        let _ = self.news.send(Arc::new((text, event)));
    }

    /// Stores an event and sends it to every subscription.
    fn keep(&self, event: Event) {
        {
            let mut stored = self.events.lock().unwrap();
            let of_kind = stored.entry(event.kind).or_default();
            of_kind.push(event.clone());
            if let Manner::Forgetful(most) = self.manner {
                let oldest = of_kind.len().saturating_sub(most);
                of_kind.drain(..oldest);
            }
        }
        self.tell(event.as_json(), Some(event));
    }

    fn patience(&self) -> Duration {
        if let Manner::Impatient(patience) = self.manner { patience } else { super::PATIENCE * 10 }
    }

    /// The reason for which this relay refuses an event; `None` if it accepts the event.
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
                    self.counts().list_queries += 1;
                    if self.manner == Manner::Cutting && !self.has_cut.swap(true, Ordering::SeqCst) {
                        return vec![Message::Close(None)];
                    }
                    if self.manner == Manner::Reserved {
                        return Vec::new();
                    }
                }
                let events = self.events.lock().unwrap();
                let mut wanted: Vec<&Event> = matching(&events, &filters).collect();
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
            self.counts().refusals += 1;
            return match self.manner {
                Manner::HangingUp(_) => vec![text(&json!(["NOTICE", objection])), Message::Close(None)],
                _ => vec![text(&json!(["OK", event.id, false, objection]))],
            };
        }
        let id = event.id;
        self.keep(event);
        vec![text(&json!(["OK", id, true, ""]))]
    }

    /// Checks an answer to the challenge.
    fn judge(&self, proof: &Value, session: &mut Session) -> Vec<Message> {
        let Ok(proof) = Event::from_json(proof.to_string()) else { return Vec::new() };
        let names_it = proof.tags.iter().any(|tag| tag.content() == Some(session.challenge.as_str()));
        let is_good = names_it && proof.verify().is_ok() && self.manner != Manner::Forbidding;
        session.is_known |= is_good;
        self.counts().proofs += usize::from(is_good);
        vec![text(&json!(["OK", proof.id, is_good, if is_good { "" } else { "auth-required: not you" }]))]
    }
}

fn text(value: &Value) -> Message {
    Message::text(value.to_string())
}
