//! Incoming messages, and the cheap checks before and after decryption.

use crate::vault::Rumor;
use nostr_sdk::{Event, Kind, PublicKey};
use std::time::Duration;

/// Largest encrypted content of a wrap, in bytes. The longest message that NIP-44 allows in
/// ordinary clients needs less.
const LARGEST: usize = 128 * 1024;
/// The most tags of a wrap.
const MOST_TAGS: usize = 64;
/// Age beyond which messages are not answered.
const OLDEST: Duration = Duration::from_secs(7 * 86_400);
/// Allowance for clocks that are ahead.
const AHEAD: Duration = Duration::from_secs(3600);
/// Kinds of messages that are forwarded: text by NIP-04 (4) and by NIP-17 (14), deletions of
/// requests (5), and files (15) and invitations to MLS groups (444), which the bot declines.
const KINDS: [u16; 5] = [4, 5, 14, 15, 444];

/// A message to the bot that passed every check.
#[derive(Clone, Debug)]
pub struct IncomingMessage {
    /// The decrypted message and its author.
    pub rumor: Rumor,
    /// Relays where its wrap was seen.
    pub seen_on: Vec<String>,
    /// Whether the outermost event has the proof of work that is required in a flood.
    pub paid: bool,
}

/// Whether an event has the right size, kind and receiver.
pub(super) fn is_acceptable(event: &Event, bot: &PublicKey) -> bool {
    matches!(event.kind, Kind::GiftWrap | Kind::EncryptedDirectMessage)
        && event.content.len() <= LARGEST
        && event.tags.len() <= MOST_TAGS
        && event.tags.public_keys().any(|key| key == bot)
}

/// Whether a decrypted message may be answered: of a known kind, and recent.
pub(super) fn is_answerable(rumor: &Rumor, now: u64) -> bool {
    KINDS.contains(&rumor.kind) && is_recent(rumor.created_at, now)
}

/// Whether a message is at most a week old and at most an hour in the future.
fn is_recent(created_at: u64, now: u64) -> bool {
    created_at <= now.saturating_add(AHEAD.as_secs()) && created_at.saturating_add(OLDEST.as_secs()) >= now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_compared_without_overflow() {
        let now = 1_800_000_000;
        assert!(is_recent(now, now) && is_recent(now + 1, now) && is_recent(now - 604_800, now));
        assert!(!is_recent(now - 604_801, now) && !is_recent(now + 3601, now));
        assert!(!is_recent(u64::MAX, now) && !is_recent(0, now) && is_recent(0, 0) && is_recent(u64::MAX, u64::MAX));
    }
}
