//! What is said to an asker, before and after it is sealed.

pub use crate::job::Channel;

use crate::job::{Asker, RumorId};
use std::fmt;
use std::time::Duration;

/// Bytes of a relay's address that is passed on as a hint.
const LONGEST_HINT: usize = 128;

/// Proof of work (NIP-13) that a stranger's request needs on its gift wrap while there is a flood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkWanted {
    /// Leading zero bits of the wrap's id.
    pub bits: u32,
    /// When none is needed any more, if the flood stops now.
    pub ends_in: Duration,
}

/// The message that a letter answers, so that clients put both into one thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answered {
    pub rumor: RumorId,
    /// A relay where it was seen: the hint beside its id, and beside its author (NIP-17).
    pub hint: Option<String>,
}

impl Answered {
    /// `seen_on`: the relays where it was seen; one is hint enough.
    pub fn seen(rumor: RumorId, seen_on: &[String]) -> Answered {
        Answered { rumor, hint: seen_on.first().filter(|url| url.len() <= LONGEST_HINT).cloned() }
    }
}

/// A message to one asker, not yet sealed. Holds no secret.
#[derive(Clone, PartialEq, Eq)]
pub struct OutgoingMessage {
    /// The only one who will be able to read it.
    pub to: Asker,
    pub channel: Channel,
    /// Plain text (NIP-17, kind 14).
    pub text: String,
    /// The message it answers, if any.
    pub in_reply_to: Option<Answered>,
    /// The subject of the conversation it belongs to, if it has one.
    pub subject: Option<String>,
    /// NIP-40: when relays may forget the wrap, Unix seconds.
    pub expires_at: u64,
}

/// Without its text: a request beside its asker does not belong in a log.
impl fmt::Debug for OutgoingMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutgoingMessage to {:?}, {} bytes", self.to, self.text.len())
    }
}

/// A sealed letter: a signed event of kind 1059 (NIP-59), or of kind 4. It is sent as it is, however often, and never
/// made twice.
#[derive(Clone, PartialEq, Eq)]
pub struct GiftWrap {
    pub id: [u8; 32],
    pub to: Asker,
    /// The event as relays take it.
    pub json: String,
    pub expires_at: u64,
}

impl fmt::Debug for GiftWrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GiftWrap to {:?}, {} bytes", self.to, self.json.len())
    }
}
