//! Messages whose author is not known yet.

use super::announcement::Announcement;
use super::error::UnwrapError;
use super::rumor::Rumor;
use crate::job::{EncryptionKey, Ticket};
use serde::{Deserialize, Serialize};

/// An opened wrap.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Opened {
    /// A message of a verified author.
    Message(Rumor),
    /// A message whose author must be looked up.
    Claim(Claim),
}

/// A message whose seal is signed by another key than that of the author it names.
///
/// Some clients with decoupled encryption keys seal like this: Coop, and Jumble when it writes for
/// older clients. An impostor's message looks the same. Only an announcement (kind 10044) by the
/// author shows which of the two it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Claim {
    /// The message. Its author is only claimed, and its ticket gives no key. Its encryption key is
    /// the key that signed the seal.
    rumor: Rumor,
}

impl Claim {
    pub(super) fn new(rumor: Rumor, signer: EncryptionKey) -> Claim {
        Claim { rumor: Rumor { encryption_key: Some(signer), ..rumor } }
    }

    /// The claim with this ticket.
    pub(super) fn with_ticket(self, ticket: Option<Ticket>) -> Claim {
        Claim { rumor: Rumor { ticket, ..self.rumor } }
    }

    /// The message as it claims to be. Its author is not verified: for lookups and limits only.
    pub fn unverified(&self) -> &Rumor {
        &self.rumor
    }

    /// Whether an announcement is the author's own and names the signer of the seal.
    pub fn is_confirmed_by(&self, announcement: &Announcement) -> bool {
        announcement.confirms(self.rumor.author, self.rumor.encryption_key)
    }

    /// The message, if the author's announcement confirms it. Answers are encrypted to the key that
    /// signed the seal. The ticket still gives no key.
    pub(super) fn confirm(self, announcement: Option<&Announcement>) -> Result<Rumor, UnwrapError> {
        let is_confirmed = announcement.is_some_and(|announcement| self.is_confirmed_by(announcement));
        if is_confirmed { Ok(self.rumor) } else { Err(UnwrapError::Impostor) }
    }
}
