//! Messages to askers, before and after they are sealed.

use crate::job::{Asker, EncryptionKey, RumorId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Longest relay address that is used as a hint, in bytes.
const LONGEST_HINT: usize = 128;

/// Proof of work (NIP-13) that a first-time asker's gift wrap needs during a flood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkWanted {
    /// Leading zero bits of the wrap's id.
    pub bits: u32,
    /// Time until no work is needed any more, if the flood stops now.
    pub ends_in: Duration,
}

/// The message that a reply answers. Clients show both in one thread.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Answered {
    /// The id of the message.
    pub rumor: RumorId,
    /// A relay where it was seen, given as a hint beside its id and its author (NIP-17).
    pub hint: Option<String>,
}

impl Answered {
    /// A reference to a message. `seen_on`: the relays where it was seen; the first one is the
    /// hint, if it is not too long.
    pub fn seen(rumor: RumorId, seen_on: &[String]) -> Answered {
        Answered { rumor, hint: seen_on.first().filter(|url| url.len() <= LONGEST_HINT).cloned() }
    }
}

/// A message to one asker, not yet sealed. It contains no secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutgoingMessage {
    /// The receiver. Nobody else will be able to read it.
    pub to: Asker,
    /// The key that seal and wrap are encrypted to (kind 10044); `None` for the receiver's own key.
    pub encryption_key: Option<EncryptionKey>,
    /// Plain text (NIP-17, kind 14).
    pub text: String,
    /// The message that this one answers, if any.
    pub in_reply_to: Option<Answered>,
    /// The subject of the conversation, if it has one.
    pub subject: Option<String>,
    /// Expiration (NIP-40): relays may delete the wrap from this time on, in Unix seconds.
    pub expires_at: u64,
    /// Earliest date of the rumor, Unix seconds. Clients sort by date, so a result must be dated
    /// after its acceptance, even if both were made in the same second.
    pub not_before: u64,
}

/// Omits the text, because a log must not show a request together with its asker.
impl fmt::Debug for OutgoingMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutgoingMessage to {:?}, {} bytes", self.to, self.text.len())
    }
}

/// A sealed message: a signed event of kind 1059 (NIP-59) or of kind 4. It is made once, and every
/// retry sends the same event.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GiftWrap {
    /// Id of the event.
    pub id: [u8; 32],
    /// The receiver of the message.
    pub to: Asker,
    /// The event as JSON, as relays expect it.
    pub json: String,
    /// Expiration (NIP-40): relays may delete it from this time on, in Unix seconds.
    pub expires_at: u64,
}

impl fmt::Debug for GiftWrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GiftWrap to {:?}, {} bytes", self.to, self.json.len())
    }
}
