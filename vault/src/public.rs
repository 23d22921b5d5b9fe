//! The bot's public events: what the operator has configured, and the policy by which the vault
//! signs.
//!
//! The vault gets [`PublicSettings`] at its start. The process that talks to strangers cannot change
//! them. Somebody who takes it over can publish what the bot publishes anyway, and little else.

use super::error::VaultError;
use super::lock;
use super::message::ANNOUNCEMENT;
use super::secret::Signing;
use super::vault::Vault;
use nostr::signer::SignerBackend;
use nostr::util::BoxedFuture;
use nostr::{
    Event, EventBuilder, JsonUtil, Kind, NostrSigner, PublicKey, RelayUrl, SignerError, Tag, TagKind, ToBech32,
    UnsignedEvent,
};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Mutex;

/// The identifier of the handler (NIP-89).
const HANDLER: &str = "npubbot";
/// The kind that the bot handles: private messages (NIP-17).
const HANDLED: &str = "14";

/// The parts of the configuration that the bot's public events are made of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PublicSettings {
    /// Name in the profile.
    pub name: String,
    /// Description in the profile.
    pub about: String,
    /// Address of the picture in the profile.
    pub picture: String,
    /// NIP-05 address in the profile.
    pub nip05: Option<String>,
    /// Lightning address in the profile.
    pub lud16: Option<String>,
    /// Address of the page for people without an account.
    pub page: Option<String>,
    /// SHA-256 of the page that the bot serves, hex.
    pub page_sha256: Option<String>,
    /// The bot's own relays.
    pub relays: Vec<PublicRelay>,
    /// Whether the bot publishes a status (kind 30315).
    pub live_status: bool,
    /// Whether the bot publishes a daily note (kind 1).
    pub daily_note: bool,
}

/// A relay of the bot.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PublicRelay {
    /// Its address.
    pub url: RelayUrl,
    /// Whether it is in the list of relays for messages to the bot (kind 10050).
    pub inbox: bool,
    /// Whether it is in the list of relays where the bot publishes (kind 10002).
    pub status: bool,
}

