//! Every client whose source is public: the bot reads its wraps, and it can read the bot's answers.
//! The bot does not believe an impostor, whatever a relay does to help.
//!
//! The wraps are like those of clients: the order of the fields, and the tags, dates and keys of each
//! layer follow the sources that the comment of each builder names. No code is copied.

use super::interop::needs_foreign_clients;
use crate::support::asker::{Asker, DeliveredKey, is_late_notice};
use crate::support::bot::Home;
use crate::support::foreign::{ForeignRelay, embedded_relay};
use crate::support::harness::{Test, figure, test};
use crate::support::relay::TestRelay;
use crate::support::{connected, dm_list, publish, publish_with, seed, until, wait_for};
use ::rand::rngs::StdRng;
use ::rand::{Rng, SeedableRng};
use nostr_sdk::nips::nip44::{self, Version};
use nostr_sdk::prelude::*;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

pub const TESTS: &[Test] = &[
    test!(every_client_is_heard_once_and_reads_its_answers_through_the_embedded_relay),
    test!(every_client_is_heard_once_and_reads_its_answers_through_nostr_relay),
    test!(every_client_is_heard_once_and_reads_its_answers_through_nostr_rs_relay)
        .long("nostr-rs-relay 0.8.12 takes ten minutes to build: name its program in NOSTR_RS_RELAY"),
    test!(an_impostor_is_not_heard_whatever_a_relay_shows_or_hides),
    test!(claims_whose_authors_relays_say_nothing_hold_nobody_up).measures("latency"),
];

/// The kind that announces an encryption key.
const ANNOUNCEMENT: Kind = Kind::Custom(10044);

fn sender(bot: PublicKey, relay: &RelayUrl, back: f64) -> Sender {
    let (identity, encryption) = (Keys::generate(), Keys::generate());
    Sender { identity, encryption, bot, relay: relay.clone(), now: Timestamp::now().as_secs(), back }
}

/// An announcement by `by` that `key` is their encryption key, dated `ago` seconds back.
fn announcement(by: &Keys, key: &Keys, ago: i64) -> Event {
    let date = Timestamp::from_secs(Timestamp::now().as_secs().saturating_add_signed(-ago));
    let tag = Tag::parse(["n", &key.public_key().to_hex()]).unwrap();
    EventBuilder::new(ANNOUNCEMENT, "").tag(tag).custom_created_at(date).sign_with_keys(by).unwrap()
}

async fn fetch(client: &Client, filter: Filter) -> Vec<Event> {
    client
        .fetch_events(filter, Duration::from_secs(10))
        .await
        .map(|events| events.into_iter().collect())
        .unwrap_or_default()
}

/// Sends a request, and reads the answers, as this client does.
async fn try_client(form: &ClientForm, client: &Client, sender: &Sender, prefix: &str) {
    let name = form.name;
    if form.reads == Reads::EncryptionOnly {
        // Jumble does not write to people who announce no encryption key.
        let filter = Filter::new().kind(ANNOUNCEMENT).author(sender.bot);
        let event = until("the bot's key", || async { fetch(client, filter.clone()).await.into_iter().next() }).await;
        let named: Vec<_> = event.tags.iter().map(|tag| tag.as_slice().to_vec()).collect();
        assert_eq!(named, [["n".to_owned(), sender.bot.to_hex()]]);
    }
    if form.lists_relays {
        publish_with(client, &dm_list(&sender.identity, std::slice::from_ref(&sender.relay))).await;
    }
    if form.announces {
        publish_with(client, &announcement(&sender.identity, &sender.encryption, 60)).await;
    }
    for wrap in (form.wraps)(sender, prefix) {
        publish_with(client, &wrap).await;
    }
    // Clients look for wraps to the identity.
    let filter = Filter::new().kind(Kind::GiftWrap).pubkey(sender.identity.public_key());
    let is_key = |text: &str| DeliveredKey::read(text).is_some();
    let messages = until(&format!("{name}: acceptance and key"), || async {
        // Each query costs the relay as much as a message.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let wraps = fetch(client, filter.clone()).await;
        let opened = |wrap| open(sender, form.reads, wrap).unwrap_or_else(|| panic!("{name}: it cannot be read"));
        let messages: Vec<_> = wraps.iter().map(opened).collect();
        // The bot sends both at once, so the key can be there first.
        (messages.len() > 2 && messages.iter().any(|(_, rumor)| is_key(&rumor.content))).then_some(messages)
    })
    .await;
    let late = messages.iter().filter(|(_, rumor)| is_late_notice(&rumor.content)).count();
    assert_eq!(messages.len() - late, 3, "{name}: one acceptance, one result of two messages");
    for (seal, rumor) in &messages {
        assert_eq!((seal.pubkey, rumor.pubkey), (sender.bot, sender.bot), "{name}");
        assert_eq!(rumor.tags.public_keys().copied().collect::<Vec<_>>(), [sender.identity.public_key()], "{name}");
        assert_eq!(rumor.tags.event_ids().count(), 1, "{name}: in the thread of the request");
    }
    let key = messages.iter().find_map(|(_, rumor)| DeliveredKey::read(&rumor.content)).unwrap();
    key.assert_starts_with(prefix);
}

