//! Requests in wraps like those of clients. The order of the fields, and the tags, dates and keys
//! of each layer, follow the sources that the comment of each builder names. No code is copied.

use crate::support::hex;
use nostr_sdk::nips::nip44::{self, Version};
use nostr_sdk::prelude::*;
use serde_json::{Value, json};

/// The most seconds that seal and wrap are dated back.
const TWO_DAYS: u64 = 2 * 86_400;

/// Somebody who writes to the bot with one of the clients.
pub struct Sender {
    /// The key under which people know the sender.
    pub identity: Keys,
    /// The decoupled encryption key (kind 10044), if the client has one.
    pub encryption: Keys,
    pub bot: PublicKey,
    /// A relay of the bot, as a hint.
    pub relay: RelayUrl,
    /// The time at which the sender writes, in Unix seconds.
    pub now: u64,
    /// How far seals and wraps are dated back, as a share of the client's range: 0 to 1.
    pub back: f64,
}

/// The keys a client tries when it opens a wrap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reads {
    Identity,
    /// The encryption key and no other.
    EncryptionOnly,
    /// The encryption key for both layers; if the wrap does not open, the identity for both.
    EncryptionFirst,
}

/// The form of one client's messages.
pub struct ClientForm {
    pub name: &'static str,
    /// Whether the client publishes its DM relays (kind 10050).
    pub lists_relays: bool,
    /// Whether the client publishes an encryption key (kind 10044).
    pub announces: bool,
    pub reads: Reads,
    /// The wraps of one message to the bot.
    pub wraps: fn(&Sender, &str) -> Vec<Event>,
}

/// Every client that can be built from its source.
pub const FORMS: &[ClientForm] = &[
    form("nostr-tools", Reads::Identity, nostr_tools),
    form("NDK", Reads::Identity, ndk),
    form("monstr", Reads::Identity, monstr),
    form("Amethyst", Reads::Identity, amethyst),
    form("Amethyst, disappearing", Reads::Identity, amethyst_disappearing),
    form("Coracle", Reads::Identity, coracle),
    form("0xchat", Reads::Identity, oxchat),
    ClientForm { lists_relays: false, ..form("Primal", Reads::Identity, nostr_tools) },
    ClientForm { announces: true, ..form("Jumble", Reads::EncryptionOnly, jumble) },
    ClientForm { announces: true, ..form("Jumble, older", Reads::EncryptionOnly, jumble_older) },
    ClientForm { announces: true, ..form("Coop, Auto", Reads::EncryptionFirst, coop_auto) },
    ClientForm { announces: true, ..form("Coop, User", Reads::EncryptionFirst, coop_user) },
];

const fn form(name: &'static str, reads: Reads, wraps: fn(&Sender, &str) -> Vec<Event>) -> ClientForm {
    ClientForm { name, lists_relays: true, announces: false, reads, wraps }
}

/// An event before it is written in a client's order of fields.
struct Raw {
    id: String,
    pubkey: String,
    created_at: u64,
    kind: u16,
    tags: Value,
    content: String,
    sig: Value,
}

/// The orders of fields that clients write.
const BY_NIP: [&str; 7] = ["id", "pubkey", "created_at", "kind", "tags", "content", "sig"];
const FINALIZED: [&str; 7] = ["kind", "content", "created_at", "tags", "pubkey", "id", "sig"];

impl Raw {
    fn unsigned(author: &Keys, created_at: u64, kind: u16, tags: Value, content: &str) -> Raw {
        let parsed: Vec<Vec<String>> = serde_json::from_value(tags.clone()).unwrap();
        let list = Tags::from_list(parsed.into_iter().map(|tag| Tag::parse(tag).unwrap()).collect());
        let (key, date) = (author.public_key(), Timestamp::from_secs(created_at));
        let id = EventId::new(&key, &date, &Kind::from(kind), &list, content).to_hex();
        Raw { id, pubkey: key.to_hex(), created_at, kind, tags, content: content.to_owned(), sig: Value::Null }
    }

