//! A test for workers that keep hits back. It counts the hits of decoys, which a worker cannot tell
//! from the patterns of jobs.
//!
//! After every launch it compares two hypotheses: the worker reports each hit, or half of them. The
//! score is the logarithm of the likelihood ratio of the second to the first, and never below zero
//! (CUSUM; Page 1954). At [`ENOUGH`] the worker is named.
//!
//! | worker | expected hits of decoys until it is named |
//! | --- | --- |
//! | keeps all back | 60 |
//! | keeps half back | 196 on average |
//! | keeps three of ten back | some thousands |
//! | is honest | never: once in e^30 = 10^13 launches on average (Lorden 1971) |
//!
//! With `n` decoys as rare as the pattern of a job, a worker is expected to find 60 decoys in the
//! time of `60 / n` keys of that job.

use std::f64::consts::LN_2;

/// The score at which a worker is named.
const ENOUGH: f64 = 30.0;

/// The hits of decoys of a device, since its score was zero.
#[derive(Debug, Default)]
pub(super) struct Withheld {
    score: f64,
    expected: f64,
    found: u64,
}

impl Withheld {
    /// Adds the decoys of a launch: expected hits and reported hits. Returns the reason if the
    /// worker keeps hits back.
    pub fn note(&mut self, expected: f64, found: u64) -> Option<String> {
        self.expected += expected;
        self.found += found;
        self.score += expected / 2.0 - found as f64 * LN_2;
        if self.score <= 0.0 {
            *self = Withheld::default();
        }
        let Withheld { expected, found, .. } = self;
        (self.score >= ENOUGH).then(|| {
            format!("it reported {found} of {expected:.0} hits of hidden test patterns, so it keeps hits back")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;
    use rand::rngs::StdRng;

    /// Simulates launches with 0.1 expected hits each, of which the share `reported` is reported.
    /// Returns the expected hits until the worker is named, or `most`.
    fn until_named(reported: f64, most: f64, random: &mut StdRng) -> f64 {
        let (mut test, mut expected) = (Withheld::default(), 0.0);
        while expected < most {
            expected += 0.1;
            // Approximates a Poisson number of this small mean: two or more hits come once in 220
            // launches.
            let drawn: f64 = random.random();
            let (none, one) = ((-0.1f64).exp(), 0.1 * (-0.1f64).exp());
            let hits = if drawn < none { 0 } else { 1 + u64::from(drawn >= none + one) };
            let found = (0..hits).filter(|_| random.random_bool(reported)).count() as u64;
            if test.note(0.1, found).is_some() {
                break;
            }
        }
        expected
    }

    #[test]
    fn a_worker_that_keeps_hits_back_is_named_and_an_honest_one_is_not() {
        let mut random = crate::scheduler::tests::seeded();
        assert!((59.0..61.0).contains(&until_named(0.0, 1e4, &mut random)));
        let mean = (0..100).map(|_| until_named(0.5, 1e5, &mut random)).sum::<f64>() / 100.0;
        println!("half of the hits: named after {mean:.0}");
        assert!((150.0..250.0).contains(&mean), "{mean}");
        assert!(until_named(1.0, 1e5, &mut random) >= 1e5, "a month of a busy honest worker");
    }

    #[test]
    fn years_of_honesty_buy_nothing() {
        let mut test = Withheld::default();
        for _ in 0..100_000 {
            assert_eq!(test.note(1.0, 1), None);
        }
        let launches = (1..).find(|_| test.note(1.0, 0).is_some()).unwrap();
        assert_eq!(launches, 60);
        let said = test.note(0.0, 0).unwrap();
        assert!(said.contains("0 of 60"), "{said}");
    }
}
