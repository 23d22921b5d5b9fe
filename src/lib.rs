//! npubbot: a Nostr bot that finds vanity npubs and sends each key to the asker.
//!
//! The rooms, from the bottom up; imports point down only (`tests/it/architecture/`):
//! - [`os`]: everything that differs between operating systems
//! - [`key`], [`pattern`]: public mathematics, and patterns of npubs
//! - [`job`], [`message`]: the types that rooms exchange
//! - [`search`]: tests candidates
//! - [`vault`]: every secret; [`ledger`]: the state that survives a crash
//! - [`scheduler`]: which job runs where; [`nostr`]: relays; [`bot`]: the conversation
//! - [`web`]: serves the page for people without an account
//! - [`control`]: the operator's local socket
//! - [`backup`]: all of a bot in one encrypted file
//! - [`service`]: the rooms wired together; [`cli`]: one small file per command
//!
//! Start reading at `ARCHITECTURE.md`, then [`service`].

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
