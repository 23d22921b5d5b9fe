//! Receives gift wraps: by a live subscription, and by backfills that fetch what it missed.
//!
//! ```text
//! subscription → queue ┐
//!                      ├→ token bucket → verify and decrypt → [claims] → requests
//!             backfill ┘
//! ```

mod arrival;
mod backfill;
mod claims;
mod decrypt;
mod flood;
mod queue;
mod run;
mod subscription;
pub mod vanish;
mod watchdog;

pub use arrival::Arrival;
pub use flood::Flood;
pub use run::Inbox;
pub use watchdog::{Awaited, Watchdog};
