//! The properties of a device that decide which patterns its passes hold.

use super::compared::Compared;
use super::lane::Lane;
use crate::pattern::Pattern;

/// Expected hits per start point below which a pattern is rare. Patterns of 36 bits are rare on
/// devices that test up to 1.4 G candidates per start point; an H200 tests 0.5 G.
const RARE: f64 = 1.0 / 50.0;

/// Hits per start point worth verifying while rare patterns are searched. Verifying a hit takes 50
/// µs, and a CPU core searches a start point in 50 ms, so 8 hits cost 1 %.
const HITS_BESIDE_RARE: f64 = 8.0;

/// The most hits worth verifying, summed over all start points in flight. Devices search these
/// start points in 50 ms, and one thread verifies this many hits in half that time.
const HITS_IN_FLIGHT: f64 = 512.0;

/// Hits per start point that a pass should offer a device with an early stop. The early stop comes
/// after four hits, so after a twenty-fifth of the time.
const EARLY_STOP_HITS: f64 = 100.0;

/// Hits per start point worth verifying. `in_flight` is the number of start points in flight,
/// `part` is [`DeviceProfile::part`].
pub fn hits_worth_verifying(in_flight: usize, beside_rare: bool, part: f64) -> f64 {
    let most = HITS_IN_FLIGHT / in_flight.max(1) as f64;
    if beside_rare { most.min(HITS_BESIDE_RARE * part) } else { most }
}

/// The properties of a device that decide which patterns its passes hold.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DeviceProfile {
    /// The patterns that the device searches.
    pub lane: Lane,
    /// The part of a key that the passes compare.
    pub compared: Compared,
    /// Candidates tested per start point. `None` before the first launch is collected; until then
    /// every pattern counts as rare.
    pub stretch: Option<f64>,
    /// `stretch` divided by the longest one so far, 0 to 1. It shrinks on a busy processor.
    pub part: f64,
    /// Whether the device has an early stop ([`crate::search::Searcher::early_stop`]).
    pub early_stop: bool,
}

impl DeviceProfile {
    /// Whether the device's passes may hold the pattern.
    pub fn takes(self, pattern: &Pattern) -> bool {
        self.lane.takes(pattern.bits()) && self.compared.takes(pattern)
    }

    /// Expected hits per start point of one pattern of `bits` bits.
    pub fn hits(self, bits: u32) -> f64 {
        self.stretch.map_or(0.0, |stretch| stretch * (-f64::from(bits)).exp2())
    }

    /// The hits of plentiful patterns that a start point should have.
    pub fn goal(self, in_flight: usize, beside_rare: bool) -> Goal {
        if self.early_stop {
            Goal { least: EARLY_STOP_HITS, most: f64::INFINITY }
        } else {
            Goal { least: 0.0, most: hits_worth_verifying(in_flight, beside_rare, self.part) }
        }
    }

    /// The fewest bits of a rare pattern, if the rare patterns together have few hits.
    pub fn rare_from(self) -> u32 {
        self.stretch.map_or(0, |stretch| (stretch / RARE).log2().max(0.0) as u32 + 1)
    }
}

/// The hits of plentiful patterns that a start point should have.
#[derive(Clone, Copy)]
pub struct Goal {
    /// The least number: with fewer hits, jobs are added to the pass.
    pub least: f64,
    /// The greatest number: with this many hits, no more jobs are added.
    pub most: f64,
}
