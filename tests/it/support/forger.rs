//! Builds gift wraps step by step, so that a test can make any step wrong.

use chacha20::cipher::{KeyIvInit, StreamCipher};
use nostr_sdk::hashes::{Hash, HashEngine, Hmac, HmacEngine, sha256};
use nostr_sdk::nips::nip44::v2::ConversationKey;
use nostr_sdk::nips::nip44::{self, Version};
use nostr_sdk::prelude::*;
use serde_json::Value;

pub struct Forger {
    pub bot: PublicKey,
    pub author: Keys,
    /// The date of rumors, in Unix seconds.
    pub now: u64,
}

impl Forger {
    /// An asker with a fresh key.
    pub fn new(bot: PublicKey) -> Forger {
        Forger { bot, author: Keys::generate(), now: Timestamp::now().as_secs() }
    }

    pub fn rumor(&self, text: &str) -> UnsignedEvent {
        let tags = [Tag::public_key(self.bot)];
        let date = Timestamp::from_secs(self.now);
        let mut rumor = UnsignedEvent::new(self.author.public_key(), date, Kind::PrivateDirectMessage, tags, text);
        rumor.ensure_id();
        rumor
    }

    pub fn encrypt(&self, from: &Keys, text: &str) -> String {
        nip44::encrypt(from.secret_key(), &self.bot, text, Version::V2).unwrap()
    }

    pub fn seal_of(&self, rumor: &str) -> Event {
        let content = self.encrypt(&self.author, rumor);
        EventBuilder::new(Kind::Seal, content).sign_with_keys(&self.author).unwrap()
    }

    pub fn wrap_of(&self, seal: &str) -> Event {
        let once = Keys::generate();
        let content = self.encrypt(&once, seal);
        self.wrap_with(&once, content, [Tag::public_key(self.bot)])
    }

    pub fn wrap_with(&self, once: &Keys, content: String, tags: impl IntoIterator<Item = Tag>) -> Event {
        EventBuilder::new(Kind::GiftWrap, content).tags(tags).sign_with_keys(once).unwrap()
    }

    pub fn with_rumor(&self, rumor: impl ToString) -> Event {
        self.wrap_of(&self.seal_of(&rumor.to_string()).as_json())
    }

    /// An honest wrap, dated `back` seconds before its rumor, as NIP-59 recommends.
    pub fn honest(&self, text: &str, back: u64) -> Event {
        let seal = self.seal_of(&self.rumor(text).as_json()).as_json();
        let once = Keys::generate();
        let content = self.encrypt(&once, &seal);
        EventBuilder::new(Kind::GiftWrap, content)
            .tag(Tag::public_key(self.bot))
            .custom_created_at(Timestamp::from_secs(self.now - back))
            .sign_with_keys(&once)
            .unwrap()
    }

    /// Encrypts by NIP-44 a plaintext that is already padded, with the right key and MAC.
    pub fn encrypt_padded(&self, from: &Keys, padded: &[u8]) -> String {
        let conversation = ConversationKey::derive(from.secret_key(), &self.bot).unwrap();
        let nonce = [7; 32];
        let mac = |key: &[u8], parts: &[&[u8]]| {
            let mut engine = HmacEngine::<sha256::Hash>::new(key);
            parts.iter().for_each(|part| engine.input(part));
            Hmac::<sha256::Hash>::from_engine(engine).to_byte_array()
        };
        // HKDF-Expand (RFC 5869) to 76 bytes: key, nonce and MAC key.
        let one = mac(conversation.as_bytes(), &[&nonce, &[1]]);
        let two = mac(conversation.as_bytes(), &[&one, &nonce, &[2]]);
        let three = mac(conversation.as_bytes(), &[&two, &nonce, &[3]]);
        let keys = [one, two, three].concat();
        let mut text = padded.to_vec();
        let (key, iv): ([u8; 32], [u8; 12]) = (keys[..32].try_into().unwrap(), keys[32..44].try_into().unwrap());
        chacha20::ChaCha20::new(&key.into(), &iv.into()).apply_keystream(&mut text);
        let mac = mac(&keys[44..76], &[&nonce, &text]);
        base64(&[&[2][..], &nonce, &text, &mac].concat())
    }
}

pub fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let word = three.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let character = if place > three.len() { b'=' } else { ALPHABET[(word >> (18 - 6 * place)) as usize % 64] };
            text.push(char::from(character));
        }
    }
    text
}

/// The JSON of `event` with one field replaced.
pub fn altered(event: &Event, name: &str, value: impl Into<Value>) -> String {
    let mut json = serde_json::to_value(event).unwrap();
    json[name] = value.into();
    json.to_string()
}

/// A signature over the same event by another key.
pub fn other_signature(event: &Event) -> String {
    Keys::generate().sign_schnorr(&secp256k1::Message::from_digest(event.id.to_bytes())).to_string()
}
