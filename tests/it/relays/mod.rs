//! Relays and clients of every manner.

pub mod interop;
pub mod liars;
pub mod relay_quirks;
