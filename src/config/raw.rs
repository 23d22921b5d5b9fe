//! Parsing. Every value keeps its position in the file until it is checked.
//!
//! `docs/operators/relays-toml.md` is made from these comments.

use super::error::ConfigError;
use super::place::Place;
use super::search::{self, Search};
use super::types::{BotConfig, Config, FleetConfig, Limits, RelayEntry, WebConfig};
use nostr::RelayUrl;
use serde::Deserialize;
use std::path::PathBuf;
use toml::Spanned;

const ROLES: &str = "\"inbox\", \"status\", \"discovery\"";

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct File {
    /// Relays of the bot, one table each. At least one has the role `inbox`.
    relays: Vec<Relay>,
    /// Whether askers may list relays at private addresses. For test networks only.
    allow_private_relays: bool,
    bot: Bot,
    limits: RawLimits,
    search: Search,
    fleet: Fleet,
    /// Other bots that are asked to search too, one table each, at most 8.
    web: Web,
    network: Network,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Relay {
    /// Address, `wss://…` or `ws://…`.
    url: Spanned<String>,
    /// `inbox`: askers write here. `status`: profile, lists and status are published here.
    /// `discovery`: relay lists of askers are looked up here.
    roles: Spanned<Vec<Spanned<String>>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Bot {
    /// Name in the profile.
    name: Option<Spanned<String>>,
    /// Description in the profile.
    about: Option<Spanned<String>>,
    /// Address of a picture for the profile. Empty: a white key.
    picture: Option<Spanned<String>>,
    /// NIP-05 address for the profile, like `bot@example.com`.
    nip05: Option<Spanned<String>>,
    /// Publish a status (kind 30315) with the rate and the number of open jobs.
    live_status: Option<bool>,
    /// Publish one note a day with yesterday's totals.
    daily_note: Option<bool>,
    /// Time between two tests of each inbox relay, in which the bot writes to itself. At least 1
    /// min.
    try_relays_every: Option<Spanned<String>>,
    /// Answer askers who publish no DM relays (kind 10050), on relays they read or write.
    answer_without_relay_list: Option<bool>,
    /// Connect to the relays that askers list. Their owners see this machine's address.
    visit_askers_relays: Option<bool>,
    /// Age at which relays may delete answers (NIP-40). At least 1 day.
    answers_expire_after: Option<Spanned<String>>,
    /// Age at which an ended job is deleted from the ledger, counted from its acceptance, or from
    /// when it was given up. At least 1 day.
    keep_finished: Option<Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RawLimits {
    /// Open jobs of one asker, 1 to 10,000.
    open_jobs_per_asker: Option<Spanned<i64>>,
    /// Jobs of one asker in 24 hours, 1 to 1,000,000.
    jobs_per_day: Option<Spanned<i64>>,
    /// Patterns in one request, 1 to 64.
    prefixes_per_job: Option<Spanned<i64>>,
    /// A request that is expected to take longer is refused.
    longest_expected_time: Option<Spanned<String>>,
    /// Age at which an open job is given up and its asker told. Not less than
    /// `longest_expected_time`.
    give_up_after: Option<Spanned<String>>,
    /// Gift wraps opened a second on average, 1 to 1,000,000.
    wraps_per_second: Option<Spanned<i64>>,
    /// Gift wraps opened at once after a pause, 1 to 1,000,000.
    wraps_burst: Option<Spanned<i64>>,
    /// More requests of new askers a minute are a flood. 1 to 1,000,000.
    new_askers_per_minute: Option<Spanned<i64>>,
    /// Proof of work (NIP-13) that new askers owe in a flood, in bits, 1 to 64.
    flood_work_bits: Option<Spanned<i64>>,
    /// Answers to one asker an hour; then one notice, then silence. 1 to 1,000,000.
    answers_per_hour: Option<Spanned<i64>>,
    /// Answers a second to all askers together; askers with an open job come first. 1 to 1,000,000.
    answers_per_second: Option<Spanned<i64>>,
}

/// The default number of decoys, and the largest.
const DECOYS: u32 = 16;
const MOST_DECOYS: u32 = 256;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Fleet {
    /// Address of the NATS server, `tls://host:port`. With `proxy`, an address of this machine or
    /// its network only. Empty: no workers.
    server: Option<Spanned<String>>,
    /// Credentials of the bot there. Empty: those that `npubbot fleet init` made, `fleet/bot.creds`
    /// in the data folder.
    credentials: Option<Spanned<String>>,
    /// Patterns that nobody asked for, among those that workers get, 0 to 256. A worker cannot tell
    /// them from the patterns of askers; one that keeps their hits back is dropped.
    decoys: Option<Spanned<i64>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Web {
    /// Address and port of the web page for people without an account. Empty: it is not served.
    listen: Option<Spanned<String>>,
    /// Address at which people reach the page. Empty: the one above.
    public_url: Option<Spanned<String>>,
    /// Address and port of `/metrics`, `/healthz` and `/readyz`. Empty: they are not served.
    metrics: Option<Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Network {
    /// Address and port of a SOCKS5 proxy, such as Tor's `127.0.0.1:9050`. It resolves and reaches
    /// all relays except those of this machine or its network. Empty: none.
    proxy: Option<Spanned<String>>,
}

/// Parses and checks a configuration. Error messages call it `file`.
pub(super) fn read(text: &str, file: &str) -> Result<Config, ConfigError> {
    let place = Place { text, file };
    let raw: File = toml::from_str(text).map_err(|error| {
        let what = error.message().replace('\n', " ");
        place.wrong(error.span().unwrap_or(0..0), what)
    })?;
    let server = raw.fleet.server.as_ref().map_or(0..0, Spanned::span);
    let fleet = fleet(raw.fleet, &place)?;
    let proxy = place.address("proxy", raw.network.proxy, "127.0.0.1:9050")?;
    if proxy.is_some() && fleet.as_ref().is_some_and(|fleet| !fleet.is_near()) {
        let what = "`server` of [fleet] would be reached without the `proxy` of [network]; with a proxy, give an \
                    address of this machine or its network, like \"tls://127.0.0.1:4222\"";
        return Err(place.wrong(server, what.to_owned()));
    }
    Ok(Config {
        relays: relays(&raw.relays, &place)?,
        allow_private_relays: raw.allow_private_relays,
        bot: bot(raw.bot, &place)?,
        limits: limits(&raw.limits, &place)?,
        search: search::checked(&raw.search, &place)?,
        fleet,
        web: web(raw.web, &place)?,
        proxy,
    })
}

fn relays(raw: &[Relay], place: &Place<'_>) -> Result<Vec<RelayEntry>, ConfigError> {
    let mut relays: Vec<RelayEntry> = Vec::new();
    for relay in raw {
        let url = url(&relay.url, place)?;
        if relays.iter().any(|known| known.url == url) {
            return Err(place
                .wrong(relay.url.span(), format!("the relay {url} is listed twice; give it all its roles at once")));
        }
        let mut entry = RelayEntry { url, inbox: false, status: false, discovery: false };
        for role in relay.roles.get_ref() {
            match role.get_ref().as_str() {
                "inbox" => entry.inbox = true,
                "status" => entry.status = true,
                "discovery" => entry.discovery = true,
                other => {
                    return Err(place.wrong(role.span(), format!("`{other}` is no role; allowed are {ROLES}")));
                }
            }
        }
        if relay.roles.get_ref().is_empty() {
            return Err(place.wrong(relay.roles.span(), format!("this relay has no role; allowed are {ROLES}")));
        }
        relays.push(entry);
    }
    if !relays.iter().any(|relay| relay.inbox) {
        let what = "no relay has the role \"inbox\", so nobody could reach the bot; give it to one [[relays]] at least";
        return Err(place.wrong(0..0, what.to_owned()));
    }
    Ok(relays)
}

fn url(url: &Spanned<String>, place: &Place<'_>) -> Result<RelayUrl, ConfigError> {
    RelayUrl::parse(url.get_ref()).map_err(|_| {
        let what = format!("\"{}\" is no relay; allowed is an address like \"wss://relay.example\"", url.get_ref());
        place.wrong(url.span(), what)
    })
}

fn bot(raw: Bot, place: &Place<'_>) -> Result<BotConfig, ConfigError> {
    let about =
        "Send me a prefix by encrypted message, like m0ctane, and I send you a key whose npub starts like that.";
    Ok(BotConfig {
        name: place.text("name", raw.name)?.unwrap_or_else(|| "npubbot".to_owned()),
        about: place.text("about", raw.about)?.unwrap_or_else(|| about.to_owned()),
        picture: place.text("picture", raw.picture)?,
        nip05: place.text("nip05", raw.nip05)?,
        live_status: raw.live_status.unwrap_or(true),
        daily_note: raw.daily_note.unwrap_or(true),
        try_relays_every: place.duration(
            "try_relays_every",
            &raw.try_relays_every,
            "15 min",
            ("1 min", "relays would turn away who writes that often"),
        )?,
        answer_without_relay_list: raw.answer_without_relay_list.unwrap_or(true),
        visit_askers_relays: raw.visit_askers_relays.unwrap_or(true),
        answers_expire_after: place.duration(
            "answers_expire_after",
            &raw.answers_expire_after,
            "30 days",
            ("1 day", "a key could expire before its asker looks"),
        )?,
        keep_finished: place.duration(
            "keep_finished",
            &raw.keep_finished,
            "90 days",
            ("1 day", "the jobs of the last day count for `jobs_per_day`"),
        )?,
    })
}

fn limits(raw: &RawLimits, place: &Place<'_>) -> Result<Limits, ConfigError> {
    let number = |key, value, default, most| place.number(key, value, default, 1..=most);
    let any = ("1 s", "no job is that short");
    let longest_expected_time = place.duration("longest_expected_time", &raw.longest_expected_time, "24 h", any)?;
    let give_up_after = place.duration("give_up_after", &raw.give_up_after, "30 days", any)?;
    if give_up_after < longest_expected_time {
        let said = |value: &Option<Spanned<String>>, default: &str| {
            value
                .as_ref()
                .map_or(format!("\"{default}\" if you say nothing"), |value| format!("\"{}\"", value.get_ref()))
        };
        let longest = said(&raw.longest_expected_time, "24 h");
        let span = raw.give_up_after.as_ref().or(raw.longest_expected_time.as_ref()).map_or(0..0, Spanned::span);
        let what = format!(
            "`give_up_after` ({}) is less than `longest_expected_time` ({longest}), so jobs would be given up before they \
             are expected to end; make `give_up_after` as long at least, or `longest_expected_time` shorter",
            said(&raw.give_up_after, "30 days"),
        );
        return Err(place.wrong(span, what));
    }
    Ok(Limits {
        open_jobs_per_asker: number("open_jobs_per_asker", &raw.open_jobs_per_asker, 3, 10_000)? as usize,
        jobs_per_day: number("jobs_per_day", &raw.jobs_per_day, 20, 1_000_000)? as usize,
        prefixes_per_job: number("prefixes_per_job", &raw.prefixes_per_job, 10, 64)? as usize,
        longest_expected_time,
        give_up_after,
        wraps_per_second: number("wraps_per_second", &raw.wraps_per_second, 2000, 1_000_000)?,
        wraps_burst: number("wraps_burst", &raw.wraps_burst, 2000, 1_000_000)?,
        new_askers_per_minute: number("new_askers_per_minute", &raw.new_askers_per_minute, 2000, 1_000_000)?,
        flood_work_bits: number("flood_work_bits", &raw.flood_work_bits, 20, 64)?,
        answers_per_hour: number("answers_per_hour", &raw.answers_per_hour, 60, 1_000_000)?,
        answers_per_second: number("answers_per_second", &raw.answers_per_second, 200, 1_000_000)?,
    })
}

fn fleet(raw: Fleet, place: &Place<'_>) -> Result<Option<FleetConfig>, ConfigError> {
    let span = raw.server.as_ref().map_or(0..0, Spanned::span);
    let credentials = place.text("credentials", raw.credentials)?.map(PathBuf::from);
    let decoys = place.number("decoys", &raw.decoys, DECOYS, 0..=MOST_DECOYS)?;
    let Some(server) = place.text("server", raw.server)? else { return Ok(None) };
    let host = server.strip_prefix("tls://").unwrap_or_default();
    if host.is_empty() || !host.chars().all(|c| c.is_ascii_alphanumeric() || ".:-[]".contains(c)) {
        let what = format!("`server` is \"{server}\"; allowed is an address like \"tls://nats.example:4222\"");
        return Err(place.wrong(span, what));
    }
    Ok(Some(FleetConfig { server, credentials, decoys }))
}

fn web(raw: Web, place: &Place<'_>) -> Result<WebConfig, ConfigError> {
    let metrics_span = raw.metrics.as_ref().map_or(0..0, Spanned::span);
    let listen = place.address("listen", raw.listen, "127.0.0.1:8080")?;
    let metrics = place.address("metrics", raw.metrics, "127.0.0.1:9477")?;
    if let (Some(one), true) = (metrics, metrics == listen) {
        let what = format!("`metrics` is {one}, and so is `listen`; each needs a port of its own");
        return Err(place.wrong(metrics_span, what));
    }
    let span = raw.public_url.as_ref().map_or(0..0, Spanned::span);
    let public_url = place.text("public_url", raw.public_url)?;
    let is_address = |url: &String| {
        let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
        host.starts_with(|c: char| c.is_ascii_alphanumeric()) && host.chars().all(|c| c.is_ascii_graphic() && c != '#')
    };
    if let Some(url) = public_url.as_ref().filter(|url| !is_address(url)) {
        let what = format!(
            "`public_url` is \"{url}\"; allowed is the page's address without #, like \"https://bot.example/\""
        );
        return Err(place.wrong(span, what));
    }
    Ok(WebConfig { listen, public_url, metrics })
}
