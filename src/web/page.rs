//! The embedded page as it is sent: its bytes, its SHA-256, its address, and the headers of every
//! reply. The content security policy is the page's own, made stricter.

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use nostr::{PublicKey, RelayUrl, ToBech32};

/// `web/dist/index.html`, as `web/check.sh` builds it from `web/src`.
pub(super) const PAGE: &str = include_str!("../../web/dist/index.html");

/// The page compressed, with the name of the encoding, the smallest one first. `web/check.sh`
/// compares them with the page.
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

/// All fixed headers; the policy is added to them.
const FIXED: [(HeaderName, &str); 7] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), microphone=(), geolocation=(), payment=()"),
    (header::CACHE_CONTROL, "no-cache"),
];

/// The headers of a page that may connect only to these relays.
pub(super) fn headers(relays: &[RelayUrl]) -> HeaderMap {
    let mut headers: HeaderMap =
        FIXED.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))).collect();
    // `origin` and the build of the page ensure visible ASCII. If this failed, the policy in the
    // page itself would still hold.
    if let Ok(policy) = HeaderValue::from_str(&policy(relays)) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers
}

/// The policy in the page's `<meta>`, limited to connections to these relays. It also forbids
/// framing, which a `<meta>` cannot.
fn policy(relays: &[RelayUrl]) -> String {
    let own =
        PAGE.split_once("http-equiv=\"Content-Security-Policy\" content=\"").and_then(|(_, rest)| rest.split_once('"'));
    let own = own.map_or("default-src 'none'", |(policy, _)| policy);
    let origins: Vec<String> = relays.iter().filter_map(origin).collect();
    let connect = if origins.is_empty() { "'none'".to_owned() } else { origins.join(" ") };
    let kept = own.split("; ").filter(|directive| !directive.starts_with("connect-src "));
    let added = [format!("connect-src {connect}"), "frame-ancestors 'none'".to_owned()];
    kept.map(str::to_owned).chain(added).collect::<Vec<_>>().join("; ")
}

/// The origin, such as `wss://relay.example:8080`. `None` if the host has characters with a meaning
/// in a policy.
fn origin(relay: &RelayUrl) -> Option<String> {
    let (scheme, rest) = relay.as_str().split_once("://")?;
    let authority = rest.split('/').next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    (!authority.is_empty() && authority.chars().all(is_plain)).then(|| format!("{scheme}://{authority}"))
}
