//! The error type of this room.

use super::said::said;
use nostr_sdk::RelayUrl;
use thiserror::Error;

/// The reason why a relay did not do what was asked. Foreign text in it is shortened and escaped,
/// so it may be logged.
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
    /// The relay limits our rate.
    #[error("{0} takes fewer events at a time")]
    Busy(String),
    /// Too many events are in progress to external relays, or to this one.
    #[error("{0} is visited later")]
    NoRoom(String),
    /// The relay will never accept this event.
    #[error("{url} refuses: {reason}")]
    Refused {
        /// The relay's address.
        url: String,
        /// The relay's words.
        reason: String,
    },
}

impl NostrError {
    pub(super) fn relay(url: &RelayUrl, reason: impl ToString) -> NostrError {
        NostrError::Relay { url: said(url), reason: said(reason) }
    }

    pub(super) fn not_connected(url: &RelayUrl) -> NostrError {
        NostrError::NotConnected(said(url))
    }

    pub(super) fn silent(url: &RelayUrl) -> NostrError {
        NostrError::Silent(said(url))
    }

    pub(super) fn busy(url: &RelayUrl) -> NostrError {
        NostrError::Busy(said(url))
    }

    pub(super) fn no_room(url: &RelayUrl) -> NostrError {
        NostrError::NoRoom(said(url))
    }

    pub(super) fn refused(url: &RelayUrl, reason: impl ToString) -> NostrError {
        NostrError::Refused { url: said(url), reason: said(reason) }
    }
}
