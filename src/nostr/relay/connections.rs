//! The connections: our own relays with their roles, and strangers' relays for as long as they are needed.

use super::address::is_private;
use super::external::{ExternalRelays, LINGER};
use super::null_database::NullDatabase;
use super::query::{self, Answer, Wanted};
use super::throttle::Pace;
use super::transport::Transport;
use crate::config::RelayEntry;
use crate::nostr::inbox::dedup::is_genuine;
use crate::nostr::{NostrError, wait_until};
use crate::vault::BotSigner;
use nostr_relay_pool::relay;
use nostr_sdk::{
    Client, ClientOptions, Event, Filter, NostrSigner, PublicKey, Relay, RelayOptions, RelayPoolNotification,
    RelayPoolOptions, RelayUrl, SubscriptionId, Timestamp,
};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::broadcast;

/// What the library's stream holds before it runs over: enough for its reader to be late by some seconds in a flood.
const NOTIFICATIONS: usize = 16_384;
/// What one relay of ours may say before it is read, some 2 MB: a question that misses a word of its answer is asked anew.
const HEARD: usize = 8_192;
/// A relay that went away is tried again this often.
const RETRY: Duration = Duration::from_secs(5);
/// How long a relay of ours that has just gone is waited for.
const CONNECT: Duration = Duration::from_secs(7);
/// A relay of ours that connected within this time is about to come back; another is dead, and nobody waits for it.
const JUST_GONE: Duration = Duration::from_secs(60);
/// A relay may take this long to take an event, authentication included.
const PUBLISH: Duration = Duration::from_secs(20);

/// One connection to a relay of ours, to be told from the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::nostr) struct Connection {
    number: usize,
    made_at: Timestamp,
}

/// All connections of the bot. Cheap to clone.
#[derive(Clone)]
pub struct Relays {
    /// Our own relays.
    client: Client,
    entries: Arc<Vec<RelayEntry>>,
    bot: PublicKey,
    strangers: ExternalRelays,
    visits_strangers: bool,
    /// Relays that take only so many events in a time.
    pace: Arc<Pace>,
}

impl Relays {
    /// Adds our relays and connects in the background; dead ones are tried again for as long as the bot runs.
    ///
    /// `visits_strangers`: whether the relays that askers list are connected to.
    ///
    /// Errors: an address that no connection can be made for.
    pub async fn connect(
        entries: &[RelayEntry],
        visits_strangers: bool,
        signer: BotSigner,
    ) -> Result<Relays, NostrError> {
        let bot = signer
            .get_public_key()
            .await
            .map_err(|error| NostrError::Relay { url: "any".to_owned(), reason: error.to_string() })?;
        let pool = RelayPoolOptions::new().notification_channel_size(NOTIFICATIONS);
        let options = ClientOptions::new().pool(pool);
        let builder = Client::builder().signer(signer.clone()).websocket_transport(Transport::to_ours());
        let client = builder.database(NullDatabase).opts(options).build();
        for entry in entries {
            add(&client, &entry.url).await?;
        }
        client.connect().await;
        let at_home = entries.iter().any(|entry| is_private(&entry.url));
        let strangers = ExternalRelays::new(signer, Transport::to_external(!at_home));
        Ok(Relays {
            client,
            entries: Arc::new(entries.to_vec()),
            bot,
            strangers,
            visits_strangers,
            pace: Arc::default(),
        })
    }

