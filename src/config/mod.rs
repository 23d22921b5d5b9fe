//! `relays.toml` as checked types. A value of these types is always valid.

mod error;
mod load;
mod raw;
#[cfg(test)]
mod tests;
mod time;
mod types;

pub use error::ConfigError;
pub use types::{BotConfig, Config, Limits, RelayEntry, WebConfig};
