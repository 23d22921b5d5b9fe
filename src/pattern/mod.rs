//! Patterns: their alphabet, their difficulty, and whether a full key matches. No I/O.

mod alphabet;
mod difficulty;
mod prefix;
mod set;

pub use alphabet::{ALPHABET, nearest};
pub use difficulty::{Difficulty, NINETY_FIVE_PERCENT, Rate};
pub use prefix::{MAX_CHARACTERS, Pattern, PatternError};
pub use set::{PatternId, PatternSet};
