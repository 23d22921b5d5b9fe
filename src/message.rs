//! Messages to askers, before and after they are sealed.

pub use crate::job::Channel;

use crate::job::{Asker, RumorId};
use std::fmt;
use std::time::Duration;

/// Longest relay address that is passed on as a hint, bytes.
const LONGEST_HINT: usize = 128;

/// Proof of work (NIP-13) that a stranger's request needs on its gift wrap while there is a flood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkWanted {
    /// Leading zero bits of the wrap's id.
    pub bits: u32,
    /// When none is needed any more, if the flood stops now.
    pub ends_in: Duration,
}

/// The message that a reply answers: clients put both into one thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answered {
    /// Its id.
    pub rumor: RumorId,
    /// A relay where it was seen: the hint beside its id, and beside its author (NIP-17).
    pub hint: Option<String>,
}

impl Answered {
    /// `seen_on`: the relays where it was seen. The first is the hint.
    pub fn seen(rumor: RumorId, seen_on: &[String]) -> Answered {
        Answered { rumor, hint: seen_on.first().filter(|url| url.len() <= LONGEST_HINT).cloned() }
    }
}

/// A message to one asker, not yet sealed. Holds no secret.
#[derive(Clone, PartialEq, Eq)]
pub struct OutgoingMessage {
    /// The only one who will be able to read it.
    pub to: Asker,
    /// How it travels.
    pub channel: Channel,
    /// Plain text (NIP-17, kind 14).
    pub text: String,
    /// The message it answers, if any.
    pub in_reply_to: Option<Answered>,
    /// The subject of the conversation it belongs to, if it has one.
    pub subject: Option<String>,
    /// NIP-40: when relays may forget the wrap, Unix seconds.
    pub expires_at: u64,
    /// Earliest date of the rumor, Unix seconds. Clients sort by date, so a result must be dated after
    /// its acceptance, also if both were made in the same second.
    pub not_before: u64,
}

/// Without its text: a request beside its asker does not belong in a log.
impl fmt::Debug for OutgoingMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutgoingMessage to {:?}, {} bytes", self.to, self.text.len())
    }
}

/// A sealed message: a signed event of kind 1059 (NIP-59), or of kind 4. It is made once, and sent
/// unchanged however often.
#[derive(Clone, PartialEq, Eq)]
pub struct GiftWrap {
    /// Id of the event.
    pub id: [u8; 32],
    /// Its receiver.
    pub to: Asker,
    /// The event as relays take it.
    pub json: String,
    /// NIP-40: when relays may forget it, Unix seconds.
    pub expires_at: u64,
}

impl fmt::Debug for GiftWrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GiftWrap to {:?}, {} bytes", self.to, self.json.len())
    }
}
