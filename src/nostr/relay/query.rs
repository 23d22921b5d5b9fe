//! One query to one relay, with a definite end.
//!
//! The library's event stream ends the same way after the last event, on a broken connection, and
//! if the relay closes the query for an unknown reason. This module distinguishes them.

use super::error::NostrError;
use nostr_relay_pool::relay::{RelayNotification, ReqExitPolicy, SubscribeAutoCloseOptions, SubscribeOptions};
use nostr_sdk::message::MachineReadablePrefix;
use nostr_sdk::{Event, EventId, Filter, Relay, RelayMessage, RelayStatus, SubscriptionId};
use std::collections::HashSet;
use std::ops::Deref;
use std::time::Duration;
use tokio::sync::broadcast::{self, error::RecvError};

/// The events a relay returned for a query.
#[derive(Debug)]
pub(in crate::nostr) struct Fetched<E> {
    /// Newest first, each once. Complete only if `end` is `Ok`, but usable in any case: the library
    /// does not announce them again.
    pub events: Vec<E>,
    /// `Ok` if these are all events, or as many as are enough.
    pub end: Result<(), NostrError>,
}

impl<E> Fetched<E> {
    /// No events, because of an error.
    pub fn failed(error: NostrError) -> Fetched<E> {
        Fetched { events: Vec::new(), end: Err(error) }
    }
}

/// A filter with its limits.
pub(super) struct Query<E> {
    /// The filter that selects the events.
    pub filter: Filter,
    /// The time limit.
    pub limit: Duration,
    /// The query ends once it has this many accepted events.
    pub enough: usize,
    /// Accepts or rejects one event. It must verify the event unless the caller does so later,
    /// because the library verifies each id only once (see `vault::VerifiedEvent`).
    pub accept: fn(Event) -> Option<E>,
}

/// Sends a query to a connected relay, and listens until the relay says that there are no more
/// events, or there are enough.
pub(super) async fn run<E: Deref<Target = Event>>(relay: &Relay, query: Query<E>) -> Fetched<E> {
    let id = SubscriptionId::generate();
    let mut messages = relay.notifications();
    // The library repeats the query after an authentication request, and closes it at its end.
    let closing =
        SubscribeAutoCloseOptions::default().exit_policy(ReqExitPolicy::ExitOnEOSE).timeout(Some(query.limit));
    let options = SubscribeOptions::default().close_on(Some(closing));
    if let Err(error) = relay.subscribe_with_id(id.clone(), query.filter.clone(), options).await {
        return Fetched::failed(failure(relay, &error.to_string()));
    }
    let mut events = Vec::new();
    let end = tokio::time::timeout(query.limit, listen(relay, &id, &mut messages, &mut events, &query)).await;
    let end = end.unwrap_or_else(|_| Err(NostrError::silent(relay.url())));
    events.sort_by_key(|event| std::cmp::Reverse(event.created_at));
    Fetched { events, end }
}

async fn listen<E: Deref<Target = Event>>(
    relay: &Relay,
    query_id: &SubscriptionId,
    messages: &mut broadcast::Receiver<RelayNotification>,
    events: &mut Vec<E>,
    query: &Query<E>,
) -> Result<(), NostrError> {
    let not_connected = || NostrError::not_connected(relay.url());
    let mut ids: HashSet<EventId> = HashSet::new();
    loop {
        match messages.recv().await {
            Ok(RelayNotification::Message { message }) => match message {
                RelayMessage::Event { subscription_id, event } if *subscription_id == *query_id => {
                    // The id is remembered after the check: a forged copy must not hide the genuine
                    // event.
                    if let Some(event) = (query.accept)(event.into_owned())
                        && ids.insert(event.id)
                    {
                        events.push(event);
                    }
                    if events.len() >= query.enough {
                        return Ok(());
                    }
                }
                RelayMessage::EndOfStoredEvents(ended) if *ended == *query_id => return Ok(()),
                RelayMessage::Closed { subscription_id, message }
                    if *subscription_id == *query_id && !asks_for_authentication(&message) =>
                {
                    return Err(failure(relay, &message));
                }
                _ => {}
            },
            Ok(RelayNotification::AuthenticationFailed) => return Err(failure(relay, "authentication failed")),
            Ok(RelayNotification::RelayStatus {
                status: RelayStatus::Disconnected | RelayStatus::Terminated | RelayStatus::Banned,
            })
            | Ok(RelayNotification::Shutdown)
            | Err(RecvError::Closed) => return Err(not_connected()),
            Err(RecvError::Lagged(_)) => return Err(failure(relay, "it sends faster than we read")),
            Ok(_) => {}
        }
    }
}

