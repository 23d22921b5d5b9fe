//! One connection to the relay that does not follow the rules.

use super::{Challenge, Manner, Shared, matches};
use futures_util::{SinkExt, StreamExt};
use nostr_sdk::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;

pub(super) async fn listen(listener: TcpListener, shared: Arc<Shared>, stopped: watch::Receiver<()>) {
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
    let socket = tokio_tungstenite::accept_async(stream).await.ok()?;
    let (mut out, mut incoming) = socket.split();
    let mut news = shared.news.subscribe();
    let mut blurts = shared.blurts.subscribe();
    let number = shared.connections.fetch_add(1, Ordering::SeqCst);
    let mut session = Session {
        subscriptions: Vec::new(),
        challenge: format!("challenge {number}"),
        is_challenged: false,
        is_known: false,
        is_shown_nothing: false,
        second: (Instant::now(), 0),
    };
    // Connections made after the relay went deaf work normally.
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
                // Nothing was sent for too long: the connection is closed.
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
                // An event that cannot be parsed is sent to everybody, as a hostile relay would.
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

/// The state of one connection.
struct Session {
    subscriptions: Vec<(String, Vec<Filter>)>,
    challenge: String,
    is_challenged: bool,
    is_known: bool,
    is_shown_nothing: bool,
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

/// Counts a connection with a subscription named `inbox`, until it is dropped.
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
        if let Manner::Impatient(patience) = self.manner { patience } else { crate::support::PATIENCE * 10 }
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
                    self.list_queries.fetch_add(1, Ordering::SeqCst);
                    if self.manner == Manner::Cutting && !self.has_cut.swap(true, Ordering::SeqCst) {
                        return vec![Message::Close(None)];
                    }
                    if self.manner == Manner::Reserved {
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

    /// Checks an answer to the challenge.
    fn judge(&self, proof: &Value, session: &mut Session) -> Vec<Message> {
        let Ok(proof) = Event::from_json(proof.to_string()) else { return Vec::new() };
        let names_it = proof.tags.iter().any(|tag| tag.content() == Some(session.challenge.as_str()));
        let is_good = names_it && proof.verify().is_ok() && self.manner != Manner::Forbidding;
        session.is_known |= is_good;
        self.proofs.fetch_add(usize::from(is_good), Ordering::SeqCst);
        vec![text(&json!(["OK", proof.id, is_good, if is_good { "" } else { "auth-required: not you" }]))]
    }
}

fn text(value: &Value) -> Message {
    Message::text(value.to_string())
}
