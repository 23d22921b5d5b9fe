//! Opening a wrap. Every field that a sender can forge is checked here, the cheap checks first.
//!
//! The unwrapping of `nostr` 0.44.8 is not used: it accepts wraps with a bad signature, seals of
//! another kind and rumors with a wrong id. The inbox checks kind and date of the rumor.

use super::error::UnwrapError;
use super::message::{Asker, Claim, EncryptionKey, Opened, Rumor, RumorId, VerifiedEvent, named_key, values};
use super::secret::Signing;
use nostr::nips::{nip04, nip44};
use nostr::{Event, EventId, JsonUtil, Kind, PublicKey, Tags, UnsignedEvent};
use std::collections::BTreeSet;

/// Kinds of gift wraps (NIP-59). Relays do not store the second, the ephemeral one.
pub const GIFT_WRAPS: [Kind; 2] = [Kind::GiftWrap, Kind::Custom(21059)];

/// Largest wrap, in bytes of JSON. The longest text that NIP-44 allows in a seal in a wrap has
/// 40,000 bytes, and its wrap 77,000.
pub(super) const MAX_WRAP: usize = 128 * 1024;

/// Longest subject, bytes. A longer one is ignored.
const LONGEST_SUBJECT: usize = 256;

/// The most messages that one deletion can retract. Further ones are ignored.
const MAX_DELETED: usize = 64;

/// Opens a message of kind 4 (NIP-04), without a ticket. Such a message has no seal and no rumor,
/// and its author is public.
pub(super) fn open_nip04(bot: &Signing, message: &VerifiedEvent) -> Result<Rumor, UnwrapError> {
    if !receivers(&message.tags).any(|receiver| receiver == bot.public_key()) {
        return Err(UnwrapError::NotForUs);
    }
    let content = nip04::decrypt(bot.keys().secret_key(), &message.pubkey, &message.content)
        .map_err(|_| UnwrapError::Undecryptable)?;
    Ok(Rumor {
        id: RumorId(message.id.to_bytes()),
        author: Asker(message.pubkey.to_bytes()),
        encryption_key: None,
        kind: message.kind.as_u16(),
        subject: None,
        created_at: message.created_at.as_secs(),
        deletes: Vec::new(),
        other_receivers: 0,
        content,
        ticket: None,
    })
}

/// Opens `wrap` with the bot's key, without a ticket. The caller has checked its size. The checks are
/// in the order of [`UnwrapError`].
///
/// A seal may name its encryption key in an `n` tag (kind 10044). The author's signature covers the
/// tag. Without the tag, the key that signed the seal also encrypted it.
///
/// The wrap's own signature is by a one-time key and proves nothing; the inbox has checked it.
pub(super) fn unwrap(bot: &Signing, wrap: &Event) -> Result<Opened, UnwrapError> {
    if !GIFT_WRAPS.contains(&wrap.kind) {
        return Err(UnwrapError::NotAWrap);
    }
    let us = bot.public_key();
    if !receivers(&wrap.tags).any(|receiver| receiver == us) {
        return Err(UnwrapError::NotForUs);
    }
    let seal = open_seal(&decrypt(bot, &wrap.pubkey, &wrap.content)?)?;
    let named = named_key(&seal.tags);
    open_rumor(&us, &seal, named, &decrypt(bot, &named.unwrap_or(seal.pubkey), &seal.content)?)
}

fn decrypt(bot: &Signing, from: &PublicKey, payload: &str) -> Result<String, UnwrapError> {
    nip44::decrypt(bot.keys().secret_key(), from, payload).map_err(|_| UnwrapError::Undecryptable)
}

fn open_seal(json: &str) -> Result<Event, UnwrapError> {
    let seal = Event::from_json(json).map_err(|_| UnwrapError::BadSeal)?;
    // Tags are allowed: clients add `expiration`, `n`, `client` or `p`. Only `n` is used.
    if seal.kind != Kind::Seal {
        return Err(UnwrapError::BadSeal);
    }
    if !seal.verify_id() || !seal.verify_signature() {
        return Err(UnwrapError::ForgedSeal);
    }
    Ok(seal)
}

/// Parses and checks a rumor. An id may be missing, because older versions of NIP-59 required none;
/// an id that is present must be right. `"sig": null` is accepted. `named` is the key in the seal's
/// `n` tag.
fn open_rumor(us: &PublicKey, seal: &Event, named: Option<PublicKey>, json: &str) -> Result<Opened, UnwrapError> {
    let rumor = UnsignedEvent::from_json(json).map_err(|_| UnwrapError::BadRumor)?;
    let is_own = rumor.pubkey == seal.pubkey;
    // The signer of the seal must be the author of the rumor if the seal names a key, or if either
    // of them is us.
    if !is_own && (named.is_some() || [&rumor.pubkey, &seal.pubkey].contains(&us)) {
        return Err(UnwrapError::Impostor);
    }
    let id = EventId::new(&rumor.pubkey, &rumor.created_at, &rumor.kind, &rumor.tags, &rumor.content);
    if rumor.id.is_some_and(|said| said != id) {
        return Err(UnwrapError::LyingId);
    }
    let others: BTreeSet<PublicKey> =
        receivers(&rumor.tags).filter(|receiver| receiver != us && *receiver != rumor.pubkey).collect();
    let subject = values(&rumor.tags, "subject").next();
    let named_messages =
        values(&rumor.tags, "e").filter_map(|id| EventId::from_hex(id).ok()).map(|id| RumorId(id.to_bytes()));
    let is_deletion = rumor.kind == Kind::EventDeletion;
    let named = named.filter(|key| *key != seal.pubkey).map(|key| EncryptionKey(key.to_bytes()));
    let rumor = Rumor {
        id: RumorId(id.to_bytes()),
        deletes: named_messages.take(if is_deletion { MAX_DELETED } else { 0 }).collect(),
        author: Asker(rumor.pubkey.to_bytes()),
        encryption_key: named,
        kind: rumor.kind.as_u16(),
        subject: subject.filter(|text| !text.is_empty() && text.len() <= LONGEST_SUBJECT).cloned(),
        created_at: rumor.created_at.as_secs(),
        other_receivers: others.len(),
        content: rumor.content,
        ticket: None,
    };
    let signer = EncryptionKey(seal.pubkey.to_bytes());
    Ok(if is_own { Opened::Message(rumor) } else { Opened::Claim(Claim::new(rumor, signer)) })
}

/// The valid keys in `p` tags.
fn receivers(tags: &Tags) -> impl Iterator<Item = PublicKey> {
    values(tags, "p").filter_map(|key| PublicKey::from_hex(key).ok())
}
