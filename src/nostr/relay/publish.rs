//! Sending one event to one relay.

use super::connections::Relays;
use super::error::NostrError;
use super::host::Hosts;
use super::known::LINGER;
use super::throttle::{Delivery, MostAtOnce, Start};
use super::timer::wait_until;
use super::visitor::Visitor;
use nostr_relay_pool::relay;
use nostr_sdk::{Event, JsonUtil, Relay, RelayUrl};
use std::time::{Duration, Instant};

/// Time limit for a relay to accept an event, authentication included.
const PUBLISH: Duration = Duration::from_secs(20);
/// The longest time that an event waits for others in progress to the same external host.
const WAIT: Duration = Duration::from_secs(1);
/// Pause between two attempts to start.
const ASK_AGAIN: Duration = Duration::from_millis(50);

impl Relays {
    /// Sends one of the bot's own events to one relay and waits for its OK.
    ///
    /// Errors: see [`NostrError`].
    pub(in crate::nostr) async fn publish(&self, url: &RelayUrl, event: &Event) -> Result<(), NostrError> {
        self.publish_for(url, &event.as_json(), Visitor::NOBODY).await
    }

    /// Sends one event to one relay and waits for its OK. A relay that limits our rate gets the
    /// event when its turn comes.
    ///
    /// `event`: the event's JSON. It is parsed only when it can be sent, because a parsed event
    /// takes some 6 KiB, and many visits to external relays end before that. `visitor`: the asker
    /// for whom an external relay is visited.
    ///
    /// Errors: see [`NostrError`].
    pub(in crate::nostr) async fn publish_for(
        &self,
        url: &RelayUrl,
        event: &str,
        visitor: Visitor,
    ) -> Result<(), NostrError> {
        let hosts = self.hosts(url, visitor).await?;
        let (host, deadline) = (&hosts.limited, Instant::now() + PUBLISH);
        loop {
            let turn = self.throttle.turn(host, Instant::now(), deadline).ok_or_else(|| NostrError::busy(url))?;
            wait_until(turn).await;
            let sent = if self.is_ours(url) {
                self.publish_to_ours(url, &hosts, event).await
            } else {
                self.publish_to_external(url, &hosts, event, visitor).await
            };
            match sent {
                Ok(()) => {
                    self.throttle.speed_up(host);
                    return Ok(());
                }
                Err(NostrError::Busy(_)) => self.throttle.slow_down(host, Instant::now()),
                Err(error) => return Err(error),
            }
        }
    }

    async fn publish_to_ours(&self, url: &RelayUrl, hosts: &Hosts, event: &str) -> Result<(), NostrError> {
        let relay = self.our_relay(url).await?;
        let delivery = self.begin_delivery(url, hosts, MostAtOnce::OURS).await?;
        send(&relay, event, &delivery).await
    }

    /// Sends an event to an external relay. The delivery is registered before the relay is dialled,
    /// so that a host that does not answer cannot delay many events.
    async fn publish_to_external(
        &self,
        url: &RelayUrl,
        hosts: &Hosts,
        event: &str,
        visitor: Visitor,
    ) -> Result<(), NostrError> {
        let delivery = self.begin_delivery(url, hosts, MostAtOnce::external(visitor.urgent)).await?;
        let relay = self.external.visit(url, hosts, visitor).await?;
        let sent = send(&relay, event, &delivery).await;
        match &sent {
            Ok(()) | Err(NostrError::Refused { .. }) => self.external.answered(url),
            // The relay lost its slot to another visitor, or it closed the connection and has never
            // accepted an event. It is not dialled again in this attempt.
            Err(NostrError::Busy(_)) if !self.external.holds(url) => return Err(NostrError::no_room(url)),
            Err(NostrError::Busy(_)) if !self.throttle.has_answered(&hosts.named) => {
                return Err(NostrError::not_connected(url));
            }
            Err(_) => {}
        }
        sent
    }

    async fn begin_delivery<'a>(
        &'a self,
        url: &RelayUrl,
        hosts: &'a Hosts,
        most: MostAtOnce,
    ) -> Result<Delivery<'a>, NostrError> {
        let deadline = Instant::now() + WAIT;
        loop {
            match self.throttle.begin_delivery(hosts, most, Instant::now()) {
                Start::Now(delivery) => return Ok(delivery),
                Start::Later => return Err(NostrError::silent(url)),
                Start::Soon if Instant::now() >= deadline => return Err(NostrError::no_room(url)),
                Start::Soon => tokio::time::sleep(ASK_AGAIN).await,
            }
        }
    }

    /// Disconnects from external relays that were not used for a while, and forgets their rate
    /// limits.
    pub(in crate::nostr) async fn leave_idle_external(&self) {
        self.external.leave_idle().await;
        self.throttle.forget_idle(Instant::now(), LINGER);
    }
}

async fn send(relay: &Relay, event: &str, delivery: &Delivery<'_>) -> Result<(), NostrError> {
    let url = relay.url();
    let event = Event::from_json(event).map_err(|error| NostrError::relay(url, error.to_string()))?;
    let sent = tokio::time::timeout(PUBLISH, relay.send_event(&event)).await;
    delivery.end(!matches!(sent, Err(_) | Ok(Err(relay::Error::Timeout))));
    let Err(error) = sent.map_err(|_| NostrError::silent(url))? else { return Ok(()) };
    let reason = error.to_string();
    // The first word of a refusal is machine-readable (NIP-01).
    match reason.split(':').next().unwrap_or_default() {
        // The relay has the event already.
        "duplicate" => Ok(()),
        "rate-limited" => Err(NostrError::busy(url)),
        "invalid" | "blocked" | "pow" | "restricted" => Err(NostrError::refused(url, reason)),
        // Some relays enforce a rate limit by closing the connection.
        _ if !relay.is_connected() => Err(NostrError::busy(url)),
        _ => Err(NostrError::relay(url, reason)),
    }
}
