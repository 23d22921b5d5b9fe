//! Messages: those to askers, before and after they are sealed, those from askers, after they were
//! opened and checked; what identifies an asker and a request; and announcements of encryption keys.

use super::error::UnwrapError;
use nostr::{Event, JsonUtil, Kind, PublicKey, Tags};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Longest relay address that is used as a hint, in bytes.
const LONGEST_HINT: usize = 128;

/// The key that sent a request: the x-only public key that signed the seal. Replies go to this key
/// and to no other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Asker(pub [u8; 32]);

/// A public key that an asker's client encrypts with in place of the key the asker signs with: a
/// decoupled encryption key (kind 10044). X-only, a point of the curve.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EncryptionKey(pub [u8; 32]);

/// The id of a rumor, computed by us from its content (NIP-01); the sender's value is not used.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RumorId(pub [u8; 32]);

/// A request for a key as the vault itself read it, with a MAC that only the vault can make. It is
/// not secret: its holder can only have such a key sealed to the author of the message.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ticket(pub Vec<u8>);

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
    /// after its acceptance, even if both were made in the same second. At most an hour ahead
    /// counts.
    pub not_before: u64,
}

/// Omits the text, because a log must not show a request together with its asker.
impl fmt::Debug for OutgoingMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutgoingMessage to {:?}, {} bytes", self.to, self.text.len())
    }
}

/// A sealed message: a signed event of kind 1059 (NIP-59) or of kind 4. It is made once, and every
/// retry sends the same event. A result is two events: the message that explains it, then the
/// message that the asker copies.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GiftWrap {
    /// Id of the event; of a result, the id of the second one.
    pub id: [u8; 32],
    /// The receiver of the message.
    pub to: Asker,
    /// The events as JSON, one a line, in the order in which relays get them.
    pub json: String,
    /// Expiration (NIP-40): relays may delete it from this time on, in Unix seconds.
    pub expires_at: u64,
}

impl GiftWrap {
    /// The events as JSON.
    pub fn events(&self) -> impl Iterator<Item = &str> {
        self.json.lines()
    }
}

impl fmt::Debug for GiftWrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GiftWrap to {:?}, {} bytes", self.to, self.json.len())
    }
}

/// Writes eight hex digits: enough to tell two ids apart in a log, too few to find a person by.
fn short(bytes: &[u8; 32], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes[..4].iter().try_for_each(|b| write!(f, "{b:02x}"))
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        short(&self.0, f)
    }
}

/// Omits the content, which has an asker beside their patterns.
impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket, {} bytes", self.0.len())
    }
}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        short(&self.0, f)
    }
}

impl fmt::Debug for RumorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        short(&self.0, f)
    }
}

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

/// An opened wrap.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Opened {
    /// A message of a verified author.
    Message(Rumor),
    /// A message whose author must be looked up.
    Claim(Claim),
}

impl Opened {
    /// The message, whether or not its author is verified.
    pub(super) fn rumor_mut(&mut self) -> &mut Rumor {
        match self {
            Opened::Message(rumor) | Opened::Claim(Claim { rumor }) => rumor,
        }
    }
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

/// An event whose id and signature were checked. [`VerifiedEvent::check`] is the only constructor.
///
/// `nostr-sdk` checks each id only once, so a forged copy that arrives later under the same id
/// would pass. We check every event before it is used or its id is remembered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifiedEvent(Event);

impl VerifiedEvent {
    /// Recomputes the id and verifies the signature; `None` if one of them is wrong.
    pub fn check(event: Event) -> Option<VerifiedEvent> {
        (event.verify_id() && event.verify_signature()).then_some(VerifiedEvent(event))
    }

    /// Returns the event.
    pub fn into_event(self) -> Event {
        self.0
    }
}

impl Deref for VerifiedEvent {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.0
    }
}

/// The kind of an announcement of an encryption key, by the drafts in pull requests 1647 and 2361 of
/// nostr-protocol/nips. It is replaceable: the newest counts.
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
    let named = values(tags, "n").next()?;
    PublicKey::from_hex(named).ok().filter(|key| key.xonly().is_ok())
}

/// The values of the tags of this name.
pub(super) fn values<'a>(tags: &'a Tags, name: &'a str) -> impl Iterator<Item = &'a String> {
    tags.iter().filter_map(move |tag| match tag.as_slice() {
        [named, value, ..] if named == name => Some(value),
        _ => None,
    })
}
