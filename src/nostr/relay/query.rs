//! One question to one relay, and whether it was answered to the end. The library's own stream of events ends in the same way
//! after the last event, where the connection breaks, and where the relay closes the question for no reason it knows.

use crate::nostr::NostrError;
use nostr_relay_pool::relay::{RelayNotification, ReqExitPolicy, SubscribeAutoCloseOptions, SubscribeOptions};
use nostr_sdk::message::MachineReadablePrefix;
use nostr_sdk::{Event, EventId, Filter, Relay, RelayMessage, RelayStatus, SubscriptionId};
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::broadcast::{self, error::RecvError};

/// What a relay had.
#[derive(Debug)]
pub(in crate::nostr) struct Answer {
    /// The newest first, each once. Good for something also when the end is missing: the library announces them no more.
    pub events: Vec<Event>,
    /// Whether these are all, or as many as are enough.
    pub end: Result<(), NostrError>,
}

/// Which of a relay's events count. The library does not verify an event whose id it knows (`checks::is_genuine`).
pub(in crate::nostr) type Wanted = fn(&Event) -> bool;

/// Asks a connected relay for the events of a filter, and listens until it says that these are all, or there are `enough`
/// of those that are wanted.
pub(in crate::nostr) async fn ask(
    relay: &Relay,
    filter: Filter,
    limit: Duration,
    enough: usize,
    wanted: Wanted,
) -> Answer {
    let id = SubscriptionId::generate();
    let mut said = relay.notifications();
    // The library repeats the question when the relay wants to know first who asks, and closes it at the end.
    let closing = SubscribeAutoCloseOptions::default().exit_policy(ReqExitPolicy::ExitOnEOSE).timeout(Some(limit));
    let options = SubscribeOptions::default().close_on(Some(closing));
    if let Err(error) = relay.subscribe_with_id(id.clone(), filter, options).await {
        return Answer { events: Vec::new(), end: Err(wrong(relay, &error.to_string())) };
    }
    let mut events = Vec::new();
    let end = tokio::time::timeout(limit, listen(relay, &id, &mut said, &mut events, (enough, wanted))).await;
    let end = end.unwrap_or_else(|_| Err(NostrError::Silent(relay.url().to_string())));
    events.sort_by_key(|event| std::cmp::Reverse(event.created_at));
    Answer { events, end }
}

async fn listen(
    relay: &Relay,
    question: &SubscriptionId,
    said: &mut broadcast::Receiver<RelayNotification>,
    events: &mut Vec<Event>,
    (enough, wanted): (usize, Wanted),
) -> Result<(), NostrError> {
    let not_connected = || NostrError::NotConnected(relay.url().to_string());
    let mut ids: HashSet<EventId> = HashSet::new();
    loop {
        match said.recv().await {
            Ok(RelayNotification::Message { message }) => match message {
                RelayMessage::Event { subscription_id, event } if *subscription_id == *question => {
                    // A forged copy must not stand in an honest one's way.
                    if wanted(&event) && ids.insert(event.id) {
                        events.push(event.into_owned());
                    }
                    if events.len() >= enough {
                        return Ok(());
                    }
                }
                RelayMessage::EndOfStoredEvents(ended) if *ended == *question => return Ok(()),
                RelayMessage::Closed { subscription_id, message }
                    if *subscription_id == *question && !wants_to_know_us(&message) =>
                {
                    return Err(wrong(relay, &message));
                }
                _ => {}
            },
            Ok(RelayNotification::AuthenticationFailed) => return Err(wrong(relay, "it does not know us")),
            Ok(RelayNotification::RelayStatus {
                status: RelayStatus::Disconnected | RelayStatus::Terminated | RelayStatus::Banned,
            })
            | Ok(RelayNotification::Shutdown)
            | Err(RecvError::Closed) => return Err(not_connected()),
            Err(RecvError::Lagged(_)) => return Err(wrong(relay, "it says more than can be read in time")),
            Ok(_) => {}
        }
    }
}

/// Then the library says who we are, and asks again.
fn wants_to_know_us(reason: &str) -> bool {
    MachineReadablePrefix::parse(reason) == Some(MachineReadablePrefix::AuthRequired)
}

fn wrong(relay: &Relay, reason: &str) -> NostrError {
    NostrError::Relay { url: relay.url().to_string(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nostr::relay::external::ExternalRelays;
    use crate::nostr::relay::transport::Transport;
    use async_wsocket::futures_util::{SinkExt, StreamExt};
    use nostr_sdk::{EventBuilder, JsonUtil, Keys, Kind, RelayUrl};
    use tokio::net::TcpListener;
    use tokio_tungstenite::tungstenite::Message;

    /// What a relay answers with: an event, then this in place of `ID` the question's name; then it hangs up or waits.
    async fn answer(last: Option<&str>, hangs_up: bool, limit: Duration) -> Answer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = RelayUrl::parse(&format!("ws://{}", listener.local_addr().unwrap())).unwrap();
        let serve = async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
            let question = loop {
                if let Message::Text(text) = socket.next().await.unwrap().unwrap() {
                    break text;
                }
            };
            let id = question.split('"').nth(3).unwrap().to_owned();
            let event = EventBuilder::new(Kind::InboxRelays, "").sign_with_keys(&Keys::generate()).unwrap();
            let says =
                [Some(format!(r#"["EVENT","{id}",{}]"#, event.as_json())), last.map(|text| text.replace("ID", &id))];
            for text in says.into_iter().flatten() {
                socket.send(Message::text(text)).await.unwrap();
            }
            if hangs_up {
                socket.close(None).await.unwrap();
            }
            socket
        };
        let asks = async {
            let strangers = ExternalRelays::new(Keys::generate(), Transport::to_external(false));
            let relay = strangers.visit(&url).await.unwrap();
            ask(&relay, Filter::new().kind(Kind::InboxRelays), limit, usize::MAX, |_| true).await
        };
        tokio::join!(serve, asks).1
    }

    #[tokio::test]
    async fn only_an_answer_to_the_end_is_all_there_is() {
        let patience = Duration::from_secs(30);
        let whole = answer(Some(r#"["EOSE","ID"]"#), false, patience).await;
        assert_eq!((whole.events.len(), whole.end.is_ok()), (1, true));
        let cut = answer(None, true, patience).await;
        assert!(matches!(cut.end, Err(NostrError::NotConnected(_))), "{cut:?}");
        assert_eq!(cut.events.len(), 1, "what came is not lost");
        for reason in ["", "shutting down", "error: no room", "rate-limited: slow down"] {
            let closed = answer(Some(&format!(r#"["CLOSED","ID","{reason}"]"#)), false, patience).await;
            assert!(matches!(closed.end, Err(NostrError::Relay { .. })), "{reason}: {closed:?}");
        }
        let silent = answer(None, false, Duration::from_millis(300)).await;
        assert!(matches!(silent.end, Err(NostrError::Silent(_))), "{silent:?}");
    }
}
