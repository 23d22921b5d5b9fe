//! The filter tells whether a candidate with a given top word may match. One lookup in a bitmap
//! decides that for nearly all candidates, and finer tables for the rest.
//!
//! A **top word** is the upper 64 bits of x, or an approximation of them. The filter compares its upper
//! 32 bits, of which the uppermost select a **bucket**.

use super::cells::CellTables;
use super::quick::QuickTests;
use crate::key::Npub;
use crate::pattern::{PatternSet, TextTests};
use std::sync::Arc;

/// Upper bits that select a bucket of the coarse bitmap. Its 16 KiB stay in the L1 cache.
pub const COARSE_BITS: u32 = 17;
/// Words of the coarse bitmap.
pub const COARSE_WORDS: usize = 1 << (COARSE_BITS - 5);
/// Fewest upper bits that select a bucket of the fine bitmap.
const LEAST_BITS: u32 = 16;
/// Most upper bits that select a bucket of the fine bitmap: 128 KiB, which fits into the L2 cache.
const MAX_BITS: u32 = 20;
/// An interval that contains nothing.
const EMPTY: (u32, u32) = (u32::MAX, 0);
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
    /// Number of lower bits that do not select a bucket, of the 32 of a top word.
    place_bits: u32,
    /// One bit per bucket, 32 per word: set if an interval overlaps the bucket.
    buckets: Vec<u32>,
    /// The coarse bitmap: one bit per bucket like `buckets`, but for fewer and larger buckets.
    coarse: Box<[u32; COARSE_WORDS]>,
    /// For each word of `buckets`, the number of bits set in the words before it.
    ranks: Vec<u32>,
    /// For each bucket whose bit is set, in order, two intervals that together cover all that reach into
    /// the bucket: the first of them, and one around the others.
    near: Vec<[(u32, u32); 2]>,
    /// The widened intervals, disjoint and sorted, both ends included.
    intervals: Vec<(u32, u32)>,
    /// The widened intervals as cells, if they are few.
    cells: Option<CellTables>,
    lookup: Lookup,
    patterns: Arc<PatternSet>,
    /// The tests of whole texts, if the first 32 bits of a key decide too little for some pattern.
    text_tests: Option<TextTests>,
    /// Quick tests, passed by every key that passes `text_tests`. `None` if none are selective
    /// enough.
    quick_tests: Option<QuickTests>,
}

impl Filter {
    /// Builds the filter of a pattern set. `slack` is the largest error of a top word in both
    /// directions.
    pub fn new(patterns: &Arc<PatternSet>, slack: u64) -> Filter {
        let intervals = widened(patterns.intervals(), slack);
        let wanted = (intervals.len() as u64).next_power_of_two().trailing_zeros() + SPARSITY_BITS;
        let place_bits = 32 - wanted.clamp(LEAST_BITS, MAX_BITS);
        let mut buckets = vec![0u32; 1 << (32 - place_bits - 5)];
        let (mut near, mut newest) = (Vec::<[(u32, u32); 2]>::with_capacity(intervals.len()), None);
        let mut coarse = Box::new([0; COARSE_WORDS]);
        for &(first, last) in &intervals {
            for bucket in first >> (32 - COARSE_BITS)..=last >> (32 - COARSE_BITS) {
                coarse[bucket as usize / 32] |= 1 << (bucket % 32);
            }
            for bucket in first >> place_bits..=last >> place_bits {
                if newest.replace(bucket) != Some(bucket) {
                    buckets[bucket as usize / 32] |= 1 << (bucket % 32);
                    near.push([(first, last), EMPTY]);
                } else if let Some([_, others]) = near.last_mut() {
                    *others = (others.0.min(first), others.1.max(last));
                }
            }
        }
        let mut before = 0;
        let mut ranks = Vec::with_capacity(buckets.len());
        for word in &buckets {
            ranks.push(before);
            before += word.count_ones();
        }
        let text_tests = patterns.text_tests();
        let quick_tests = text_tests.as_ref().and_then(QuickTests::new);
        Filter {
            place_bits,
            buckets,
            coarse,
            ranks,
            near,
            cells: CellTables::new(&intervals),
            intervals,
            lookup: Lookup::of_this_processor(),
            patterns: Arc::clone(patterns),
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

    /// Whether a candidate with these upper 32 bits of an approximate top word may match. `false` is
    /// always right.
    #[inline(always)]
    pub fn is_marked(&self, upper: u32) -> bool {
        let bucket = upper >> self.place_bits;
        let (word, bit) = (self.buckets[bucket as usize / 32], bucket % 32);
        if word >> bit & 1 == 0 {
            return false;
        }
        let rank = self.ranks[bucket as usize / 32] + (word & ((1 << bit) - 1)).count_ones();
        // Without a branch, which would be taken by half of the words.
        let is_in = |(first, last): (u32, u32)| (first <= upper) & (upper <= last);
        let [first, others] = self.near[rank as usize];
        is_in(first) | is_in(others)
    }

    /// Whether the candidate with this exact x-coordinate matches a pattern.
    pub fn matches(&self, npub: &Npub) -> bool {
        if self.patterns.is_exact() { self.patterns.may_match(npub) } else { !self.patterns.matches(npub).is_empty() }
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

    /// Number of lower bits that do not select a bucket.
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

    /// The widened intervals, disjoint and sorted, both ends included.
    #[inline(always)]
    pub fn intervals(&self) -> &[(u32, u32)] {
        &self.intervals
    }
}

/// The upper 32 bits of intervals that are widened by `slack` at both ends, sorted and merged where
/// they overlap.
fn widened(exact: &[(u64, u64)], slack: u64) -> Vec<(u32, u32)> {
    let mut intervals = Vec::with_capacity(exact.len() + 1);
    for &(first, last) in exact {
        // Errors wrap modulo 2^64: a top word near zero may appear near 2^64, and the other way round.
        let (low, high) = (first.wrapping_sub(slack), last.wrapping_add(slack));
        if low > first && high < last {
            // Both ends wrap around: every top word is in the interval.
            intervals.push((0, u64::MAX));
        } else if low > first || high < last {
            intervals.extend([(0, high), (low, u64::MAX)]);
        } else {
            intervals.push((low, high));
        }
    }
    intervals.sort_unstable();
    let mut widened: Vec<(u32, u32)> = Vec::with_capacity(intervals.len());
    for (first, last) in intervals.into_iter().map(|(first, last)| ((first >> 32) as u32, (last >> 32) as u32)) {
        match widened.last_mut() {
            Some(before) if first <= before.1 => before.1 = before.1.max(last),
            _ => widened.push((first, last)),
        }
    }
    widened
}
