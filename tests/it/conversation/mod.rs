//! What askers say and are told.

pub mod conventions;
pub mod refusals;
pub mod requests;
pub mod split;
pub mod unsolicited;
