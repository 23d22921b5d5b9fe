//! Receives gift wraps: by a live subscription, and by backfills that fetch what it missed.
//!
//! ```text
//! subscription → queue ┐
//!                      ├→ dedup → token bucket → verify and decrypt → [claims] → requests
//! backfill → pages ────┘
//! ```

mod backfill;
mod claims;
mod decrypt;
mod dedup;
mod flood;
mod message;
mod pages;
mod queue;
mod run;
mod subscription;
pub mod vanish;
mod watchdog;

pub use flood::Flood;
pub use message::IncomingMessage;
pub use run::Inbox;
pub use watchdog::{Awaited, Watchdog};
