//! What the hits of a worker's device prove: how much of its claimed work counts, and whether it is
//! believed at all.
//!
//! The first pattern of a launch is its canary, whose frequency is known. Its hits are proof of
//! work: at fresh start points they cannot be found without testing about as many candidates as
//! anybody would need. A device may keep other hits back. That costs time, never a key.

/// Number of hits that recompute to another key than claimed at which a device is not believed.
const WRONG_HITS_ALLOWED: u64 = 3;

/// Canary hits are compared with their expected number each time the expected number reaches this.
/// An honest device finds fewer than half of 200 with a chance of 1.8e-15 (Poisson).
const JUDGE_AFTER: f64 = 200.0;

/// Number of canary hits that a new device is credited with, both as expected and as found.
const BELIEVED: f64 = 20.0;

/// Expected canary hits over which the proven share of a device's claims is averaged. The random
/// error is then 2 %.
const PROVEN_OVER: f64 = 2000.0;

/// The hits of one device, in all its sessions.
#[derive(Debug)]
pub struct Proof {
    /// Canary hits expected and found since the last verdict.
    expected: f64,
    found: u64,
    /// Canary hits expected and found, scaled down so that at most [`PROVEN_OVER`] are expected.
    recent: (f64, f64),
    hits_wrong: u64,
}

impl Default for Proof {
    fn default() -> Proof {
        Proof { expected: 0.0, found: 0, recent: (BELIEVED, BELIEVED), hits_wrong: 0 }
    }
}

impl Proof {
    /// Counts a wrong hit.
    ///
    /// Errors: the device has too many to be believed, with the reason.
    pub fn note_wrong_hit(&mut self) -> Result<(), String> {
        self.hits_wrong += 1;
        match self.hits_wrong {
            WRONG_HITS_ALLOWED.. => Err(format!("{} of its hits were wrong", self.hits_wrong)),
            _ => Ok(()),
        }
    }

    /// Counts the canary hits of an answer: those that its claimed candidates lead us to expect,
    /// and those that were found. Returns the share of the claimed candidates that counts, 0 to 1.
    ///
    /// Errors: the device does not really search, with the reason.
    pub fn note_canary_hits(&mut self, expected: f64, found: u64) -> Result<f64, String> {
        self.expected += expected;
        self.found += found;
        let recent = (self.recent.0 + expected, self.recent.1 + found as f64);
        let kept = (PROVEN_OVER / recent.0).min(1.0);
        self.recent = (recent.0 * kept, recent.1 * kept);
        if self.expected >= JUDGE_AFTER {
            let (found, expected) = (self.found, self.expected);
            (self.expected, self.found) = (0.0, 0);
            if (found as f64) < expected / 2.0 {
                return Err(format!("it found {found} of {expected:.0} test patterns, so it does not really search"));
            }
        }
        Ok((self.recent.1 / self.recent.0).min(1.0))
    }

    /// Hits that did not verify.
    pub fn hits_wrong(&self) -> u64 {
        self.hits_wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_count_as_far_as_canary_hits_prove_them() {
        let (mut honest, mut boaster) = (Proof::default(), Proof::default());
        let share = |proof: &mut Proof, times: u32, found| {
            (0..times).map(|_| proof.note_canary_hits(10.0, found).unwrap()).last().unwrap()
        };
        assert_eq!(share(&mut honest, 1000, 10), 1.0);
        assert_eq!(share(&mut honest, 1000, 12), 1.0, "luck is not work");
        let proven = share(&mut boaster, 1000, 6);
        assert!((proven - 0.6).abs() < 0.01, "{proven}");
        // A worker that becomes honest is believed again after two thousand canaries.
        let proven = share(&mut boaster, 2000, 10);
        assert!(proven > 0.99, "{proven}");
    }

    #[test]
    fn a_device_that_finds_less_than_half_or_boasts_once_is_not_believed() {
        let mut idle = Proof::default();
        let judged: Vec<bool> = (0..50).map(|_| idle.note_canary_hits(4.0, 1).is_err()).collect();
        assert_eq!(judged.iter().position(|out| *out), Some(49), "once 200 are expected");
        assert!(Proof::default().note_canary_hits(1e12, 0).is_err());
        let mut half = Proof::default();
        assert!((0..50).all(|_| half.note_canary_hits(4.0, 2).is_ok()));
    }

    #[test]
    fn three_wrong_hits_are_too_many() {
        let mut proof = Proof::default();
        assert!(proof.note_wrong_hit().is_ok() && proof.note_wrong_hit().is_ok());
        assert_eq!(proof.note_wrong_hit(), Err("3 of its hits were wrong".to_owned()));
        assert_eq!(proof.hits_wrong(), 3);
    }
}
