//! A message after it was opened and checked.

use crate::job::{Asker, EncryptionKey, RumorId, Ticket};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The checked content of a seal: the author signed the seal, and the id was recomputed. Its
/// `Debug` output shows no content.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rumor {
    /// The recomputed id (NIP-01).
    pub id: RumorId,
    /// The key that signed the seal, or the identity that announces the signer (kind 10044).
    pub author: Asker,
    /// The key that the author's client encrypts with, if it is not the author's own. Answers are
    /// encrypted to it.
    pub encryption_key: Option<EncryptionKey>,
    /// Kind of the rumor: 14 is a text (NIP-17), 15 a file, 5 a deletion, 4 a message by NIP-04,
    /// 444 an invitation to an MLS group.
    pub kind: u16,
    /// Plain text.
    pub content: String,
    /// Date claimed by the author, Unix seconds.
    pub created_at: u64,
    /// Subject of the conversation, at most 256 bytes.
    pub subject: Option<String>,
    /// Messages that a deletion (kind 5, NIP-09) retracts, at most 64.
    pub deletes: Vec<RumorId>,
    /// Number of keys in `p` tags other than ours and the author's. Above 0 in a group chat.
    pub other_receivers: usize,
    /// The ticket for a key, if the message asks for one.
    pub ticket: Option<Ticket>,
}

impl fmt::Debug for Rumor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rumor {:?} of {:?}, kind {}, {} bytes", self.id, self.author, self.kind, self.content.len())
    }
}
