//! Lanes: the range of patterns that each kind of device searches.

use crate::pattern::Pattern;

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
    pub(in crate::scheduler) const EVERY: [Lane; 3] = [Lane::All, Lane::Hard, Lane::Easy];

    /// Whether the lane searches patterns of `bits` bits.
    pub(in crate::scheduler) fn takes(self, bits: u32) -> bool {
        match self {
            Lane::All => true,
            Lane::Hard => bits >= EASY_BITS,
            Lane::Easy => bits < SHARED_BITS,
        }
    }

    /// Whether the lane searches any of these patterns.
    pub(in crate::scheduler) fn takes_any(self, patterns: &[Pattern]) -> bool {
        patterns.iter().any(|pattern| self.takes(pattern.bits()))
    }

    /// Expected candidates until one of these patterns matches. Patterns of other lanes do not
    /// count. Infinite if no pattern is for this lane.
    pub(in crate::scheduler) fn expected_candidates(self, patterns: &[Pattern]) -> f64 {
        let taken = patterns.iter().filter(|pattern| self.takes(pattern.bits()));
        1.0 / taken.map(|pattern| 1.0 / pattern.difficulty().candidates()).sum::<f64>()
    }
}
