//! The bodies of the fuzz targets. Each function runs one input. `tests/it/fuzz_corpora.rs` runs
//! the same functions on the stored inputs, with stable Rust.

use nostr::nips::nip44::{self, Version};
use nostr::{Event, EventBuilder, JsonUtil, Keys, Kind, Tag};
use npubbot::bot::{Facts, decide, read};
use npubbot::config::Config;
use npubbot::job::{Asker, RumorId};
use npubbot::key::{HalfPoint, Npub, Offset, Rotation, SplitTweak, Tweak, VerifiedHit};
use npubbot::language::Language;
use npubbot::ledger::{AskerView, Effect};
use npubbot::pattern::{Pattern, PatternId, PatternSet, Rate};
use npubbot::scheduler::{CollectedLaunch, Pass, verify};
use npubbot::search::{ClaimedHit, LaunchReport};
use npubbot::vault::{Opened, Rumor, Vault, VerifiedEvent};
use secp256k1::Scalar;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

/// Target `request`: every text gets an answer of limited length.
pub fn request(data: &[u8]) {
    static CONFIG: OnceLock<Config> = OnceLock::new();
    let config = CONFIG.get_or_init(|| Config::embedded_default().expect("what ships is valid"));
    let asker = AskerView::default();
    let facts = Facts::idle(&config.limits, &asker, Rate(80e6), 1_800_000_000);
    let rumor = Rumor {
        id: RumorId([1; 32]),
        author: Asker([2; 32]),
        kind: 14,
        content: String::from_utf8_lossy(data).into_owned(),
        created_at: 1_800_000_000,
        subject: None,
        other_receivers: 0,
        ticket: None,
        deletes: Vec::new(),
        encryption_key: None,
    };
    let request = read(&rumor);
    let mut reading = request.reading(facts.asker);
    for language in Language::ALL {
        reading.language = language;
        let (effect, reply) = decide(&request, &reading, &facts);
        if let Effect::Accept(_, spec) = effect {
            assert!(!spec.patterns.is_empty() && spec.patterns.len() <= config.limits.prefixes_per_job);
        }
        let length = reply.expect("a text is never ignored").text.chars().count();
        assert!((1..=1500).contains(&length), "an answer of {length} characters");
    }
}

/// Target `unwrap`: a wrap that opens names its true author. The first byte of the input chooses
/// the layer that the remaining bytes replace: the wrap, the seal in a genuine wrap, or the rumor
/// in a genuine seal. The seal is signed by the author, and once more by an impostor.
pub fn unwrap(data: &[u8]) {
    static KEYS: OnceLock<(Vault, [Keys; 2])> = OnceLock::new();
    let keys = || (Vault::without_identity().expect("randomness"), [Keys::generate(), Keys::generate()]);
    let (vault, signers) = KEYS.get_or_init(keys);
    for signer in signers {
        unwrap_of(vault, &signers[0], signer, data);
    }
}

fn unwrap_of(vault: &Vault, author: &Keys, signer: &Keys, data: &[u8]) {
    let Some((layer, rest)) = data.split_first() else { return };
    let us = vault.public_key();
    // A rumor must name its author, or it is refused before anything else is checked.
    let text = String::from_utf8_lossy(rest).replace("AUTHOR", &author.public_key().to_hex());
    let seal_in = |text: &str| nip44::encrypt(signer.secret_key(), &us, text, Version::V2).ok();
    let wrap = match layer % 3 {
        0 => Event::from_json(&text).ok(),
        1 => seal_in(&text).and_then(|content| wrap_of(signer, us, content)),
        _ => seal_in(&text)
            .and_then(|content| EventBuilder::new(Kind::Seal, content).sign_with_keys(signer).ok())
            .and_then(|seal| seal_in(&seal.as_json()))
            .and_then(|content| wrap_of(signer, us, content)),
    };
    let Some(wrap) = wrap.and_then(VerifiedEvent::check) else { return };
    if let Some(Ok(Opened::Message(rumor))) = vault.open_all(&[wrap]).pop() {
        assert_eq!(rumor.author, Asker(signer.public_key().to_bytes()), "only the author's own words open");
    }
}

fn wrap_of(once: &Keys, us: nostr::PublicKey, content: String) -> Option<Event> {
    EventBuilder::new(Kind::GiftWrap, content).tag(Tag::public_key(us)).sign_with_keys(once).ok()
}

