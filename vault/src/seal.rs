//! Sealing: a kind 14 rumor, in a kind 13 seal signed by the bot, in a kind 1059 wrap signed by a
//! one-time key (NIP-17, NIP-59).
//!
//! The builders of `nostr` are not used, for two reasons. They copy the rumor, which may hold an
//! nsec, to strings that nobody clears. And they panic if the operating system has no randomness.
//! Its NIP-44 code is used: it makes one copy of the text and encrypts that copy in place.

use super::error::VaultError;
use super::message::{GiftWrap, OutgoingMessage};
use super::public::DATE_ALLOWANCE;
use super::random::{Generator, Source};
use super::secret::Signing;
use nostr::hashes::{Hash, HashEngine, sha256};
use nostr::nips::nip04;
use nostr::nips::nip44::{self, Version};
use nostr::{Event, EventId, JsonUtil, Kind, PublicKey, Tag, Timestamp, UnsignedEvent};
use secp256k1::SECP256K1;
use serde::Serialize;
use std::borrow::Cow;
use std::io;
use zeroize::Zeroizing;

/// Kind of a plain text message (NIP-17).
const CHAT: u16 = 14;

/// Seal and wrap get random dates up to this many seconds in the past (NIP-59).
const BACKDATED: u64 = 2 * 86_400;

/// Rumors are padded to a multiple of this many bytes, so that the length of a wrap does not show
/// whether the answer has a key in it.
const BUCKET: usize = 2048;

/// JSON of a rumor.
#[derive(Serialize)]
struct RumorJson<'a> {
    id: &'a str,
    pubkey: &'a str,
    created_at: u64,
    kind: u16,
    tags: &'a [Vec<String>],
    content: &'a str,
}

/// Seals `text` to the receiver of `message`: `message.text`, or the text to copy after it, which
/// is dated `later` by some seconds.
///
/// If the receiver has an encryption key (kind 10044), both layers are encrypted to it. Rumor and
/// wrap name the receiver's own key, which relays and clients look for.
///
/// Errors: [`VaultError::Unsealable`] if the asker is not a point of the curve or the text is
/// longer than NIP-44 allows (64 KiB); [`VaultError::NoRandomness`].
pub(super) fn seal(
    bot: &Signing,
    source: Source,
    now: u64,
    message: &OutgoingMessage,
    text: &str,
    later: u64,
) -> Result<GiftWrap, VaultError> {
    // A second message of the pair is within the allowance, too.
    let date = now.max(message.not_before.min(now.saturating_add(DATE_ALLOWANCE - 1))) + later;
    let rumor = rumor(bot, date, message, text)?;
    let to = PublicKey::from_slice(&message.to.0).map_err(|_| VaultError::Unsealable)?;
    let reads_with = match &message.encryption_key {
        Some(key) => PublicKey::from_slice(&key.0).map_err(|_| VaultError::Unsealable)?,
        None => to,
    };
    let sealed = encrypt(bot, source, &reads_with, &rumor)?;
    drop(rumor);
    let seal = sign(bot, source, backdated(source, now, BACKDATED)?, Kind::Seal, Vec::new(), sealed)?;
    let seal = seal.try_as_json().map_err(|_| VaultError::Unsealable)?;

    let once = Signing::draw(source)?;
    let wrapped = encrypt(&once, source, &reads_with, seal.as_bytes())?;
    // The expiration counts from the wrap's random date. Counted from the true date it would reveal
    // that date.
    let lifetime = message.expires_at.saturating_sub(now);
    let date = backdated(source, now, BACKDATED.min(lifetime / 2))?;
    let expires_at = date.as_secs() + lifetime;
    let tags = vec![Tag::public_key(to), Tag::expiration(Timestamp::from_secs(expires_at))];
    let wrap = sign(&once, source, date, Kind::GiftWrap, tags, wrapped)?;
    Ok(GiftWrap {
        id: wrap.id.to_bytes(),
        to: message.to,
        json: wrap.try_as_json().map_err(|_| VaultError::Unsealable)?,
        expires_at,
    })
}

