//! The conversation, as pure functions: a message becomes a [`Request`] ([`read`]); its text and what
//! is known of the asker become a [`Reading`]; that and [`Facts`] become a [`Decision`]
//! ([`decide()`]). No SQL, no sockets, no clock.
//!
//! Every message gets one answer: a reply, or a refusal that says what is wrong and what would
//! work.
//!
//! The texts are in `texts/`, the words that are understood in `words/`: one table per language.

mod accepted;
mod best;
mod commands;
mod decide;
mod explain;
mod facts;
mod intent;
mod meanings;
mod message;
pub mod notices;
mod numbers;
mod patterns;
mod phrases;
mod policy;
mod reading;
mod reply;
mod request;
mod spelling;
mod tables;
mod takes;
#[cfg(any(test, feature = "test-util"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod text;
mod vocabulary;
mod wishes;
mod wording;

pub use accepted::{accepted_by_bot, nearest_accepted};
pub use decide::{Decision, decide, label};
pub use facts::{Facts, SplitCost};
pub use intent::{Context, OfferReason, Question, Reading, Shown};
pub use meanings::{english_meaning, english_meaning_of_best};
pub use reply::Reply;
pub use request::{MOST_SPLIT_PREFIXES, Request, asked, read};
pub use wording::answer;
