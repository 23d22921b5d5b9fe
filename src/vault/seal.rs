//! Sealing: a kind 14 rumor, in a kind 13 seal signed by the bot, in a kind 1059 wrap signed by a key used once
//! (NIP-17, NIP-59).
//!
//! `nostr`'s own builders are not used: they would copy the text of the rumor, which may hold an nsec, into strings that
//! nobody clears, and they panic where the operating system has no randomness. NIP-44 encrypts its one copy in place.

use super::VaultError;
use super::random::{Generator, Source};
use super::secret::{SecretText, Signing};
use crate::message::{GiftWrap, OutgoingMessage};
use nostr::hashes::{Hash, HashEngine, sha256};
use nostr::nips::nip04;
use nostr::nips::nip44::{self, Version};
use nostr::{Event, EventId, JsonUtil, Kind, PublicKey, Tag, Timestamp, UnsignedEvent};
use secp256k1::SECP256K1;
use serde::Serialize;
use std::io;

/// NIP-17, a plain text message.
const CHAT: u16 = 14;

/// Seal and wrap are dated up to this many seconds back, each by itself (NIP-59).
const BACKDATED: u64 = 2 * 86_400;

/// A rumor as its receiver will parse it.
#[derive(Serialize)]
struct RumorJson<'a> {
    id: &'a str,
    pubkey: &'a str,
    created_at: u64,
    kind: u16,
    tags: &'a [Vec<String>],
    content: &'a str,
}

/// Seals `text` (the letter's, or the letter's with a key in it) to the letter's asker.
///
/// Errors: [`VaultError::Unsealable`] if the asker is no point of the curve or the text is longer than NIP-44 takes
/// (64 KiB); [`VaultError::NoRandomness`].
pub(super) fn seal(
    bot: &Signing,
    source: Source,
    now: u64,
    letter: &OutgoingMessage,
    text: &str,
) -> Result<GiftWrap, VaultError> {
    let to = PublicKey::from_slice(&letter.to.0).map_err(|_| VaultError::Unsealable)?;
    let rumor = rumor(bot, now, letter, text)?;
    let sealed = encrypt(bot, source, &to, rumor.as_bytes())?;
    drop(rumor);
    let seal = sign(bot, source, backdated(source, now)?, Kind::Seal, Vec::new(), sealed)?;
    let seal = seal.try_as_json().map_err(|_| VaultError::Unsealable)?;

    let once = Signing::draw(source)?;
    let wrapped = encrypt(&once, source, &to, seal.as_bytes())?;
    let tags = vec![Tag::public_key(to), Tag::expiration(Timestamp::from_secs(letter.expires_at))];
    let wrap = sign(&once, source, backdated(source, now)?, Kind::GiftWrap, tags, wrapped)?;
    Ok(GiftWrap {
        id: wrap.id.to_bytes(),
        to: letter.to,
        json: wrap.try_as_json().map_err(|_| VaultError::Unsealable)?,
        expires_at: letter.expires_at,
    })
}

/// A message of kind 4 (NIP-04), signed by the bot, for clients that know nothing else.
///
/// Errors: as [`seal`].
pub(super) fn as_nip04(
    bot: &Signing,
    source: Source,
    now: u64,
    letter: &OutgoingMessage,
) -> Result<GiftWrap, VaultError> {
    let to = PublicKey::from_slice(&letter.to.0).map_err(|_| VaultError::Unsealable)?;
    let mut generator = Generator::new(source);
    let encrypted = nip04::encrypt_with_rng(&mut generator, bot.keys().secret_key(), &to, &letter.text)
        .map_err(|_| VaultError::Unsealable)?;
    let encrypted = generator.checked(encrypted)?;
    let mut tags = vec![Tag::public_key(to)];
    if let Some(answered) = &letter.in_reply_to {
        tags.push(Tag::event(EventId::from_byte_array(answered.rumor.0)));
    }
    tags.push(Tag::expiration(Timestamp::from_secs(letter.expires_at)));
    let event = sign(bot, source, Timestamp::from_secs(now), Kind::EncryptedDirectMessage, tags, encrypted)?;
    Ok(GiftWrap {
        id: event.id.to_bytes(),
        to: letter.to,
        json: event.try_as_json().map_err(|_| VaultError::Unsealable)?,
        expires_at: letter.expires_at,
    })
}

/// The rumor's JSON, with its id (NIP-01).
fn rumor(bot: &Signing, now: u64, letter: &OutgoingMessage, text: &str) -> Result<SecretText, VaultError> {
    let pubkey = bot.public_key().to_hex();
    let tags = tags(letter);
    let mut hash = Hashing(sha256::Hash::engine());
    serde_json::to_writer(&mut hash, &(0, &pubkey, now, CHAT, &tags, text)).map_err(|_| VaultError::Unsealable)?;
    let id = sha256::Hash::from_engine(hash.0).to_string();
    // JSON makes at most six bytes of one.
    let tagged: usize = tags.iter().flatten().map(String::len).sum();
    let room = 6 * (text.len() + tagged) + 1024;
    let mut json = SecretText::with_capacity(room);
    let rumor = RumorJson { id: &id, pubkey: &pubkey, created_at: now, kind: CHAT, tags: &tags, content: text };
    serde_json::to_writer(&mut json, &rumor).map_err(|_| VaultError::Unsealable)?;
    Ok(json)
}

/// As clients thread a conversation (NIP-17): its receiver, the message answered, each with a relay, and its subject.
fn tags(letter: &OutgoingMessage) -> Vec<Vec<String>> {
    let answered = letter.in_reply_to.as_ref();
    let hint = answered.and_then(|answered| answered.hint.clone());
    let tag = |name: &str, value: String| vec![name.to_owned(), value];
    let hinted = |name: &str, value: String| tag(name, value).into_iter().chain(hint.clone()).collect();
    let mut tags: Vec<Vec<String>> = vec![hinted("p", hex(&letter.to.0))];
    if let Some(answered) = answered {
        tags.push(hinted("e", hex(&answered.rumor.0)));
    }
    if let Some(subject) = &letter.subject {
        tags.push(tag("subject", subject.clone()));
    }
    tags
}

fn encrypt(from: &Signing, source: Source, to: &PublicKey, text: &[u8]) -> Result<String, VaultError> {
    let mut generator = Generator::new(source);
    let encrypted = nip44::encrypt_with_rng(&mut generator, from.keys().secret_key(), to, text, Version::V2)
        .map_err(|_| VaultError::Unsealable)?;
    generator.checked(encrypted)
}

fn sign(
    author: &Signing,
    source: Source,
    date: Timestamp,
    kind: Kind,
    tags: Vec<Tag>,
    content: String,
) -> Result<Event, VaultError> {
    let mut generator = Generator::new(source);
    let event = UnsignedEvent::new(author.public_key(), date, kind, tags, content)
        .sign_with_ctx(SECP256K1, &mut generator, author.keys())
        .map_err(|_| VaultError::Unsealable)?;
    generator.checked(event)
}

fn backdated(source: Source, now: u64) -> Result<Timestamp, VaultError> {
    let mut bytes = [0; 8];
    source(&mut bytes)?;
    Ok(Timestamp::from_secs(now.saturating_sub(u64::from_le_bytes(bytes) % BACKDATED)))
}

fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hashes what is written to it and keeps nothing.
struct Hashing(sha256::HashEngine);

impl io::Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.input(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
