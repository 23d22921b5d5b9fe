//! Clients and relays that behave in many ways.

pub mod interop;
pub mod liars;
pub mod relay_quirks;
