//! `relays.toml` as checked types: every value of them is valid.

mod error;
mod load;
mod raw;
#[cfg(test)]
mod tests;
mod time;
mod types;

pub use error::ConfigError;
pub use types::{BotConfig, Config, Limits, RelayEntry, WebConfig};
