//! Canaries: patterns of known frequency that nobody asked for.

use crate::pattern::{ALPHABET, Pattern, Rate};

/// Length of a canary, in characters, while the rate is unknown. One candidate in 2^25 matches,
/// which suits every device for a moment.
const FIRST_LENGTH: u32 = 5;

/// Fewest hits a second. A step of one character multiplies them by 32, so there are 5 to 160:
/// enough to prove that a device works, few enough for its host to verify.
const FEWEST_HITS: f64 = 5.0;

/// A random pattern that a device of this rate finds 5 to 160 times a second.
pub fn choose(rate: Option<Rate>) -> Pattern {
    let length = rate.map_or(FIRST_LENGTH, |Rate(rate)| {
        let bits = (rate / FEWEST_HITS).max(1.0).log2();
        ((bits / 5.0) as u32).clamp(1, 12)
    });
    let mut random = [0u8; 12];
    // A canary is no secret: without randomness from the system a fixed pattern serves as well.
    let _ = getrandom::fill(&mut random);
    let text: String =
        random.iter().take(length as usize).map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect();
    Pattern::parse(&text).expect("up to 12 characters of the alphabet are a pattern")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rate_gets_a_canary_that_is_found_often_enough() {
        for rate in [1.0, 1e3, 40e6, 81e6, 1e9, 7e9, 130e9, 1e12] {
            let frequency = rate / choose(Some(Rate(rate))).difficulty().candidates();
            assert!(frequency <= 161.0, "{rate}: {frequency}");
            assert!(frequency >= FEWEST_HITS || rate < 161.0, "{rate}: {frequency}");
        }
    }
}
