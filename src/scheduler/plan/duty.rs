//! Alternating work and rest of a device that may search only a share of its time.

use std::time::Duration;

/// Approximate length of a turn, work and rest together.
const TURN: Duration = Duration::from_secs(1);

/// The alternation of work and rest.
#[derive(Debug)]
pub(in crate::scheduler) struct Duty {
    share: f64,
    worked: Duration,
}

impl Duty {
    /// A device that searches this share of its time, above 0, up to 1.
    pub fn new(share: f64) -> Duty {
        Duty { share, worked: Duration::ZERO }
    }

    /// Adds time that the device has worked.
    pub fn work(&mut self, time: Duration) {
        if self.share < 1.0 {
            self.worked += time;
        }
    }

    /// Whether the device has worked its share of a turn.
    pub fn is_over(&self) -> bool {
        self.share < 1.0 && self.worked >= TURN.mul_f64(self.share)
    }

    /// The rest that its work requires. Begins a new turn.
    pub fn rest(&mut self) -> Duration {
        std::mem::take(&mut self.worked).mul_f64((1.0 - self.share) / self.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_and_rest_have_their_shares_whatever_a_launch_takes() {
        for share in [0.01, 0.25, 0.5, 0.99] {
            for launch in [1, 50, 300, 2500].map(Duration::from_millis) {
                let (mut duty, mut worked, mut rested) = (Duty::new(share), Duration::ZERO, Duration::ZERO);
                for _ in 0..10_000 {
                    duty.work(launch);
                    worked += launch;
                    if duty.is_over() {
                        rested += duty.rest();
                    }
                }
                let got = worked.as_secs_f64() / (worked + rested).as_secs_f64();
                assert!((got - share).abs() < 0.02 * share + 0.002, "{share} wanted, {got} worked, by {launch:?}");
            }
        }
    }

    #[test]
    fn a_whole_device_never_rests() {
        let mut duty = Duty::new(1.0);
        duty.work(Duration::from_secs(1 << 40));
        assert!(!duty.is_over() && duty.rest().is_zero());
    }
}
