//! The behaviour of many clients and relays.

pub mod client_wraps;
pub mod clients;
pub mod interop;
pub mod liars;
pub mod proxy;
pub mod relay_quirks;
