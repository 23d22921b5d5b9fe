//! The settings of `relays.toml`: the structs that serde reads are those that the program uses.
//!
//! `docs/operators/relays-toml.md` is made from the comments of this file and `search.rs`.

mod file;
mod search;
#[cfg(test)]
mod tests;
mod value;

pub use file::{Choices, ConfigError};
pub use search::gpu_memory_bytes;

use crate::search::SearchOptions;
use nostr::{PublicKey, RelayUrl};
use serde::Deserialize;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use value::{address, duration, minutes, number, page_url, picture_url, relay_url, roles, text};

/// The settings of one bot.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Relays of the bot, one table each. At least one has the role `inbox`.
    pub relays: Vec<RelayEntry>,
    /// Whether askers may list relays at private addresses. For test networks only.
    pub allow_private_relays: bool,
    /// Profile and behaviour of the bot.
    pub bot: BotConfig,
    /// Limits for askers.
    pub limits: Limits,
    /// Devices and threads of the search.
    #[serde(deserialize_with = "search::read")]
    pub search: SearchOptions,
    /// Workers on other machines; `None` for none.
    #[serde(deserialize_with = "value::fleet")]
    pub fleet: Option<FleetConfig>,
    /// The web page and the metrics.
    pub web: WebConfig,
    /// The way to the relays.
    pub network: NetworkConfig,
    /// The process that holds every secret.
    pub vault: VaultConfig,
}

/// A relay of the bot, with at least one role.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "RelayTable")]
pub struct RelayEntry {
    /// `ws://` or `wss://`.
    pub url: RelayUrl,
    /// Askers send messages here. Listed in kind 10050; the bot subscribes to gift wraps here.
    pub inbox: bool,
    /// Profile, lists and status notes are published here; listed in kind 10002.
    pub status: bool,
    /// Relay lists of askers are looked up here, and our own are published here.
    pub discovery: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RelayTable {
    /// Address, `wss://…` or `ws://…`, without user and password.
    #[serde(deserialize_with = "relay_url")]
    url: RelayUrl,
    /// `inbox`: askers write here. `status`: profile, lists and status are published here.
    /// `discovery`: relay lists of askers are looked up here.
    #[serde(deserialize_with = "roles")]
    roles: Vec<Role>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    Inbox,
    Status,
    Discovery,
}

impl From<RelayTable> for RelayEntry {
    fn from(RelayTable { url, roles }: RelayTable) -> RelayEntry {
        let has = |role| roles.contains(&role);
        RelayEntry { url, inbox: has(Role::Inbox), status: has(Role::Status), discovery: has(Role::Discovery) }
    }
}

/// Profile and behaviour of the bot.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BotConfig {
    /// Name in the profile.
    #[serde(deserialize_with = "value::line")]
    pub name: String,
    /// Description in the profile.
    #[serde(deserialize_with = "text")]
    pub about: String,
    /// Address of a picture for the profile. Empty: a white key.
    #[serde(deserialize_with = "picture_url")]
    pub picture: Option<String>,
    /// NIP-05 address for the profile, like `bot@example.com`.
    #[serde(deserialize_with = "value::nip05")]
    pub nip05: Option<String>,
    /// Lightning address for the profile, like `me@example.com`. If set, the message that comes with
    /// a key has a line about tips.
    #[serde(deserialize_with = "value::nip05")]
    pub lud16: Option<String>,
    /// Who may have jobs: `everybody` or `friends`.
    pub who: Who,
    /// Npubs, 16 at most. Whom they follow (kind 3) are friends too, like those of `npubbot allow
    /// --friend`. Looked up once a day.
    #[serde(deserialize_with = "value::npubs")]
    pub friends_of: Vec<PublicKey>,
    /// Publish a status (kind 30315) with the rate and the number of open jobs.
    pub live_status: bool,
    /// Publish one note a day with yesterday's totals.
    pub daily_note: bool,
    /// Time between two tests of each inbox relay, in which the bot writes to itself. At least 1
    /// min.
    #[serde(deserialize_with = "minutes::<1, _>")]
    pub try_relays_every: Duration,
    /// Answer askers who publish no DM relays (kind 10050), on relays they read or write.
    pub answer_without_relay_list: bool,
    /// Connect to the relays that askers list. Their owners see this machine's address.
    pub visit_askers_relays: bool,
    /// Age at which relays may delete answers (NIP-40). At least 1 day; results, 16.
    #[serde(deserialize_with = "minutes::<1440, _>")]
    pub answers_expire_after: Duration,
    /// Age at which an ended job is deleted from the ledger, counted from its acceptance, or from
    /// when it was given up. At least 1 day.
    #[serde(deserialize_with = "minutes::<1440, _>")]
    pub keep_finished: Duration,
}

