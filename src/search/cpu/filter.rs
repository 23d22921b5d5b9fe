//! Does a candidate's top concern anyone? One look into a bitmap for nearly all of them, one into a table for the rest.

use crate::pattern::PatternSet;

/// Top bits of a top that say which bucket it is in. The bitmap of buckets, 16 KiB, stays in the first cache; the table,
/// 512 KiB, in the second.
pub const BUCKET_BITS: u32 = 17;
/// Bits of a top's upper 32 that say where in its bucket it is.
pub const PLACE_BITS: u32 = 32 - BUCKET_BITS;
const LAST_PLACE: u32 = (1 << PLACE_BITS) - 1;
/// From so many intervals on there is nearly always one of an entry's 144 tops in a bucket with something in it.
const MANY_INTERVALS: usize = 50;

/// The intervals of a pattern set, widened by what an approximate top may be off.
#[derive(Clone, Debug)]
pub struct Filter {
    /// A bit for each bucket, 32 to a word: set if something of an interval is in it.
    buckets: Vec<u32>,
    /// For each such bucket the first and the last place that an interval has in it: `first << 16 | last`.
    hulls: Vec<u32>,
    /// Disjoint and sorted, both ends included.
    exact: Vec<(u64, u64)>,
    /// Sorted, both by their beginnings and by their ends.
    widened: Vec<(u64, u64)>,
}

impl Filter {
    /// `slack`: how far an approximate top may be off, either way.
    pub fn new(patterns: &PatternSet, slack: u64) -> Filter {
        let exact = patterns.intervals().to_vec();
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
        let mut buckets = vec![0u32; 1 << (BUCKET_BITS - 5)];
        let mut hulls = vec![LAST_PLACE << 16; 1 << BUCKET_BITS];
        for &(first, last) in &widened {
            let ((first_bucket, first_place), (last_bucket, last_place)) = (bucket_of(first), bucket_of(last));
            for bucket in first_bucket..=last_bucket {
                buckets[bucket / 32] |= 1 << (bucket % 32);
                let begin = if bucket == first_bucket { first_place } else { 0 };
                let end = if bucket == last_bucket { last_place } else { LAST_PLACE };
                let hull = &mut hulls[bucket];
                *hull = (*hull >> 16).min(begin) << 16 | (*hull & 0xffff).max(end);
            }
        }
        Filter { buckets, hulls, exact, widened }
    }

    /// Whether a candidate whose top is near this may match, as far as one look tells. `false` is certain.
    #[inline(always)]
    pub fn is_marked(&self, top: u64) -> bool {
        let (bucket, place) = bucket_of(top);
        if self.buckets[bucket / 32] >> (bucket % 32) & 1 == 0 {
            return false;
        }
        let hull = self.hulls[bucket];
        (hull >> 16..=hull & 0xffff).contains(&place)
    }

    /// Whether a candidate whose approximate top is `top` may match. `false` is certain.
    pub fn may_match(&self, top: u64) -> bool {
        // Widened intervals may overlap by the slack; the first that does not end before the top decides.
        is_within(&self.widened, top)
    }

    /// Whether a candidate whose top is exactly `top` may match.
    pub fn matches_exactly(&self, top: u64) -> bool {
        is_within(&self.exact, top)
    }

    /// The bitmap's words, a bit for each value of a top's upper [`BUCKET_BITS`] bits.
    #[inline(always)]
    pub fn buckets(&self) -> &[u32] {
        &self.buckets
    }

    /// First and last place in each bucket, `first << 16 | last`. Of an empty bucket the first is past the last.
    #[inline(always)]
    pub fn hulls(&self) -> &[u32] {
        &self.hulls
    }

    /// Whether an entry's tops nearly always fall into some bucket that is not empty.
    #[inline(always)]
    pub fn is_dense(&self) -> bool {
        self.widened.len() >= MANY_INTERVALS
    }

    /// The widened intervals.
    #[inline(always)]
    pub fn widened(&self) -> &[(u64, u64)] {
        &self.widened
    }
}

/// A top's bucket, and its place there.
#[inline(always)]
fn bucket_of(top: u64) -> (usize, u32) {
    ((top >> (64 - BUCKET_BITS)) as usize, (top >> 32) as u32 & LAST_PLACE)
}

/// Whether a top is in one of these intervals, sorted by their ends.
fn is_within(intervals: &[(u64, u64)], top: u64) -> bool {
    let at = intervals.partition_point(|&(_, last)| last < top);
    intervals.get(at).is_some_and(|&(first, _)| first <= top)
}
