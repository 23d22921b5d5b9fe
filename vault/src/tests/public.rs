//! The public side of the vault: its debug output, and what it signs for a process that may be
//! captured.

use super::*;
use crate::clock::Clock;
use nostr::nips::nip38::{LiveStatus, StatusType};
use nostr::{EventBuilder, Kind, NostrSigner, RelayUrl, Tag, Timestamp, UnsignedEvent};

const NOW: u64 = 1_800_000_000;
const DAY: u64 = 86_400;

fn url(text: &str) -> RelayUrl {
    RelayUrl::parse(text).unwrap()
}

fn settings() -> PublicSettings {
    let relay = |text, inbox, status| PublicRelay { url: url(text), inbox, status };
    PublicSettings {
        name: "a bot".to_owned(),
        about: "finds keys".to_owned(),
        picture: "https://bot.example/picture.png".to_owned(),
        nip05: Some("bot@bot.example".to_owned()),
        lud16: None,
        page: Some("https://bot.example/".to_owned()),
        page_sha256: Some("00ff".to_owned()),
        relays: vec![relay("wss://in.example", true, false), relay("wss://out.example", false, true)],
        live_status: true,
        daily_note: true,
    }
}

/// A vault with these settings, and its clock.
fn publishing(settings: PublicSettings) -> (Vault, Clock) {
    let clock = Clock::at(NOW);
    (vault().with_clock(clock.clone()).with_settings(settings), clock)
}

fn dated(builder: EventBuilder, date: u64, by: nostr::PublicKey) -> UnsignedEvent {
    builder.custom_created_at(Timestamp::from_secs(date)).build(by)
}

fn note(text: &str) -> EventBuilder {
    EventBuilder::text_note(text)
}

fn status(text: &str, end: u64) -> EventBuilder {
    let expiration = Some(Timestamp::from_secs(end));
    EventBuilder::live_status(LiveStatus { status_type: StatusType::General, expiration, reference: None }, text)
}

fn tagged(kind: u16, content: &str, tags: &[&[&str]]) -> EventBuilder {
    EventBuilder::new(Kind::from(kind), content).tags(tags.iter().map(|tag| Tag::parse(tag.iter().copied()).unwrap()))
}

/// Everything that the bot publishes, once.
fn genuine(key: nostr::PublicKey) -> Vec<EventBuilder> {
    let said = "Yesterday: 41 requests accepted, 1 key delivered, 9.40e15 keys tested. Send me a prefix by private \
                message and I find you an npub that starts with it.";
    let auth = |to| EventBuilder::auth("challenge", url(to));
    let others = [
        note(said),
        status("ready", NOW + 900),
        status("asleep", NOW + 7 * DAY),
        auth("wss://in.example"),
        auth("wss://out.example/"),
    ];
    settings().events(key).into_iter().map(|(_, builder)| builder).chain(others).collect()
}

#[tokio::test]
async fn the_signer_signs_what_the_bot_publishes() {
    let (vault, _) = publishing(settings());
    let (key, signer) = (vault.public_key(), vault.signer());
    assert_eq!(signer.get_public_key().await.unwrap(), key);
    for builder in genuine(key) {
        let event = signer.sign_event(dated(builder, NOW, key)).await.unwrap();
        event.verify().unwrap();
        assert_eq!(event.pubkey, key);
    }
    assert_eq!(vault.refusals(), 0);
    // Without settings, as for `npubbot init`, nothing is signed.
    let silent = super::vault();
    for builder in genuine(silent.public_key()) {
        assert!(silent.signer().sign(builder.build(silent.public_key())).is_err());
    }
}

