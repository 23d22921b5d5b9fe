//! The conversation, as pure functions: a message becomes a [`Request`] ([`read`]); a request and
//! [`Facts`] become a [`Decision`] ([`decide()`]). No SQL, no sockets, no clock.
//!
//! Every message gets one answer: a reply, or a refusal that says what is wrong and what would
//! work.
//!
//! The texts, and the words understood, are in `texts/`: one table per language.

mod accepted;
mod best;
mod decide;
mod explain;
mod facts;
mod meaning;
mod meanings;
pub mod notices;
mod numbers;
mod patterns;
mod phrases;
mod policy;
mod prose;
mod reply;
mod request;
mod tables;
mod takes;
#[cfg(test)]
mod tests;
mod vocabulary;
mod wording;
mod words;

pub use accepted::{accepted_by_bot, nearest_accepted};
pub use decide::{Decision, decide};
pub use facts::{Facts, SplitCost};
pub use reply::Reply;
pub use request::{MOST_SPLIT_PREFIXES, Request, asked, read};
pub use wording::answer;
