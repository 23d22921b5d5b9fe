//! The headers of every reply. The content security policy is the page's own, made stricter.

use super::page::PAGE;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use nostr::RelayUrl;

/// What the browser is told besides the policy.
const FIXED: [(HeaderName, &str); 7] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), microphone=(), geolocation=(), payment=()"),
    (header::CACHE_CONTROL, "no-cache"),
];

/// The headers for a page that may connect to these relays only.
pub(super) fn headers(relays: &[RelayUrl]) -> HeaderMap {
    let mut headers: HeaderMap =
        FIXED.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))).collect();
    // Visible ASCII, as `origin` and the build of the page see to; without it the page's own
    // policy still holds.
    if let Ok(policy) = HeaderValue::from_str(&policy(relays)) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers
}

/// The page's policy (its `<meta>`) with connections to these relays only, and no frame around it,
/// which a `<meta>` cannot forbid.
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

/// `wss://relay.example:8080`. `None` for a host with characters that mean something in a policy.
fn origin(relay: &RelayUrl) -> Option<String> {
    let (scheme, rest) = relay.as_str().split_once("://")?;
    let authority = rest.split('/').next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    (!authority.is_empty() && authority.chars().all(is_plain)).then(|| format!("{scheme}://{authority}"))
}