    /// Waits until one of our relays is connected, at most `limit`. Returns how many are.
    pub async fn wait_for_any(&self, limit: Duration) -> usize {
        let deadline = Instant::now() + limit;
        loop {
            let mut connected = 0;
            for entry in self.entries.iter() {
                connected += usize::from(self.is_connected(&entry.url).await);
            }
            if connected > 0 || Instant::now() >= deadline {
                return connected;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Leaves all relays.
    pub async fn disconnect(&self) {
        tokio::join!(self.client.shutdown(), self.strangers.disconnect());
    }

    pub(in crate::nostr) fn bot(&self) -> PublicKey {
        self.bot
    }

    pub(in crate::nostr) fn client(&self) -> &Client {
        &self.client
    }

    pub(in crate::nostr) fn notifications(&self) -> broadcast::Receiver<RelayPoolNotification> {
        self.client.notifications()
    }

    /// Our relays of a role.
    pub(in crate::nostr) fn ours(&self, role: impl Fn(&RelayEntry) -> bool) -> Vec<RelayUrl> {
        self.entries.iter().filter(|entry| role(entry)).map(|entry| entry.url.clone()).collect()
    }

    pub(in crate::nostr) async fn is_connected(&self, url: &RelayUrl) -> bool {
        self.client.relay(url).await.is_ok_and(|relay| relay.is_connected())
    }

    /// The connection to a relay of ours; another one after every reconnect.
    pub(in crate::nostr) async fn connection(&self, url: &RelayUrl) -> Option<Connection> {
        let relay = self.client.relay(url).await.ok().filter(Relay::is_connected)?;
        Some(Connection { number: relay.stats().success(), made_at: relay.stats().connected_at() })
    }

    /// Whether the library has this subscription in its book for a relay, and so repeats it after a reconnect.
    pub(in crate::nostr) async fn is_subscribed(&self, url: &RelayUrl, id: &SubscriptionId) -> bool {
        match self.client.relay(url).await {
            Ok(relay) => relay.subscription(id).await.is_some(),
            Err(_) => false,
        }
    }

    /// Drops a connection and makes it anew; what was subscribed there has to be subscribed again.
    ///
    /// From the library's `disconnect` and `connect` in a row, a relay that is just being tried again never recovers.
    pub(in crate::nostr) async fn reconnect(&self, url: &RelayUrl) {
        let _ = self.client.force_remove_relay(url).await;
        if let Err(error) = add(&self.client, url).await {
            tracing::warn!(%error, "a relay cannot be connected anew");
        } else if let Ok(relay) = self.client.relay(url).await {
            relay.connect();
            relay.wait_for_connection(CONNECT).await;
        }
    }

    /// Whether a relay that an asker names may be humanize to, if any. Addresses within the operator's own network are refused,
    /// unless the bot itself lives there.
    pub(in crate::nostr) fn may_visit(&self, url: &RelayUrl) -> bool {
        let at_home = self.entries.iter().any(|entry| is_private(&entry.url));
        self.is_ours(url) || (self.visits_strangers && !url.is_onion() && (at_home || !is_private(url)))
    }

    /// Events that one relay has for `filter`, verified. Without an error at its end the answer is all that the relay has.
    pub(in crate::nostr) async fn fetch(&self, url: &RelayUrl, filter: Filter, limit: Duration) -> Answer {
        self.ask(url, filter, limit, usize::MAX, is_genuine).await
    }

    /// As [`Relays::fetch`], for who verifies the events later: [`is_genuine`] says why.
    pub(in crate::nostr) async fn fetch_unverified(&self, url: &RelayUrl, filter: Filter, limit: Duration) -> Answer {
        self.ask(url, filter, limit, usize::MAX, |_| true).await
    }

    async fn ask(&self, url: &RelayUrl, filter: Filter, limit: Duration, enough: usize, wanted: Wanted) -> Answer {
        match self.visit(url).await {
            Ok(relay) => query::ask(&relay, filter, limit, enough, wanted).await,
            Err(error) => Answer { events: Vec::new(), end: Err(error) },
        }
    }

    /// The one event that one relay has for `filter`, verified, as soon as it is there; `None` means that it answered and
    /// has none.
    pub(in crate::nostr) async fn fetch_one(
        &self,
        url: &RelayUrl,
        filter: Filter,
        limit: Duration,
    ) -> Result<Option<Event>, NostrError> {
        let Answer { events, end } = self.ask(url, filter.limit(1), limit, 1, is_genuine).await;
        end.map(|()| events.into_iter().next())
    }

    /// Sends one event to one relay and waits for its OK; to a relay that wants fewer at a time, when its turn comes.
    pub(in crate::nostr) async fn publish(&self, url: &RelayUrl, event: &Event) -> Result<(), NostrError> {
        let deadline = Instant::now() + PUBLISH;
        loop {
            let Some(turn) = self.pace.turn(url, Instant::now(), deadline) else {
                return Err(NostrError::Busy(url.to_string()));
            };
            wait_until(turn).await;
            match self.publish_now(url, event).await {
                Ok(()) => {
                    self.pace.went_well(url);
                    return Ok(());
                }
                Err(NostrError::Busy(_)) => self.pace.slow_down(url, Instant::now()),
                Err(error) => return Err(error),
            }
        }
    }

    async fn publish_now(&self, url: &RelayUrl, event: &Event) -> Result<(), NostrError> {
        let relay = self.visit(url).await?;
        let delivery = self.pace.deliver(url, Instant::now()).ok_or_else(|| NostrError::Silent(url.to_string()))?;
        let sent = tokio::time::timeout(PUBLISH, relay.send_event(event)).await;
        delivery.heard(!matches!(sent, Err(_) | Ok(Err(relay::Error::Timeout))));
        let Ok(sent) = sent else { return Err(NostrError::Silent(url.to_string())) };
        let Err(error) = sent else { return Ok(()) };
        let (url, reason) = (url.to_string(), error.to_string());
        // The first word of a refusal is for programs (NIP-01).
        match reason.split(':').next().unwrap_or_default() {
            // It has the event: that is all we want.
            "duplicate" => Ok(()),
            "rate-limited" => Err(NostrError::Busy(url)),
            "invalid" | "blocked" | "pow" | "restricted" => Err(NostrError::Refused { url, reason }),
            // Some relays close the connection on who is too fast.
            _ if !relay.is_connected() => Err(NostrError::Busy(url)),
            _ => Err(NostrError::Relay { url, reason }),
        }
    }

    /// A connected relay. Ours are connected anyway; a stranger's is dialled and kept for a while.
    async fn visit(&self, url: &RelayUrl) -> Result<Relay, NostrError> {
        if !self.is_ours(url) {
            return self.strangers.visit(url).await;
        }
        let not_connected = || NostrError::NotConnected(url.to_string());
        let relay = self.client.relay(url).await.map_err(|_| not_connected())?;
        if !relay.is_connected() && relay.stats().connected_at() + JUST_GONE > Timestamp::now() {
            // It closes connections that are idle, say.
            relay.wait_for_connection(CONNECT).await;
        }
        if relay.is_connected() { Ok(relay) } else { Err(not_connected()) }
    }

    fn is_ours(&self, url: &RelayUrl) -> bool {
        self.entries.iter().any(|entry| entry.url == *url)
    }

    /// Leaves strangers' relays that were not used for a while, and forgets how they were.
    pub(in crate::nostr) async fn leave_idle_strangers(&self) {
        self.strangers.leave_idle().await;
        self.pace.forget_idle(Instant::now(), LINGER);
    }
}

/// Connects to a relay and leaves it; says how long it took.
pub async fn reach(url: &RelayUrl, limit: Duration) -> Result<Duration, NostrError> {
    let client = Client::builder().websocket_transport(Transport::to_ours()).build();
    add(&client, url).await?;
    let began = Instant::now();
    let connected = client.try_connect_relay(url, limit).await;
    let took = began.elapsed();
    client.shutdown().await;
    connected.map(|()| took).map_err(|error| NostrError::Relay { url: url.to_string(), reason: error.to_string() })
}

async fn add(client: &Client, url: &RelayUrl) -> Result<(), NostrError> {
    let options =
        RelayOptions::new().retry_interval(RETRY).adjust_retry_interval(false).notification_channel_size(HEARD);
    let added = client.pool().add_relay(url, options).await;
    added.map(|_| ()).map_err(|error| NostrError::Relay { url: url.to_string(), reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::Vault;
    use async_wsocket::futures_util::{SinkExt, StreamExt};
    use nostr_sdk::{EventBuilder, EventId, JsonUtil, Keys, Kind, Tag};
    use std::sync::Mutex;
    use tokio_tungstenite::tungstenite::Message;

    type Shown = Arc<Mutex<Vec<Event>>>;

    /// A relay that shows what it is given, whatever is asked and whether it is true or not.
    async fn liar(shown: Shown) -> RelayUrl {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
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

    /// The library verifies an id once, whatever else comes under it.
    #[tokio::test]
    async fn what_a_relay_shows_under_a_known_id_is_verified_again() {
        let shown = Shown::default();
        let url = liar(Arc::clone(&shown)).await;
        let entry = RelayEntry { url: url.clone(), inbox: true, status: false, discovery: false };
        let signer = Vault::without_identity().unwrap().signer();
        let relays = Relays::connect(&[entry], true, signer).await.unwrap();
        assert_eq!(relays.wait_for_any(Duration::from_secs(20)).await, 1);
        let (author, victim) = (Keys::generate(), Keys::generate());
        let of = |text: &str, keys: &Keys| EventBuilder::new(Kind::RequestToVanish, text).sign_with_keys(keys).unwrap();
        let under = |id: EventId, mut event: Event| {
            event.id = id;
            event
        };
        let patience = Duration::from_secs(20);
        let filter = Filter::new().kind(Kind::RequestToVanish);
        let honest = of("honest", &author);
        *shown.lock().unwrap() = vec![honest.clone()];
        assert_eq!(relays.fetch(&url, filter.clone(), patience).await.events, std::slice::from_ref(&honest));

        // Somebody else's request to be forgotten, and the author's own with something else in it.
        let tagged = EventBuilder::new(Kind::RequestToVanish, "").tag(Tag::public_key(victim.public_key()));
        let mut changed = honest.clone();
        changed.tags = tagged.sign_with_keys(&author).unwrap().tags;
        let mut made_up = under(honest.id, of("made up", &author));
        made_up.pubkey = victim.public_key();
        for forged in [changed, made_up, under(honest.id, of("another", &victim))] {
            *shown.lock().unwrap() = vec![forged.clone()];
            let unverified = relays.fetch_unverified(&url, filter.clone(), patience).await.events;
            assert_eq!(unverified, std::slice::from_ref(&forged), "the library has grown wiser");
            assert_eq!(relays.fetch(&url, filter.clone(), patience).await.events, []);
            assert_eq!(relays.fetch_one(&url, filter.clone(), patience).await.unwrap(), None);
            // The forged copy before the honest event does not stand in its way.
            *shown.lock().unwrap() = vec![forged, honest.clone()];
            assert_eq!(relays.fetch_one(&url, filter.clone(), patience).await.unwrap(), Some(honest.clone()));
        }
        relays.disconnect().await;
    }
}
