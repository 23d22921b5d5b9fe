//! The filter tells whether a candidate with a given top word may match. One lookup in a bitmap
//! decides that for nearly all candidates, and finer tables for the rest.
//!
//! A **top word** is the upper 64 bits of x, or an approximation of them. Its upper 32 bits consist
//! of the number of a **bucket** and a **place** in the bucket.

use super::cells::CellTables;
use super::quick::QuickTests;
use crate::key::Npub;
use crate::pattern::{PatternSet, TextTests};

/// Upper bits that select a bucket of the coarse bitmap. Its 16 KiB stay in the L1 cache.
pub const COARSE_BITS: u32 = 17;
/// Words of the coarse bitmap.
pub const COARSE_WORDS: usize = 1 << (COARSE_BITS - 5);
/// Fewest upper bits that select a bucket of the fine bitmap.
const LEAST_BITS: u32 = 16;
/// Most upper bits that select a bucket of the fine bitmap: 128 KiB, which fits into the L2 cache.
const MOST_BITS: u32 = 20;
/// A range of places that contains none: its first place is greater than its last.
const NOWHERE: u32 = 0xffff << 16;
/// At most one bucket in 2^9 should be filled, so that the tables behind the bitmap are rarely
/// needed.
const SPARSITY_BITS: u32 = 9;

/// A method of looking up top words in the coarse bitmap, if there are many intervals. Which method
/// is faster depends on the processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookup {
    /// By gather instructions, as soon as the top words of an entry are computed.
    Gathers,
    /// By one load for each top word, between the multiplications of the next entry.
    Loads,
}

/// Models of Intel's family 6 with AVX-512 IFMA on which gathers are the faster method: Sapphire Rapids,
/// Emerald Rapids (measured: `docs/performance.md`) and Granite Rapids. Earlier ones are affected by
/// Gather Data Sampling (Intel's article 785676), and their microcode makes gathers slow. AMD's Zen 4
/// splits a gather into dozens of operations (measured: `docs/developers/tried.md`).
#[cfg(target_arch = "x86_64")]
const FAST_GATHERS: [u32; 4] = [0x8f, 0xcf, 0xad, 0xae];

impl Lookup {
    /// The faster method on this processor.
    #[cfg(target_arch = "x86_64")]
    fn of_this_processor() -> Lookup {
        #[allow(unused_unsafe, reason = "older compilers call the function unsafe")]
        // SAFETY: every processor of this architecture has the instruction.
        let (vendor, processor) = unsafe { (std::arch::x86_64::__cpuid(0), std::arch::x86_64::__cpuid(1)) };
        Lookup::of(vendor.ebx.to_le_bytes(), processor.eax)
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn of_this_processor() -> Lookup {
        Lookup::Loads
    }

    /// The faster method on a processor, by the first letters of its vendor and its signature.
    #[cfg(target_arch = "x86_64")]
    pub fn of(vendor: [u8; 4], signature: u32) -> Lookup {
        let family = (signature >> 8 & 0xf) + (signature >> 20 & 0xff);
        let model = (signature >> 4 & 0xf) | (signature >> 12 & 0xf0);
        let is_fast = vendor == *b"Genu" && family == 6 && FAST_GATHERS.contains(&model);
        if is_fast { Lookup::Gathers } else { Lookup::Loads }
    }
}

/// The intervals of a pattern set, widened by the error of an approximate top word.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Number of bits of a place in a bucket: the lower 12 to 16 of a top word's upper 32 bits. The
    /// bits above them select the bucket.
    place_bits: u32,
    /// One bit per bucket, 32 per word: set if an interval overlaps the bucket.
    buckets: Vec<u32>,
    /// The coarse bitmap: one bit per bucket like `buckets`, but for fewer and larger buckets.
    coarse: Box<[u32; COARSE_WORDS]>,
    /// For each word of `buckets`, the number of bits set in the words before it.
    ranks: Vec<u32>,
    /// For each bucket whose bit is set, in order, two ranges of places, `first << 16 | last`. They
    /// cover the bucket's part of all intervals.
    places: [Vec<u32>; 2],
    /// The intervals, disjoint and sorted, both ends included.
    exact: Vec<(u64, u64)>,
    /// For each bucket whose bit is set, the index of the first exact interval that ends in it or
    /// later. The last element is the number of intervals.
    first_exact: Vec<u32>,
    /// The widened intervals, disjoint and sorted, both ends included.
    widened: Vec<(u64, u64)>,
    /// The widened intervals as cells, if they are few.
    cells: Option<CellTables>,
    lookup: Lookup,
    /// The patterns, unless the intervals alone decide whether a key matches.
    whole: Option<PatternSet>,
    /// The tests of whole texts, if the first 32 bits of a key decide too little for some pattern.
    text_tests: Option<TextTests>,
    /// Quick tests, passed by every key that passes `text_tests`. `None` if none are selective
    /// enough.
    quick_tests: Option<QuickTests>,
}

