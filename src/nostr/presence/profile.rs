//! The profile, and the handler of private messages (NIP-89).

use crate::config::BotConfig;
use nostr_sdk::{EventBuilder, Kind, PublicKey, RelayUrl, Tag, TagKind, ToBech32};

/// The identifier of the handler (NIP-89).
const HANDLER: &str = "npubbot";
/// The kind the bot handles: private messages (NIP-17).
const HANDLED: &str = "14";
/// The default picture: a white key, 64 by 64 pixels. It is in the profile itself, so no server is
/// needed for it.
const PICTURE: &str = concat!(
    "data:image/png;base64,",
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAABAAQMAAACQp+OdAAAABlBMVEVbKob///+A07mrAAAAjklEQVR42rWRMQ7D",
    "IBAE13HhxhI/gJ+En8U8jacg5QMpXSA2xd7RRVGkmIYpVnO3AFx4bg65GfDUvbALVg7BRgoCWQQtC1JNVVDCJ8gl",
    "tG+Z6ZnmOWtzWMlqG7Lt2pmvqBnPM6vX0g/FMSyOwyGbCckKIYzdOvZorU2EX0VwEVwEF/lbewYPh7tD/P8XvwEY",
    "J0ngGPU0zQAAAABJRU5ErkJggg==",
);

/// The data from which the profile, the handler and its recommendation are made.
pub(super) struct Profile<'a> {
    /// The operator's settings.
    pub bot: &'a BotConfig,
    /// The address of the page for people without an account, if it has one.
    pub page: Option<&'a str>,
    /// The bot's public key.
    pub key: PublicKey,
}

impl Profile<'_> {
    /// The profile (kind 0).
    pub(super) fn metadata(&self) -> EventBuilder {
        EventBuilder::new(Kind::Metadata, self.json().to_string())
    }

    /// The handler information (kind 31990): the bot handles private messages, and its page opens a
    /// conversation with it.
    pub(super) fn handler(&self) -> EventBuilder {
        let web = self.chat().map(|chat| Tag::custom(TagKind::custom("web"), [chat]));
        EventBuilder::new(Kind::from(31990u16), self.json().to_string())
            .tags([Tag::identifier(HANDLER), Tag::custom(TagKind::custom("k"), [HANDLED])])
            .tags(web)
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
            "picture": picture.as_deref().unwrap_or(PICTURE),
            "bot": true,
        });
        for (key, value) in [("website", self.chat()), ("nip05", nip05.clone())] {
            if let Some(value) = value {
                profile[key] = value.into();
            }
        }
        profile
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
        let alone = Profile { bot: &config.bot, page: None, key };
        let json = alone.json();
        assert_eq!((&json["display_name"], &json["bot"]), (&config.bot.name.clone().into(), &true.into()));
        assert!(json["picture"].as_str().unwrap().starts_with("data:image/png;base64,"));
        assert!(json.get("website").is_none());
        assert_eq!(tags(alone.handler(), &keys), [["d", "npubbot"], ["k", "14"]]);

        let with_page = Profile { page: Some("https://bot.example/"), ..alone };
        let chat = format!("https://bot.example/#{npub}");
        assert_eq!(with_page.json()["website"], chat);
        assert_eq!(tags(with_page.handler(), &keys)[2], ["web", &chat]);
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
