//! Wraps from outside: honest ones, and every way to forge one.

use super::*;
use crate::clock::Clock;
use nostr::nips::nip04;
use nostr::nips::nip44::{self, Version};
use nostr::{EventBuilder, EventId, Kind, PublicKey, Tag, Timestamp, UnsignedEvent};
use serde_json::{Value, json};

/// Builds a wrap step by step, so that a test can make any step wrong.
pub(super) struct Forger {
    pub vault: Vault,
    pub us: PublicKey,
    pub author: Keys,
}

impl Forger {
    pub(super) fn new() -> Forger {
        let vault = vault();
        Forger { us: vault.public_key(), vault, author: Keys::generate() }
    }

    pub(super) fn rumor(&self) -> UnsignedEvent {
        let tags = [Tag::public_key(self.us)];
        let date = Timestamp::from_secs(1_800_000_000);
        let mut rumor =
            UnsignedEvent::new(self.author.public_key(), date, Kind::PrivateDirectMessage, tags, "m0ctane please");
        rumor.ensure_id();
        rumor
    }

    fn rumor_json(&self) -> Value {
        serde_json::to_value(self.rumor()).unwrap()
    }

    pub(super) fn encrypt(&self, from: &Keys, text: &str) -> String {
        nip44::encrypt(from.secret_key(), &self.us, text, Version::V2).unwrap()
    }

    pub(super) fn seal_of(&self, rumor: &str) -> Event {
        let content = self.encrypt(&self.author, rumor);
        EventBuilder::new(Kind::Seal, content).sign_with_keys(&self.author).unwrap()
    }

    pub(super) fn wrap_of(&self, seal: &str) -> Event {
        self.wrap_as(Kind::GiftWrap, self.us, seal)
    }

    fn wrap_as(&self, kind: Kind, to: PublicKey, seal: &str) -> Event {
        let once = Keys::generate();
        let content = self.encrypt(&once, seal);
        EventBuilder::new(kind, content).tag(Tag::public_key(to)).sign_with_keys(&once).unwrap()
    }

    pub(super) fn with_rumor(&self, rumor: impl ToString) -> Event {
        self.wrap_of(&self.seal_of(&rumor.to_string()).as_json())
    }

    pub(super) fn open(&self, wrap: &Event) -> Result<Rumor, UnwrapError> {
        let wrap = VerifiedEvent::check(wrap.clone()).expect("a wrap with its true id and signature");
        let first = self.vault.open_one(&wrap);
        assert_eq!(first, self.vault.open_one(&wrap), "opening it again gives the same result");
        first.map(|opened| match opened {
            Opened::Message(rumor) => rumor,
            Opened::Claim(claim) => panic!("its author would have to be looked up: {claim:?}"),
        })
    }

