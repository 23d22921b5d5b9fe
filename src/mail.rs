//! What is said to an asker, before and after it is sealed.

use crate::ids::{Asker, RumorId};
use std::fmt;

/// A message to one asker, not yet sealed. Holds no secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Letter {
    /// The only one who will be able to read it.
    pub to: Asker,
    /// Plain text (NIP-17, kind 14).
    pub text: String,
    /// The message it answers, so that clients thread it.
    pub in_reply_to: Option<RumorId>,
    /// The subject of the conversation it belongs to, if it has one.
    pub subject: Option<String>,
    /// NIP-40: when relays may forget the wrap, Unix seconds.
    pub expires_at: u64,
}

/// Without its text: a wish beside its asker does not belong in a log.
impl fmt::Debug for Letter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Letter to {:?}, {} bytes", self.to, self.text.len())
    }
}

/// A sealed letter: a signed kind 1059 event (NIP-59). It is sent as it is, however often, and never made twice.
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
