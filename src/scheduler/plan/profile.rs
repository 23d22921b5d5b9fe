//! The properties of a device that decide which patterns its passes hold: its lane, the part of a
//! key that its launches compare, its rates, and its account of hits.

use crate::pattern::{Pattern, Rate};
use crate::search::LaunchReport;

/// A pattern is rare from this many bits above those of the stretch: it has at most one hit in 64
/// start points. Patterns of 36 bits are rare on devices that test up to 1 G candidates per start
/// point; an H200 tests 0.5 G.
const RARE_BITS: u32 = 6;

/// Hits per start point worth verifying while rare patterns are searched. Verifying a hit takes 50
/// µs, and a CPU core searches a start point in 50 ms, so 8 hits cost 1 %.
const HITS_BESIDE_RARE: f64 = 8.0;

/// The most hits worth verifying, summed over all start points in flight. Devices search these
/// start points in 50 ms, and one thread verifies this many hits in half that time.
const HITS_IN_FLIGHT: f64 = 512.0;

/// Hits per start point that a pass should offer a device with an early stop. The early stop comes
/// after four hits, so after a twenty-fifth of the time.
pub const EARLY_STOP_HITS: f64 = 100.0;

/// Hits per start point worth verifying. `in_flight` is the number of start points in flight.
pub fn hits_worth_verifying(in_flight: usize, beside_rare: bool) -> f64 {
    let most = HITS_IN_FLIGHT / in_flight.max(1) as f64;
    if beside_rare { most.min(HITS_BESIDE_RARE) } else { most }
}

/// The properties of a device that decide which patterns its passes hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DeviceProfile {
    /// The patterns that the device searches.
    pub lane: Lane,
    /// The part of a key that the passes compare.
    pub compared: KeyPart,
    /// Binary logarithm of the stretch: the candidates tested per start point. `None` before the
    /// first launch is collected; until then every pattern counts as rare.
    pub stretch_bits: Option<u32>,
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
        self.stretch_bits.map_or(0.0, |stretch| (f64::from(stretch) - f64::from(bits)).exp2())
    }

    /// The hits of plentiful patterns that a start point should have.
    pub fn goal(self, in_flight: usize, beside_rare: bool) -> Goal {
        if self.early_stop {
            Goal { least: EARLY_STOP_HITS, most: f64::INFINITY }
        } else {
            Goal { least: 0.0, most: hits_worth_verifying(in_flight, beside_rare) }
        }
    }

    /// The fewest bits of a rare pattern, if the rare patterns together have few hits.
    pub fn rare_from(self) -> u32 {
        self.stretch_bits.map_or(0, |stretch| stretch + RARE_BITS)
    }
}

/// The binary logarithm of a number of candidates, rounded.
pub fn stretch_bits(candidates: f64) -> u32 {
    candidates.max(1.0).log2().round() as u32
}

/// The hits of plentiful patterns that a start point should have.
#[derive(Clone, Copy)]
pub struct Goal {
    /// The least number: with fewer hits, jobs are added to the pass.
    pub least: f64,
    /// The greatest number: with this many hits, no more jobs are added.
    pub most: f64,
}

/// A stretch counts as changed when it differs by this many powers of two. Launches vary, and each
/// change makes the device build new passes.
const TOLERANCE: f64 = 0.75;

/// The stretch of a device, and its account of hits: how often plentiful patterns may be in its
/// passes.
///
/// The host recomputes every hit. A very easy pattern can have dozens of hits per start point
/// although one is enough, and verifying them slows down the other jobs. So after a launch with
/// more hits than the budget, the next launches have only rare patterns, until the mean number of
/// hits is within the budget.
#[derive(Debug, Default)]
pub struct HitBudget {
    /// Binary logarithm of the stretch, rounded; `None` before the first launch.
    pub stretch_bits: Option<u32>,
    /// Hits per start point above the budget, not yet compensated by launches without plentiful
    /// patterns.
    owed: f64,
    /// The budget of the last launch, in hits per start point.
    budget: f64,
}

impl HitBudget {
    /// Candidates tested per start point; `None` before the first launch.
    pub fn candidates_per_start(&self) -> Option<f64> {
        self.stretch_bits.map(|bits| f64::from(bits).exp2())
    }

