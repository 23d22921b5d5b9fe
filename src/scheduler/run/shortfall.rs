//! A test for missing hits. It adds up a little evidence from every launch (CUSUM; Page 1954).
//!
//! After every launch it compares two hypotheses: the device reports all its hits, or only a share
//! of them. The score is the logarithm of the likelihood ratio of the second to the first, and
//! never below zero. At [`ENOUGH`] the test says that hits are missing.
//!
//! An honest device reaches that score once in `e^30 = 10^13` launches or more rarely, on average
//! (Lorden 1971). For an assumed share of nine tenths it takes `200 · e^30 = 2·10^15` expected
//! hits, because one launch is little evidence (simulated by the tests below).

/// The score at which hits are missing.
const ENOUGH: f64 = 30.0;

/// The hits of a device since its score was last zero.
#[derive(Debug)]
pub(super) struct Shortfall {
    /// The share of its hits that a bad device is assumed to report.
    part: f64,
    score: f64,
    expected: f64,
    found: u64,
}

impl Shortfall {
    /// A test for devices that report this share of their hits, above 0 and below 1.
    pub fn to(part: f64) -> Shortfall {
        Shortfall { part, score: 0.0, expected: 0.0, found: 0 }
    }

    /// Counts the hits that were expected of a launch and those that were found. If hits are
    /// missing, it returns the numbers of found and expected hits since the score was last zero.
    pub fn note(&mut self, expected: f64, found: u64) -> Option<(u64, f64)> {
        self.expected += expected;
        self.found += found;
        // Found hits are Poisson with the mean `expected`, or `expected * part`.
        self.score += expected * (1.0 - self.part) + found as f64 * self.part.ln();
        if self.score <= 0.0 {
            *self = Shortfall::to(self.part);
        }
        (self.score >= ENOUGH).then_some((self.found, self.expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::tests::poisson;
    use rand::rngs::StdRng;

    /// Mean number of expected hits until the test notices a device that reports the share
    /// `reported` of its hits, while the test assumes the share `guessed`.
    fn mean_until_missing(guessed: f64, reported: f64, random: &mut StdRng) -> f64 {
        const RUNS: u32 = 200;
        let mut launches = 0u64;
        for _ in 0..RUNS {
            let mut test = Shortfall::to(guessed);
            launches += 1;
            while test.note(2.0, poisson(2.0 * reported, random)).is_none() {
                launches += 1;
            }
        }
        2.0 * launches as f64 / f64::from(RUNS)
    }

    #[test]
    fn missing_hits_are_noticed_after_the_stated_number() {
        let mut random = crate::scheduler::tests::seeded();
        for (guessed, reported, stated) in [(0.5, 0.5, 196.0), (0.9, 0.0, 300.0), (0.9, 0.5, 640.0), (0.9, 0.9, 5600.0)]
        {
            let mean = mean_until_missing(guessed, reported, &mut random);
            println!("{guessed}: a device that reports {reported} is noticed after {mean:.0} expected hits");
            assert!((mean / stated - 1.0).abs() < 0.15, "{guessed}, {reported}: {mean}");
        }
    }

    /// The score of an honest device reaches a height `h` once in `e^h` launches or more rarely, so
    /// it reaches [`ENOUGH`] once in `e^30` or more rarely. The test checks this at lower scores,
    /// which are reached quickly: each further one takes `e` times as long.
    #[test]
    fn an_honest_device_has_a_false_alarm_once_in_the_stated_time() {
        let mut random = crate::scheduler::tests::seeded();
        for (guessed, expected) in [(0.5, 2.0), (0.9, 2.0), (0.9, 12.0)] {
            let mut waits = Vec::new();
            for height in [3.0, 4.0, 5.0, 6.0] {
                let (mut test, mut launches, mut alarms) = (Shortfall::to(guessed), 0u64, 0u32);
                while alarms < 100 {
                    launches += 1;
                    test.note(expected, poisson(expected, &mut random));
                    if test.score >= height {
                        (test, alarms) = (Shortfall::to(guessed), alarms + 1);
                    }
                }
                let wait = launches as f64 / f64::from(alarms);
                println!("{guessed}, {expected} hits a launch: {height} once in {wait:.0} launches");
                assert!(wait > f64::exp(height), "{height}: {wait}");
                waits.push(wait);
            }
            // Three heights more: e^3, with 15 % of random error.
            assert!(waits[3] / waits[0] > 0.5 * f64::exp(3.0), "{waits:?}");
        }
    }

    #[test]
    fn years_of_honesty_buy_nothing() {
        for (guessed, launches) in [(0.5, 60), (0.9, 300)] {
            let mut test = Shortfall::to(guessed);
            assert!((0..100_000).all(|_| test.note(1.0, 1).is_none()));
            let noticed = (1..).find_map(|number| test.note(1.0, 0).map(|missing| (number, missing)));
            assert!(noticed.is_some_and(|(number, (found, expected))| {
                number == launches && found == 0 && (expected - f64::from(launches)).abs() < 1e-9
            }));
        }
    }
}