/// Everything that a captured process would like to have signed, each with its rule.
#[test]
fn the_signer_refuses_everything_else() {
    let (vault, _) = publishing(settings());
    let (key, stranger) = (vault.public_key(), Keys::generate().public_key());
    let (own, foreign) = (key.to_hex(), stranger.to_hex());
    let [(_, profile), ..] = settings().events(key);
    let mut profile: serde_json::Value = serde_json::from_str(&profile.build(key).content).unwrap();
    profile["lud16"] = "thief@example.com".into();
    let (long, challenge) = ("prefix ".repeat(60), "x".repeat(1025));
    let end = (NOW + 900).to_string();
    let refused = [
        ("a profile with a lightning address", tagged(0, &profile.to_string(), &[])),
        ("a profile with a tag", settings().events(key)[0].1.clone().tag(Tag::hashtag("x"))),
        ("an empty profile", tagged(0, "{}", &[])),
        ("a foreign relay list", tagged(10002, "", &[&["r", "wss://thief.example"]])),
        (
            "a relay list with one more",
            tagged(10002, "", &[&["r", "wss://out.example"], &["r", "wss://thief.example"]]),
        ),
        ("an empty relay list", tagged(10002, "", &[])),
        ("a foreign list of DM relays", tagged(10050, "", &[&["relay", "wss://thief.example"]])),
        ("the relays of the other list", tagged(10050, "", &[&["relay", "wss://out.example"]])),
        ("a foreign encryption key", tagged(10044, "", &[&["n", &foreign]])),
        ("a withdrawn encryption key", tagged(10044, "", &[])),
        ("two encryption keys", tagged(10044, "", &[&["n", &own], &["n", &foreign]])),
        ("a foreign handler", tagged(31989, "", &[&["d", "14"], &["a", &format!("31990:{foreign}:npubbot")]])),
        ("a handler of another page", tagged(31990, "{}", &[&["d", "npubbot"], &["web", "https://thief.example"]])),
        ("a note of other words", note("Send coins to thief.example")),
        ("a long note", note(&long)),
        ("a note with a link in a tag", tagged(1, "prefix", &[&["r", "https://thief.example"]])),
        ("a status without an end", tagged(30315, "ready", &[&["d", "general"]])),
        ("a status for ever", status("ready", NOW + 8 * DAY)),
        ("a long status", status(&long, NOW + 900)),
        ("a status of music", tagged(30315, "ready", &[&["d", "music"], &["expiration", &end]])),
        ("a status with a link", status("ready", NOW + 900).tag(Tag::parse(["r", "https://thief.example"]).unwrap())),
        ("AUTH at a foreign relay", EventBuilder::auth("challenge", url("wss://thief.example"))),
        ("AUTH without a relay", tagged(22242, "", &[&["challenge", "x"], &["x", "y"]])),
        (
            "AUTH at two relays",
            EventBuilder::auth("x", url("wss://in.example")).tag(Tag::relay(url("wss://thief.example"))),
        ),
        ("AUTH with a text", tagged(22242, "x", &[&["challenge", "x"], &["relay", "wss://in.example"]])),
        ("AUTH with a long challenge", EventBuilder::auth(challenge, url("wss://in.example"))),
        ("a deletion", tagged(5, "", &[&["e", &"ab".repeat(32)]])),
    ];
    for (name, builder) in refused {
        assert!(vault.signer().sign(dated(builder, NOW, key)).is_err(), "{name}");
    }
    for kind in [3, 4, 6, 7, 13, 14, 62, 444, 1059, 10000, 10051, 27235, 30023, 65535] {
        assert!(vault.signer().sign(dated(tagged(kind, "", &[]), NOW, key)).is_err(), "{kind}");
    }
    for builder in genuine(key) {
        for date in [0, NOW - 3601, NOW + 3601, 4_102_444_800, u64::MAX] {
            assert!(vault.signer().sign(dated(builder.clone(), date, key)).is_err(), "dated {date}");
        }
        assert!(vault.signer().sign(dated(builder.clone(), NOW, stranger)).is_err(), "another author");
        let mut lying = dated(builder, NOW, key);
        lying.ensure_id();
        lying.created_at = Timestamp::from_secs(NOW + 1);
        assert!(vault.signer().sign(lying).is_err(), "a wrong id");
    }
    assert!(vault.refusals() > 100, "each refusal is counted");
    // What the operator has switched off is not published in the bot's name.
    let (vault, _) = publishing(PublicSettings { live_status: false, daily_note: false, ..settings() });
    let key = vault.public_key();
    assert!(vault.signer().sign(dated(note("prefix"), NOW, key)).is_err());
    assert!(vault.signer().sign(dated(status("ready", NOW + 900), NOW, key)).is_err());
    assert!(vault.signer().sign(dated(status("", NOW + 900), NOW, key)).is_ok(), "it removes the last one");
}

#[test]
fn signatures_are_few_and_a_relay_cannot_use_up_those_of_another() {
    let (vault, clock) = publishing(settings());
    let key = vault.public_key();
    // A few more than may be signed.
    let signed = |builder: &EventBuilder, date: u64, most: usize| {
        (0..most + 3).filter(|_| vault.signer().sign(dated(builder.clone(), date, key)).is_ok()).count()
    };
    let all = genuine(key);
    let expected = [48, 48, 48, 48, 48, 48, 12, 400, 0, 30, 30];
    for (builder, most) in all.iter().zip(expected) {
        assert_eq!(signed(builder, NOW, most), most, "{builder:?}");
    }
    // The clock of the vault opens the next window, not the date of the event.
    assert_eq!(signed(&all[0], NOW + 3600, 0), 0);
    clock.set(NOW + DAY);
    assert_eq!(signed(&all[0], NOW + DAY, 48), 48);
}

#[tokio::test]
async fn the_signer_neither_encrypts_nor_decrypts() {
    let signer = vault().signer();
    let other = Keys::generate().public_key();
    assert!(signer.nip04_encrypt(&other, "x").await.is_err());
    assert!(signer.nip04_decrypt(&other, "x").await.is_err());
    assert!(signer.nip44_encrypt(&other, "x").await.is_err());
    assert!(signer.nip44_decrypt(&other, "x").await.is_err());
}

#[test]
fn debug_output_holds_no_secret() {
    let vault = vault();
    let bot = secret::Signing::from_nsec(vault.bot_for_tests().nsec_line().trim()).unwrap();
    let shown = format!("{vault:?} {:?} {:?}", vault.signer(), vault.open_start().unwrap());
    let secret = bot.keys().secret_key();
    assert!(!shown.contains("nsec1") && !shown.contains(&secret.to_secret_hex()));
    assert!(!shown.contains(&format!("{:?}", secret.to_secret_bytes())));
}
