//! Difficulty of a request, rate of a search, and the waiting time that follows from both.

use super::{Effort, Pattern, PatternSet};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Expected number of candidates until one matches; at least 1.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Difficulty(f64);

impl Difficulty {
    /// A difficulty of `2^bits`.
    pub fn from_bits(bits: u32) -> Difficulty {
        Difficulty(f64::from(bits).exp2())
    }

    /// Difficulty of finding any one of several independent patterns: `1 / Σ 1/d`, at least 1.
    /// `None` if there are none.
    pub fn any_of(difficulties: impl IntoIterator<Item = Difficulty>) -> Option<Difficulty> {
        let chance: f64 = difficulties.into_iter().map(|d| 1.0 / d.0).sum();
        (chance > 0.0).then(|| Difficulty((1.0 / chance).max(1.0)))
    }

    /// The difficulty if a candidate matches with this chance, above 0.
    pub(super) fn from_chance(chance: f64) -> Difficulty {
        Difficulty((1.0 / chance).max(1.0))
    }

    /// Expected number of candidates.
    pub fn candidates(self) -> f64 {
        self.0
    }

    /// The longest time that is told apart: a thousand years.
    pub const LONGEST_TIME: Duration = Duration::from_secs(1000 * 365 * 86_400);

    /// Mean time to a match at `rate`, at most [`Difficulty::LONGEST_TIME`]. `None` when nothing
    /// searches.
    pub fn expected_time(self, rate: Rate) -> Option<Duration> {
        (rate.0 > 0.0).then(|| {
            Duration::try_from_secs_f64(self.0 / rate.0)
                .map_or(Difficulty::LONGEST_TIME, |time| time.min(Difficulty::LONGEST_TIME))
        })
    }

    /// Probability, 0 to 1, of at least one match among `candidates` tested.
    pub fn chance_after(self, candidates: f64) -> f64 {
        -(-candidates / self.0).exp_m1()
    }
}

/// Ratio of the 95th percentile of the waiting time to its mean: `ln 20`, because the search is
/// memoryless.
pub const NINETY_FIVE_PERCENT: f64 = 2.995_732_273_553_991;

impl fmt::Display for Difficulty {
    /// Writes three digits and a prefix: `33.6 M`, `1.10 T`, `3.5e20`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_prefix(self.0, f)
    }
}

/// Candidates per second of wall time.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default, Serialize, Deserialize)]
pub struct Rate(pub f64);

impl fmt::Display for Rate {
    /// Writes three digits, a prefix and `/s`: `81.2 M/s`, `132 G/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_prefix(self.0, f)?;
        f.write_str("/s")
    }
}

/// Writes three significant digits and a decimal prefix.
fn with_prefix(value: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const PREFIXES: [&str; 7] = ["", " k", " M", " G", " T", " P", " E"];
    let mut scaled = value;
    for prefix in PREFIXES {
        // 999.5 would be shown as 1000, so it gets the next prefix.
        if scaled < 999.5 {
            let digits = if prefix.is_empty() || scaled >= 99.95 {
                0
            } else if scaled >= 9.995 {
                1
            } else {
                2
            };
            return write!(f, "{scaled:.digits$}{prefix}");
        }
        scaled /= 1e3;
    }
    write!(f, "{value:.1e}")
}

/// The rate of a search for all of these patterns: their common difficulty divided by the mean time
/// of the search.
///
/// Patterns that the first 32 bits restrict too little ([`Pattern::begins_selectively`]) are
/// searched by comparing whole keys, at another rate. If there are patterns of both kinds, each
/// kind has half of the time. A difficulty that takes more than `effort` to compute is estimated.
/// `None` if a difficulty cannot be computed.
pub fn rate_in_turns(patterns: &[Pattern], top_words: Rate, whole_keys: Rate, effort: &mut Effort) -> Option<Rate> {
    let (of_top_words, of_whole_keys): (Vec<Pattern>, Vec<Pattern>) =
        patterns.iter().cloned().partition(Pattern::begins_selectively);
    if of_whole_keys.is_empty() {
        return Some(top_words);
    }
    if of_top_words.is_empty() {
        return Some(whole_keys);
    }
    let mut difficulty =
        |patterns: Vec<Pattern>| Some(PatternSet::new(patterns).difficulty_within(effort)?.candidates());
    let all = difficulty(patterns.to_vec())?;
    let found = 0.5 * top_words.0 / difficulty(of_top_words)? + 0.5 * whole_keys.0 / difficulty(of_whole_keys)?;
    Some(Rate(found * all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_with_three_digits() {
        let shown = |value| Difficulty(value).to_string();
        assert_eq!(
            [1.0, 32.0, 999.4, 1024.0, 33_554_432.0, 999_499.0, 999_600.0, 1e21].map(shown),
            ["1", "32", "999", "1.02 k", "33.6 M", "999 k", "1.00 M", "1.0e21"]
        );
        assert_eq!(Rate(132.4e9).to_string(), "132 G/s");
    }

    #[test]
    fn several_requests_are_easier_than_the_easiest() {
        let five = Difficulty::from_bits(25);
        assert_eq!(Difficulty::any_of([five, five]), Some(Difficulty::from_bits(24)));
        assert_eq!(Difficulty::any_of([]), None);
        assert_eq!(Difficulty::any_of([Difficulty(1.0), Difficulty(1.0)]), Some(Difficulty(1.0)));
    }

    #[test]
    fn the_waiting_time_is_exponential() {
        let difficulty = Difficulty::from_bits(20);
        assert!((difficulty.chance_after(difficulty.0 * NINETY_FIVE_PERCENT) - 0.95).abs() < 1e-12);
        assert_eq!(difficulty.expected_time(Rate(0.0)), None);
        assert_eq!(difficulty.expected_time(Rate(1_048_576.0)), Some(Duration::from_secs(1)));
        assert!(Difficulty::from_bits(256).expected_time(Rate(1.0)).is_some());
    }

    #[test]
    fn patterns_of_both_kinds_have_half_of_the_time_each() {
        let rate = |texts: &[&str]| {
            let patterns: Vec<Pattern> = texts.iter().map(|text| text.parse().unwrap()).collect();
            rate_in_turns(&patterns, Rate(80e6), Rate(20e6), &mut Effort::steps(1 << 14)).unwrap().0
        };
        assert_eq!((rate(&["m0ctane", "cat"]), rate(&["*cafe", "=7*"])), (80e6, 20e6));
        // Only one key in 2^65 matches both patterns, so the sum of their chances is precise
        // enough.
        let seconds = 1.0 / (0.5 * 80e6 / 35f64.exp2() + 0.5 * 20e6 / 30f64.exp2());
        let all = 1.0 / (35f64.exp2().recip() + 30f64.exp2().recip());
        assert!((rate(&["m0ctane", "*al7cet"]) * seconds / all - 1.0).abs() < 1e-9);
    }
}
