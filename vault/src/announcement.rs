//! Announcements of encryption keys (kind 10044), by the drafts in pull requests 1647 and 2361 of
//! nostr-protocol/nips.

use super::message::VerifiedEvent;
use crate::message::{Asker, EncryptionKey};
use nostr::{Event, JsonUtil, Kind, PublicKey, Tags};
use std::sync::Arc;

/// The kind of an announcement. It is replaceable: the newest counts.
pub const ANNOUNCEMENT: Kind = Kind::Custom(10044);

/// Longest announcement that is read, in bytes of JSON. Announcements of known clients have 450.
const MAX_JSON: usize = 1024;

/// The encryption key that an identity announces, signed by the identity. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Announcement {
    identity: Asker,
    key: Option<EncryptionKey>,
    dated: u64,
    json: Arc<str>,
}

impl Announcement {
    /// Reads an announcement; `None` if the event is of another kind or longer than 1 KiB.
    pub fn read(event: &VerifiedEvent) -> Option<Announcement> {
        let identity = Asker(event.pubkey.to_bytes());
        let key = named_key(&event.tags).map(|key| EncryptionKey(key.to_bytes()));
        let (dated, json) = (event.created_at.as_secs(), event.as_json().into());
        let announcement = Announcement { identity, key, dated, json };
        (event.kind == ANNOUNCEMENT && announcement.json.len() <= MAX_JSON).then_some(announcement)
    }

    /// Reads and verifies the JSON of an announcement; `None` for anything else.
    pub(super) fn verify(json: &str) -> Option<Announcement> {
        let event = Event::from_json(json).ok().filter(|_| json.len() <= MAX_JSON)?;
        VerifiedEvent::check(event).and_then(|event| Announcement::read(&event))
    }

    /// The event as JSON.
    pub(super) fn json(&self) -> &str {
        &self.json
    }

    /// The author of the announcement.
    pub fn identity(&self) -> Asker {
        self.identity
    }

    /// The announced key; `None` if the announcement names none, which withdraws an earlier one.
    pub fn key(&self) -> Option<EncryptionKey> {
        self.key.filter(|key| key.0 != self.identity.0)
    }

    /// The date of the announcement, Unix seconds.
    pub fn dated(&self) -> u64 {
        self.dated
    }

    /// Whether the announcement is by this author and names this key.
    pub(super) fn confirms(&self, author: Asker, key: Option<EncryptionKey>) -> bool {
        self.identity == author && key.is_some() && self.key() == key
    }
}

/// The key in the first `n` tag; `None` if there is no such tag or its key is not a point of the
/// curve.
pub(super) fn named_key(tags: &Tags) -> Option<PublicKey> {
    let named = tags.iter().find_map(|tag| match tag.as_slice() {
        [name, key, ..] if name == "n" => Some(key),
        _ => None,
    })?;
    PublicKey::from_hex(named).ok().filter(|key| key.xonly().is_ok())
}
