//! The rate of a search whose patterns take turns.

use super::{Effort, Pattern, PatternSet, Rate};

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
