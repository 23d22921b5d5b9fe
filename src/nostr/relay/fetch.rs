//! Reading events from one relay.

use super::connections::Relays;
use super::error::NostrError;
use super::query::{self, Fetched, Query};
use crate::vault::VerifiedEvent;
use nostr_sdk::{Event, Filter, RelayUrl};
use std::ops::Deref;
use std::time::{Duration, Instant};

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
        match self.visit(url).await {
            Ok(relay) => query::run(&relay, query).await,
            Err(error) => Fetched::failed(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RelayEntry;
    use crate::nostr::relay::connections::{LOOKUPS, Reach};
    use crate::vault::Vault;
    use futures_util::{SinkExt, StreamExt};
    use nostr_sdk::{EventBuilder, EventId, JsonUtil, Keys, Kind, Tag};
    use std::sync::{Arc, Mutex};
    use tokio::net::TcpListener;
    use tokio_tungstenite::tungstenite::Message;

    type Shown = Arc<Mutex<Vec<Event>>>;

    /// A relay that answers every query with the given events, genuine or not.
    async fn liar(shown: Shown) -> RelayUrl {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
            while let Some(Ok(message)) = socket.next().await {
                let Ok(text) = message.into_text() else { continue };
                let Some(id) = text.strip_prefix(r#"["REQ",""#).and_then(|rest| rest.split('"').next()) else {
                    continue;
                };
                let shown = shown.lock().unwrap().clone();
                for event in shown {
                    let said = format!(r#"["EVENT","{id}",{}]"#, event.as_json());
                    socket.send(Message::text(said)).await.unwrap();
                }
                socket.send(Message::text(format!(r#"["EOSE","{id}"]"#))).await.unwrap();
            }
        });
        RelayUrl::parse(&url).unwrap()
    }

    /// Runs a relay that answers all open queries once no further one comes for 200 ms. Returns the
    /// largest number of queries that were open at once.
    async fn patient(listener: TcpListener, queries: usize) -> usize {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        let (mut open, mut most, mut answered) = (Vec::new(), 0, 0);
        while answered < queries {
            let next = tokio::time::timeout(Duration::from_millis(200), socket.next()).await;
            if let Ok(message) = next {
                // The library pings in between.
                let Ok(text) = message.unwrap().unwrap().into_text() else { continue };
                if text.starts_with(r#"["REQ""#) {
                    open.push(text.split('"').nth(3).unwrap().to_owned());
                    most = most.max(open.len());
                }
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
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = RelayUrl::parse(&format!("ws://{}", listener.local_addr().unwrap())).unwrap();
        let queries = 2 * LOOKUPS + 3;
        let relay = tokio::spawn(patient(listener, queries));
        let entry = RelayEntry { url: url.clone(), inbox: true, status: false, discovery: false };
        let signer = Vault::without_identity().unwrap().signer();
        let relays = Relays::connect(&[entry], Reach::anywhere(), signer).await.unwrap();
        assert_eq!(relays.wait_for_any(Duration::from_secs(20)).await, 1);
        let lookups = (0..queries).map(|_| {
            let filter = Filter::new().kind(Kind::InboxRelays).author(Keys::generate().public_key());
            relays.fetch_one(&url, filter, Duration::from_secs(20))
        });
        for found in futures_util::future::join_all(lookups).await {
            assert_eq!(found.unwrap(), None);
        }
        assert_eq!(relay.await.unwrap(), LOOKUPS);
        relays.disconnect().await;
    }

    #[tokio::test]
    async fn only_the_operators_own_urls_may_be_private() {
        let url = |text: &str| RelayUrl::parse(text).unwrap();
        let ours = url("ws://127.0.0.1:9");
        let entry = RelayEntry { url: ours.clone(), inbox: true, status: false, discovery: false };
        let connect = |allow_private| {
            let (entry, signer) = (entry.clone(), Vault::without_identity().unwrap().signer());
            async move { Relays::connect(&[entry], Reach { allow_private, ..Reach::anywhere() }, signer).await.unwrap() }
        };
        let relays = connect(false).await;
        assert!(relays.may_visit(&ours) && relays.may_visit(&url("wss://relay.example.com")));
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
        let shown = Shown::default();
        let url = liar(Arc::clone(&shown)).await;
        let entry = RelayEntry { url: url.clone(), inbox: true, status: false, discovery: false };
        let signer = Vault::without_identity().unwrap().signer();
        let relays = Relays::connect(&[entry], Reach::anywhere(), signer).await.unwrap();
        assert_eq!(relays.wait_for_any(Duration::from_secs(20)).await, 1);
        let (author, victim) = (Keys::generate(), Keys::generate());
        let signed =
            |text: &str, keys: &Keys| EventBuilder::new(Kind::RequestToVanish, text).sign_with_keys(keys).unwrap();
        let under = |id: EventId, mut event: Event| {
            event.id = id;
            event
        };
        let patience = Duration::from_secs(20);
        let filter = Filter::new().kind(Kind::RequestToVanish);
        let honest = signed("honest", &author);
        *shown.lock().unwrap() = vec![honest.clone()];
        assert_eq!(events(relays.fetch(&url, filter.clone(), patience).await), std::slice::from_ref(&honest));

        // A request in somebody else's name, and a genuine event of the author with changed
        // content.
        let tagged = EventBuilder::new(Kind::RequestToVanish, "").tag(Tag::public_key(victim.public_key()));
        let mut changed = honest.clone();
        changed.tags = tagged.sign_with_keys(&author).unwrap().tags;
        let mut made_up = under(honest.id, signed("made up", &author));
        made_up.pubkey = victim.public_key();
        for forged in [changed, made_up, under(honest.id, signed("another", &victim))] {
            *shown.lock().unwrap() = vec![forged.clone()];
            let unverified = relays.fetch_unverified(&url, filter.clone(), patience).await;
            assert_eq!(events(unverified), std::slice::from_ref(&forged), "the library verifies every event now");
            assert_eq!(events(relays.fetch(&url, filter.clone(), patience).await), []);
            assert_eq!(relays.fetch_one(&url, filter.clone(), patience).await.unwrap(), None);
            // A forged copy in front does not hide the honest event.
            *shown.lock().unwrap() = vec![forged, honest.clone()];
            let one = relays.fetch_one(&url, filter.clone(), patience).await.unwrap();
            assert_eq!(one.map(VerifiedEvent::into_event), Some(honest.clone()));
        }
        relays.disconnect().await;
    }
}