    fn signed(author: &Keys, created_at: u64, kind: u16, tags: Value, content: &str) -> Raw {
        let raw = Raw::unsigned(author, created_at, kind, tags, content);
        let id: [u8; 32] = hex::decode(&raw.id).try_into().unwrap();
        let signature = author.sign_schnorr(&secp256k1::Message::from_digest(id));
        Raw { sig: signature.to_string().into(), ..raw }
    }

    fn field(&self, name: &str) -> Value {
        match name {
            "id" => self.id.clone().into(),
            "pubkey" => self.pubkey.clone().into(),
            "created_at" => self.created_at.into(),
            "kind" => self.kind.into(),
            "tags" => self.tags.clone(),
            "content" => self.content.clone().into(),
            _ => self.sig.clone(),
        }
    }

    /// The event as JSON, with these fields in this order.
    fn json(&self, order: &[&str]) -> String {
        let fields: Vec<String> = order.iter().map(|name| format!("\"{name}\":{}", self.field(name))).collect();
        format!("{{{}}}", fields.join(","))
    }

    /// The event as JSON, as Python's `json.dumps` writes it: a space after each comma and colon.
    fn python(&self) -> String {
        let spaced = |value: Value| value.to_string().replace("\",\"", "\", \"").replace("],[", "], [");
        let fields: Vec<String> =
            BY_NIP.iter().map(|name| format!("\"{name}\": {}", spaced(self.field(name)))).collect();
        format!("{{{}}}", fields.join(", "))
    }
}

fn encrypt(from: &Keys, to: &PublicKey, text: &str) -> String {
    nip44::encrypt(from.secret_key(), to, text, Version::V2).unwrap()
}

impl Sender {
    /// A date in the last `range` seconds.
    fn backdated(&self, range: u64) -> u64 {
        self.now - (self.back * range as f64) as u64
    }

    /// A wrap with these tags, encrypted to `to`, around a seal.
    fn wrap(&self, seal: &str, to: &PublicKey, date: u64, tags: Value) -> Event {
        let once = Keys::generate();
        let raw = Raw::signed(&once, date, 1059, tags, &encrypt(&once, to, seal));
        Event::from_json(raw.json(&BY_NIP)).unwrap()
    }

    /// A plain seal (NIP-59) in a plain wrap, both dated back. The fields of the seal are in this
    /// order.
    fn plain(&self, rumor: &str, order: &[&str], range: u64) -> Event {
        let content = encrypt(&self.identity, &self.bot, rumor);
        let seal = Raw::signed(&self.identity, self.backdated(range), 13, json!([]), &content).json(order);
        self.wrap(&seal, &self.bot, self.backdated(range), json!([["p", self.bot.to_hex()]]))
    }

    fn rumor(&self, created_at: u64, tags: Value, text: &str) -> Raw {
        Raw::unsigned(&self.identity, created_at, 14, tags, text)
    }

    fn to_bot(&self) -> Value {
        json!([["p", self.bot.to_hex()]])
    }
}

/// nostr-tools, `nip17.ts` and `nip59.ts` at 70eabad6 (2026-08-19). The rumor's date is rounded up.
fn nostr_tools(sender: &Sender, text: &str) -> Vec<Event> {
    let order = ["created_at", "content", "tags", "kind", "pubkey", "id"];
    let rumor = sender.rumor(sender.now + 1, sender.to_bot(), text).json(&order);
    vec![sender.plain(&rumor, &FINALIZED, TWO_DAYS)]
}

/// NDK, `core/src/events/gift-wrapping.ts` at e51b54c7 (2026-02-26). Dated back by up to 100,000 s.
fn ndk(sender: &Sender, text: &str) -> Vec<Event> {
    let order = ["created_at", "content", "tags", "kind", "pubkey", "id"];
    let seal = ["created_at", "content", "tags", "kind", "pubkey", "id", "sig"];
    vec![sender.plain(&sender.rumor(sender.now, sender.to_bot(), text).json(&order), &seal, 100_000)]
}

