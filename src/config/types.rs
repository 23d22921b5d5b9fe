//! The checked types of the configuration.

use crate::search::SearchOptions;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// All settings of an operator.
#[derive(Clone, Debug)]
pub struct Config {
    /// The bot's relays. At least one has the role `inbox`.
    pub relays: Vec<RelayEntry>,
    /// Whether askers may list relays at private addresses. For test networks only.
    pub allow_private_relays: bool,
    /// Profile and behaviour of the bot.
    pub bot: BotConfig,
    /// Limits for askers.
    pub limits: Limits,
    /// Devices and threads of the search.
    pub search: SearchOptions,
    /// Workers on other machines; `None` for none.
    pub fleet: Option<FleetConfig>,
    /// The web page for people without an account.
    pub web: WebConfig,
    /// The SOCKS5 proxy through which relays are reached; `None` for none.
    pub proxy: Option<SocketAddr>,
}

/// One relay of the bot, with at least one role.
#[derive(Clone, Debug)]
pub struct RelayEntry {
    /// `ws://` or `wss://`.
    pub url: nostr::RelayUrl,
    /// Askers send messages here. Listed in kind 10050; the bot subscribes to gift wraps here.
    pub inbox: bool,
    /// Profile, lists and status notes are published here; listed in kind 10002.
    pub status: bool,
    /// Relay lists of askers are looked up here, and our own are published here.
    pub discovery: bool,
}

/// Profile and behaviour of the bot.
#[derive(Clone, Debug)]
pub struct BotConfig {
    /// Name in the profile (kind 0).
    pub name: String,
    /// Description in the profile.
    pub about: String,
    /// Address of a picture for the profile.
    pub picture: Option<String>,
    /// NIP-05 address for the profile.
    pub nip05: Option<String>,
    /// Publish the live status (kind 30315).
    pub live_status: bool,
    /// Publish one note (kind 1) a day with yesterday's totals.
    pub daily_note: bool,
    /// Time between two tests of a DM relay. In a test the bot sends itself a message through the
    /// relay.
    pub try_relays_every: Duration,
    /// Whether to answer askers who have no DM relay list (kind 10050), on the relays that they
    /// read or write.
    pub answer_without_relay_list: bool,
    /// Connect to the relays that askers list. If false, answers go through our own relays only.
    pub visit_askers_relays: bool,
    /// Age at which relays may delete our answers (NIP-40).
    pub answers_expire_after: Duration,
    /// Age at which an ended job is deleted from the ledger, counted from its acceptance, or from
    /// when it was given up.
    pub keep_finished: Duration,
}

/// Limits for askers.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Open jobs of one asker.
    pub open_jobs_per_asker: usize,
    /// Jobs of one asker in 24 hours.
    pub jobs_per_day: usize,
    /// Patterns in one request.
    pub prefixes_per_job: usize,
    /// Longest expected time of an accepted job, at the rate measured when the request arrives.
    pub longest_expected_time: Duration,
    /// Age at which an open job is given up.
    pub give_up_after: Duration,
    /// Wraps that the inbox opens per second, on average.
    pub wraps_per_second: u32,
    /// Wraps that the inbox opens at once after a pause.
    pub wraps_burst: u32,
    /// More requests per minute from new askers than this are a flood.
    pub new_askers_per_minute: u32,
    /// Proof of work (NIP-13) required of new askers during a flood: leading zero bits of the
    /// wrap's id.
    pub flood_work_bits: u32,
    /// Answers to one asker per hour.
    pub answers_per_hour: u32,
    /// Answers per second to all askers together, on average. Askers with an open job are answered
    /// even above this limit.
    pub answers_per_second: u32,
}

/// The server through which workers on other machines are given orders.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FleetConfig {
    /// Address of the NATS server, `tls://host:port`.
    pub server: String,
    /// File with the bot's credentials; `None` for `fleet/bot.creds` in the data folder.
    pub credentials: Option<PathBuf>,
    /// Number of decoys: patterns nobody asked for, among those that workers get.
    pub decoys: u32,
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

/// The web page for people without an account, and the metrics. Both are off by default.
#[derive(Clone, Debug, Default)]
pub struct WebConfig {
    /// Address and port of the page; `None` if it is not served.
    pub listen: Option<SocketAddr>,
    /// The address at which people reach the page, `https://…/`. `None` if it is the address it is
    /// served at.
    pub public_url: Option<String>,
    /// Address and port at which metrics and health are served; `None` if they are not.
    pub metrics: Option<SocketAddr>,
}
