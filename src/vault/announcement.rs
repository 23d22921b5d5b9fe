//! Announcements of encryption keys (kind 10044): nostr-protocol/nips 1647 and 2361, both drafts.

use super::verified::VerifiedEvent;
use crate::job::{Asker, EncryptionKey};
use nostr::{Kind, PublicKey, Tags};

/// The kind of an announcement. It is replaceable: the newest counts.
pub const ANNOUNCEMENT: Kind = Kind::Custom(10044);

/// The encryption key that an identity announces, signed by the identity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Announcement {
    identity: Asker,
    key: Option<EncryptionKey>,
    dated: u64,
}

impl Announcement {
    /// Reads an announcement; `None` if the event is of another kind.
    pub fn read(event: &VerifiedEvent) -> Option<Announcement> {
        let identity = Asker(event.pubkey.to_bytes());
        let key = named_key(&event.tags).map(|key| EncryptionKey(key.to_bytes()));
        let dated = event.created_at.as_secs();
        (event.kind == ANNOUNCEMENT).then_some(Announcement { identity, key, dated })
    }

    /// The author of the announcement.
    pub fn identity(&self) -> Asker {
        self.identity
    }

    /// The announced key; `None` if the announcement names none, which withdraws an earlier one.
    pub fn key(&self) -> Option<EncryptionKey> {
        self.key.filter(|key| key.0 != self.identity.0)
    }

    /// Its date, Unix seconds.
    pub fn dated(&self) -> u64 {
        self.dated
    }
}

/// The key in the first `n` tag; `None` without one, or if it is no point of the curve.
pub(super) fn named_key(tags: &Tags) -> Option<PublicKey> {
    let named = tags.iter().find_map(|tag| match tag.as_slice() {
        [name, key, ..] if name == "n" => Some(key),
        _ => None,
    })?;
    PublicKey::from_hex(named).ok().filter(|key| key.xonly().is_ok())
}
