//! Does a candidate's top concern anyone? One look into a bitmap for nearly all of them, into finer ones for the rest.

use crate::pattern::PatternSet;

/// Top bits that say which bucket of the coarse bitmap a top is in: it has 16 KiB and stays in the first cache.
pub const COARSE_BITS: u32 = 17;
/// Its words.
pub const COARSE_WORDS: usize = 1 << (COARSE_BITS - 5);
/// Likewise of the fine one, at least and at most: 512 KiB, in the second cache.
const LEAST_BITS: u32 = 16;
const MOST_BITS: u32 = 20;
/// A range of places that holds none.
const NOWHERE: u32 = 0xffff << 16;
/// Of so many buckets, as a power of two, one is to have something in it, so that the look behind the bitmap is rare.
const SPARSITY_BITS: u32 = 9;

/// The intervals of a pattern set, widened by what an approximate top may be off.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Bits of a top's upper 32 that say where in its bucket it is; those above say in which: 10 to 16.
    place_bits: u32,
    /// A bit for each bucket, 32 to a word: set if something of an interval is in it.
    buckets: Vec<u32>,
    /// The same for fewer and larger buckets.
    coarse: Box<[u32; COARSE_WORDS]>,
    /// For each of these words, how many bits are set in the words before it.
    ranks: Vec<u32>,
    /// For each bucket whose bit is set, in their order, two ranges of places, `first << 16 | last`: whatever of an
    /// interval is in the bucket is in one of them.
    places: [Vec<u32>; 2],
    /// Disjoint and sorted, both ends included.
    exact: Vec<(u64, u64)>,
    /// For each bucket whose bit is set which of these is the first that does not end before it; and how many there are.
    first_exact: Vec<u32>,
    /// Likewise.
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
        let widened = joined(widened);
        let wanted = (widened.len() as u64).next_power_of_two().trailing_zeros() + SPARSITY_BITS;
        let place_bits = 32 - wanted.clamp(LEAST_BITS, MOST_BITS);
        let mut buckets = vec![0u32; 1 << (32 - place_bits - 5)];
        let mut places = [Vec::with_capacity(widened.len()), Vec::with_capacity(widened.len())];
        let (mut first_exact, mut newest) = (Vec::with_capacity(widened.len() + 1), None);
        let mut coarse = Box::new([0; COARSE_WORDS]);
        for &(first, last) in &widened {
            for bucket in first >> (64 - COARSE_BITS)..=last >> (64 - COARSE_BITS) {
                coarse[bucket as usize / 32] |= 1 << (bucket % 32);
            }
            let (first_bucket, first_place) = bucket_of(first, place_bits);
            let (last_bucket, last_place) = bucket_of(last, place_bits);
            for bucket in first_bucket..=last_bucket {
                let begin = if bucket == first_bucket { first_place } else { 0 };
                let end = if bucket == last_bucket { last_place } else { (1 << place_bits) - 1 };
                if newest == Some(bucket) {
                    // A third and any further interval share the second range.
                    let range: &mut u32 = places[1].last_mut().expect("the bucket has been begun");
                    *range = (*range >> 16).min(begin) << 16 | (*range & 0xffff).max(end);
                } else {
                    buckets[bucket / 32] |= 1 << (bucket % 32);
                    places[0].push(begin << 16 | end);
                    places[1].push(NOWHERE);
                    let begin = (bucket as u64) << (32 + place_bits);
                    first_exact.push(exact.partition_point(|&(_, last)| last < begin) as u32);
                    newest = Some(bucket);
                }
            }
        }
        first_exact.push(exact.len() as u32);
        let mut before = 0;
        let ranks = buckets
            .iter()
            .map(|word| {
                let rank = before;
                before += word.count_ones();
                rank
            })
            .collect();
        Filter { place_bits, buckets, coarse, ranks, places, exact, first_exact, widened }
    }

    /// Whether a candidate whose top is near this may match, as far as a look tells. `false` is certain.
    #[inline(always)]
    pub fn is_marked(&self, top: u64) -> bool {
        let (bucket, place) = bucket_of(top, self.place_bits);
        let Some(rank) = self.rank(bucket) else { return false };
        let [one, two] = [self.places[0][rank], self.places[1][rank]];
        (one >> 16..=one & 0xffff).contains(&place) || (two >> 16..=two & 0xffff).contains(&place)
    }

    /// Whether a candidate whose top is exactly `top` may match.
    pub fn matches_exactly(&self, top: u64) -> bool {
        let (bucket, _) = bucket_of(top, self.place_bits);
        let Some(rank) = self.rank(bucket) else { return false };
        let (first, next) = (self.first_exact[rank] as usize, self.first_exact[rank + 1] as usize);
        // The one that begins in this bucket and ends in the next is among them.
        is_within(&self.exact[first..self.exact.len().min(next + 1)], top)
    }

    /// How many buckets before this one have their bits set; `None` if this one has not.
    #[inline(always)]
    fn rank(&self, bucket: usize) -> Option<usize> {
        let (word, bit) = (self.buckets[bucket / 32], bucket % 32);
        let rank = self.ranks[bucket / 32] + (word & ((1 << bit) - 1)).count_ones();
        (word >> bit & 1 == 1).then_some(rank as usize)
    }

    /// Bits of a top's upper 32 that say where in its bucket it is; those above say in which.
    #[inline(always)]
    pub fn place_bits(&self) -> u32 {
        self.place_bits
    }

    /// The buckets' bitmap.
    #[inline(always)]
    pub fn buckets(&self) -> &[u32] {
        &self.buckets
    }

    /// The coarse bitmap's words, a bit for each value of a top's upper [`COARSE_BITS`].
    #[inline(always)]
    pub fn coarse(&self) -> &[u32; COARSE_WORDS] {
        &self.coarse
    }

    /// For each word of the buckets' bitmap how many bits are set before it.
    #[inline(always)]
    pub fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    /// Two ranges of places, `first << 16 | last`, for each bit that is set.
    #[inline(always)]
    pub fn places(&self) -> [&[u32]; 2] {
        [&self.places[0], &self.places[1]]
    }

    /// The widened intervals.
    #[inline(always)]
    pub fn widened(&self) -> &[(u64, u64)] {
        &self.widened
    }
}

/// A top's bucket, and its place there.
#[inline(always)]
fn bucket_of(top: u64, place_bits: u32) -> (usize, u32) {
    let upper = (top >> 32) as u32;
    ((upper >> place_bits) as usize, upper & ((1 << place_bits) - 1))
}

/// Sorted, and made one where they overlap.
fn joined(mut intervals: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    intervals.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::with_capacity(intervals.len());
    for (first, last) in intervals {
        match joined.last_mut() {
            Some(before) if first <= before.1 => before.1 = before.1.max(last),
            _ => joined.push((first, last)),
        }
    }
    joined
}

/// Whether a top is in one of these intervals.
fn is_within(intervals: &[(u64, u64)], top: u64) -> bool {
    let at = intervals.partition_point(|&(_, last)| last < top);
    intervals.get(at).is_some_and(|&(first, _)| first <= top)
}
