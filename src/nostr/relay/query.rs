//! Queries: one to one relay, with a definite end, and the search for the newest replaceable event
//! at several.
//!
//! The library's event stream ends the same way after the last event, on a broken connection, and
//! if the relay closes the query for an unknown reason. This module distinguishes them.

use super::connections::Relays;
use super::error::NostrError;
use crate::vault::VerifiedEvent;
use nostr_relay_pool::relay::{RelayNotification, ReqExitPolicy, SubscribeAutoCloseOptions, SubscribeOptions};
use nostr_sdk::message::MachineReadablePrefix;
use nostr_sdk::{
    Event, EventId, Filter, Kind, PublicKey, Relay, RelayMessage, RelayStatus, RelayUrl, SubscriptionId, Timestamp,
};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::Deref;
use std::time::{Duration, Instant};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;

/// Bytes of events that a query holds at once; it ends then, as if the relay had no more. What is
/// older is in the next one.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// The events a relay returned for a query.
#[derive(Debug)]
pub(in crate::nostr) struct Fetched<E> {
    /// Newest first, each once. Complete only if `end` is `Ok`, but usable in any case: the library
    /// does not announce them again.
    pub events: Vec<E>,
    /// `Ok` if these are all events, or as many as are enough.
    pub end: Result<(), NostrError>,
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

async fn listen<E: Deref<Target = Event>>(
    relay: &Relay,
    query_id: &SubscriptionId,
    messages: &mut broadcast::Receiver<RelayNotification>,
    events: &mut Vec<E>,
    query: &Query<E>,
) -> Result<(), NostrError> {
    let not_connected = || NostrError::not_connected(relay.url());
    let mut ids: HashSet<EventId> = HashSet::new();
    let mut bytes = 0;
    loop {
        match messages.recv().await {
            Ok(RelayNotification::Message { message }) => match message {
                RelayMessage::Event { subscription_id, event } if *subscription_id == *query_id => {
                    // The id is remembered after the check: a forged copy must not hide the genuine
                    // event.
                    if let Some(event) = (query.accept)(event.into_owned())
                        && ids.insert(event.id)
                    {
                        bytes += size(&event);
                        events.push(event);
                    }
                    if events.len() >= query.enough || bytes > MAX_BYTES {
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

/// The memory of an event, in bytes, about.
fn size(event: &Event) -> usize {
    let values = event.tags.iter().flat_map(|tag| tag.as_slice());
    event.content.len() + values.map(|value| value.len() + size_of::<String>()).sum::<usize>() + size_of::<Event>()
}

/// Whether a relay closed the query only to ask for authentication. The library then authenticates
/// and repeats the query.
fn asks_for_authentication(reason: &str) -> bool {
    MachineReadablePrefix::parse(reason) == Some(MachineReadablePrefix::AuthRequired)
}

fn failure(relay: &Relay, reason: &str) -> NostrError {
    NostrError::relay(relay.url(), reason)
}

impl Relays {
    /// Fetches and verifies the events that one relay has for `filter`. If the end is `Ok`, these
    /// are all.
    pub(in crate::nostr) async fn fetch(
        &self,
        url: &RelayUrl,
        filter: Filter,
        limit: Duration,
    ) -> Fetched<VerifiedEvent> {
        self.query(url, Query { filter, limit, enough: usize::MAX, accept: VerifiedEvent::check }).await
    }

    /// Fetches events like [`Relays::fetch`], but does not verify them: the caller does so later.
    pub(in crate::nostr) async fn fetch_unverified(
        &self,
        url: &RelayUrl,
        filter: Filter,
        limit: Duration,
    ) -> Fetched<Box<Event>> {
        self.query(url, Query { filter, limit, enough: usize::MAX, accept: |event| Some(Box::new(event)) }).await
    }

    /// Fetches the first genuine event that one relay has for `filter`; `None` if the relay says
    /// that it has none.
    pub(in crate::nostr) async fn fetch_one(
        &self,
        url: &RelayUrl,
        filter: Filter,
        limit: Duration,
    ) -> Result<Option<VerifiedEvent>, NostrError> {
        let began = Instant::now();
        let waiting = tokio::time::timeout(limit, self.lookup_place(url)).await;
        let _place = waiting.map_err(|_| NostrError::silent(url))?;
        let limit = limit.saturating_sub(began.elapsed());
        let query = Query { filter: filter.limit(1), limit, enough: 1, accept: VerifiedEvent::check };
        let Fetched { events, end } = self.query(url, query).await;
        end.map(|()| events.into_iter().next())
    }

    async fn query<E: Deref<Target = Event>>(&self, url: &RelayUrl, query: Query<E>) -> Fetched<E> {
        let mut events = Vec::new();
        let end = self.collect(url, &query, &mut events).await;
        events.sort_by_key(|event: &E| Reverse(event.created_at));
        Fetched { events, end }
    }

    /// Sends a query to a relay, and listens until the relay says that there are no more events, or
    /// there are enough.
    async fn collect<E: Deref<Target = Event>>(
        &self,
        url: &RelayUrl,
        query: &Query<E>,
        events: &mut Vec<E>,
    ) -> Result<(), NostrError> {
        let relay = self.visit(url).await?;
        let (id, mut messages) = (SubscriptionId::generate(), relay.notifications());
        // The library repeats the query after an authentication request, and closes it at its end.
        let closing =
            SubscribeAutoCloseOptions::default().exit_policy(ReqExitPolicy::ExitOnEOSE).timeout(Some(query.limit));
        let options = SubscribeOptions::default().close_on(Some(closing));
        let subscribed = relay.subscribe_with_id(id.clone(), query.filter.clone(), options).await;
        subscribed.map_err(|error| NostrError::relay(url, error))?;
        let listening = listen(&relay, &id, &mut messages, events, query);
        tokio::time::timeout(query.limit, listening).await.unwrap_or_else(|_| Err(NostrError::silent(url)))
    }
}

/// Time limit for one relay's answer.
const RELAY_TIMEOUT: Duration = Duration::from_secs(4);
/// Once a relay has returned an event, the others have this long to return a newer one.
const NEWER_TIMEOUT: Duration = Duration::from_millis(500);
/// Order of replaceable events: the newest counts, of those with the same date the one with the
/// lower id (NIP-01).
pub(super) type EventRank = (Timestamp, Reverse<EventId>);

pub(super) fn rank(event: &Event) -> EventRank {
    (event.created_at, Reverse(event.id))
}

/// The newest of several events.
pub(super) fn newest_of(events: impl IntoIterator<Item = VerifiedEvent>) -> Option<VerifiedEvent> {
    events.into_iter().max_by_key(|event| rank(event))
}

/// The newest event, and how many relays answered.
pub(super) struct Newest {
    pub event: Option<VerifiedEvent>,
    /// Relays that returned an event or said that they have none.
    pub answered: usize,
    /// Relays that did not.
    pub failed: usize,
}

/// Asks relays, all at once, for the newest event of a kind and author. `limit`: for all of them,
/// including those that have to be connected first. `is_quick`: whether relays that are slower than
/// the first one with an event are waited for only [`NEWER_TIMEOUT`].
pub(super) async fn look_up_newest(
    relays: &Relays,
    urls: &HashSet<RelayUrl>,
    author: PublicKey,
    kind: Kind,
    limit: Duration,
    is_quick: bool,
) -> Newest {
    let mut lookups = JoinSet::new();
    for url in urls {
        let (relays, url, filter) = (relays.clone(), url.clone(), Filter::new().kind(kind).author(author));
        lookups.spawn(async move { relays.fetch_one(&url, filter, RELAY_TIMEOUT).await });
    }
    let mut newest = Newest { event: None, answered: 0, failed: 0 };
    let mut ends = Instant::now() + limit;
    while let Ok(Some(lookup)) = tokio::time::timeout_at(ends.into(), lookups.join_next()).await {
        let Some(event) = lookup.ok().and_then(Result::ok) else {
            newest.failed += 1;
            continue;
        };
        newest.answered += 1;
        let own = event.filter(|event| event.pubkey == author && event.kind == kind);
        if is_quick && own.is_some() && newest.event.is_none() {
            ends = Instant::now() + NEWER_TIMEOUT;
        }
        newest.event = newest_of(own.into_iter().chain(newest.event));
    }
    newest.failed += lookups.len();
    newest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nostr::relay::connections::{LOOKUPS_PER_RELAY, Reach};
    use crate::nostr::tests::{PATIENCE, StubbornRelay, accept, connect, listen, ours, query_id, unconnected};
    use futures_util::{SinkExt, StreamExt};
    use nostr_sdk::{EventBuilder, JsonUtil, Keys, Kind, Tag};
    use tokio::net::TcpListener;
    use tokio_tungstenite::tungstenite::Message;

    /// Queries a relay that sends one event and then `last`, with the query's id in place of `ID`;
    /// then it hangs up or stays silent.
    async fn query(last: Option<&str>, hangs_up: bool, limit: Duration) -> Fetched<Box<Event>> {
        let (listener, url) = listen().await;
        let serve = async move {
            let mut socket = accept(&listener).await;
            let id = loop {
                if let Some(id) = query_id(socket.next().await.unwrap().unwrap()) {
                    break id;
                }
            };
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
            let relays = connect(&url).await;
            let filter = Filter::new().kind(Kind::InboxRelays);
            relays.fetch_unverified(&url, filter, limit).await
        };
        tokio::join!(serve, client).1
    }

    #[tokio::test]
    async fn a_query_ends_when_its_events_are_too_large_to_be_held() {
        let relay = StubbornRelay::default();
        let keys = Keys::generate();
        let large = |number: u64| {
            let event = EventBuilder::new(Kind::GiftWrap, "x".repeat(60_000)).custom_created_at(number.into());
            event.sign_with_keys(&keys).unwrap()
        };
        let number = 10 + MAX_BYTES / 60_000;
        *relay.events.lock().unwrap() = (1..=number as u64).map(large).collect();
        let url = relay.run().await;
        let relays = connect(&url).await;
        let fetched = relays.fetch_unverified(&url, Filter::new().kind(Kind::GiftWrap), PATIENCE).await;
        assert!(fetched.end.is_ok(), "{:?}", fetched.end);
        let bytes: usize = fetched.events.iter().map(|event| size(event)).sum();
        assert!(bytes > MAX_BYTES && bytes < MAX_BYTES + 70_000, "{} events, {bytes} bytes", fetched.events.len());
        relays.disconnect().await;
    }

    #[tokio::test]
    async fn only_an_answer_with_an_end_is_complete() {
        let whole = query(Some(r#"["EOSE","ID"]"#), false, PATIENCE).await;
        assert_eq!((whole.events.len(), whole.end.is_ok()), (1, true));
        let cut = query(None, true, PATIENCE).await;
        assert!(matches!(cut.end, Err(NostrError::NotConnected(_))), "{cut:?}");
        assert_eq!(cut.events.len(), 1, "what came is not lost");
        for reason in ["", "shutting down", "error: no room", "rate-limited: slow down"] {
            let closed = query(Some(&format!(r#"["CLOSED","ID","{reason}"]"#)), false, PATIENCE).await;
            assert!(matches!(closed.end, Err(NostrError::Relay { .. })), "{reason}: {closed:?}");
        }
        let silent = query(None, false, Duration::from_millis(300)).await;
        assert!(
            matches!(&silent.end, Err(NostrError::Relay { reason, .. }) if reason.contains("in time")),
            "{silent:?}"
        );
    }

    /// Runs a relay that answers all open queries once no further one comes for 200 ms. Returns the
    /// largest number of queries that were open at once.
    async fn patient(listener: TcpListener, queries: usize) -> usize {
        let mut socket = accept(&listener).await;
        let (mut open, mut most, mut answered) = (Vec::new(), 0, 0);
        while answered < queries {
            let next = tokio::time::timeout(Duration::from_millis(200), socket.next()).await;
            if let Ok(message) = next {
                // The library pings in between.
                open.extend(query_id(message.unwrap().unwrap()));
                most = most.max(open.len());
            } else {
                answered += open.len();
                for id in open.drain(..) {
                    socket.send(Message::text(format!(r#"["EOSE","{id}"]"#))).await.unwrap();
                }
            }
        }
        most
    }

    #[tokio::test]
    async fn lookups_at_one_of_our_relays_wait_for_a_place() {
        let (listener, url) = listen().await;
        let queries = 2 * LOOKUPS_PER_RELAY + 3;
        let relay = tokio::spawn(patient(listener, queries));
        let relays = connect(&url).await;
        let lookups = (0..queries).map(|_| {
            let filter = Filter::new().kind(Kind::InboxRelays).author(Keys::generate().public_key());
            relays.fetch_one(&url, filter, PATIENCE)
        });
        for found in futures_util::future::join_all(lookups).await {
            assert_eq!(found.unwrap(), None);
        }
        assert_eq!(relay.await.unwrap(), LOOKUPS_PER_RELAY);
        relays.disconnect().await;
    }

    #[tokio::test]
    async fn only_the_operators_own_urls_may_be_private() {
        let url = |text: &str| RelayUrl::parse(text).unwrap();
        let own = url("ws://127.0.0.1:9");
        let entries = [ours(&own)];
        let connect = |allow_private| unconnected(&entries, Reach { allow_private, ..Reach::anywhere() });
        let relays = connect(false).await;
        assert!(relays.may_visit(&own) && relays.may_visit(&url("wss://relay.example.com")));
        for private in ["ws://127.0.0.1:8080", "ws://localhost", "ws://192.168.0.1", "ws://169.254.169.254"] {
            assert!(!relays.may_visit(&url(private)), "{private}");
        }
        for port in [22, 25, 111, 1023] {
            assert!(!relays.may_visit(&url(&format!("ws://relay.example.com:{port}"))), "{port}");
        }
        assert!(relays.may_visit(&url("ws://relay.example.com:1024")) && relays.may_visit(&url("ws://relay.example")));
        assert!(connect(true).await.may_visit(&url("ws://127.0.0.1:8080")));
    }

    fn events<E: Deref<Target = Event>>(fetched: Fetched<E>) -> Vec<Event> {
        fetched.events.iter().map(|event| event.deref().clone()).collect()
    }

    /// The library verifies each id only once, so other events under a known id would pass.
    #[tokio::test]
    async fn an_event_under_a_known_id_is_verified_again() {
        let relay = StubbornRelay::default();
        let url = relay.run().await;
        let (relays, shown) = (connect(&url).await, &relay.events);
        let (author, victim) = (Keys::generate(), Keys::generate());
        let signed =
            |text: &str, keys: &Keys| EventBuilder::new(Kind::RequestToVanish, text).sign_with_keys(keys).unwrap();
        let under = |id: EventId, mut event: Event| {
            event.id = id;
            event
        };
        let filter = Filter::new().kind(Kind::RequestToVanish);
        let honest = signed("honest", &author);
        *shown.lock().unwrap() = vec![honest.clone()];
        assert_eq!(events(relays.fetch(&url, filter.clone(), PATIENCE).await), std::slice::from_ref(&honest));

        // A request in somebody else's name, and a genuine event of the author with changed
        // content.
        let tagged = EventBuilder::new(Kind::RequestToVanish, "").tag(Tag::public_key(victim.public_key()));
        let mut changed = honest.clone();
        changed.tags = tagged.sign_with_keys(&author).unwrap().tags;
        let mut made_up = under(honest.id, signed("made up", &author));
        made_up.pubkey = victim.public_key();
        for forged in [changed, made_up, under(honest.id, signed("another", &victim))] {
            *shown.lock().unwrap() = vec![forged.clone()];
            let unverified = relays.fetch_unverified(&url, filter.clone(), PATIENCE).await;
            assert_eq!(events(unverified), std::slice::from_ref(&forged), "the library verifies every event now");
            assert_eq!(events(relays.fetch(&url, filter.clone(), PATIENCE).await), []);
            assert_eq!(relays.fetch_one(&url, filter.clone(), PATIENCE).await.unwrap(), None);
            // A forged copy in front does not hide the honest event.
            *shown.lock().unwrap() = vec![forged, honest.clone()];
            let one = relays.fetch_one(&url, filter.clone(), PATIENCE).await.unwrap();
            assert_eq!(one.map(VerifiedEvent::into_event), Some(honest.clone()));
        }
        relays.disconnect().await;
    }
}
