//! Everything between the bot and its relays.
//!
//! | submodule | task |
//! | --- | --- |
//! | `relay` | connections to our own and to external relays; relay lists; queries and publishing |
//! | `inbox` | gift wraps in, deduplicated, decrypted, in order |
//! | `outbox` | stored gift wraps out, until the asker's relays have them |
//! | `presence` | the bot's public events |
//!
//! `inbox`, `outbox` and `presence` use `relay` and not each other. Nothing here knows what a
//! pattern is.

mod inbox;
mod outbox;
mod presence;
mod relay;
#[cfg(test)]
mod tests;

pub use inbox::{Arrival, Awaited, Inbox, SeenIds, Watchdog};
pub use outbox::Outbox;
pub use presence::{Presence, Publisher, public_settings};
pub use relay::{
    ConnectionState, EncryptionKeys, NostrError, Reach, RelayFigures, RelayLists, RelayWords, Relays, follows, nip11,
    reach, vanish_requests,
};
