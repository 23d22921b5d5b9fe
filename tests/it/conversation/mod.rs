//! What askers can say, and what the bot answers.

pub mod conventions;
pub mod refusals;
pub mod requests;
pub mod split;
pub mod unsolicited;