async fn every_client_through(relay: RelayUrl) {
    let mut rng = StdRng::seed_from_u64(seed());
    let running = Home::new(std::slice::from_ref(&relay)).start().await;
    let client = connected(&relay).await;
    for form in FORMS {
        let sender = sender(running.public_key, &relay, rng.random_range(0.0..1.0));
        try_client(form, &client, &sender, "da").await;
    }
    let totals = running.service.totals().unwrap();
    assert_eq!(totals.accepted + totals.found + totals.delivered, FORMS.len() as u64, "one job a message");
}

async fn every_client_is_heard_once_and_reads_its_answers_through_the_embedded_relay() {
    let relay = embedded_relay(false).await;
    every_client_through(relay.url().await).await;
}

async fn every_client_is_heard_once_and_reads_its_answers_through_nostr_relay() {
    needs_foreign_clients();
    let relay = ForeignRelay::python().await;
    every_client_through(relay.url()).await;
}

async fn every_client_is_heard_once_and_reads_its_answers_through_nostr_rs_relay() {
    let program = std::env::var("NOSTR_RS_RELAY").expect("NOSTR_RS_RELAY names the program");
    let relay = ForeignRelay::rust(Path::new(&program), false).await;
    every_client_through(relay.url()).await;
}

fn older_jumble() -> &'static ClientForm {
    FORMS.iter().find(|form| form.name == "Jumble, older").unwrap()
}

/// The seals of impostors are signed by a key that the author does not announce, or no longer
/// announces, or that somebody else announces. The author's newest announcement may be on a relay
/// of their own only.
async fn an_impostor_is_not_heard_whatever_a_relay_shows_or_hides() {
    let (ours, theirs) = (TestRelay::start().await, TestRelay::start().await);
    let home = Home::new(&[ours.url()]);
    let process = home.spawn().await;
    let (form, bot) = (older_jumble(), process.public_key);
    let claim = |sender: &Sender| (form.wraps)(sender, "dad");

    let nothing = sender(bot, &ours.url(), 0.5);
    let another = sender(bot, &ours.url(), 0.5);
    publish(&ours.url(), &announcement(&another.identity, &Keys::generate(), 60)).await;
    // The signer announces its key for itself, which does not count for the author.
    let himself = sender(bot, &ours.url(), 0.5);
    publish(&ours.url(), &announcement(&himself.encryption, &himself.encryption, 60)).await;
    // Our relay shows the earlier announcement; the author's own relay has the newer one.
    let replaced = sender(bot, &ours.url(), 0.5);
    publish(&ours.url(), &announcement(&replaced.identity, &replaced.encryption, 600)).await;
    publish(&ours.url(), &dm_list(&replaced.identity, &[theirs.url()])).await;
    publish(&theirs.url(), &announcement(&replaced.identity, &Keys::generate(), 60)).await;
    // An announcement of the future would stay the newest until then.
    let future = sender(bot, &ours.url(), 0.5);
    publish(&ours.url(), &announcement(&future.identity, &future.encryption, -7200)).await;
    let impostors = [nothing, another, himself, replaced, future];
    for impostor in &impostors {
        for wrap in claim(impostor) {
            publish(&ours.url(), &wrap).await;
        }
    }

    // Our relay withholds this author's announcement, and the bot finds it on the author's own
    // relay.
    let genuine = sender(bot, &ours.url(), 0.5);
    publish(&ours.url(), &dm_list(&genuine.identity, &[theirs.url()])).await;
    publish(&theirs.url(), &announcement(&genuine.identity, &genuine.encryption, 60)).await;
    for wrap in claim(&genuine) {
        publish(&ours.url(), &wrap).await;
    }
    until("the genuine one has a key", || async {
        let wraps = theirs.wraps_to(genuine.identity.public_key());
        let read = |wrap| open(&genuine, Reads::EncryptionOnly, wrap).expect("it can be read");
        wraps.iter().map(read).find_map(|(_, rumor)| DeliveredKey::read(&rumor.content))
    })
    .await
    .assert_starts_with("dad");
    let dropped = || home.log().matches("seal and rumor have different authors").count();
    wait_for("the others are looked up and dropped", || dropped() >= impostors.len()).await;
    assert_eq!(home.count("SELECT count(*) FROM seen"), Some(1), "only the genuine one was seen");
    let written: HashSet<PublicKey> = impostors.iter().map(|one| one.identity.public_key()).collect();
    for relay in [&ours, &theirs] {
        assert!(written.iter().all(|key| relay.wraps_to(*key).is_empty()), "nothing is said to them");
    }
    process.stop(&home).await;
}

