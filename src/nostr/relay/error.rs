//! The error type of this room.

use nostr_sdk::RelayUrl;
use thiserror::Error;

/// The reason why a relay did not do what was asked. Foreign text in it is shortened and escaped,
/// so it may be logged.
#[derive(Debug, Error)]
pub enum NostrError {
    /// The relay failed, answered with an error, did not answer in time, or is visited later.
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
    /// The relay limits our rate.
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

/// The reason while too many events are in progress to external relays, or to this one.
pub(super) const NO_ROOM: &str = "it is visited later";

impl NostrError {
    pub(super) fn relay(url: &RelayUrl, reason: impl ToString) -> NostrError {
        NostrError::Relay { url: escape_for_log(url), reason: escape_for_log(reason) }
    }

    pub(super) fn not_connected(url: &RelayUrl) -> NostrError {
        NostrError::NotConnected(escape_for_log(url))
    }

    /// The relay did not answer within the time limit.
    pub(in crate::nostr) fn silent(url: &RelayUrl) -> NostrError {
        NostrError::relay(url, "it did not answer in time")
    }

    pub(super) fn busy(url: &RelayUrl) -> NostrError {
        NostrError::Busy(escape_for_log(url))
    }

    /// Too many events are in progress.
    pub(super) fn no_room(url: &RelayUrl) -> NostrError {
        NostrError::relay(url, NO_ROOM)
    }

    pub(super) fn refused(url: &RelayUrl, reason: impl ToString) -> NostrError {
        NostrError::Refused { url: escape_for_log(url), reason: escape_for_log(reason) }
    }
}

/// The most characters of foreign text in a log line.
const MAX_LOGGED_CHARS: usize = 200;

/// Makes foreign text safe to log: escapes control characters and others that change how a line is
/// shown, and cuts it to 200 characters.
pub(in crate::nostr) fn escape_for_log(text: impl ToString) -> String {
    let text = text.to_string();
    let escape = |character: char| match character {
        '"' | '\'' | '\\' => character.to_string(),
        _ => character.escape_debug().to_string(),
    };
    let mut cut: String = text.chars().take(MAX_LOGGED_CHARS + 1).map(escape).collect();
    if let Some((end, _)) = cut.char_indices().nth(MAX_LOGGED_CHARS) {
        cut.truncate(end);
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_cut_and_its_control_characters_are_escaped() {
        assert_eq!(escape_for_log("blocked: no room"), "blocked: no room");
        assert_eq!(escape_for_log("a\nb\u{1b}[2J\u{202e}c\0"), r"a\nb\u{1b}[2J\u{202e}c\0");
        let long = escape_for_log("é".repeat(1 << 20));
        assert_eq!(long.chars().count(), MAX_LOGGED_CHARS + 1, "and a mark that something is missing");
        assert!(escape_for_log("\n".repeat(1 << 20)).chars().count() <= MAX_LOGGED_CHARS + 1);
    }
}
