//! The properties of a device that decide which patterns its passes hold.

use super::lane::Lane;

/// Hits a start point below which a pattern is rare. A pattern of 2^36 is rare on devices that
/// search up to 1.4 G candidates a start point; an H200 searches 0.5 G.
const RARE: f64 = 1.0 / 50.0;

/// Hits a start point worth verifying beside a rare pattern. Verifying one takes 50 µs and a start
/// point takes a CPU core 50 ms, so 8 hits cost 1 %.
const HITS_BESIDE_RARE: f64 = 8.0;

/// Hits of all start points in flight that one thread verifies in half of the 50 ms in which they
/// are found.
const HITS_IN_FLIGHT: f64 = 512.0;

/// Expected hits a start point for devices with an early stop. They need four hits, which then take
/// a twenty-fifth of the time.
const EARLY_STOP_HITS: f64 = 100.0;

/// Hits a start point worth verifying. `in_flight` is the number of start points in flight, `part`
/// the searched part of the longest stretch, 0 to 1.
pub fn hits_worth_verifying(in_flight: usize, beside_rare: bool, part: f64) -> f64 {
    let most = HITS_IN_FLIGHT / in_flight.max(1) as f64;
    if beside_rare { most.min(HITS_BESIDE_RARE * part) } else { most }
}

/// The properties of a device that decide which patterns its passes hold.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DeviceProfile {
    /// The patterns it searches.
    pub lane: Lane,
    /// Candidates a start point is searched over. `None` before the first launch is collected: then
    /// every pattern counts as rare.
    pub stretch: Option<f64>,
    /// `stretch` as a part of the longest one so far, 0 to 1. It shrinks on a busy processor.
    pub part: f64,
    /// [`crate::search::Searcher::early_stop`]
    pub early_stop: bool,
}

impl DeviceProfile {
    /// Expected hits a start point of a pattern of `bits` bits.
    pub fn hits(self, bits: u32) -> f64 {
        self.stretch.map_or(0.0, |stretch| stretch * (-f64::from(bits)).exp2())
    }

    /// How many hits of plentiful patterns a start point should have.
    pub fn goal(self, in_flight: usize, beside_rare: bool) -> Goal {
        if self.early_stop {
            Goal { least: EARLY_STOP_HITS, most: f64::INFINITY }
        } else {
            Goal { least: 0.0, most: hits_worth_verifying(in_flight, beside_rare, self.part) }
        }
    }

    /// The fewest bits of a rare pattern where there are few of them.
    pub fn rare_from(self) -> u32 {
        self.stretch.map_or(0, |stretch| (stretch / RARE).log2().max(0.0) as u32 + 1)
    }
}

/// How many hits of plentiful patterns a start point should have.
#[derive(Clone, Copy)]
pub struct Goal {
    /// Below this more jobs are added.
    pub least: f64,
    /// From here on no more jobs are added.
    pub most: f64,
}