/// Target `relays_toml`: every file gives a checked configuration, or an error that names the file.
pub fn relays_toml(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Config::parse(text, "relays.toml") {
        Ok(config) => {
            assert!(config.relays.iter().any(|relay| relay.inbox));
            assert!(config.limits.prefixes_per_job >= 1 && config.limits.open_jobs_per_asker >= 1);
        }
        Err(error) => assert!(error.to_string().contains("relays.toml"), "{error}"),
    }
}

/// Target `hits`: claimed hits are verified without harm. The input has the form of a device's
/// buffer, 42 bytes per hit: start point, kind of offset and rotation, offset.
pub fn hits(data: &[u8]) {
    static LAUNCH: OnceLock<(Vault, Arc<Pass>)> = OnceLock::new();
    let (vault, pass) = LAUNCH.get_or_init(|| {
        let canary = Pattern::parse("q").expect("a letter of the alphabet");
        let pass = Pass::new(std::iter::empty(), std::iter::empty(), None, canary);
        (Vault::without_identity().expect("randomness"), Arc::new(pass))
    });
    let starts = vec![vault.open_start().expect("randomness"), vault.open_start().expect("randomness")];
    let claims: Vec<ClaimedHit> = data.chunks_exact(42).take(64).map(claim).collect();
    let report = LaunchReport { candidates: 1, hits: claims.clone(), ..LaunchReport::default() };
    let verified = verify(&CollectedLaunch { pass: Arc::clone(pass), starts: starts.clone(), report });
    let distinct: HashSet<ClaimedHit> = claims.into_iter().collect();
    let key = |claim: &ClaimedHit| Some(VerifiedHit::recompute(starts.get(claim.start)?.1, claim.tweak)?.npub());
    let right = distinct.iter().filter_map(key).filter(|npub| !pass.patterns.matches(npub).is_empty()).count() as u64;
    assert_eq!((verified.hits_right, verified.canary_found), (right, right), "every true claim counts, once");
    assert!(verified.hits_wrong <= distinct.len() as u64 - right);
    assert!(verified.by_start.is_empty(), "the canary is nobody's job");
    vault.discard(&[starts[0].0, starts[1].0]);
}

fn claim(bytes: &[u8]) -> ClaimedHit {
    let word = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let rotation = Rotation::new(bytes[9] % 3).expect("below three");
    let offset = match bytes[8] % 2 {
        0 => Offset::of_point(word(10), word(18) as i64, Rotation::new(bytes[26] % 3).expect("below three")),
        _ => {
            let scalar: [u8; 32] = bytes[10..].try_into().expect("32 bytes");
            Offset::from_scalar(Scalar::from_be_bytes(scalar).unwrap_or(Scalar::ZERO))
        }
    };
    ClaimedHit { start: word(0) as usize, tweak: Tweak { offset, rotation } }
}

/// Target `split_text`: a half point or a tweak, as people paste it. The text of a valid one reads
/// back as the same half point or tweak.
pub fn split_text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(point) = text.parse::<HalfPoint>() {
        assert_eq!(point.to_string().parse(), Ok(point));
    }
    if let Ok(tweak) = text.parse::<SplitTweak>() {
        assert_eq!(tweak.to_string().parse(), Ok(tweak));
    }
}

/// Target `patterns`: the 32 bytes of a key, then a pattern of any kind. The pattern's text reads
/// back as the same pattern, and a set of this pattern alone gives the same matches.
pub fn patterns(data: &[u8]) {
    let Some((key, text)) = data.split_first_chunk::<32>() else { return };
    let text = String::from_utf8_lossy(text);
    let pattern = match text.parse::<Pattern>() {
        Ok(pattern) => pattern,
        Err(error) => {
            let length = error.to_string().chars().count();
            assert!(length <= 1000 + 8 * text.len(), "a refusal of {length} characters");
            return;
        }
    };
    assert_eq!(pattern.to_string().parse::<Pattern>().as_ref(), Ok(&pattern));
    assert!(pattern.difficulty().candidates() >= 1.0 && !pattern.as_str().contains(char::is_whitespace));
    let npub = Npub(*key);
    assert_eq!(pattern.met_by(&npub).is_some(), pattern.matches(&npub));
    let set = PatternSet::new(vec![pattern.clone()]);
    assert_eq!(set.matches(&npub) == [PatternId(0)], pattern.matches(&npub));
    if let Some(nearest) = pattern.nearest_searchable() {
        assert!(nearest.is_searchable());
    }
}
