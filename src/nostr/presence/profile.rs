//! The profile, and the handler of private messages (NIP-89).

use crate::config::BotConfig;
use base64::prelude::{BASE64_STANDARD as STANDARD, Engine};
use nostr_sdk::{EventBuilder, Kind, PublicKey, RelayUrl, Tag, TagKind, ToBech32};

/// The identifier of the handler (NIP-89).
const HANDLER: &str = "npubbot";
/// The kind the bot handles: private messages (NIP-17).
const HANDLED: &str = "14";
/// The default picture: a white key, 64 by 64 pixels. The page's server has it at a real address.
const PICTURE: &[u8] = include_bytes!("picture.png");

/// The data from which the profile, the handler and its recommendation are made.
pub(super) struct Profile<'a> {
    /// The operator's settings.
    pub bot: &'a BotConfig,
    /// The address of the page for people without an account, if it has one.
    pub page: Option<&'a str>,
    /// SHA-256 of the page that the bot serves, hex.
    pub page_sha256: Option<&'a str>,
    /// The bot's public key.
    pub key: PublicKey,
}

impl Profile<'_> {
    /// The profile (kind 0).
    pub(super) fn metadata(&self) -> EventBuilder {
        EventBuilder::new(Kind::Metadata, self.json().to_string())
    }

    /// The handler information (kind 31990): the bot handles private messages, and its page opens a
    /// conversation with it. The page compares its own hash with the one in the tag `x`.
    pub(super) fn handler(&self) -> EventBuilder {
        let web = self.chat().map(|chat| Tag::custom(TagKind::custom("web"), [chat]));
        EventBuilder::new(Kind::from(31990u16), self.json().to_string())
            .tags([Tag::identifier(HANDLER), Tag::custom(TagKind::custom("k"), [HANDLED])])
            .tags(web)
            .tags(self.page_sha256.map(|hash| Tag::custom(TagKind::custom("x"), [hash])))
    }

    /// The recommendation of the handler (kind 31989). Its `a` tag leads clients to the handler.
    /// `hint`: a relay that has the handler.
    pub(super) fn recommendation(&self, hint: Option<&RelayUrl>) -> EventBuilder {
        let address = format!("31990:{}:{HANDLER}", self.key.to_hex());
        let values = [Some(address), hint.map(ToString::to_string)].into_iter().flatten();
        EventBuilder::new(Kind::from(31989u16), "")
            .tags([Tag::identifier(HANDLED), Tag::custom(TagKind::custom("a"), values)])
    }

    fn json(&self) -> serde_json::Value {
        let BotConfig { name, about, picture, nip05, .. } = self.bot;
        let mut profile = serde_json::json!({
            "name": name,
            "display_name": name,
            "about": about,
            "picture": picture.clone().unwrap_or_else(|| self.picture()),
            "bot": true,
        });
        for (key, value) in [("website", self.chat()), ("nip05", nip05.clone())] {
            if let Some(value) = value {
                profile[key] = value.into();
            }
        }
        profile
    }

    /// The address of the default picture: at the page's server, if it has all paths of a host.
    /// Without one the picture is in the profile itself, which not every client shows.
    fn picture(&self) -> String {
        match self.page {
            Some(page) if page.starts_with("https://") && page.ends_with('/') => format!("{page}picture.png"),
            _ => format!("data:image/png;base64,{}", STANDARD.encode(PICTURE)),
        }
    }

    /// The address of a conversation with the bot on its page.
    fn chat(&self) -> Option<String> {
        let npub = self.key.to_bech32().ok()?;
        self.page.map(|page| format!("{page}#{npub}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use nostr_sdk::Keys;

    fn tags(builder: EventBuilder, keys: &Keys) -> Vec<Vec<String>> {
        let event = builder.sign_with_keys(keys).unwrap();
        event.tags.iter().map(|tag| tag.as_slice().to_vec()).collect()
    }

    #[test]
    fn a_profile_has_a_picture_and_leads_to_the_page_if_there_is_one() {
        let (config, keys) = (Config::embedded_default().unwrap(), Keys::generate());
        let (key, npub) = (keys.public_key(), keys.public_key().to_bech32().unwrap());
        let alone = Profile { bot: &config.bot, page: None, page_sha256: None, key };
        let json = alone.json();
        assert_eq!((&json["display_name"], &json["bot"]), (&config.bot.name.clone().into(), &true.into()));
        assert!(json["picture"].as_str().unwrap().starts_with("data:image/png;base64,"));
        assert!(json.get("website").is_none());
        assert_eq!(tags(alone.handler(), &keys), [["d", "npubbot"], ["k", "14"]]);

        let with_page = Profile { page: Some("https://bot.example/"), page_sha256: Some("00ff"), ..alone };
        assert_eq!(with_page.json()["picture"], "https://bot.example/picture.png");
        let within = Profile { page: Some("https://bot.example/ask"), ..alone };
        assert_eq!(within.json()["picture"], alone.json()["picture"], "the host may have another picture.png");
        let chat = format!("https://bot.example/#{npub}");
        assert_eq!(with_page.json()["website"], chat);
        assert_eq!(tags(with_page.handler(), &keys)[2..], [["web", &chat], ["x", "00ff"]]);
        let hint = RelayUrl::parse("wss://relay.example").unwrap();
        let address = format!("31990:{key}:npubbot");
        let recommended = tags(with_page.recommendation(Some(&hint)), &keys);
        assert_eq!(recommended[0], ["d", "14"]);
        assert_eq!(recommended[1], ["a", &address, "wss://relay.example"]);

        let mut own = config.bot.clone();
        own.picture = Some("https://bot.example/picture.png".to_owned());
        assert_eq!(Profile { bot: &own, ..with_page }.json()["picture"], "https://bot.example/picture.png");
    }
}
