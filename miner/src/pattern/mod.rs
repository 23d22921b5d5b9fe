//! Patterns: their grammar, their difficulty, and whether a full key matches. No I/O.
//!
//! A [`Pattern`] is a plain prefix, or alternatives of shapes. From the shapes follow the intervals
//! that devices filter by (`set.rs`), the tests of keys for devices (`key_tests.rs`), and the exact
//! chance of a match (`chance.rs`). `grammar.rs` reads
//! what people write. A search without a target ([`Best`]) asks for patterns that become rarer.

mod best;
mod chance;
mod characters;
mod difficulty;
mod error;
mod grammar;
mod key_tests;
#[expect(clippy::module_inception, reason = "the room and its main type have one name")]
mod pattern;
mod set;
mod similar;
#[cfg(test)]
mod tests;
mod words;

pub use best::{Best, Family, by_difficulty};
pub use chance::Effort;
pub use characters::{ALPHABET, MAX_CHOSEN, look_alikes, nearest};
pub use difficulty::{Difficulty, NINETY_FIVE_PERCENT, Rate, rate_in_turns};
pub use error::{HEX_DIGITS, PatternError};
pub use key_tests::{
    Anywhere, CHECKSUM_BITS, Checks, ChecksumTables, ChecksumTest, LOWEST_BITS, Member, RUN_CHARACTERS, Run, TextTest,
    TextTests, TextWords, UNUSED_BITS, WORD_BITS, WORD_CHARACTERS,
};
pub use pattern::{MAX_CHARACTERS, Pattern, PatternKind};
pub use set::{MAX_INTERVALS, PatternId, PatternSet};
pub use words::{WordListError, patterns_of_words, word_spelt};
