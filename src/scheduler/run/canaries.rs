//! The canary hits of a device: whether it searches at all, and whether it drops some of its hits.
//! The figures are in decision 0004.

use super::shortfall::Shortfall;

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
}
