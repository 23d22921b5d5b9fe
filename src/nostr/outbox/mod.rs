//! Stored gift wraps out: each one as the ledger holds it, until its asker's relays have it.

mod delivery;

pub use delivery::Outbox;