/// Whose requests become jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Who {
    /// Those of everybody.
    #[default]
    Everybody,
    /// Those of friends. Others get a refusal.
    Friends,
}

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

impl Default for BotConfig {
    fn default() -> BotConfig {
        let about =
            "Send me a prefix by encrypted message, like m0ctane, and I send you a key whose npub starts like that.";
        BotConfig {
            name: "npubbot".to_owned(),
            about: about.to_owned(),
            picture: None,
            nip05: None,
            lud16: None,
            who: Who::Everybody,
            friends_of: Vec::new(),
            live_status: true,
            daily_note: true,
            try_relays_every: 15 * MINUTE,
            answer_without_relay_list: true,
            visit_askers_relays: true,
            answers_expire_after: 30 * DAY,
            keep_finished: 90 * DAY,
        }
    }
}

/// Limits for askers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Open jobs of one asker, 1 to 10,000.
    #[serde(deserialize_with = "number::<1, 10_000, _, _>")]
    pub open_jobs_per_asker: usize,
    /// Jobs of one asker in 24 hours, 1 to 1,000,000.
    #[serde(deserialize_with = "number::<1, 1_000_000, _, _>")]
    pub jobs_per_day: usize,
    /// Patterns in one request, 1 to 64.
    #[serde(deserialize_with = "number::<1, 64, _, _>")]
    pub prefixes_per_job: usize,
    /// A request that is expected to take longer is refused.
    #[serde(deserialize_with = "duration")]
    pub longest_expected_time: Duration,
    /// Age at which an open job is given up and its asker told. Not less than
    /// `longest_expected_time`.
    #[serde(deserialize_with = "duration")]
    pub give_up_after: Duration,
    /// Gift wraps opened a second on average, 1 to 1,000,000.
    #[serde(deserialize_with = "number::<1, 1_000_000, _, _>")]
    pub wraps_per_second: u32,
    /// Gift wraps opened at once after a pause, 1 to 1,000,000.
    #[serde(deserialize_with = "number::<1, 1_000_000, _, _>")]
    pub wraps_burst: u32,
    /// New askers served a minute without proof of work, drawn by lot. 0 to 1,000,000.
    #[serde(deserialize_with = "number::<0, 1_000_000, _, _>")]
    pub new_askers_per_minute: u32,
    /// Answers to one asker an hour; then one notice, then silence. 1 to 1,000,000.
    #[serde(deserialize_with = "number::<1, 1_000_000, _, _>")]
    pub answers_per_hour: u32,
    /// Answers a second to all askers together; askers with an open job come first. 1 to 1,000,000.
    #[serde(deserialize_with = "number::<1, 1_000_000, _, _>")]
    pub answers_per_second: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            open_jobs_per_asker: 3,
            jobs_per_day: 20,
            prefixes_per_job: 10,
            longest_expected_time: DAY,
            give_up_after: 30 * DAY,
            wraps_per_second: 2000,
            wraps_burst: 2000,
            new_askers_per_minute: 2000,
            answers_per_hour: 60,
            answers_per_second: 200,
        }
    }
}

