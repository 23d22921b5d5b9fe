//! Relay connections: our own relays with their roles, and external relays that askers list.

mod address;
mod allowance;
pub(in crate::nostr) mod backoff;
pub(in crate::nostr) mod connections;
pub(in crate::nostr) mod encryption_keys;
pub(in crate::nostr) mod error;
mod external;
mod fetch;
mod host;
mod known;
mod newest;
pub mod nip11;
mod null_database;
mod proxy;
mod publish;
pub(in crate::nostr) mod query;
pub(in crate::nostr) mod relay_lists;
mod resolver;
pub(in crate::nostr) mod said;
mod slots;
mod throttle;
pub(in crate::nostr) mod timer;
mod transport;
pub(in crate::nostr) mod visitor;
mod wait;

pub use connections::{Figures, Reach, Relays, reach};
pub use encryption_keys::EncryptionKeys;
pub use error::NostrError;
pub use relay_lists::RelayLists;
