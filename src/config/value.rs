//! Readers of single values. Each error says which values are allowed; the reader of the file adds
//! line and key.

use super::{FleetConfig, Role};
use crate::duration as spans;
use nostr::{FromBech32, PublicKey, RelayUrl};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Longest text in a profile, in bytes. Relays refuse longer ones.
const MAX_TEXT_BYTES: usize = 2000;

/// A value of any kind, as the file has it, for readers that name it in their error.
fn any<'de, D: Deserializer<'de>>(from: D) -> Result<toml::Value, D::Error> {
    toml::Value::deserialize(from)
}

/// The text of a value; an error that names what is allowed if it is of another kind.
pub(super) fn string<'de, D: Deserializer<'de>>(from: D, allowed: &str) -> Result<String, D::Error> {
    match any(from)? {
        toml::Value::String(text) => Ok(text),
        other => Err(D::Error::custom(format!("is {other}; allowed is {allowed}, in quotation marks"))),
    }
}

/// Reads a text that `parse` understands; `None` if it is empty.
fn parsed<'de, D: Deserializer<'de>, T>(
    from: D,
    allowed: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, D::Error> {
    let text = string(from, allowed)?;
    if text.is_empty() {
        return Ok(None);
    }
    parse(&text).map(Some).ok_or_else(|| D::Error::custom(format!("is {text:?}; allowed is {allowed}")))
}

/// A whole number from `LEAST` to `MOST`.
pub(super) fn number<'de, const LEAST: i64, const MOST: i64, T: TryFrom<i64>, D: Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    let value = any(from)?;
    let number = value.as_integer().filter(|number| (LEAST..=MOST).contains(number));
    number
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| D::Error::custom(format!("is {value}; allowed is a whole number from {LEAST} to {MOST}")))
}

/// A whole number from `LEAST` to `MOST`, for a key without a default.
pub(super) fn optional_number<'de, const LEAST: i64, const MOST: i64, T: TryFrom<i64>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    number::<LEAST, MOST, T, D>(from).map(Some)
}

/// A span of time.
pub(super) fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = string(from, spans::ALLOWED)?;
    spans::parse(&text).map_err(|allowed| D::Error::custom(format!("is {text:?}; {allowed}")))
}

/// A span of at least so many minutes.
pub(super) fn minutes<'de, const LEAST: u64, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let time = duration(from)?;
    if time >= Duration::from_secs(60 * LEAST) {
        return Ok(time);
    }
    let least = if LEAST == 1440 { "1 day".to_owned() } else { format!("{LEAST} min") };
    Err(D::Error::custom(format!("is {}; the minimum is {least}", spans::humanize(time))))
}

/// A line of text for a profile.
pub(super) fn line<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    match text(from)? {
        text if text.contains('\n') => Err(D::Error::custom("has line ends; allowed is one line of plain text")),
        text => Ok(text),
    }
}

/// A text for a profile.
pub(super) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = string(from, "a text")?;
    if text.len() > MAX_TEXT_BYTES {
        return Err(D::Error::custom(format!("is longer than {MAX_TEXT_BYTES} bytes")));
    }
    match text.chars().any(|letter| letter.is_control() && letter != '\n') {
        true => Err(D::Error::custom("has control characters; allowed is plain text")),
        false => Ok(text),
    }
}

/// An address and a port.
pub(super) fn address<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    parsed(from, "an address and a port, like \"127.0.0.1:8080\"", |text| text.parse().ok())
}

pub(super) fn path<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    parsed(from, "a path", |text| Some(PathBuf::from(text)))
}

/// Whether this is a web address with a host, in graphic ASCII.
fn is_web_address(url: &str) -> bool {
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
    host.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[') && host.chars().all(|c| c.is_ascii_graphic())
}

/// The address of the page.
pub(super) fn page_url<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    parsed(from, "the page's address without #, like \"https://bot.example/\"", |url| {
        (is_web_address(url) && !url.contains('#')).then(|| url.to_owned())
    })
}

/// The address of a picture.
pub(super) fn picture_url<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    parsed(from, "the address of a picture, like \"https://bot.example/key.png\"", |url| {
        (is_web_address(url) && url.len() <= MAX_TEXT_BYTES).then(|| url.to_owned())
    })
}

/// A NIP-05 address.
pub(super) fn nip05<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c))
    };
    parsed(from, "a name and a domain in small letters, like \"bot@example.com\"", |address| {
        let (name, domain) = address.split_once('@')?;
        (is_name(name) && is_name(domain) && domain.contains('.')).then(|| address.to_owned())
    })
}

/// Npubs.
pub(super) fn npubs<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PublicKey>, D::Error> {
    const ALLOWED: &str = "a list of at most 16 npubs, like [\"npub1…\"]";
    let texts: Option<Vec<String>> = any(from)?.try_into().ok().filter(|texts: &Vec<_>| texts.len() <= 16);
    let npubs = texts.and_then(|texts| texts.iter().map(|text| PublicKey::from_bech32(text).ok()).collect());
    // The value is not repeated: it may be a secret key.
    npubs.ok_or_else(|| D::Error::custom(format!("is something else; allowed is {ALLOWED}")))
}

/// A relay's address. It is published, so it has neither user nor password.
pub(super) fn relay_url<'de, D: Deserializer<'de>>(from: D) -> Result<RelayUrl, D::Error> {
    const ALLOWED: &str = "an address like \"wss://relay.example\"";
    let text = string(from, ALLOWED)?;
    let url = RelayUrl::parse(&text);
    let host = text.split("://").nth(1).and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    if host.contains('@') || text.contains(['?', '#']) {
        let what = "has a user, a password or parameters, which the bot's relay lists would publish; allowed is an \
                    address without them, like \"wss://relay.example\"";
        return Err(D::Error::custom(what));
    }
    url.map_err(|_| D::Error::custom(format!("is {text:?}; allowed is {ALLOWED}")))
}

/// At least one role.
pub(super) fn roles<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Role>, D::Error> {
    let roles = Vec::<Role>::deserialize(from)?;
    if roles.is_empty() {
        return Err(D::Error::custom("is empty; allowed are \"inbox\", \"status\", \"discovery\""));
    }
    Ok(roles)
}

/// The address of a NATS server; empty for none.
pub(super) fn fleet_server<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let server = parsed(from, "an address like \"tls://nats.example:4222\"", |server| {
        let host = server.strip_prefix("tls://").filter(|host| !host.is_empty())?;
        host.chars().all(|c| c.is_ascii_alphanumeric() || ".:-[]".contains(c)).then(|| server.to_owned())
    })?;
    Ok(server.unwrap_or_default())
}

/// `[fleet]`; `None` without a server.
pub(super) fn fleet<'de, D: Deserializer<'de>>(from: D) -> Result<Option<FleetConfig>, D::Error> {
    FleetConfig::deserialize(from).map(|fleet| Some(fleet).filter(|fleet| !fleet.server.is_empty()))
}
