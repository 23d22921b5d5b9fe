//! The behaviour of many clients and relays.

pub mod clients;
pub mod interop;
pub mod liars;
pub mod relay_quirks;
