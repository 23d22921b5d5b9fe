//! Relay connections: our own relays with their roles, and external relays that askers list.

pub(in crate::nostr) mod connections;
pub(in crate::nostr) mod error;
mod external;
mod host;
pub mod nip11;
mod publish;
pub(in crate::nostr) mod published;
pub(in crate::nostr) mod query;
pub(in crate::nostr) mod reports;
pub(in crate::nostr) mod slots;
mod transport;

pub use connections::{ConnectionState, Reach, RelayFigures, Relays, reach};
pub use error::NostrError;
pub use published::{EncryptionKeys, RelayLists, follows, vanish_requests};
pub use reports::RelayWords;
