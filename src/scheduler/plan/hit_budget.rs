//! How far a device searches a start point, and how often plentiful patterns may be in its passes.
//!
//! Each hit costs the host a recomputation. A pattern so easy that a start point has dozens of hits would slow the others down
//! by them, though one is all it needs: after a launch with more hits than are worth verifying come launches for the rare
//! patterns alone, until the mean is right. A launch has finitely many hits, so that the others' turn comes again.

use crate::search::LaunchReport;

/// By how many powers of two a stretch has to differ before it counts as another: launches vary, passes are to last.
const ANOTHER: f64 = 0.75;

#[derive(Debug, Default)]
pub(in crate::scheduler) struct Pace {
    /// Candidates a start point is searched over, a power of two, as its exponent.
    stretch_bits: Option<f64>,
    /// The most it ever was.
    longest_bits: f64,
    /// Hits a start point that were found beyond what is worth it, not yet made up for.
    owed: f64,
    /// What was worth it in the last launch.
    worth: f64,
}

impl Pace {
    /// Candidates a start point is searched over.
    pub fn stretch(&self) -> Option<f64> {
        self.stretch_bits.map(f64::exp2)
    }

    /// The part this is of the most it ever was: launches last about as long whatever else the processor has to do.
    pub fn part(&self) -> f64 {
        self.stretch_bits.map_or(1.0, |bits| (bits - self.longest_bits).exp2())
    }

    /// Takes account of a launch over so many start points, of whose hits this part was of plentiful patterns, while so many
    /// hits a start point are worth it. Tells whether the stretch is another now.
    pub fn note(&mut self, report: &LaunchReport, starts: usize, plentiful_part: f64, worth: f64) -> bool {
        let candidates = report.candidates.max(1) as f64 / starts.max(1) as f64;
        let hits = report.hits.len() as f64 / starts.max(1) as f64;
        let bits = candidates.log2();
        let off = self.stretch_bits.map_or(f64::INFINITY, |known| bits - known);
        let is_another = off > ANOTHER || (off < -ANOTHER && !report.is_cut_short);
        if is_another {
            self.stretch_bits = Some(bits.round());
            self.longest_bits = self.longest_bits.max(bits.round());
        }
        let share = self.stretch().map_or(1.0, |stretch| (candidates / stretch).min(1.0));
        self.worth = worth;
        self.owed = (self.owed + hits * plentiful_part - worth * share).max(0.0);
        is_another
    }

    /// Whether the next launch is for the rare patterns alone: once a whole launch is owed, since the hits of one vary.
    pub fn rests(&self) -> bool {
        self.owed > self.worth
    }
}
