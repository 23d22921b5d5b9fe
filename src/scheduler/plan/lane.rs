//! Lanes: which patterns each kind of device searches.

use crate::pattern::Pattern;

/// Patterns of fewer bits are left to the CPU: a GPU would drown in their hits.
const EASY_BITS: u32 = 20;
/// Below this many bits the CPU thread beside GPUs searches too. A GPU finds so many hits of such
/// patterns that it seldom takes more of them.
const SHARED_BITS: u32 = 25;

/// Which patterns a device searches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lane {
    /// All patterns: the CPU where no GPU works.
    All,
    /// Patterns hard enough for a GPU.
    Hard,
    /// Patterns too easy for a GPU, and those nearly so: one CPU thread beside the GPUs.
    Easy,
}

impl Lane {
    /// Every lane; the index of each is its place here.
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

    /// Candidates to expect until one of these patterns matches, those of other lanes left out.
    /// Infinite if none is for this lane.
    pub(in crate::scheduler) fn expected_candidates(self, patterns: &[Pattern]) -> f64 {
        let taken = patterns.iter().filter(|pattern| self.takes(pattern.bits()));
        1.0 / taken.map(|pattern| 1.0 / pattern.difficulty().candidates()).sum::<f64>()
    }
}
