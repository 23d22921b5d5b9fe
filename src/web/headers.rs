//! The headers of every reply. The content security policy is the page's own, made stricter.

use super::page::PAGE;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use nostr::RelayUrl;

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
