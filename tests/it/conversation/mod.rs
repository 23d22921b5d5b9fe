//! Messages of askers, and the bot's answers.

pub mod best;
pub mod conventions;
pub mod hours;
pub mod patterns;
pub mod refusals;
pub mod requests;
pub mod split;
pub mod unsolicited;
