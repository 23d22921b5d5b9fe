//! The hit budget: how often plentiful patterns may be in a device's passes.
//!
//! The host recomputes every hit. A very easy pattern can have dozens of hits per start point
//! although one is enough, and verifying them slows down the other jobs. So after a launch with
//! more hits than the budget, the next launches have only rare patterns, until the mean number of
//! hits is within the budget.

use crate::search::LaunchReport;

/// A stretch counts as changed when it differs by this many powers of two. Launches vary, and each
/// change makes the device build new passes.
const TOLERANCE: f64 = 0.75;

/// The stretch of a device, and its account of hits.
#[derive(Debug, Default)]
pub struct HitBudget {
    /// Binary logarithm of the candidates per start point, rounded.
    stretch_bits: Option<f64>,
    /// The largest `stretch_bits` so far.
    longest_bits: f64,
    /// Hits per start point above the budget, not yet compensated by launches without plentiful
    /// patterns.
    owed: f64,
    /// The budget of the last launch, in hits per start point.
    budget: f64,
}

impl HitBudget {
    /// Candidates tested per start point; `None` before the first launch.
    pub fn stretch(&self) -> Option<f64> {
        self.stretch_bits.map(f64::exp2)
    }

    /// Sets the stretch that is expected before the first launch.
    pub fn begin(&mut self, stretch: f64) {
        let bits = stretch.max(1.0).log2().round();
        (self.stretch_bits, self.longest_bits) = (Some(bits), bits);
    }

    /// The stretch (candidates per start point) divided by the longest so far, 0 to 1. Launches
    /// take about the same time on a busy processor and on an idle one, so this is the part of the
    /// processor that the search has.
    pub fn part(&self) -> f64 {
        self.stretch_bits.map_or(1.0, |bits| (bits - self.longest_bits).exp2())
    }

    /// Records a launch over `starts` start points. `plentiful_part` is the part of its expected
    /// hits that belongs to plentiful patterns, `budget` the number of hits per start point worth
    /// verifying. Returns whether the stretch has changed.
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

    /// Whether the next launch must do without plentiful patterns. Numbers of hits vary, so the
    /// hits above the budget must first exceed a whole launch's budget.
    pub fn is_overdrawn(&self) -> bool {
        self.owed > self.budget
    }
}