/// Encrypts and signs a message of kind 4 (NIP-04), for clients without NIP-17. Everybody can see
/// who writes to whom.
pub(super) fn as_nip04(
    bot: &Signing,
    source: Source,
    now: u64,
    message: &OutgoingMessage,
) -> Result<GiftWrap, VaultError> {
    let to = PublicKey::from_slice(&message.to.0).map_err(|_| VaultError::Unsealable)?;
    let mut generator = Generator::new(source);
    let encrypted = nip04::encrypt_with_rng(&mut generator, bot.keys().secret_key(), &to, &message.text)
        .map_err(|_| VaultError::Unsealable)?;
    let encrypted = generator.checked(encrypted)?;
    let mut tags = vec![Tag::public_key(to)];
    if let Some(answered) = &message.in_reply_to {
        tags.push(Tag::event(EventId::from_byte_array(answered.rumor.0)));
    }
    tags.push(Tag::expiration(Timestamp::from_secs(message.expires_at)));
    let event = sign(bot, source, Timestamp::from_secs(now), Kind::EncryptedDirectMessage, tags, encrypted)?;
    Ok(GiftWrap {
        id: event.id.to_bytes(),
        to: message.to,
        json: event.try_as_json().map_err(|_| VaultError::Unsealable)?,
        expires_at: message.expires_at,
    })
}

/// The rumor's JSON, with its id (NIP-01).
fn rumor(bot: &Signing, now: u64, message: &OutgoingMessage, text: &str) -> Result<Zeroizing<Vec<u8>>, VaultError> {
    let pubkey = bot.public_key().to_hex();
    let tags = tags(message);
    let id = id(&pubkey, now, &tags, text)?.to_string();
    // JSON escapes one byte as six bytes at most.
    let tagged: usize = tags.iter().flatten().map(String::len).sum();
    let room = 6 * (text.len() + tagged) + 1024 + BUCKET;
    let mut json = Zeroizing::new(Vec::with_capacity(room));
    let rumor = RumorJson { id: &id, pubkey: &pubkey, created_at: now, kind: CHAT, tags: &tags, content: text };
    serde_json::to_writer(&mut *json, &rumor).map_err(|_| VaultError::Unsealable)?;
    // Spaces after the JSON are ignored by every parser.
    let padded = json.len().next_multiple_of(BUCKET);
    json.resize(padded, b' ');
    // Growing would have left a copy of the text behind.
    debug_assert_eq!(json.capacity(), room);
    Ok(json)
}

/// The id of a rumor (NIP-01). No copy of the text is made.
fn id(pubkey: &str, now: u64, tags: &[Vec<String>], text: &str) -> Result<sha256::Hash, VaultError> {
    let mut hash = Hashing(sha256::Hash::engine());
    serde_json::to_writer(&mut hash, &(0, pubkey, now, CHAT, tags, text)).map_err(|_| VaultError::Unsealable)?;
    Ok(sha256::Hash::from_engine(hash.0))
}

