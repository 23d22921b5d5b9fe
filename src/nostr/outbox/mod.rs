//! Stored gift wraps out: each as the ledger holds it, until its asker's relays have it.

mod attempts;
mod delivery;
mod record;
mod under_way;

pub use attempts::Outbox;
