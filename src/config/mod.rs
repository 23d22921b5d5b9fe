//! `relays.toml` as checked types. A value of these types is always valid.

mod edit;
mod error;
mod load;
mod place;
mod raw;
mod search;
#[cfg(test)]
mod tests;
mod types;

pub use edit::Choices;
pub use error::ConfigError;
pub use search::gpu_memory_bytes;
pub use types::{BotConfig, Config, FleetConfig, Limits, RelayEntry, WebConfig};