/// Whether a relay closed the query only to ask for authentication. The library then authenticates
/// and repeats the query.
fn asks_for_authentication(reason: &str) -> bool {
    MachineReadablePrefix::parse(reason) == Some(MachineReadablePrefix::AuthRequired)
}

fn failure(relay: &Relay, reason: &str) -> NostrError {
    NostrError::relay(relay.url(), reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nostr::relay::external::ExternalRelays;
    use crate::nostr::relay::resolver::Resolver;
    use crate::nostr::relay::visitor::Visitor;
    use futures_util::{SinkExt, StreamExt};
    use nostr_sdk::{EventBuilder, JsonUtil, Keys, Kind, RelayUrl};
    use tokio::net::TcpListener;
    use tokio_tungstenite::tungstenite::Message;

    /// Queries a relay that sends one event and then `last`, with the query's id in place of `ID`;
    /// then it hangs up or stays silent.
    async fn query(last: Option<&str>, hangs_up: bool, limit: Duration) -> Fetched<Box<Event>> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = RelayUrl::parse(&format!("ws://{}", listener.local_addr().unwrap())).unwrap();
        let serve = async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
            let request = loop {
                if let Message::Text(text) = socket.next().await.unwrap().unwrap() {
                    break text;
                }
            };
            let id = request.split('"').nth(3).unwrap().to_owned();
            let event = EventBuilder::new(Kind::InboxRelays, "").sign_with_keys(&Keys::generate()).unwrap();
            let messages =
                [Some(format!(r#"["EVENT","{id}",{}]"#, event.as_json())), last.map(|text| text.replace("ID", &id))];
            for text in messages.into_iter().flatten() {
                socket.send(Message::text(text)).await.unwrap();
            }
            if hangs_up {
                socket.close(None).await.unwrap();
            }
            socket
        };
        let client = async {
            let external = ExternalRelays::new(Keys::generate(), false, Resolver::default(), None);
            let relay = external.visit_new(&url, Visitor::NOBODY).await.unwrap();
            let filter = Filter::new().kind(Kind::InboxRelays);
            run(&relay, Query { filter, limit, enough: usize::MAX, accept: |event| Some(Box::new(event)) }).await
        };
        tokio::join!(serve, client).1
    }

    #[tokio::test]
    async fn only_an_answer_with_an_end_is_complete() {
        let patience = Duration::from_secs(30);
        let whole = query(Some(r#"["EOSE","ID"]"#), false, patience).await;
        assert_eq!((whole.events.len(), whole.end.is_ok()), (1, true));
        let cut = query(None, true, patience).await;
        assert!(matches!(cut.end, Err(NostrError::NotConnected(_))), "{cut:?}");
        assert_eq!(cut.events.len(), 1, "what came is not lost");
        for reason in ["", "shutting down", "error: no room", "rate-limited: slow down"] {
            let closed = query(Some(&format!(r#"["CLOSED","ID","{reason}"]"#)), false, patience).await;
            assert!(matches!(closed.end, Err(NostrError::Relay { .. })), "{reason}: {closed:?}");
        }
        let silent = query(None, false, Duration::from_millis(300)).await;
        assert!(matches!(silent.end, Err(NostrError::Silent(_))), "{silent:?}");
    }
}
