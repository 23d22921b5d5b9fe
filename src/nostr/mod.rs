//! Relays: the inbox (gift wraps in), the outbox (stored wraps out), and the bot's presence on its billboard.
//!
//! Nothing in here knows what a pattern is. What comes in is checked before it is passed on; what goes out lies in the
//! ledger's outbox before it is sent, and is sent as it lies there.

mod inbox;
mod outbox;
mod presence;
mod relay;

pub use inbox::{Awaited, Flood, Inbox, IncomingMessage, Watchdog, vanish};
pub use outbox::Outbox;
pub use presence::{Presence, Publisher, Status};
pub use relay::{RelayLists, Relays, nip11, reach};

use std::time::Instant;
use thiserror::Error;

/// Why something did not work with a relay. Never holds what was sent or received.
#[derive(Debug, Error)]
pub enum NostrError {
    #[error("the relay {url} cannot be used: {reason}")]
    Relay { url: String, reason: String },
    #[error("{0} is not connected")]
    NotConnected(String),
    #[error("{0} did not answer in time")]
    Silent(String),
    #[error("{0} wants fewer events at a time")]
    Busy(String),
    /// It will not take this event tomorrow either.
    #[error("{url} refuses: {reason}")]
    Refused { url: String, reason: String },
}

/// Waits until a time, and not at all for one that has passed: the library's timer would take a millisecond even for none,
/// which is longer than opening a wrap takes.
async fn wait_until(time: Instant) {
    if time > Instant::now() {
        tokio::time::sleep_until(time.into()).await;
    }
}
