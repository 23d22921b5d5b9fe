//! An opened message.

use crate::job::{Asker, RumorId};
use std::fmt;

/// Message from inside a seal, checked: its author signed the seal, and its id is recomputed.
/// Its `Debug` shows no content.
#[derive(Clone, PartialEq, Eq)]
pub struct Rumor {
    /// Id, recomputed (NIP-01).
    pub id: RumorId,
    /// Signer of the seal.
    pub author: Asker,
    /// Kind of event: 14 for a text (NIP-17), 15 for a file, 5 for a deletion, 4 for NIP-04.
    pub kind: u16,
    /// Plain text.
    pub content: String,
    /// Date claimed by the author, Unix seconds.
    pub created_at: u64,
    /// Subject of the conversation, at most 256 bytes.
    pub subject: Option<String>,
    /// Messages that a deletion (kind 5, NIP-09) takes back, at most 64.
    pub takes_back: Vec<RumorId>,
    /// Number of keys in `p` tags other than ours and the author's; a group has at least one.
    pub other_receivers: usize,
}

impl fmt::Debug for Rumor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rumor {:?} of {:?}, kind {}, {} bytes", self.id, self.author, self.kind, self.content.len())
    }
}
