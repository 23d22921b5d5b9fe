//! The embedded page as it is sent, its SHA-256, and its address.

use nostr::{PublicKey, RelayUrl, ToBech32};

/// `web/dist/index.html`, as `web/check.sh` builds it from `web/src`.
pub(super) const PAGE: &str = include_str!("../../web/dist/index.html");

/// The page compressed, with the name of the encoding, the smallest one first. `web/check.sh` compares
/// them with the page.
pub(super) const COMPRESSED: [(&str, &[u8]); 2] =
    [("br", include_bytes!("../../web/dist/index.html.br")), ("gzip", include_bytes!("../../web/dist/index.html.gz"))];

/// The picture of the bot's profile.
pub(super) const PICTURE: &[u8] = include_bytes!("../nostr/presence/picture.png");

/// SHA-256 of the page, hex, as `web/dist/page.sha256` publishes it.
pub const PAGE_SHA256: &str = include_str!("../../web/dist/page.sha256").split_at(64).0;

/// The most relays in the page's address. The page accepts no more (`web/src/link.ts`).
const MOST_RELAYS: usize = 6;

/// The address of the page, with the bot and its relays behind `#`, which browsers do not send to
/// the server: `https://bot.example/#npub1…&relay=wss://relay.example`.
pub fn link(base: &str, bot: PublicKey, relays: &[RelayUrl]) -> String {
    let Ok(npub) = bot.to_bech32();
    let relays =
        relays.iter().take(MOST_RELAYS).map(|relay| format!("&relay={}", relay.as_str_without_trailing_slash()));
    format!("{base}#{npub}{}", relays.collect::<String>())
}
