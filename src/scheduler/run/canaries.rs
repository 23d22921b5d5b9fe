//! The canary hits of a device: whether it searches at all, and whether it drops some of its hits.
//! The figures are in decision 0004.

/// Canary hits are compared with their expected number each time the expected number reaches this.
/// That happens up to fifty million times a year. An honest device finds fewer than half of 200
/// with a chance of 1.8e-15 (Poisson), but fewer than half of 100 with 1.2e-8, which would take it
/// out wrongly once in a year or two.
const JUDGE_AFTER: f64 = 200.0;

/// The share of hits that the slow test assumes a bad device to report. A device that drops a tenth
/// is noticed as soon as possible, and one that drops more sooner still.
const REPORTED_BY_A_BAD_DEVICE: f64 = 0.9;

/// The canary hits of one device.
#[derive(Debug)]
pub(super) struct Canaries {
    /// Canary hits expected and found since the last quick verdict.
    expected: f64,
    found: u64,
    /// The slow test.
    dropped: Shortfall,
}

impl Default for Canaries {
    fn default() -> Canaries {
        Canaries { expected: 0.0, found: 0, dropped: Shortfall::to(REPORTED_BY_A_BAD_DEVICE) }
    }
}

impl Canaries {
    /// Counts the canary hits of a launch. If the device cannot be believed, returns the reason.
    pub fn note(&mut self, expected: f64, found: u64) -> Option<String> {
        self.expected += expected;
        self.found += found;
        let dropped = self.dropped.note(expected, found);
        if self.expected >= JUDGE_AFTER {
            let (found, expected) = (self.found, self.expected);
            (self.expected, self.found) = (0.0, 0);
            if (found as f64) < expected / 2.0 {
                return Some(format!("it found {found} of {expected:.0} test patterns, so it does not really search"));
            }
        }
        dropped.map(|(found, expected)| {
            format!("it found {found} of {expected:.0} test patterns, so it drops some of its hits")
        })
    }
}

/// The score at which hits are missing.
const ENOUGH: f64 = 30.0;

/// A test for missing hits. It adds up a little evidence from every launch (CUSUM; Page 1954).
///
/// After every launch it compares two hypotheses: the device reports all its hits, or only a share
/// of them. The score is the logarithm of the likelihood ratio of the second to the first, and
/// never below zero. At [`ENOUGH`] the test says that hits are missing.
///
/// An honest device reaches that score once in `e^30 = 10^13` launches or more rarely, on average
/// (Lorden 1971). For an assumed share of nine tenths it takes `200 · e^30 = 2·10^15` expected
/// hits, because one launch is little evidence (simulated by the tests below).
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

    #[test]
    fn an_honest_device_is_not_taken_out_by_chance() {
        // P(X < mean/2) for a Poisson variable X with this mean: the sum of e^-mean mean^k / k!,
        // each term computed from the one before.
        let chance_below_half = |mean: f64| {
            let (mut term, mut sum) = ((-mean).exp(), 0.0);
            for k in 0..(mean / 2.0).ceil() as u32 {
                sum += term;
                term *= mean / f64::from(k + 1);
            }
            sum
        };
        // A value that was also computed independently.
        assert!((chance_below_half(100.0) / 1.178e-8 - 1.0).abs() < 0.001, "{}", chance_below_half(100.0));
        // A canary has at most 320 hits per second, so a verdict takes at least 0.6 s.
        let verdicts_in_ten_years = 10.0 * 365.0 * 86_400.0 / 0.6;
        let chance = chance_below_half(JUDGE_AFTER);
        assert!(chance < 1e-9 && chance * verdicts_in_ten_years < 1e-3, "{chance}");
    }

    /// Launches of a device of this machine, with 12 expected hits each as on a fast GPU. It finds
    /// the share `part` of them. Returns the number of expected hits until the device is taken out,
    /// and the reason; `None` if it never is.
    fn until_out(part: f64, launches: u32, random: &mut StdRng) -> Option<(f64, String)> {
        let mut canaries = Canaries::default();
        let mut one = |number| Some((12.0 * f64::from(number), canaries.note(12.0, poisson(12.0 * part, random))?));
        (1..=launches).find_map(&mut one)
    }

    #[test]
    fn a_device_that_finds_half_is_out_at_once_and_one_that_finds_nine_tenths_soon() {
        let mut random = crate::scheduler::tests::seeded();
        for (part, soonest, mean, latest, said) in
            [(0.5, 200.0, 370.0, 1_000.0, "does not really search"), (0.9, 1_000.0, 5_600.0, 25_000.0, "drops some")]
        {
            let outs: Vec<(f64, String)> =
                (0..200).map(|_| until_out(part, 10_000, &mut random).expect("it is noticed")).collect();
            let found = outs.iter().map(|(expected, _)| expected).sum::<f64>() / 200.0;
            println!("finds {part}: out after {found:.0} expected hits");
            assert!((found / mean - 1.0).abs() < 0.2, "{part}: {found}");
            assert!(outs.iter().all(|(expected, _)| (soonest..latest).contains(expected)), "{part}: {outs:?}");
            assert!(outs.iter().filter(|(_, reason)| reason.contains(said)).count() > 150, "{part}: {outs:?}");
        }
    }

    #[test]
    fn an_honest_device_stays_in_use_for_millions_of_hits() {
        let mut random = crate::scheduler::tests::seeded();
        assert_eq!(until_out(1.0, 250_000, &mut random), None);
    }

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
