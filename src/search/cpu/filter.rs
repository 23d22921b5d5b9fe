//! Does a candidate's top concern anyone? One look into a bitmap for nearly all of them.

use crate::pattern::PatternSet;

/// The least and the greatest number of top bits the bitmap is indexed by: 8 KiB stays in the first cache, 512 KiB in
/// the second.
const BITS: std::ops::RangeInclusive<u32> = 16..=22;
/// Of so many map entries one is set, so that the search behind the map is rare.
const SPARSITY_BITS: u32 = 7;

/// The intervals of a pattern set, widened by what an approximate top may be off.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The top bits that index the map.
    shift: u32,
    map: Vec<u64>,
    /// Disjoint and sorted, both ends included.
    exact: Vec<(u64, u64)>,
    widened: Vec<(u64, u64)>,
}

impl Filter {
    /// `slack`: how far an approximate top may be off, either way.
    pub fn new(patterns: &PatternSet, slack: u64) -> Filter {
        let exact = patterns.intervals().to_vec();
        let wanted = (exact.len() as u64).next_power_of_two().trailing_zeros() + SPARSITY_BITS;
        let shift = 64 - wanted.clamp(*BITS.start(), *BITS.end());
        let mut map = vec![0u64; 1 << (64 - shift - 6)];
        let mut widened = Vec::with_capacity(exact.len() + 1);
        for &(first, last) in &exact {
            // Errors count modulo 2^64: a top near zero may look like one near the end, and back.
            let (low, high) = (first.wrapping_sub(slack), last.wrapping_add(slack));
            if low > first || high < last {
                widened.extend([(0, high), (low, u64::MAX)]);
            } else {
                widened.push((low, high));
            }
        }
        widened.sort_unstable();
        for &(first, last) in &widened {
            for index in first >> shift..=last >> shift {
                map[(index / 64) as usize] |= 1 << (index % 64);
            }
        }
        Filter { shift, map, exact, widened }
    }

    /// Whether a candidate whose approximate top is `top` may match. `false` is certain.
    #[inline(always)]
    pub fn may_match(&self, top: u64) -> bool {
        let index = top >> self.shift;
        self.map[(index / 64) as usize] >> (index % 64) & 1 != 0 && self.search(top)
    }

    #[cold]
    #[inline(never)]
    fn search(&self, top: u64) -> bool {
        // Widened intervals may overlap by the slack; the first that does not end before the top decides, as all ends
        // are in order.
        let at = self.widened.partition_point(|&(_, last)| last < top);
        self.widened.get(at).is_some_and(|&(first, _)| first <= top)
    }

    /// Whether a candidate whose top is exactly `top` may match.
    pub fn matches_exactly(&self, top: u64) -> bool {
        let at = self.exact.partition_point(|&(_, last)| last < top);
        self.exact.get(at).is_some_and(|&(first, _)| first <= top)
    }
}
