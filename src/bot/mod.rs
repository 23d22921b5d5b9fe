//! The conversation, as pure functions: a message becomes a [`AskerRequest`] ([`read`]); its text and what
//! is known of the asker become a [`MessageReading`]; that and [`Facts`] become a [`Decision`]
//! ([`decide()`]). No SQL, no sockets, no clock.
//!
//! Every message gets one answer, whose text is part of the decision: a reply, or a refusal that says
//! what is wrong and what would work.
//!
//! The texts are in `texts/`, the words that are understood in `words/`: one table per language.

mod decide;
mod message;
pub mod notices;
mod phrases;
mod policy;
mod price;
mod reading;
mod reply;
mod request;
#[cfg(any(test, feature = "test-util"))]
#[path = "tests/lists.rs"]
pub mod testing;
#[cfg(test)]
mod tests;
mod text;
mod vocabulary;
mod wishes;

pub use decide::{Decision, decide};
pub use phrases::{english_meaning, english_meaning_of_best};
pub use policy::{Facts, accepted_by_bot, nearest_accepted};
pub use price::LEAST_BITS;
pub use reply::BotReply;
pub use request::{AskerRequest, ChatContext, MAX_SPLIT_PREFIXES, MessageReading, asked, read};