impl PublicSettings {
    /// The events that the settings fully determine, except for their date, by topic.
    pub fn events(&self, key: PublicKey) -> [(&'static str, EventBuilder); 6] {
        let profile = self.profile(key);
        let urls = |is_listed: fn(&PublicRelay) -> bool| {
            let listed = self.relays.iter().filter(move |relay| is_listed(relay));
            listed.map(|relay| relay.url.clone())
        };
        let hint = urls(|relay| relay.status).next().map(|url| url.to_string());
        let address = Some(format!("31990:{}:{HANDLER}", key.to_hex())).into_iter().chain(hint);
        let tag = |name: &'static str, value: String| Tag::custom(TagKind::custom(name), [value]);
        let handler = EventBuilder::new(Kind::from(31990u16), &profile)
            .tags([Tag::identifier(HANDLER), tag("k", HANDLED.to_owned())])
            // The page opens a conversation with the bot, and compares its own hash with `x`.
            .tags(self.chat(key).map(|chat| tag("web", chat)))
            .tags(self.page_sha256.clone().map(|hash| tag("x", hash)));
        [
            ("profile", EventBuilder::new(Kind::Metadata, profile)),
            // NIP-65: the relays where the bot publishes.
            (
                "relay list",
                EventBuilder::new(Kind::RelayList, "")
                    .tags(urls(|relay| relay.status).map(|url| Tag::relay_metadata(url, None))),
            ),
            // NIP-17: the relays where the bot receives messages.
            ("dm relays", EventBuilder::new(Kind::InboxRelays, "").tags(urls(|relay| relay.inbox).map(Tag::relay))),
            // Clients with decoupled encryption keys write only to people who announce one. The
            // bot's is its own public key.
            ("encryption key", EventBuilder::new(ANNOUNCEMENT, "").tag(tag("n", key.to_hex()))),
            // NIP-89: clients that look for an application for private messages find the bot.
            ("handler", handler),
            (
                "recommendation",
                EventBuilder::new(Kind::from(31989u16), "")
                    .tags([Tag::identifier(HANDLED), Tag::custom(TagKind::custom("a"), address)]),
            ),
        ]
    }

    /// The content of the profile (kind 0).
    fn profile(&self, key: PublicKey) -> String {
        let mut profile = serde_json::json!({
            "name": self.name,
            "display_name": self.name,
            "about": self.about,
            "picture": self.picture,
            "bot": true,
        });
        let addresses = [("website", self.chat(key)), ("nip05", self.nip05.clone()), ("lud16", self.lud16.clone())];
        for (field, value) in addresses {
            if let Some(value) = value {
                profile[field] = value.into();
            }
        }
        profile.to_string()
    }

    /// The address of a conversation with the bot on its page.
    fn chat(&self, key: PublicKey) -> Option<String> {
        let npub = key.to_bech32().ok()?;
        self.page.as_ref().map(|page| format!("{page}#{npub}"))
    }
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The farthest that a signed date is from the vault's clock, seconds.
pub(super) const DATE_ALLOWANCE: u64 = HOUR;
/// Longest status or note, bytes.
const MAX_TEXT: usize = 400;
/// Longest life of a status, seconds. That of a stopped bot lives a week.
const MAX_STATUS_LIFE: u64 = 7 * DAY + HOUR;
/// Longest challenge of a relay, bytes.
const MAX_CHALLENGE: usize = 1024;

/// The words of a daily note. Further ones would be somebody else's.
#[rustfmt::skip]
const NOTE_WORDS: [&str; 26] = [
    "Yesterday", "request", "requests", "accepted", "key", "keys", "delivered", "e", "tested", "Send", "me", "a",
    "prefix", "by", "private", "message", "and", "I", "find", "you", "an", "npub", "that", "starts", "with", "it",
];

/// An unsigned event, and what it is judged by.
struct Claimed<'a> {
    event: &'a UnsignedEvent,
    settings: &'a PublicSettings,
    now: u64,
}

/// Kinds of events that the vault signs.
struct Rule {
    kinds: &'static [u16],
    is_met_by: fn(&Claimed) -> bool,
    /// The most signatures of each kind in `seconds`. For AUTH: for each relay.
    most: u32,
    seconds: u64,
}

/// The events that the vault signs, all in the bot's own name and dated within an hour of the
/// vault's clock. The bot deletes nothing (kind 5), so no deletion is signed.
#[rustfmt::skip]
const RULES: [Rule; 4] = [
    // Profile, relay lists, encryption key, recommendation, handler: as configured.
    Rule { kinds: &[0, 10002, 10044, 10050, 31989, 31990], is_met_by: is_configured, most: 48, seconds: DAY },
    // The daily note; more than one, if the first could not be queued.
    Rule { kinds: &[1], is_met_by: is_daily_note, most: 12, seconds: DAY },
    // The status: at most one in five minutes is new.
    Rule { kinds: &[30315], is_met_by: is_status, most: 400, seconds: DAY },
    // AUTH (NIP-42), to the bot's own relays only.
    Rule { kinds: &[22242], is_met_by: is_own_auth, most: 30, seconds: MINUTE },
];

fn is_configured(claimed: &Claimed) -> bool {
    let key = claimed.event.pubkey;
    let same = |configured: UnsignedEvent| {
        let UnsignedEvent { kind, tags, content, .. } = claimed.event;
        (&configured.kind, &configured.tags, &configured.content) == (kind, tags, content)
    };
    claimed.settings.events(key).into_iter().any(|(_, builder)| same(builder.build(key)))
}

fn is_daily_note(claimed: &Claimed) -> bool {
    let UnsignedEvent { tags, content, .. } = claimed.event;
    let mut words = content.split(|letter: char| !letter.is_alphabetic()).filter(|word| !word.is_empty());
    claimed.settings.daily_note
        && tags.is_empty()
        && content.len() <= MAX_TEXT
        && words.all(|word| NOTE_WORDS.contains(&word))
}

fn is_status(claimed: &Claimed) -> bool {
    let UnsignedEvent { tags, content, .. } = claimed.event;
    // An empty status removes the last one (NIP-38).
    let may_say = claimed.settings.live_status || content.is_empty();
    let [name, expiration] = tags.as_slice() else { return false };
    let ends = |text: &String| text.parse().is_ok_and(|end: u64| end <= claimed.now + MAX_STATUS_LIFE);
    may_say
        && content.len() <= MAX_TEXT
        && matches!(name.as_slice(), [d, general] if d == "d" && general == "general")
        && matches!(expiration.as_slice(), [name, end] if name == "expiration" && ends(end))
}

fn is_own_auth(claimed: &Claimed) -> bool {
    let challenge = claimed.event.tags.challenge();
    claimed.event.content.is_empty()
        && claimed.event.tags.len() == 2
        && challenge.is_some_and(|challenge| challenge.len() <= MAX_CHALLENGE)
        && auth_relay(claimed.event).is_some_and(|url| claimed.settings.relays.iter().any(|relay| relay.url == url))
}

/// The relay that an AUTH event names.
fn auth_relay(event: &UnsignedEvent) -> Option<RelayUrl> {
    let named = event.tags.find(TagKind::Relay)?.content()?;
    RelayUrl::parse(named).ok()
}

/// What the vault signs. `settings`: `None` for a vault that publishes nothing.
pub(super) struct Policy {
    settings: Option<PublicSettings>,
    /// The signatures of the current window, by kind and, for AUTH, relay. In memory only: after a
    /// restart of the vault the counts begin at zero.
    signed: Mutex<HashMap<(u16, Option<RelayUrl>), WindowCount>>,
}

/// The number of a window of time, and the signatures in it.
type WindowCount = (u64, u32);

impl Policy {
    pub(super) fn new(settings: Option<PublicSettings>) -> Policy {
        Policy { settings, signed: Mutex::default() }
    }