/// The server through which workers on other machines are given orders.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FleetConfig {
    /// Address of the NATS server, `tls://host:port`. With `proxy`, an address of this machine or
    /// its network only. Empty: no workers.
    #[serde(deserialize_with = "value::fleet_server")]
    pub server: String,
    /// Credentials of the bot there. Empty: those that `npubbot fleet init` made, `fleet/bot.creds`
    /// in the data folder.
    #[serde(deserialize_with = "value::path")]
    pub credentials: Option<PathBuf>,
}

impl FleetConfig {
    /// Whether the server is on this machine or in its network, judged by its address.
    pub fn is_near(&self) -> bool {
        let host = self.server.trim_start_matches("tls://");
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host).trim_matches(['[', ']']);
        match host.parse() {
            Ok(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_private(),
            Ok(IpAddr::V6(ip)) => ip.is_loopback() || ip.is_unique_local(),
            Err(_) => host == "localhost",
        }
    }
}

/// The web page for people without an account, and the metrics.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebConfig {
    /// Address and port of the web page for people without an account. Empty: it is not served.
    #[serde(deserialize_with = "address")]
    pub listen: Option<SocketAddr>,
    /// Address at which people reach the page. Empty: the one above.
    #[serde(deserialize_with = "page_url")]
    pub public_url: Option<String>,
    /// Address and port of `/metrics`, `/healthz` and `/readyz`. Empty: they are not served.
    #[serde(deserialize_with = "address")]
    pub metrics: Option<SocketAddr>,
}

/// The process that holds every secret.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct VaultConfig {
    /// "required": do not start without sandboxes around the vault and the network process
    /// (Landlock, seccomp), and use no GPU whose process lacks its own. "optional": start with a
    /// warning.
    pub walls: Walls,
}

/// Whether a process may run without its sandbox.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Walls {
    /// It may, with a warning.
    #[default]
    Optional,
    /// It may not.
    Required,
}

/// The way to the relays.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkConfig {
    /// Address and port of a SOCKS5 proxy, such as Tor's `127.0.0.1:9050`. It resolves and reaches
    /// all relays except those of this machine or its network. Empty: none.
    #[serde(deserialize_with = "address")]
    pub proxy: Option<SocketAddr>,
}

impl Config {
    /// Checks what concerns several keys. The error names the table, the key and the mistake.
    fn check(&self) -> Result<(), (&'static str, &'static str, String)> {
        for (place, relay) in self.relays.iter().enumerate() {
            if self.relays[..place].iter().any(|known| known.url == relay.url) {
                let what = format!("the relay {} is listed twice; give it all its roles at once", relay.url);
                return Err(("relays", "url", what));
            }
        }
        if !self.relays.iter().any(|relay| relay.inbox) {
            let what = "no relay has the role \"inbox\", so nobody could reach the bot; give it to one [[relays]]";
            return Err(("relays", "", what.to_owned()));
        }
        if self.limits.give_up_after < self.limits.longest_expected_time {
            let what = "`give_up_after` (30 days unless set) is less than `longest_expected_time` (24 h unless set), \
                        so jobs would be given up before they are expected to end; make it longer";
            return Err(("limits", "give_up_after", what.to_owned()));
        }
        if let (Some(one), true) = (self.web.metrics, self.web.metrics == self.web.listen) {
            let what = format!("`metrics` is {one}, and so is `listen`; each needs a port of its own");
            return Err(("web", "metrics", what));
        }
        if self.network.proxy.is_some() && self.fleet.as_ref().is_some_and(|fleet| !fleet.is_near()) {
            let what = "`server` of [fleet] would be reached without the `proxy` of [network]; with a proxy, give an \
                        address of this machine or its network, like \"tls://127.0.0.1:4222\"";
            return Err(("fleet", "server", what.to_owned()));
        }
        Ok(())
    }
}
