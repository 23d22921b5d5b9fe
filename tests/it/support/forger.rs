//! Builds gift wraps step by step, so that a test can make any step wrong.

use super::relay::TestRelay;
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

    /// Publishes the author's DM relay list at the relay `at`, dated `later` seconds from now.
    pub async fn lists(&self, relays: &[&TestRelay], at: &TestRelay, later: u64) {
        let list = EventBuilder::new(Kind::InboxRelays, "").tags(relays.iter().map(|relay| Tag::relay(relay.url())));
        let list = list.custom_created_at(Timestamp::now() + later).sign_with_keys(&self.author).unwrap();
        super::publish(&at.url(), &list).await;
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
