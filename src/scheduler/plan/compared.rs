//! The two kinds of launches: those that filter by top words, and those that compare whole keys.

use crate::pattern::Pattern;

/// Time that a candidate takes where whole keys are compared, in that of one where top words are:
/// an estimate until both were measured. Four to ten were found (`docs/performance.md`).
pub const WHOLE_KEYS_COST: f64 = 4.0;

/// The part of a key that a launch compares. Launches of the two kinds take turns, so neither slows
/// down the other's kernel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Compared {
    /// The first 32 bits, by the fast kernel.
    TopWords,
    /// All of it, for patterns of which the first 32 bits say too little.
    WholeKeys,
}

impl Compared {
    /// Both kinds.
    pub const ALL: [Compared; 2] = [Compared::TopWords, Compared::WholeKeys];

    /// Whether the pattern is searched by launches of this kind.
    pub fn takes(self, pattern: &Pattern) -> bool {
        (self == Compared::TopWords) == pattern.begins_selectively()
    }

    /// Time that a candidate takes, in that of one of [`Compared::TopWords`].
    pub fn cost(self) -> f64 {
        match self {
            Compared::TopWords => 1.0,
            Compared::WholeKeys => WHOLE_KEYS_COST,
        }
    }
}
