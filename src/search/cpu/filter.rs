//! Does a candidate's top concern anyone? One look into a bitmap for nearly all of them.

use crate::pattern::PatternSet;

/// The least and the greatest number of top bits the bitmap is indexed by: 8 KiB stays in the first cache, 512 KiB in
/// the second.
const BITS: std::ops::RangeInclusive<u32> = 16..=22;
/// Top bits that say where among the intervals to begin.
const START_BITS: u32 = 14;
/// Of so many map bits, as a power of two, one is set, so that the search behind the map is rare.
const SPARSITY_BITS: u32 = 9;

/// The intervals of a pattern set, widened by what an approximate top may be off.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The top bits that index the map: what is left of 64 bits after this shift.
    shift: u32,
    /// A bit for each value of the top bits, 32 to a word.
    map: Vec<u32>,
    /// Disjoint and sorted, both ends included.
    exact: Vec<(u64, u64)>,
    widened: Vec<(u64, u64)>,
    /// For each value of the top [`START_BITS`]: the first widened interval that ends there or later.
    starts: Vec<u32>,
}

impl Filter {
    /// `slack`: how far an approximate top may be off, either way.
    pub fn new(patterns: &PatternSet, slack: u64) -> Filter {
        let exact = patterns.intervals().to_vec();
        let wanted = (exact.len() as u64).next_power_of_two().trailing_zeros() + SPARSITY_BITS;
        let shift = 64 - wanted.clamp(*BITS.start(), *BITS.end());
        let mut map = vec![0u32; 1 << (64 - shift - 5)];
        let mut widened = Vec::with_capacity(exact.len() + 1);
        for &(first, last) in &exact {
            // Errors count modulo 2^64: a top near zero may look like one near the end, and back.
            let (low, high) = (first.wrapping_sub(slack), last.wrapping_add(slack));
            if low > first && high < last {
                // Both ends run over: whatever is between them, this is all there is.
                widened.push((0, u64::MAX));
            } else if low > first || high < last {
                widened.extend([(0, high), (low, u64::MAX)]);
            } else {
                widened.push((low, high));
            }
        }
        widened.sort_unstable();
        for &(first, last) in &widened {
            for index in first >> shift..=last >> shift {
                map[(index / 32) as usize] |= 1 << (index % 32);
            }
        }
        let starts = (0..1u64 << START_BITS)
            .map(|top| top << (64 - START_BITS))
            .map(|least| widened.partition_point(|&(_, last)| last < least) as u32)
            .collect();
        Filter { shift, map, exact, widened, starts }
    }

    /// Whether the map has a candidate's top. `false` is certain.
    #[inline(always)]
    pub fn is_marked(&self, top: u64) -> bool {
        let index = top >> self.shift;
        self.map[(index / 32) as usize] >> (index % 32) & 1 != 0
    }

    /// Whether a candidate whose approximate top is `top` may match. `false` is certain.
    #[inline(always)]
    pub fn may_match(&self, top: u64) -> bool {
        // Widened intervals may overlap by the slack; the first that does not end before the top decides, as all ends
        // are in order.
        let start = self.starts[(top >> (64 - START_BITS)) as usize] as usize;
        for &(first, last) in &self.widened[start..] {
            if last >= top {
                return first <= top;
            }
        }
        false
    }

    /// Whether a candidate whose top is exactly `top` may match.
    pub fn matches_exactly(&self, top: u64) -> bool {
        let at = self.exact.partition_point(|&(_, last)| last < top);
        self.exact.get(at).is_some_and(|&(first, _)| first <= top)
    }

    /// The map's words, and how far a top's upper 32 bits are shifted right to index its bits. At least 11 bits of
    /// index, at most 22.
    #[inline(always)]
    pub fn map(&self) -> (&[u32], u32) {
        (&self.map, self.shift - 32)
    }

    /// The widened intervals.
    #[inline(always)]
    pub fn widened(&self) -> &[(u64, u64)] {
        &self.widened
    }
}
