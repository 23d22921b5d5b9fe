//! Gift wraps in: a live stream that is drained at once, and a backfill that fetches what the stream lost.

mod backfill;
mod decrypt;
pub(in crate::nostr) mod dedup;
mod flood;
mod nip04;
mod pages;
mod queue;
mod run;
mod subscription;
pub mod vanish;
mod watchdog;

pub use flood::Flood;
pub use run::{Inbox, IncomingMessage};
pub use watchdog::{Awaited, Watchdog};
