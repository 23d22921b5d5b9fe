//! Tickets: the vault's own records of askers' requests. The process that talks to strangers keeps
//! and reads tickets, but cannot make or change one. With a ticket it can only have a requested key
//! sealed to the asker who requested it.
//!
//! A ticket is an [`Order`] in postcard's encoding, followed by its MAC: HMAC-SHA256 (RFC 2104)
//! under a key that is derived from the identity, so a ticket outlives both processes.

use super::error::VaultError;
use super::message::Announcement;
use super::message::{Asker, EncryptionKey, Rumor, RumorId, Ticket};
use super::secret::Signing;
use crate::key::{HalfPoint, Npub};
use crate::pattern::{Family, Pattern};
use nostr::hashes::cmp::fixed_time_eq;
use serde::{Deserialize, Serialize};

/// Bytes of a MAC.
const MAC: usize = 32;

/// Reads the request in a message, inside the vault; `None` if it asks for no key.
pub type Reader = fn(&Rumor) -> Option<Asked>;

/// Keys that a message asks for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Asked {
    /// The description of the keys.
    pub wanted: Wanted,
    /// The asker's half point, if the asker keeps half of the key.
    pub half: Option<HalfPoint>,
}

/// A description of keys.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Wanted {
    /// A key that meets any of these patterns.
    #[serde(with = "texts")]
    Patterns(Vec<Pattern>),
    /// Any key of this family. The asker gets the rarest one found.
    Rarest(Family),
}

impl Wanted {
    fn is_met_by(&self, npub: &Npub) -> bool {
        match self {
            Wanted::Patterns(patterns) => patterns.iter().any(|pattern| pattern.matches(npub)),
            Wanted::Rarest(family) => family.rarest(npub).is_some(),
        }
    }
}

/// The content of a ticket: the asker, the request, and the message that made it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The receiver of the key.
    pub asker: Asker,
    /// The message that asked.
    pub rumor: RumorId,
    /// Date of the message, Unix seconds.
    pub dated: u64,
    /// The key that the asker's client encrypts with, if it is not the asker's own.
    pub encryption_key: Option<EncryptionKey>,
    /// The keys that were asked for.
    pub asked: Asked,
}

impl Order {
    /// The order in a message; `None` if it asks for no key.
    pub(super) fn read(rumor: &Rumor, reader: Reader) -> Option<Order> {
        let Rumor { id, author, created_at, encryption_key, .. } = *rumor;
        Some(Order { asker: author, rumor: id, dated: created_at, encryption_key, asked: reader(rumor)? })
    }

    /// Checks that the order asks for the key `npub`. If the asker holds a half of the key, `half`
    /// is its point; otherwise it is `None`.
    pub(super) fn allow(&self, npub: &Npub, half: Option<&HalfPoint>) -> Result<(), VaultError> {
        let is_asked = self.asked.half.as_ref() == half && self.asked.wanted.is_met_by(npub);
        if is_asked { Ok(()) } else { Err(VaultError::NotAsked) }
    }

    /// The key that a result is encrypted to; `None` is the asker's own. It is the encryption key
    /// of the message. If there is one and the asker has announced another key since, the announced
    /// key replaces it.
    pub(super) fn encryption_key_now(&self, announced: Option<&Announcement>) -> Option<EncryptionKey> {
        let used = self.encryption_key?;
        let newer = announced.filter(|announced| announced.identity() == self.asker && announced.dated() > self.dated);
        newer.map_or(Some(used), Announcement::key)
    }
}

/// Verification state of a message's author when the vault makes the ticket.
#[derive(Clone, Copy)]
pub(super) enum Author {
    /// The author signed the seal.
    Verified,
    /// The author is only claimed, until an announcement confirms it. Such a ticket gives no key.
    Claimed,
}

impl Author {
    /// The text that the key of the MAC is derived from, together with the identity.
    fn label(self) -> &'static [u8] {
        match self {
            Author::Verified => b"npubbot ticket 1",
            Author::Claimed => b"npubbot claim 1",
        }
    }
}

/// Makes the ticket of an order.
///
/// Errors: [`VaultError::Failed`] if the order cannot be encoded, which does not happen.
pub(super) fn issue(bot: &Signing, author: Author, order: &Order) -> Result<Ticket, VaultError> {
    let mut bytes = postcard::to_stdvec(order).map_err(|_| VaultError::Failed)?;
    bytes.extend(bot.mac(author.label(), &bytes));
    Ok(Ticket(bytes))
}

/// Reads a ticket of this vault, or of an earlier one with the same identity.
///
/// Errors: [`VaultError::ForeignTicket`] for any other ticket.
pub(super) fn read(bot: &Signing, author: Author, ticket: &Ticket) -> Result<Order, VaultError> {
    let genuine = || {
        let (order, mac) = ticket.0.split_last_chunk::<MAC>()?;
        fixed_time_eq(&bot.mac(author.label(), order), mac).then(|| postcard::from_bytes(order).ok())?
    };
    genuine().ok_or(VaultError::ForeignTicket)
}

/// Serialises patterns as their texts.
pub(super) mod texts {
    use super::Pattern;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub(crate) fn serialize<S: Serializer>(patterns: &[Pattern], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(patterns.iter().map(Pattern::as_str))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Pattern>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.iter().map(|text| text.parse().map_err(Error::custom)).collect()
    }
}
