//! Sending one event to one relay.

use super::connections::Relays;
use super::error::NostrError;
use super::external::LINGER;
use super::timer::wait_until;
use nostr_relay_pool::relay;
use nostr_sdk::{Event, RelayUrl};
use std::time::{Duration, Instant};

/// Time limit for a relay to accept an event, authentication included.
const PUBLISH: Duration = Duration::from_secs(20);

impl Relays {
    /// Sends one event to one relay and waits for its OK. A relay that limits our rate gets it when its turn comes.
    ///
    /// Errors: see [`NostrError`].
    pub(in crate::nostr) async fn publish(&self, url: &RelayUrl, event: &Event) -> Result<(), NostrError> {
        let deadline = Instant::now() + PUBLISH;
        loop {
            let Some(turn) = self.throttle.turn(url, Instant::now(), deadline) else {
                return Err(NostrError::busy(url));
            };
            wait_until(turn).await;
            match self.publish_now(url, event).await {
                Ok(()) => {
                    self.throttle.speed_up(url);
                    return Ok(());
                }
                Err(NostrError::Busy(_)) => self.throttle.slow_down(url, Instant::now()),
                Err(error) => return Err(error),
            }
        }
    }

    async fn publish_now(&self, url: &RelayUrl, event: &Event) -> Result<(), NostrError> {
        let relay = self.visit(url).await?;
        let silent = || NostrError::silent(url);
        let delivery = self.throttle.begin_delivery(url, Instant::now()).ok_or_else(silent)?;
        let sent = tokio::time::timeout(PUBLISH, relay.send_event(event)).await;
        delivery.end(!matches!(sent, Err(_) | Ok(Err(relay::Error::Timeout))));
        let Err(error) = sent.map_err(|_| silent())? else { return Ok(()) };
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

    /// Disconnects from external relays that were not used for a while, and forgets their rate limits.
    pub(in crate::nostr) async fn leave_idle_external(&self) {
        self.external.leave_idle().await;
        self.throttle.forget_idle(Instant::now(), LINGER);
    }
}
