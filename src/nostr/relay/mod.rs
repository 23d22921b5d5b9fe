//! Relay connections: our own relays with their roles, and external relays that askers name.

mod address;
pub(in crate::nostr) mod connections;
mod external;
pub mod nip11;
mod null_database;
pub(in crate::nostr) mod query;
pub(in crate::nostr) mod relay_lists;
mod throttle;
mod transport;

pub use connections::{Relays, reach};
pub use relay_lists::RelayLists;
