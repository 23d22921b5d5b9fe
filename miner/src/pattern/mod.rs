//! Patterns: their grammar, their difficulty, and whether a full key matches. No I/O.
//!
//! A [`Pattern`] is a plain prefix, or alternatives of shapes (`shape.rs`). From the shapes follow
//! the intervals that devices filter by (`intervals.rs`), and the exact chance of a match
//! (`chance.rs`) or, where that takes too long, an estimate (`estimate.rs`). `grammar.rs` reads
//! what people write. A search without a target ([`Best`]) asks for patterns that become rarer.

mod alphabet;
mod best;
mod chance;
mod character_set;
mod checks;
mod checksum;
mod difficulty;
mod error;
mod estimate;
mod grammar;
mod intervals;
mod kind;
mod like;
mod nearest;
mod parts;
#[expect(clippy::module_inception, reason = "the room and its main type have one name")]
mod pattern;
mod prefix;
mod set;
mod shape;
#[cfg(test)]
mod tests;
mod text_test;
mod text_tests;
mod turns;
mod words;

pub use alphabet::{ALPHABET, look_alikes, nearest};
pub use best::{Best, Family, MOST_KEPT, by_difficulty};
pub use chance::Effort;
pub use character_set::MOST_CHOSEN;
pub use checks::{Checks, Member};
pub use checksum::{CHECKSUM_BITS, ChecksumTables};
pub use difficulty::{Difficulty, NINETY_FIVE_PERCENT, Rate};
pub use error::{GrammarError, HEX_DIGITS};
pub use kind::Kind;
pub use pattern::Pattern;
pub use prefix::{MAX_CHARACTERS, PatternError};
pub use set::{MOST_INTERVALS, PatternId, PatternSet};
pub use text_test::{
    Anywhere, LOWEST_BITS, RUN_CHARACTERS, Run, TextTest, TextWords, UNUSED_BITS, WORD_BITS, WORD_CHARACTERS,
};
pub use text_tests::{ChecksumTest, TextTests};
pub use turns::rate_in_turns;
pub use words::{WordError, patterns_of_words, word_like, word_spelt};
