//! Searches npubs that match patterns, on CPUs and NVIDIA GPUs, without ever seeing a secret.
//!
//! - [`key`]: public mathematics of secp256k1 for this project
//! - [`pattern`]: patterns of keys: grammar, difficulty, whether a full key matches
//! - [`search`]: testing candidates, on every device behind one trait
//! - [`clock`], [`duration`], [`hours`]: time as people write it, and a clock for tests
//! - [`frame`]: messages between the processes of a bot
//! - [`token_bucket`]: a bound on a rate
//!
//! This is the only package of the project that is optimised in a debug build. The bot exports
//! these modules under the same names: `npubbot::search` is [`search`].

pub mod clock;
pub mod duration;
pub mod frame;
#[cfg(feature = "search")]
pub mod hours;
pub mod key;
pub mod pattern;
#[cfg(feature = "search")]
pub mod search;
pub mod token_bucket;
