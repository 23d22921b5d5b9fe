//! Sends the gift wraps that the ledger stores, unchanged, until their askers' relays have them.

mod attempts;
mod delivery;
mod under_way;

pub use attempts::Outbox;
