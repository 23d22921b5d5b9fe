//! A relay that misbehaves as it is told to: small, in memory, and honest but for its quirk.

use nostr_sdk::async_utility::futures_util::{SinkExt, StreamExt};
use nostr_sdk::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio_tungstenite::tungstenite::Message;

/// What is wrong with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quirk {
    /// AUTH (NIP-42) is demanded; the challenge comes when a connection opens.
    AuthAtOnce,
    /// AUTH is demanded; the challenge comes before the refusal (`OK false`, `CLOSED`) of the first request.
    AuthBeforeRefusal,
    /// AUTH is demanded; the challenge comes after the refusal.
    AuthAfterRefusal,
    /// Every event is refused.
    RefusesAll,
    /// Events are taken without a word.
    NeverOk,
    /// Every event is sent so many times.
    Repeats(usize),
    /// Once told to ([`ScriptedRelay::set_deaf`]), it takes events and shows them to no subscription that is open; one that
    /// is opened anew works.
    Deaf,
}

pub struct ScriptedRelay {
    port: u16,
    shared: Arc<Shared>,
    accepting: tokio::task::JoinHandle<()>,
}

struct Shared {
    quirk: Quirk,
    events: Mutex<Vec<Event>>,
    news: broadcast::Sender<Event>,
    deaf: AtomicBool,
    connections: AtomicUsize,
    authenticated: AtomicUsize,
}

impl ScriptedRelay {
    pub async fn start(quirk: Quirk) -> ScriptedRelay {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            quirk,
            events: Mutex::default(),
            news: broadcast::channel(4096).0,
            deaf: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            authenticated: AtomicUsize::new(0),
        });
        let all = Arc::clone(&shared);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                all.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, Arc::clone(&all)));
            }
        });
        ScriptedRelay { port, shared, accepting }
    }

    pub fn url(&self) -> RelayUrl {
        RelayUrl::parse(&format!("ws://127.0.0.1:{}", self.port)).unwrap()
    }

    /// From now on subscriptions that are open see nothing any more.
    pub fn set_deaf(&self) {
        self.shared.deaf.store(true, Ordering::SeqCst);
    }

    /// Connections that were ever made.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// How often somebody proved who they are.
    pub fn authenticated(&self) -> usize {
        self.shared.authenticated.load(Ordering::SeqCst)
    }
}

impl Drop for ScriptedRelay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// One connection.
struct Session {
    shared: Arc<Shared>,
    challenge: String,
    challenged: bool,
    known: bool,
    /// Opened before the relay went deaf or not.
    opened_deaf: bool,
    subscriptions: Vec<(String, Vec<Filter>)>,
    out: Vec<String>,
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else { return };
    let mut news = shared.news.subscribe();
    let mut session = Session {
        challenge: format!("challenge-{}", shared.connections.load(Ordering::SeqCst)),
        challenged: false,
        known: false,
        opened_deaf: shared.deaf.load(Ordering::SeqCst),
        subscriptions: Vec::new(),
        out: Vec::new(),
        shared,
    };
    if session.shared.quirk == Quirk::AuthAtOnce {
        session.challenge();
    }
    loop {
        for text in std::mem::take(&mut session.out) {
            if socket.send(Message::text(text)).await.is_err() {
                return;
            }
        }
        tokio::select! {
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => session.hear(&text),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            },
            event = news.recv() => if let Ok(event) = event { session.pass_on(&event) },
        }
    }
}

impl Session {
    fn say(&mut self, message: serde_json::Value) {
        self.out.push(message.to_string());
    }

    fn challenge(&mut self) {
        if !self.challenged {
            self.challenged = true;
            let challenge = self.challenge.clone();
            self.say(serde_json::json!(["AUTH", challenge]));
        }
    }

    /// Refuses with the words of NIP-42, if this connection has not proved who it is.
    fn refuses(&mut self, refusal: serde_json::Value) -> bool {
        match self.shared.quirk {
            Quirk::AuthAtOnce | Quirk::AuthBeforeRefusal | Quirk::AuthAfterRefusal if !self.known => {
                if self.shared.quirk == Quirk::AuthBeforeRefusal {
                    self.challenge();
                }
                self.say(refusal);
                if self.shared.quirk == Quirk::AuthAfterRefusal {
                    self.challenge();
                }
                true
            }
            _ => false,
        }
    }

    fn hear(&mut self, text: &str) {
        match ClientMessage::from_json(text) {
            Ok(ClientMessage::Event(event)) => self.take(event.into_owned()),
            Ok(ClientMessage::Req { subscription_id, filters }) => {
                let id = subscription_id.to_string();
                if self.refuses(serde_json::json!(["CLOSED", id, "auth-required: who are you?"])) {
                    return;
                }
                let filters: Vec<Filter> = filters.into_iter().map(|filter| filter.into_owned()).collect();
                let kept = self.shared.events.lock().unwrap().clone();
                for filter in &filters {
                    let matching =
                        kept.iter().rev().filter(|event| filter.match_event(event, MatchEventOptions::new()));
                    let some: Vec<Event> = matching.take(filter.limit.unwrap_or(500)).cloned().collect();
                    some.iter().for_each(|event| self.show(&id, event));
                }
                self.say(serde_json::json!(["EOSE", id]));
                self.subscriptions.retain(|(known, _)| *known != id);
                self.subscriptions.push((id, filters));
            }
            Ok(ClientMessage::Close(id)) => self.subscriptions.retain(|(known, _)| *known != id.to_string()),
            Ok(ClientMessage::Auth(event)) => {
                let named = event.tags.iter().any(|tag| tag.content() == Some(self.challenge.as_str()));
                self.known = named && event.verify().is_ok();
                self.shared.authenticated.fetch_add(usize::from(self.known), Ordering::SeqCst);
                let (id, known) = (event.id.to_hex(), self.known);
                self.say(serde_json::json!(["OK", id, known, ""]));
            }
            _ => {}
        }
    }

    fn take(&mut self, event: Event) {
        let id = event.id.to_hex();
        if self.refuses(serde_json::json!(["OK", id, false, "auth-required: who are you?"])) {
            return;
        }
        if self.shared.quirk == Quirk::RefusesAll {
            return self.say(serde_json::json!(["OK", id, false, "blocked: not here"]));
        }
        {
            let mut events = self.shared.events.lock().unwrap();
            if event.kind.is_replaceable() {
                events.retain(|old| old.kind != event.kind || old.pubkey != event.pubkey);
            }
            events.push(event.clone());
        }
        let _ = self.shared.news.send(event);
        if self.shared.quirk != Quirk::NeverOk {
            self.say(serde_json::json!(["OK", id, true, ""]));
        }
    }

    fn pass_on(&mut self, event: &Event) {
        if self.shared.deaf.load(Ordering::SeqCst) && !self.opened_deaf {
            return;
        }
        let seen =
            |filters: &[Filter]| filters.iter().any(|filter| filter.match_event(event, MatchEventOptions::new()));
        let ids: Vec<String> =
            self.subscriptions.iter().filter(|(_, filters)| seen(filters)).map(|(id, _)| id.clone()).collect();
        ids.iter().for_each(|id| self.show(id, event));
    }

    fn show(&mut self, id: &str, event: &Event) {
        let times = if let Quirk::Repeats(times) = self.shared.quirk { times } else { 1 };
        for _ in 0..times {
            self.say(serde_json::json!(["EVENT", id, event]));
        }
    }
}
