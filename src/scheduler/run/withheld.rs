//! A test for workers that keep hits back ([`super::shortfall`]). It counts the hits of decoys,
//! which a worker cannot tell from the patterns of jobs.
//!
//! | worker | expected hits of decoys until it is named |
//! | --- | --- |
//! | keeps all back | 60 |
//! | keeps half back | 196 on average |
//! | keeps three of ten back | some thousands |
//! | is honest | never: once in 10^13 launches on average |
//!
//! If `n` decoys are as rare as the pattern of a job, a worker should find 60 decoys in the time in
//! which it finds `60 / n` keys of that job.

use super::shortfall::Shortfall;

/// The test of one device.
#[derive(Debug)]
pub(super) struct Withheld(Shortfall);

impl Default for Withheld {
    fn default() -> Withheld {
        Withheld(Shortfall::to(0.5))
    }
}

impl Withheld {
    /// Adds the decoys of a launch: expected hits and reported hits. Returns the reason if the
    /// worker keeps hits back.
    pub fn note(&mut self, expected: f64, found: u64) -> Option<String> {
        self.0.note(expected, found).map(|(found, expected)| {
            format!("it reported {found} of {expected:.0} hits of hidden test patterns, so it keeps hits back")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::tests::poisson;
    use rand::Rng;
    use rand::rngs::StdRng;

    /// Simulates launches with 0.1 expected hits each, of which the share `reported` is reported.
    /// Returns the expected hits until the worker is named, or `most`.
    fn until_named(reported: f64, most: f64, random: &mut StdRng) -> f64 {
        let (mut test, mut expected) = (Withheld::default(), 0.0);
        while expected < most {
            expected += 0.1;
            let found = (0..poisson(0.1, random)).filter(|_| random.random_bool(reported)).count() as u64;
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
    fn the_reason_says_how_many_hits_were_reported() {
        let mut test = Withheld::default();
        let said = (0..60).find_map(|_| test.note(1.0, 0)).unwrap();
        assert!(said.contains("0 of 60"), "{said}");
    }
}
