//! npubbot: a Nostr bot that finds vanity npubs and sends each key to the asker.
//!
//! Start reading at `ARCHITECTURE.md`, which lists the rooms, then [`service`].

mod backoff;
pub mod backup;
pub mod bot;
pub mod cli;
pub mod config;
pub mod control;
mod device_cache;
#[doc(hidden)]
pub mod device_process;
#[doc(hidden)]
pub mod fault;
pub mod job;
pub mod language;
pub mod ledger;
mod log_writer;
pub mod memory;
pub mod nostr;
pub mod os;
pub mod progress;
mod roster;
pub mod scheduler;
pub mod service;
pub mod shutdown;
pub mod web;

// The rooms that need no bot are in the packages `miner/` and `fleet/`, the secrets in `vault/`.
#[cfg(feature = "fleet")]
#[doc(inline)]
pub use npubbot_fleet as fleet;
#[doc(inline)]
pub use npubbot_miner::{clock, duration, hours, key, pattern, search};
#[doc(inline)]
pub use npubbot_vault::{self as vault, message};

use npubbot_miner::{frame, token_bucket};