    /// Records a launch over `starts` start points. `plentiful_part` is the part of its expected
    /// hits that belongs to plentiful patterns, `budget` the number of hits per start point worth
    /// verifying. Returns whether the stretch has changed.
    pub fn record(&mut self, report: &LaunchReport, starts: usize, plentiful_part: f64, budget: f64) -> bool {
        let candidates = report.candidates.max(1) as f64 / starts.max(1) as f64;
        let hits = report.hits.len() as f64 / starts.max(1) as f64;
        let bits = candidates.log2();
        let off = self.stretch_bits.map_or(f64::INFINITY, |known| bits - f64::from(known));
        let has_changed = off > TOLERANCE || (off < -TOLERANCE && !report.is_cut_short);
        if has_changed {
            self.stretch_bits = Some(stretch_bits(candidates));
        }
        let share = self.candidates_per_start().map_or(1.0, |stretch| (candidates / stretch).min(1.0));
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

/// Patterns of fewer bits are left to the CPU. A GPU would have more hits of them than the host can
/// verify.
const EASY_BITS: u32 = 20;
/// Patterns of fewer bits are also searched by the CPU thread beside GPUs. A GPU would have so many
/// hits of them that its passes hold only a few.
const SHARED_BITS: u32 = 25;

/// The range of patterns that a device searches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lane {
    /// All patterns: for the CPU on a machine without a working GPU.
    All,
    /// Patterns hard enough for a GPU.
    Hard,
    /// Patterns that are too easy for a GPU, or nearly so: for the CPU thread beside GPUs.
    Easy,
}

impl Lane {
    /// All lanes. The place of a lane here is its index in arrays.
    pub const EVERY: [Lane; 3] = [Lane::All, Lane::Hard, Lane::Easy];

    /// Whether the lane searches patterns of `bits` bits.
    pub fn takes(self, bits: u32) -> bool {
        match self {
            Lane::All => true,
            Lane::Hard => bits >= EASY_BITS,
            Lane::Easy => bits < SHARED_BITS,
        }
    }

    /// Whether the lane searches any of these patterns.
    pub fn takes_any(self, patterns: &[Pattern]) -> bool {
        patterns.iter().any(|pattern| self.takes(pattern.bits()))
    }
}

/// The cost of a candidate in a launch that compares whole keys: its time, divided by the time of a
/// candidate in a launch that filters by top words. An estimate until the device has measured both
/// rates; measured ratios are four to ten (`docs/performance.md`).
pub const WHOLE_KEYS_COST: f64 = 4.0;

/// The part of a key that a launch compares. Launches of the two kinds take turns, so neither slows
/// down the other's kernel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum KeyPart {
    /// The first 32 bits, by the fast kernel.
    Top32,
    /// The whole key, for patterns that the first 32 bits restrict too little.
    Whole,
}

impl KeyPart {
    /// Both kinds.
    pub const ALL: [KeyPart; 2] = [KeyPart::Top32, KeyPart::Whole];

    /// Whether the pattern is searched by launches of this kind.
    pub fn takes(self, pattern: &Pattern) -> bool {
        (self == KeyPart::Top32) == pattern.begins_selectively()
    }
}

/// The measured rates of one device.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct DeviceRates {
    /// The rate where top words are compared; `None` before the first measurement.
    pub top_words: Option<Rate>,
    /// The rate where whole keys are compared; `None` before the first measurement.
    pub whole_keys: Option<Rate>,
}

impl DeviceRates {
    /// Time that a candidate takes, relative to one of [`KeyPart::Top32`].
    pub fn cost(self, compared: KeyPart) -> f64 {
        match (compared, self.top_words, self.whole_keys) {
            (KeyPart::Top32, ..) => 1.0,
            (_, Some(Rate(fast)), Some(Rate(slow))) if slow > 0.0 => fast / slow,
            _ => WHOLE_KEYS_COST,
        }
    }

    /// The rate of launches of a kind, estimated until it is measured.
    pub fn of(self, compared: KeyPart) -> Option<Rate> {
        match compared {
            KeyPart::Top32 => self.top_words,
            KeyPart::Whole => self.whole_keys.or_else(|| self.top_words.map(|Rate(fast)| Rate(fast / WHOLE_KEYS_COST))),
        }
    }
}

impl From<Option<Rate>> for DeviceRates {
    fn from(top_words: Option<Rate>) -> DeviceRates {
        DeviceRates { top_words, whole_keys: None }
    }
}
