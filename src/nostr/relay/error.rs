//! The error type of this room.

use thiserror::Error;

/// Why a relay did not do what it was asked. Never holds an event's content.
#[derive(Debug, Error)]
pub enum NostrError {
    /// The relay failed or answered with an error.
    #[error("the relay {url} cannot be used: {reason}")]
    Relay {
        /// The relay's address.
        url: String,
        /// The relay's or the library's words.
        reason: String,
    },
    /// There is no connection to this relay.
    #[error("{0} is not connected")]
    NotConnected(String),
    /// The relay did not answer within the time limit.
    #[error("{0} did not answer in time")]
    Silent(String),
    /// The relay limits our rate, or has too many messages under way already.
    #[error("{0} takes fewer events at a time")]
    Busy(String),
    /// The relay will never accept this event.
    #[error("{url} refuses: {reason}")]
    Refused {
        /// The relay's address.
        url: String,
        /// The relay's words.
        reason: String,
    },
}