/// monstr, `src/monstr/giftwrap.py` at b4f73dd6 (2024-07-16). The rumor has `"sig": null`.
fn monstr(sender: &Sender, text: &str) -> Vec<Event> {
    let rumor = sender.rumor(sender.now, sender.to_bot(), text).python();
    let content = encrypt(&sender.identity, &sender.bot, &rumor);
    let seal = Raw::signed(&sender.identity, sender.backdated(TWO_DAYS), 13, json!([]), &content).python();
    vec![sender.wrap(&seal, &sender.bot, sender.backdated(TWO_DAYS), sender.to_bot())]
}

/// Amethyst, `NIP17Factory.kt`, `SealedRumorEvent.kt`, `GiftWrapEvent.kt` in quartz at 10149d71
/// (2026-08-22). The seal is dated now; the wrap's `p` has a relay hint.
fn amethyst(sender: &Sender, text: &str) -> Vec<Event> {
    amethyst_with(sender, text, None)
}

/// A message of Amethyst that expires after one day. Seal and wrap expire two days later than that,
/// each counted from its own date.
fn amethyst_disappearing(sender: &Sender, text: &str) -> Vec<Event> {
    amethyst_with(sender, text, Some(86_400))
}

fn amethyst_with(sender: &Sender, text: &str, life: Option<u64>) -> Vec<Event> {
    let hinted = json!(["p", sender.bot.to_hex(), sender.relay.to_string()]);
    let expiring = |first: &[Value], date: u64| {
        let expiration = life.map(|life| json!(["expiration", (date + life).to_string()]));
        Value::Array(first.iter().cloned().chain(expiration).collect())
    };
    let rumor = sender.rumor(sender.now, expiring(std::slice::from_ref(&hinted), sender.now), text).json(&BY_NIP[..6]);
    let content = encrypt(&sender.identity, &sender.bot, &rumor);
    let tags = expiring(&[], sender.now + TWO_DAYS);
    let seal = Raw::signed(&sender.identity, sender.now, 13, tags, &content).json(&BY_NIP);
    let date = sender.backdated(TWO_DAYS);
    vec![sender.wrap(&seal, &sender.bot, date, expiring(&[hinted], date + TWO_DAYS))]
}

/// Coracle 0.6.35, `src/engine/commands.ts` at ed85a434 (2026-06-16), with welshman's
/// `packages/signer/src/nip59.ts` at c6847fa7. Dated back by up to 100,000 s; a `client` tag.
fn coracle(sender: &Sender, text: &str) -> Vec<Event> {
    let tags = json!([["p", sender.bot.to_hex(), sender.relay.to_string(), ""], ["client", "Coracle"]]);
    let order = ["kind", "content", "tags", "created_at", "pubkey", "id"];
    let seal = ["kind", "pubkey", "content", "created_at", "tags", "id", "sig"];
    vec![sender.plain(&sender.rumor(sender.now, tags, text).json(&order), &seal, 100_000)]
}

/// 0xchat, `lib/src/nips/nip_017.dart` and `nip_059.dart` in nostr-dart at 41fe8f73 (2026-02-05).
/// The rumor has an empty `sig`.
fn oxchat(sender: &Sender, text: &str) -> Vec<Event> {
    let mut rumor = sender.rumor(sender.now, sender.to_bot(), text);
    rumor.sig = "".into();
    vec![sender.plain(&rumor.json(&BY_NIP), &BY_NIP, TWO_DAYS)]
}

/// The rumor of Jumble 26.8.2, `src/services/nip17-gift-wrap.service.ts` and
/// `src/lib/dm-message-order.ts` at eeab8628 (2026-08-20). The tag `ms` has the milliseconds of the
/// rumor's date.
fn jumble_rumor(sender: &Sender, text: &str) -> String {
    let tags = json!([["p", sender.bot.to_hex()], ["ms", "417"]]);
    sender.rumor(sender.now, tags, text).json(&["created_at", "kind", "tags", "content", "pubkey", "id"])
}

