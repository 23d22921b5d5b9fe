//! A pattern that nobody requested and whose frequency is known.

use crate::pattern::{ALPHABET, Pattern, Rate};

/// Length where the rate is not known yet: 2^25 candidates a hit suit every device for a moment.
const FIRST_LENGTH: u32 = 5;

/// Hits a second that prove a device at work without keeping its host busy: 5 to 160, by the step of a character.
const WANTED_HITS: f64 = 5.0;

/// A fresh random pattern that a device of this rate finds some 5 to 160 times a second.
pub fn choose(rate: Option<Rate>) -> Pattern {
    let length = rate.map_or(FIRST_LENGTH, |Rate(rate)| {
        let bits = (rate / WANTED_HITS).max(1.0).log2();
        ((bits / 5.0) as u32).clamp(1, 12)
    });
    let mut random = [0u8; 12];
    // The canary is no secret: should the operating system have no randomness, a fixed one serves as well.
    let _ = getrandom::fill(&mut random);
    let text: String =
        random.iter().take(length as usize).map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect();
    Pattern::parse(&text).expect("up to 12 characters of the alphabet are a pattern")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rate_gets_a_canary_that_sings_often_enough() {
        for rate in [1.0, 1e3, 40e6, 81e6, 1e9, 7e9, 130e9, 1e12] {
            let frequency = rate / choose(Some(Rate(rate))).difficulty().candidates();
            assert!(frequency <= 161.0, "{rate}: {frequency}");
            assert!(frequency >= WANTED_HITS || rate < 161.0, "{rate}: {frequency}");
        }
    }
}