/// Tags for threading in clients (NIP-17): the receiver and the answered message, each with a relay
/// hint, and the subject.
fn tags(message: &OutgoingMessage) -> Vec<Vec<String>> {
    let answered = message.in_reply_to.as_ref();
    let hint = answered.and_then(|answered| answered.hint.clone());
    let tag = |name: &str, value: String| vec![name.to_owned(), value];
    let hinted = |name: &str, value: String| tag(name, value).into_iter().chain(hint.clone()).collect();
    let mut tags: Vec<Vec<String>> = vec![hinted("p", PublicKey::from_byte_array(message.to.0).to_hex())];
    if let Some(answered) = answered {
        tags.push(hinted("e", EventId::from_byte_array(answered.rumor.0).to_hex()));
    }
    if let Some(subject) = &message.subject {
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

/// A random date in the last `range` seconds.
fn backdated(source: Source, now: u64, range: u64) -> Result<Timestamp, VaultError> {
    let mut bytes = [0; 8];
    source(&mut bytes)?;
    Ok(Timestamp::from_secs(now.saturating_sub(u64::from_le_bytes(bytes) % range.max(1))))
}

/// A writer that hashes its input and stores nothing else.
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

/// Characters of an nsec after `nsec1`.
const NSEC_DATA: usize = 58;
/// Digits of a secret key in hexadecimal.
const HEX_DIGITS: usize = 64;
/// The mark in place of a text that might be a key.
const PLACE: &str = "…";

/// The text without possible keys: an nsec, or 64 or more hexadecimal digits in a row, in upper or
/// lower case.
pub(super) fn without_keys(text: &str) -> Cow<'_, str> {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((at, length)) = first_key(rest) {
        kept.push_str(&rest[..at]);
        kept.push_str(PLACE);
        rest = &rest[at + length..];
    }
    if kept.is_empty() { Cow::Borrowed(rest) } else { Cow::Owned(kept + rest) }
}

/// Place and length, in bytes, of the first run of letters and digits that might hold a key.
fn first_key(text: &str) -> Option<(usize, usize)> {
    let mut at = 0;
    for word in text.split(|character: char| !character.is_ascii_alphanumeric() && !is_invisible(character)) {
        if may_hold_a_key(word) {
            return Some((at, word.len()));
        }
        at += word.len();
        at += text[at..].chars().next().map_or(0, char::len_utf8);
    }
    None
}

/// Whether a character takes no place on a screen, so that a person copies it unseen
/// (Default_Ignorable_Code_Point of Unicode).
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a run of letters and digits holds an nsec or enough hexadecimal digits.
fn may_hold_a_key(word: &str) -> bool {
    let word: String = word.chars().filter(char::is_ascii).collect::<String>().to_ascii_lowercase();
    let mut digits = 0;
    let has_hex = word.bytes().any(|byte| {
        digits = if byte.is_ascii_hexdigit() { digits + 1 } else { 0 };
        digits >= HEX_DIGITS
    });
    has_hex || word.find("nsec1").is_some_and(|at| word.len() - at >= "nsec1".len() + NSEC_DATA)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nostr::{Keys, ToBech32};

    #[test]
    fn keys_are_left_out_wherever_they_stand_and_public_texts_stay() {
        let keys = Keys::generate();
        let (nsec, hex) = (keys.secret_key().to_bech32().unwrap(), keys.secret_key().to_secret_hex());
        for key in [nsec.clone(), nsec.to_uppercase(), hex.clone(), hex.to_uppercase(), hex.repeat(3)] {
            for (text, expected) in [
                (key.clone(), "…"),
                (format!("Your key:\n{key}\n"), "Your key:\n…\n"),
                (format!("{key} x{key}x, {key}"), "… …, …"),
                (format!("é{key}é {key}é"), "é…é …é"),
            ] {
                assert_eq!(without_keys(&text), expected, "{text}");
            }
        }
        for hidden in ["\u{200b}", "\u{ad}", "\u{2060}", "\u{feff}", "\u{e0020}"] {
            let (head, tail) = nsec.split_at(20);
            let spread: String = hex.chars().map(|digit| format!("{digit}{hidden}")).collect();
            for key in [format!("{head}{hidden}{tail}"), format!("{hidden}{nsec}"), spread] {
                assert_eq!(without_keys(&format!("é {key} é")), "é … é", "{hidden:?}");
            }
            let invisible = format!("no key{hidden} at all");
            assert_eq!(without_keys(&invisible), invisible);
        }
        let npub = keys.public_key().to_bech32().unwrap();
        let tweak = format!("ntweak1{}", "q".repeat(73));
        let dashed = format!("{}-{}", &hex[..40], &hex[40..]);
        for text in [&npub, &tweak, &dashed, "The nsec1 follows. é", &nsec[..62], &hex[..63], ""] {
            assert_eq!(without_keys(text), text);
        }
    }
}