/// One wrap of Jumble. Its seal has the date of the rumor. The wrap has two `p` tags, for the
/// receiver's encryption key and for its identity. For the bot both are the same key.
fn jumble_wrap(sender: &Sender, rumor: &str, signer: &Keys, tags: Value) -> Event {
    let content = encrypt(&sender.encryption, &sender.bot, rumor);
    let seal = Raw::signed(signer, sender.now, 13, tags, &content).json(&FINALIZED);
    let receivers = json!([["p", sender.bot.to_hex()], ["p", sender.bot.to_hex()]]);
    sender.wrap(&seal, &sender.bot, sender.backdated(TWO_DAYS), receivers)
}

/// Jumble, sources as above, sends each message in two wraps. The first seal is signed by the
/// identity and names the encryption key. The second seal is signed by the encryption key.
fn jumble(sender: &Sender, text: &str) -> Vec<Event> {
    let (rumor, key) = (jumble_rumor(sender, text), sender.encryption.public_key().to_hex());
    let now = jumble_wrap(sender, &rumor, &sender.identity, json!([["n", key]]));
    vec![now, jumble_wrap(sender, &rumor, &sender.encryption, json!([]))]
}

/// Only the second wrap of Jumble: the form of its older versions.
fn jumble_older(sender: &Sender, text: &str) -> Vec<Event> {
    vec![jumble_wrap(sender, &jumble_rumor(sender, text), &sender.encryption, json!([]))]
}

/// The rumor of Coop 0.3.0, `crates/chat/src/room.rs` at bb455871 (2025-12-31).
fn coop_rumor(sender: &Sender, text: &str) -> String {
    let tags = json!([["p", sender.bot.to_hex(), sender.relay.to_string()]]);
    sender.rumor(sender.now, tags, text).json(&BY_NIP[..6])
}

/// One wrap of Coop, made by rust-nostr's `EventBuilder::gift_wrap` with an extra `p` tag.
fn coop_wrap(sender: &Sender, text: &str, signer: &Keys) -> Event {
    let content = encrypt(signer, &sender.bot, &coop_rumor(sender, text));
    let seal = Raw::signed(signer, sender.backdated(TWO_DAYS), 13, json!([]), &content).json(&BY_NIP);
    let receivers = json!([["p", sender.bot.to_hex()], ["p", sender.bot.to_hex()]]);
    sender.wrap(&seal, &sender.bot, sender.backdated(TWO_DAYS), receivers)
}

/// Coop in the mode Auto: the seal is signed and encrypted by the encryption key, if there is one.
fn coop_auto(sender: &Sender, text: &str) -> Vec<Event> {
    vec![coop_wrap(sender, text, &sender.encryption)]
}

/// Coop in its default mode, User: the identity signs and encrypts the seal, as NIP-17 says.
fn coop_user(sender: &Sender, text: &str) -> Vec<Event> {
    vec![coop_wrap(sender, text, &sender.identity)]
}

/// Opens a wrap as the client does. Returns the seal and the rumor, or `None` if the client cannot
/// open it.
pub fn open(sender: &Sender, reads: Reads, wrap: &Event) -> Option<(Event, UnsignedEvent)> {
    let with = |keys: &Keys| -> Option<(Event, UnsignedEvent)> {
        let seal = nip44::decrypt(keys.secret_key(), &wrap.pubkey, &wrap.content).ok()?;
        let seal = Event::from_json(seal).unwrap();
        seal.verify().unwrap();
        let rumor = nip44::decrypt(keys.secret_key(), &seal.pubkey, &seal.content).ok()?;
        Some((seal, UnsignedEvent::from_json(rumor.trim_end()).unwrap()))
    };
    match reads {
        Reads::Identity => with(&sender.identity),
        Reads::EncryptionOnly => with(&sender.encryption),
        Reads::EncryptionFirst => with(&sender.encryption).or_else(|| with(&sender.identity)),
    }
}
