//! Opening a wrap. Everything a stranger can lie about is checked here, the cheap things first.
//!
//! `nostr` 0.44.8's own unwrapping accepts wraps with a bad signature, seals of another kind and rumors that lie about
//! their id, so this is done by hand. The rumor's kind and date are the inbox's to judge.

use super::secret::Signing;
use super::{Rumor, UnwrapError, VerifiedEvent};
use crate::job::{Asker, RumorId};
use nostr::nips::{nip04, nip44};
use nostr::{Event, EventId, JsonUtil, Kind, PublicKey, UnsignedEvent};
use std::collections::BTreeSet;
use std::io;

/// Bytes of JSON a wrap may have. A text of 40,000 bytes, the longest that fits NIP-44's ordinary length in a seal and a
/// wrap, makes one of 77,000: it gets an answer too.
const LARGEST: usize = 128 * 1024;

/// Bytes of a subject that is taken over into answers; a longer one is as good as none.
const LONGEST_SUBJECT: usize = 256;

/// Messages one deletion takes back; more are not read.
const MOST_TAKEN_BACK: usize = 64;

/// Opens a message of kind 4 (NIP-04): no seal, no rumor, the author in the open.
pub(super) fn open_nip04(bot: &Signing, message: &VerifiedEvent) -> Result<Rumor, UnwrapError> {
    if message.content.len() > LARGEST || json_length(message).is_none_or(|length| length > LARGEST) {
        return Err(UnwrapError::TooLarge);
    }
    if message.kind != Kind::EncryptedDirectMessage {
        return Err(UnwrapError::NotAWrap);
    }
    let us = bot.public_key();
    let others: BTreeSet<PublicKey> = receivers(message.tags.iter().map(|tag| tag.as_slice())).collect();
    if !others.contains(&us) {
        return Err(UnwrapError::NotForUs);
    }
    let content = nip04::decrypt(bot.keys().secret_key(), &message.pubkey, &message.content)
        .map_err(|_| UnwrapError::Undecryptable)?;
    Ok(Rumor {
        id: RumorId(message.id.to_bytes()),
        author: Asker(message.pubkey.to_bytes()),
        kind: message.kind.as_u16(),
        subject: None,
        created_at: message.created_at.as_secs(),
        takes_back: Vec::new(),
        other_receivers: others.iter().filter(|&key| *key != us && *key != message.pubkey).count(),
        content,
    })
}

/// Opens `wrap` with the bot's key; the order of the checks is the order of [`UnwrapError`].
pub(super) fn unwrap(bot: &Signing, wrap: &VerifiedEvent) -> Result<Rumor, UnwrapError> {
    if wrap.content.len() > LARGEST || json_length(wrap).is_none_or(|length| length > LARGEST) {
        return Err(UnwrapError::TooLarge);
    }
    if wrap.kind != Kind::GiftWrap {
        return Err(UnwrapError::NotAWrap);
    }
    let us = bot.public_key();
    if !receivers(wrap.tags.iter().map(|tag| tag.as_slice())).any(|receiver| receiver == us) {
        return Err(UnwrapError::NotForUs);
    }
    let seal = open_seal(&decrypt(bot, &wrap.pubkey, &wrap.content)?)?;
    open_rumor(&us, &seal, &decrypt(bot, &seal.pubkey, &seal.content)?)
}

fn decrypt(bot: &Signing, from: &PublicKey, payload: &str) -> Result<String, UnwrapError> {
    nip44::decrypt(bot.keys().secret_key(), from, payload).map_err(|_| UnwrapError::Undecryptable)
}

fn open_seal(json: &str) -> Result<Event, UnwrapError> {
    let seal = Event::from_json(json).map_err(|_| UnwrapError::BadSeal)?;
    if seal.kind != Kind::Seal || !seal.tags.is_empty() {
        return Err(UnwrapError::BadSeal);
    }
    if !seal.verify_id() || !seal.verify_signature() {
        return Err(UnwrapError::ForgedSeal);
    }
    Ok(seal)
}

/// A rumor without an id is tolerated (NIP-59 did not ask for one for a while), and so is `"sig": null`; an id that is
/// there must be the right one.
fn open_rumor(us: &PublicKey, seal: &Event, json: &str) -> Result<Rumor, UnwrapError> {
    let rumor = UnsignedEvent::from_json(json).map_err(|_| UnwrapError::BadRumor)?;
    if rumor.pubkey != seal.pubkey {
        return Err(UnwrapError::Impostor);
    }
    let id = EventId::new(&rumor.pubkey, &rumor.created_at, &rumor.kind, &rumor.tags, &rumor.content);
    if rumor.id.is_some_and(|said| said != id) {
        return Err(UnwrapError::LyingId);
    }
    let others: BTreeSet<PublicKey> = receivers(rumor.tags.iter().map(|tag| tag.as_slice()))
        .filter(|receiver| receiver != us && *receiver != rumor.pubkey)
        .collect();
    let subject = rumor.tags.iter().find_map(|tag| match tag.as_slice() {
        [name, subject, ..] if name == "subject" => Some(subject),
        _ => None,
    });
    let taken_back = rumor.tags.iter().filter_map(|tag| match tag.as_slice() {
        [name, id, ..] if name == "e" => EventId::from_hex(id).ok().map(|id| RumorId(id.to_bytes())),
        _ => None,
    });
    let is_deletion = rumor.kind == Kind::EventDeletion;
    Ok(Rumor {
        id: RumorId(id.to_bytes()),
        takes_back: taken_back.take(if is_deletion { MOST_TAKEN_BACK } else { 0 }).collect(),
        author: Asker(rumor.pubkey.to_bytes()),
        kind: rumor.kind.as_u16(),
        subject: subject.filter(|text| !text.is_empty() && text.len() <= LONGEST_SUBJECT).cloned(),
        created_at: rumor.created_at.as_secs(),
        other_receivers: others.len(),
        content: rumor.content,
    })
}

/// The keys in `p` tags, as far as they are keys.
fn receivers<'a>(tags: impl Iterator<Item = &'a [String]>) -> impl Iterator<Item = PublicKey> {
    tags.filter_map(|tag| match tag {
        [name, key, ..] if name == "p" => PublicKey::from_hex(key).ok(),
        _ => None,
    })
}

/// Bytes of the event's JSON, without writing it.
fn json_length(event: &Event) -> Option<usize> {
    struct Counting(usize);
    impl io::Write for Counting {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counting = Counting(0);
    serde_json::to_writer(&mut counting, event).ok()?;
    Some(counting.0)
}