    /// Opens a wrap whose author must be looked up.
    pub(super) fn claim(&self, wrap: &Event) -> Claim {
        match self.vault.open_one(&VerifiedEvent::check(wrap.clone()).unwrap()) {
            Ok(Opened::Claim(claim)) => claim,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn refused(&self, wrap: &Event) -> UnwrapError {
        self.open(wrap).unwrap_err()
    }
}

/// The JSON of `event` with one field replaced.
fn altered(event: &Event, name: &str, value: impl Into<Value>) -> String {
    let mut json = serde_json::to_value(event).unwrap();
    json[name] = value.into();
    json.to_string()
}

fn other_signature(event: &Event) -> String {
    Keys::generate().sign_schnorr(&secp256k1::Message::from_digest(event.id.to_bytes())).to_string()
}

#[tokio::test]
async fn honest_wraps_open_with_what_clients_leave_out_and_add() {
    let forger = Forger::new();
    let rumor = forger.open(&forger.with_rumor(forger.rumor_json())).unwrap();
    assert_eq!(rumor.id, RumorId(forger.rumor().id.unwrap().to_bytes()));
    assert_eq!(rumor.author, asker(&forger.author));
    assert_eq!((rumor.kind, rumor.created_at, rumor.other_receivers), (14, 1_800_000_000, 0));
    assert_eq!((rumor.content.as_str(), rumor.subject), ("m0ctane please", None));
    // Made by `nostr`, and ephemeral.
    let made = EventBuilder::private_msg_rumor(forger.us, "hello").build(forger.author.public_key());
    let wrap = EventBuilder::gift_wrap(&forger.author, &forger.us, made, []).await.unwrap();
    assert_eq!(forger.open(&wrap).unwrap().content, "hello");
    let seal = forger.seal_of(&forger.rumor_json().to_string()).as_json();
    let wrap = forger.wrap_as(Kind::Custom(21059), forger.us, &seal);
    assert_eq!(forger.open(&wrap).unwrap().content, "m0ctane please");
    // A missing id and an empty signature.
    let mut json = forger.rumor_json();
    json["sig"] = Value::Null;
    assert_eq!(forger.open(&forger.with_rumor(&json)).unwrap().id, rumor.id);
    json["id"] = Value::Null;
    assert_eq!(forger.open(&forger.with_rumor(&json)).unwrap().id, rumor.id);
    json.as_object_mut().unwrap().remove("id");
    assert_eq!(forger.open(&forger.with_rumor(&json)).unwrap().id, rumor.id);
    // The kind of a rumor and a date in the future are left to the inbox.
    for (kind, date) in [(7, 1_900_000_000), (15, u64::MAX >> 1), (65_535, 4_000_000_000)] {
        let rumor = UnsignedEvent { id: None, kind: Kind::from(kind), created_at: date.into(), ..forger.rumor() };
        let opened = forger.open(&forger.with_rumor(rumor.as_json())).unwrap();
        assert_eq!((opened.kind, opened.created_at), (kind, date));
    }
}

/// A captured process can fetch old wraps, and show them to the vault in new ones.
#[test]
fn a_message_older_than_the_inbox_takes_is_not_opened_whatever_its_wrap_says() {
    const WEEK: u64 = 7 * 86_400;
    let forger = Forger::new();
    let signer = Keys::generate();
    let (us, date) = (forger.us, forger.rumor().created_at.as_secs());
    let content = nip04::encrypt(forger.author.secret_key(), &us, "help").unwrap();
    let legacy = EventBuilder::new(Kind::EncryptedDirectMessage, content).tag(Tag::public_key(us));
    let wraps = [
        forger.with_rumor(forger.rumor_json()),
        super::decoupled::wrap(&forger, &forger.rumor(), &signer, &signer, None),
        legacy.custom_created_at(Timestamp::from_secs(date)).sign_with_keys(&forger.author).unwrap(),
    ];
    for wrap in wraps.map(|wrap| VerifiedEvent::check(wrap).unwrap()) {
        let open = |now| forger.vault.clone().with_clock(Clock::at(now)).open_one(&wrap).map(|_| ());
        for now in [0, date, date + WEEK + 3600] {
            assert_eq!(open(now), Ok(()));
        }
        for now in [date + WEEK + 3601, date + 3 * 365 * 86_400, u64::MAX] {
            assert_eq!(open(now), Err(UnwrapError::TooOld));
        }
    }
}

#[test]
fn subject_and_other_receivers_are_read() {
    let forger = Forger::new();
    let mut rumor = forger.rumor_json();
    rumor.as_object_mut().unwrap().remove("id");
    let (a, b) = (Keys::generate().public_key().to_hex(), Keys::generate().public_key().to_hex());
    let own = forger.author.public_key().to_hex();
    rumor["tags"] =
        json!([["p", a, "wss://x"], ["p", b], ["p", a], ["p", own], ["p", "junk"], ["p"], ["subject", "vanity"]]);
    let opened = forger.open(&forger.with_rumor(&rumor)).unwrap();
    assert_eq!((opened.other_receivers, opened.subject.as_deref()), (2, Some("vanity")));
    for no_subject in [json!([["subject"]]), json!([["subject", ""]]), json!([["subject", "x".repeat(257)]])] {
        rumor["tags"] = no_subject;
        assert_eq!(forger.open(&forger.with_rumor(&rumor)).unwrap().subject, None);
    }
}

#[test]
fn oversize_is_refused_before_anything_is_decrypted() {
    let forger = Forger::new();
    for (content, tags) in [("A".repeat(128 * 1024 + 1), 1), ("A".to_owned(), 2000)] {
        let wrap = EventBuilder::new(Kind::GiftWrap, content).tags((0..tags).map(|_| Tag::public_key(forger.us)));
        assert_eq!(forger.refused(&wrap.sign_with_keys(&Keys::generate()).unwrap()), UnwrapError::TooLarge);
    }
}

#[test]
fn a_wrap_with_a_wrong_id_or_signature_is_not_verified() {
    let forger = Forger::new();
    let wrap = forger.with_rumor(forger.rumor_json());
    let id = altered(&wrap, "id", "00".repeat(32));
    let signature = altered(&wrap, "sig", other_signature(&wrap));
    let date = altered(&wrap, "created_at", 1);
    let author = altered(&wrap, "pubkey", forger.author.public_key().to_hex());
    let no_point = altered(&wrap, "pubkey", "ff".repeat(32));
    for forged in [id, signature, date, author, no_point] {
        assert_eq!(VerifiedEvent::check(Event::from_json(forged).unwrap()), None);
    }
}

#[test]
fn a_wrap_of_another_kind_or_to_somebody_else_is_refused() {
    let forger = Forger::new();
    let seal = forger.seal_of(&forger.rumor_json().to_string()).as_json();
    for kind in [1, 13, 14, 1058, 20059] {
        assert_eq!(forger.refused(&forger.wrap_as(Kind::from(kind), forger.us, &seal)), UnwrapError::NotAWrap);
    }
    let wrap = forger.wrap_as(Kind::GiftWrap, Keys::generate().public_key(), &seal);
    assert_eq!(forger.refused(&wrap), UnwrapError::NotForUs);
    let once = Keys::generate();
    let nobody = EventBuilder::new(Kind::GiftWrap, forger.encrypt(&once, &seal)).sign_with_keys(&once).unwrap();
    assert_eq!(forger.refused(&nobody), UnwrapError::NotForUs);
}

#[test]
fn a_wrap_or_seal_that_does_not_decrypt_is_refused() {
    let forger = Forger::new();
    let once = Keys::generate();
    let good = forger.encrypt(&once, "{}");
    let mut flipped = good.clone().into_bytes();
    flipped[60] = if flipped[60] == b'A' { b'B' } else { b'A' };
    let flipped = String::from_utf8(flipped).unwrap();
    let elsewhere = Keys::generate();
    let to_another = nip44::encrypt(once.secret_key(), &elsewhere.public_key(), "{}", Version::V2).unwrap();
    let version = format!("B{}", &good[1..]);
    for content in ["", "A", "AgA=", "#", "not base64 at all", "AgAAAAAAAAAA", &flipped, &to_another, &version, "ü"] {
        let wrap =
            EventBuilder::new(Kind::GiftWrap, content).tag(Tag::public_key(forger.us)).sign_with_keys(&once).unwrap();
        assert_eq!(forger.refused(&wrap), UnwrapError::Undecryptable, "{content}");
    }
    let seal = EventBuilder::new(Kind::Seal, to_another).sign_with_keys(&forger.author).unwrap();
    assert_eq!(forger.refused(&forger.wrap_of(&seal.as_json())), UnwrapError::Undecryptable);
}

#[test]
fn a_seal_of_another_form_or_kind_is_refused() {
    let forger = Forger::new();
    let content = forger.encrypt(&forger.author, &forger.rumor_json().to_string());
    let kind = EventBuilder::new(Kind::PrivateDirectMessage, content).sign_with_keys(&forger.author).unwrap();
    let good = forger.seal_of(&forger.rumor_json().to_string());
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep_tags = format!(r#"{{"tags":{deep}}}"#);
    let no_signature = altered(&good, "sig", Value::Null);
    for seal in [kind.as_json(), no_signature, deep, deep_tags, "{}".into(), "x".into(), "null".into()] {
        assert_eq!(forger.refused(&forger.wrap_of(&seal)), UnwrapError::BadSeal);
    }
}

#[test]
fn a_seal_with_tags_opens_and_its_signature_must_still_be_right() {
    let forger = Forger::new();
    let content = forger.encrypt(&forger.author, &forger.rumor_json().to_string());
    let tag = |words: &[&str]| Tag::parse(words.iter().copied()).unwrap();
    let own = forger.author.public_key().to_hex();
    for tag in [tag(&["expiration", "5"]), tag(&["n", &own]), tag(&["client", "x"]), tag(&["p", &own])] {
        let seal = EventBuilder::new(Kind::Seal, content.clone()).tag(tag).sign_with_keys(&forger.author).unwrap();
        let opened = forger.open(&forger.wrap_of(&seal.as_json())).unwrap();
        assert_eq!((opened.author, opened.content.as_str()), (asker(&forger.author), "m0ctane please"));
        let forged = altered(&seal, "sig", other_signature(&seal));
        assert_eq!(forger.refused(&forger.wrap_of(&forged)), UnwrapError::ForgedSeal);
    }
    let seal = forger.seal_of(&forger.rumor_json().to_string());
    let author = Keys::generate().public_key().to_hex();
    for (field, value) in [("id", json!("00".repeat(32))), ("pubkey", json!(author)), ("created_at", json!(1))] {
        assert_eq!(forger.refused(&forger.wrap_of(&altered(&seal, field, value))), UnwrapError::ForgedSeal, "{field}");
    }
    // Each refusal is counted under its cause.
    let counted: Vec<_> = forger.vault.dropped().into_iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counted, [(UnwrapError::ForgedSeal, 14)]);
}

#[test]
fn a_malformed_rumor_is_refused() {
    let forger = Forger::new();
    let good = forger.rumor_json();
    let with = |name: &str, value: Value| {
        let mut rumor = good.clone();
        rumor[name] = value;
        rumor.to_string()
    };
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let malformed = [
        "x".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        deep,
        with("kind", json!(-1)),
        with("kind", json!("14")),
        with("created_at", json!(-5)),
        with("created_at", json!(1.5)),
        with("tags", json!([[1]])),
        with("tags", json!({})),
        with("content", json!(null)),
        with("pubkey", json!("npub")),
        with("id", json!("abc")),
        good.to_string().replace("m0ctane", "\\ud800"),
    ];
    for rumor in malformed {
        assert_eq!(forger.refused(&forger.with_rumor(&rumor)), UnwrapError::BadRumor, "{rumor:.80}");
    }
    // In a field that is ignored, anything is harmless.
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let rumor = good.to_string().replacen('{', &format!(r#"{{"more":{deep},"#), 1);
    assert_eq!(forger.open(&forger.with_rumor(&rumor)).unwrap().content, "m0ctane please");
}

#[test]
fn an_impostor_and_a_rumor_that_lies_about_its_id_are_refused() {
    let forger = Forger::new();
    let victim = Keys::generate().public_key();
    let rumor = UnsignedEvent { id: None, pubkey: victim, ..forger.rumor() };
    let claim = forger.claim(&forger.with_rumor(rumor.as_json()));
    assert_eq!(forger.vault.confirm(claim, None), Err(UnwrapError::Impostor), "nothing confirms it");
    let in_our_name = UnsignedEvent { id: None, pubkey: forger.us, ..forger.rumor() };
    assert_eq!(forger.refused(&forger.with_rumor(in_our_name.as_json())), UnwrapError::Impostor);
    let mut lying = forger.rumor();
    lying.content.push('!');
    assert_eq!(forger.refused(&forger.with_rumor(lying.as_json())), UnwrapError::LyingId);
    lying.id = Some(EventId::all_zeros());
    assert_eq!(forger.refused(&forger.with_rumor(lying.as_json())), UnwrapError::LyingId);
}

#[test]
fn random_damage_to_a_wrap_never_panics_and_never_opens() {
    let (forger, mut rng) = (Forger::new(), seeded());
    let good = forger.with_rumor(forger.rumor_json()).as_json().into_bytes();
    for _ in 0..2_000 {
        let mut json = good.clone();
        let at = rng.random_range(0..json.len());
        json[at] ^= 1 << rng.random_range(0..7);
        if let Some(wrap) = Event::from_json(&json).ok().and_then(VerifiedEvent::check) {
            // Harmless damage: the case of a hex digit, or a field that is ignored.
            if forger.vault.open_one(&wrap).is_ok() {
                assert_eq!(Event::from_json(&good).unwrap(), *wrap);
            }
        }
    }
}