    /// Signs a public event, if a rule allows it. Takes and returns JSON. `now` is the vault's own
    /// time.
    ///
    /// Errors: [`VaultError::Unsigned`] names the rule that is broken.
    pub(super) fn sign(&self, bot: &Signing, now: u64, json: &str) -> Result<String, VaultError> {
        let refused = |reason: String| VaultError::Unsigned { reason };
        let event = UnsignedEvent::from_json(json).map_err(|_| refused("this is not an event".to_owned()))?;
        let kind = event.kind.as_u16();
        let rule = RULES.iter().find(|rule| rule.kinds.contains(&kind));
        let rule = rule.ok_or_else(|| refused(format!("the bot does not sign events of kind {kind}")))?;
        if event.pubkey != bot.public_key() {
            return Err(refused("the bot signs in its own name only".to_owned()));
        }
        let date = event.created_at.as_secs();
        if date.abs_diff(now) > DATE_ALLOWANCE {
            return Err(refused(format!("an event of kind {kind} is dated {date}, more than an hour from {now}")));
        }
        let is_met = |settings| (rule.is_met_by)(&Claimed { event: &event, settings, now });
        if !self.settings.as_ref().is_some_and(is_met) {
            return Err(refused(format!("an event of kind {kind} is not what the vault's settings allow")));
        }
        let relay = auth_relay(&event).filter(|_| event.kind == Kind::Authentication);
        if !self.has_room(rule, (kind, relay), now) {
            return Err(refused(format!("{} events of kind {kind} in {} s are enough", rule.most, rule.seconds)));
        }
        let signed = event.sign_with_keys(bot.keys()).map_err(|error| refused(error.to_string()))?;
        signed.try_as_json().map_err(|error| refused(error.to_string()))
    }

    /// Counts a signature; `false` if its rule allows no more now.
    fn has_room(&self, rule: &Rule, of: (u16, Option<RelayUrl>), now: u64) -> bool {
        let (window, mut signed) = (now / rule.seconds, lock(&self.signed));
        let counted = signed.entry(of).or_default();
        let count = if counted.0 == window { counted.1 } else { 0 };
        let has_room = count < rule.most;
        *counted = (window, count + u32::from(has_room));
        has_room
    }
}

/// Signer of the bot's public events, within the policy above. It refuses to encrypt and
/// decrypt. Messages go through `Vault::seal` and `Vault::open_all`.
#[derive(Clone, Debug)]
pub struct BotSigner(pub(super) Vault);

impl BotSigner {
    /// Signs an event with the bot's key, if the policy allows it. Waits for the vault.
    ///
    /// Errors: the policy does not allow the event, or the vault is away.
    pub fn sign(&self, unsigned: UnsignedEvent) -> Result<Event, SignerError> {
        Event::from_json(self.0.sign(&unsigned).map_err(SignerError::backend)?).map_err(SignerError::backend)
    }
}

/// Refuses to encrypt or decrypt. Returned as a future that is ready at once.
fn refuse<'a>() -> BoxedFuture<'a, Result<String, SignerError>> {
    Box::pin(std::future::ready(Err(SignerError::from("the bot's signer does not encrypt or decrypt"))))
}

impl NostrSigner for BotSigner {
    fn backend(&self) -> SignerBackend<'_> {
        SignerBackend::Custom("npubbot".into())
    }

    fn get_public_key(&self) -> BoxedFuture<'_, Result<PublicKey, SignerError>> {
        Box::pin(std::future::ready(Ok(self.0.public_key())))
    }

    fn sign_event(&self, unsigned: UnsignedEvent) -> BoxedFuture<'_, Result<Event, SignerError>> {
        let signer = self.clone();
        // The answer may take as long as a new start of the vault process.
        let signing = tokio::task::spawn_blocking(move || signer.sign(unsigned));
        Box::pin(async move { signing.await.map_err(SignerError::backend)? })
    }

    fn nip04_encrypt<'a>(&'a self, _: &'a PublicKey, _: &'a str) -> BoxedFuture<'a, Result<String, SignerError>> {
        refuse()
    }

    fn nip04_decrypt<'a>(&'a self, _: &'a PublicKey, _: &'a str) -> BoxedFuture<'a, Result<String, SignerError>> {
        refuse()
    }

    fn nip44_encrypt<'a>(&'a self, _: &'a PublicKey, _: &'a str) -> BoxedFuture<'a, Result<String, SignerError>> {
        refuse()
    }

    fn nip44_decrypt<'a>(&'a self, _: &'a PublicKey, _: &'a str) -> BoxedFuture<'a, Result<String, SignerError>> {
        refuse()
    }
}