/// Claims name authors whose own relay accepts connections and never says a word.
async fn claims_whose_authors_relays_say_nothing_hold_nobody_up() {
    let relay = TestRelay::start().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent_url = RelayUrl::parse(&format!("ws://{}", silent.local_addr().unwrap())).unwrap();
    let home = Home::new(&[relay.url()]);
    let (bot, client) = (home.vault().public_key(), connected(&relay.url()).await);
    let claim = async || {
        let claimed = sender(bot, &relay.url(), 0.5);
        publish_with(&client, &dm_list(&claimed.identity, std::slice::from_ref(&silent_url))).await;
        for wrap in (older_jumble().wraps)(&claimed, "dad") {
            publish_with(&client, &wrap).await;
        }
    };
    claim().await;
    let running = home.start().await;
    // However many claims come, the cursor moves on while their authors are looked up.
    let endless = async {
        loop {
            claim().await;
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    };
    let contact = || async { home.count("SELECT value FROM meta WHERE name = 'last_contact'") };
    tokio::select! {
        () = endless => {}
        _ = until("the cursor moves on", contact) => {}
    }
    let mut asker = Asker::connect(&relay.url(), bot).await;
    asker.ask("help").await;
    for _ in 0..60 {
        claim().await;
    }
    let mut longest = Duration::ZERO;
    for prefix in ["da", "ha", "ca"] {
        let began = Instant::now();
        asker.ask(prefix).await;
        longest = began.elapsed().max(longest);
        asker.next_key().await.assert_starts_with(prefix);
    }
    let delivered = || async { (running.service.totals().unwrap().delivered >= 3).then_some(()) };
    until("the ledger knows that the three keys are delivered", delivered).await;
    assert_eq!(running.service.totals().unwrap().delivered, 3, "and of the others nothing came");
    running.service.stop().await;
    figure("the slowest acceptance", longest, Duration::from_secs(2));
}

/// The most seconds that seal and wrap are dated back.
const TWO_DAYS: u64 = 2 * 86_400;

/// Somebody who writes to the bot with one of the clients.
struct Sender {
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
enum Reads {
    Identity,
    /// The encryption key and no other.
    EncryptionOnly,
    /// The encryption key for both layers; if the wrap does not open, the identity for both.
    EncryptionFirst,
}

/// The form of one client's messages.
struct ClientForm {
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
const FORMS: &[ClientForm] = &[
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
        let id: [u8; 32] = hex::decode(&raw.id).unwrap().try_into().unwrap();
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
fn open(sender: &Sender, reads: Reads, wrap: &Event) -> Option<(Event, UnsignedEvent)> {
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
