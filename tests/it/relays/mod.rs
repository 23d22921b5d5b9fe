//! Clients and relays that behave in many ways.

pub mod client_wraps;
pub mod clients;
pub mod interop;
pub mod liars;
pub mod proxy;
pub mod relay_quirks;
