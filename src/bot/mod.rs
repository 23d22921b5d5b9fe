//! The conversation, as a pure function: a message and what is known become a decision. No SQL, no sockets, no clock.
//!
//! Every message gets one answer: what was asked for, or a refusal in two halves: what is wrong, what would work.

mod decide;
pub mod notices;
mod policy;
mod reply;
mod request;
#[cfg(test)]
mod tests;

pub use decide::{Context, Decision, decide};
pub use reply::Reply;
pub use request::{MOST_SPLIT_PREFIXES, half_named};
