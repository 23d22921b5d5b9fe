//! The conversation, as pure functions: a message becomes a [`Request`] ([`read`]); a request and
//! [`Facts`] become a [`Decision`] ([`decide()`]). No SQL, no sockets, no clock.
//!
//! Every message gets one answer: a reply, or a refusal that says what is wrong and what would
//! work.

mod decide;
mod english;
mod facts;
pub mod notices;
mod numbers;
mod policy;
mod reply;
mod request;
#[cfg(test)]
mod tests;
mod words;

pub use decide::{Decision, decide};
pub use facts::{Facts, SplitCost};
pub use reply::Reply;
pub use request::{MOST_SPLIT_PREFIXES, Request, read};
