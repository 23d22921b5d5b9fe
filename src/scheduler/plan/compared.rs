//! The two kinds of launches: those that filter by top words, and those that compare whole keys.

use crate::pattern::{Pattern, Rate};

/// The cost of a candidate in a launch that compares whole keys: its time, divided by the time of a
/// candidate in a launch that filters by top words. An estimate until the device has measured both
/// rates; measured ratios are four to ten (`docs/performance.md`).
pub const WHOLE_KEYS_COST: f64 = 4.0;

/// The part of a key that a launch compares. Launches of the two kinds take turns, so neither slows
/// down the other's kernel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Compared {
    /// The first 32 bits, by the fast kernel.
    TopWords,
    /// The whole key, for patterns that the first 32 bits restrict too little.
    WholeKeys,
}

impl Compared {
    /// Both kinds.
    pub const ALL: [Compared; 2] = [Compared::TopWords, Compared::WholeKeys];

    /// Whether the pattern is searched by launches of this kind.
    pub fn takes(self, pattern: &Pattern) -> bool {
        (self == Compared::TopWords) == pattern.begins_selectively()
    }
}

/// The measured rates of one device.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Rates {
    /// The rate where top words are compared; `None` before the first measurement.
    pub top_words: Option<Rate>,
    /// The rate where whole keys are compared; `None` before the first measurement.
    pub whole_keys: Option<Rate>,
}

impl Rates {
    /// Time that a candidate takes, relative to one of [`Compared::TopWords`].
    pub fn cost(self, compared: Compared) -> f64 {
        match (compared, self.top_words, self.whole_keys) {
            (Compared::TopWords, ..) => 1.0,
            (_, Some(Rate(fast)), Some(Rate(slow))) if slow > 0.0 => fast / slow,
            _ => WHOLE_KEYS_COST,
        }
    }

    /// The rate of launches of a kind, estimated until it is measured.
    pub fn of(self, compared: Compared) -> Option<Rate> {
        match compared {
            Compared::TopWords => self.top_words,
            Compared::WholeKeys => {
                self.whole_keys.or_else(|| self.top_words.map(|Rate(fast)| Rate(fast / WHOLE_KEYS_COST)))
            }
        }
    }
}

impl From<Option<Rate>> for Rates {
    fn from(top_words: Option<Rate>) -> Rates {
        Rates { top_words, whole_keys: None }
    }
}