impl Filter {
    /// Builds the filter of a pattern set. `slack` is the largest error of a top word in both
    /// directions.
    pub fn new(patterns: &PatternSet, slack: u64) -> Filter {
        let exact = patterns.intervals().to_vec();
        let mut widened = Vec::with_capacity(exact.len() + 1);
        for &(first, last) in &exact {
            // Errors wrap modulo 2^64: a top word near zero may appear near 2^64, and the other way
            // round.
            let (low, high) = (first.wrapping_sub(slack), last.wrapping_add(slack));
            if low > first && high < last {
                // Both ends wrap around: every top word is in the interval.
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
                    // A third and further intervals share the second range.
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
        let whole = (!patterns.is_exact()).then(|| patterns.clone());
        let text_tests = patterns.text_tests();
        let quick_tests = text_tests.as_ref().and_then(QuickTests::new);
        Filter {
            place_bits,
            buckets,
            coarse,
            ranks,
            places,
            exact,
            first_exact,
            cells: CellTables::new(&widened),
            lookup: Lookup::of_this_processor(),
            widened,
            whole,
            text_tests,
            quick_tests,
        }
    }

    /// The same filter, with this method of looking up top words.
    #[cfg(test)]
    pub fn with_lookup(self, lookup: Lookup) -> Filter {
        Filter { lookup, ..self }
    }

    /// How top words are looked up.
    pub fn lookup(&self) -> Lookup {
        self.lookup
    }

    /// Whether a candidate with this approximate top word may match. `false` is always right.
    #[inline(always)]
    pub fn is_marked(&self, top: u64) -> bool {
        let (bucket, place) = bucket_of(top, self.place_bits);
        let Some(rank) = self.rank(bucket) else { return false };
        // Without a branch, which would be taken by half of the words.
        let is_in = |range: u32| (range >> 16 <= place) & (place <= range & 0xffff);
        is_in(self.places[0][rank]) | is_in(self.places[1][rank])
    }

    /// Whether this exact top word is in an interval.
    pub fn matches_exactly(&self, top: u64) -> bool {
        let (bucket, _) = bucket_of(top, self.place_bits);
        let Some(rank) = self.rank(bucket) else { return false };
        let (first, next) = (self.first_exact[rank] as usize, self.first_exact[rank + 1] as usize);
        // This includes an interval that begins in this bucket and ends in a later one.
        is_within(&self.exact[first..self.exact.len().min(next + 1)], top)
    }

    /// Whether the candidate with this exact x-coordinate matches a pattern.
    pub fn matches(&self, npub: &Npub) -> bool {
        let top = u64::from_be_bytes(npub.0[..8].try_into().expect("eight bytes"));
        self.matches_exactly(top) && self.whole.as_ref().is_none_or(|patterns| !patterns.matches(npub).is_empty())
    }

    /// The tests of whole texts; `None` if the intervals suffice.
    #[inline(always)]
    pub fn text_tests(&self) -> Option<&TextTests> {
        self.text_tests.as_ref()
    }

    /// Quick tests that a key passes if it passes a test of texts; `None` if there are none.
    pub fn quick_tests(&self) -> Option<&QuickTests> {
        self.quick_tests.as_ref()
    }

    /// The number of buckets before this one whose bits are set; `None` if its own is not.
    #[inline(always)]
    fn rank(&self, bucket: usize) -> Option<usize> {
        let (word, bit) = (self.buckets[bucket / 32], bucket % 32);
        let rank = self.ranks[bucket / 32] + (word & ((1 << bit) - 1)).count_ones();
        (word >> bit & 1 == 1).then_some(rank as usize)
    }

    /// Number of bits of a place in a bucket.
    #[inline(always)]
    pub fn place_bits(&self) -> u32 {
        self.place_bits
    }

    /// The bitmap of the buckets.
    #[inline(always)]
    pub fn buckets(&self) -> &[u32] {
        &self.buckets
    }

    /// The words of the coarse bitmap, a bit for each value of the upper [`COARSE_BITS`].
    #[inline(always)]
    pub fn coarse(&self) -> &[u32; COARSE_WORDS] {
        &self.coarse
    }

    /// The widened intervals as cells; `None` if there are too many.
    #[inline(always)]
    pub fn cells(&self) -> Option<&CellTables> {
        self.cells.as_ref()
    }

    /// The widened intervals.
    #[inline(always)]
    pub fn widened(&self) -> &[(u64, u64)] {
        &self.widened
    }
}

/// The bucket of a top word, and its place there.
#[inline(always)]
fn bucket_of(top: u64, place_bits: u32) -> (usize, u32) {
    let upper = (top >> 32) as u32;
    ((upper >> place_bits) as usize, upper & ((1 << place_bits) - 1))
}

/// The intervals, sorted and merged where they overlap.
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

/// Whether a top word is in one of these intervals.
fn is_within(intervals: &[(u64, u64)], top: u64) -> bool {
    let at = intervals.partition_point(|&(_, last)| last < top);
    intervals.get(at).is_some_and(|&(first, _)| first <= top)
}
