//! The hit budget: how often plentiful patterns may be in a device's passes.
//!
//! The host recomputes each hit. A pattern so easy that a start point has dozens of hits would slow
//! the others down, though one hit is all it needs. After a launch with more hits than are worth
//! verifying come launches with the rare patterns alone, until the mean is right.

use crate::search::LaunchReport;

/// Powers of two by which a stretch must differ to count as another. Launches vary, and passes are
/// to last.
const TOLERANCE: f64 = 0.75;

/// The stretch of a device, and its account of hits.
#[derive(Debug, Default)]
pub struct HitBudget {
    /// Binary logarithm of the candidates a start point is searched over, rounded.
    stretch_bits: Option<f64>,
    /// The largest `stretch_bits` so far.
    longest_bits: f64,
    /// Hits a start point beyond the budget, not yet made up for.
    owed: f64,
    /// The budget of the last launch, in hits a start point.
    budget: f64,
}

impl HitBudget {
    /// Candidates a start point is searched over; `None` before the first launch.
    pub fn stretch(&self) -> Option<f64> {
        self.stretch_bits.map(f64::exp2)
    }

    /// The stretch as a part of the longest so far, 0 to 1. Launches last about as long however
    /// busy the processor is, so this is the part of the processor the search has.
    pub fn part(&self) -> f64 {
        self.stretch_bits.map_or(1.0, |bits| (bits - self.longest_bits).exp2())
    }

    /// Records a launch over `starts` start points. `plentiful_part` is the part of its hits that
    /// are of plentiful patterns, `budget` the hits a start point worth verifying. Returns whether
    /// the stretch has changed.
    pub fn record(&mut self, report: &LaunchReport, starts: usize, plentiful_part: f64, budget: f64) -> bool {
        let candidates = report.candidates.max(1) as f64 / starts.max(1) as f64;
        let hits = report.hits.len() as f64 / starts.max(1) as f64;
        let bits = candidates.log2();
        let off = self.stretch_bits.map_or(f64::INFINITY, |known| bits - known);
        let has_changed = off > TOLERANCE || (off < -TOLERANCE && !report.is_cut_short);
        if has_changed {
            self.stretch_bits = Some(bits.round());
            self.longest_bits = self.longest_bits.max(bits.round());
        }
        let share = self.stretch().map_or(1.0, |stretch| (candidates / stretch).min(1.0));
        self.budget = budget;
        self.owed = (self.owed + hits * plentiful_part - budget * share).max(0.0);
        has_changed
    }

    /// Whether the next launch does without plentiful patterns. Hits vary, so a whole launch must
    /// be owed first.
    pub fn is_overdrawn(&self) -> bool {
        self.owed > self.budget
    }
}
