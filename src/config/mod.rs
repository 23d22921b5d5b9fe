//! `relays.toml` as checked types. Whatever exists here is valid.

mod error;
mod raw;
#[cfg(test)]
mod tests;
mod time;

pub use error::ConfigError;

use crate::search::SearchOptions;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

/// The configuration that ships with npubbot.
const SHIPPED: &str = include_str!("../../relays.toml");

/// Everything an operator can set.
#[derive(Clone, Debug)]
pub struct Config {
    pub relays: Vec<RelayEntry>,
    pub bot: BotConfig,
    pub limits: Limits,
    pub search: SearchOptions,
}

/// One relay and what it is used for: at least one role.
#[derive(Clone, Debug)]
pub struct RelayEntry {
    /// `ws://` or `wss://`.
    pub url: nostr::RelayUrl,
    /// Askers send here: listed in kind 10050, subscribed for gift wraps.
    pub inbox: bool,
    /// Profile, lists and status notes are published here; listed in kind 10002.
    pub status: bool,
    /// Asked for the relay lists of askers; our own lists are published here too.
    pub discovery: bool,
}

/// How the bot shows itself.
#[derive(Clone, Debug)]
pub struct BotConfig {
    pub name: String,
    pub about: String,
    pub picture: Option<String>,
    pub nip05: Option<String>,
    /// Publish the live status (kind 30315).
    pub live_status: bool,
    /// Publish a note (kind 1) a day with yesterday's totals.
    pub daily_note: bool,
    /// How often each DM relay is tried with a letter to the bot itself.
    pub try_relays_every: Duration,
    /// Answer askers who have no DM relay list (kind 10050) where their own message was seen.
    pub answer_without_relay_list: bool,
    /// Connect to the relays that askers list, to answer them there; else answer through our own relays only.
    pub visit_askers_relays: bool,
    /// Relays may forget our answers after this.
    pub answers_expire_after: Duration,
}

/// What one asker may ask for.
#[derive(Clone, Debug)]
pub struct Limits {
    pub open_jobs_per_asker: usize,
    pub jobs_per_day: usize,
    pub prefixes_per_job: usize,
    /// A request whose expected time at the rate measured now is longer is refused.
    pub longest_expected_time: Duration,
    /// A job is given up after this.
    pub give_up_after: Duration,
    /// Wraps the inbox opens a second, on average, and at once after a pause.
    pub wraps_per_second: u32,
    pub wraps_burst: u32,
    /// More requests a minute of askers who never had a job are a flood.
    pub new_askers_per_minute: u32,
    /// What a flood makes strangers pay (NIP-13): leading zero bits of the wrap's id.
    pub flood_work_bits: u32,
}

impl Config {
    /// Reads and checks a file.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        let file = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| ConfigError::Unreadable { file: file.clone(), error })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            ConfigError::NotUtf8 { line: 1 + good.iter().filter(|&&byte| byte == b'\n').count(), file: file.clone() }
        })?;
        Config::parse(&text, &file)
    }

    /// Checks a text; `name` is what errors call it.
    pub fn parse(text: &str, name: &str) -> Result<Config, ConfigError> {
        raw::read(text, name)
    }

    /// Writes the file that ships with npubbot, unless there is one at `path`: `false` then.
    ///
    /// Errors: [`ConfigError::Unwritable`].
    pub fn write_default(path: &Path) -> Result<bool, ConfigError> {
        let unwritable = |error| ConfigError::Unwritable { file: path.display().to_string(), error };
        match OpenOptions::new().create_new(true).write(true).open(path) {
            Ok(mut file) => file.write_all(SHIPPED.as_bytes()).map(|()| true).map_err(unwritable),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(unwritable(error)),
        }
    }

    /// What ships with npubbot.
    pub fn embedded_default() -> Result<Config, ConfigError> {
        Config::parse(SHIPPED, "relays.toml")
    }
}
