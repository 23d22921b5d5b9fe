//! The screens of the IFMA kernel. They compare top words with a few intervals, or look them up in
//! the filter's buckets.
//!
//! The contract of every `unsafe` is that of the module above.

use super::fe8::Fe8;
use crate::search::cpu::field::Fe;
use crate::search::cpu::filter::{COARSE_BITS, COARSE_WORDS, Filter};
use crate::search::cpu::formula::{Centre, Products, Rotated};
use crate::search::cpu::screen::{Marks, Place, SLOTS, Screen};
use crate::search::cpu::table::Entry;
use bytemuck::Zeroable;
use std::arch::x86_64::*;

/// Top words of [`SLOTS`] entries, and room for the last vector store.
const ROOM: usize = 144 * SLOTS + 16;

/// A screen for few intervals: compares every top word with every interval.
#[derive(Debug, Zeroable)]
pub struct CompareScreen {
    /// Bits of the slots with a top word in an interval.
    suspects: u32,
}

impl Screen<Fe8> for CompareScreen {
    #[inline(always)]
    fn add(
        &mut self,
        filter: &Filter,
        centre: &Centre<Fe8>,
        entry: &Entry<Fe8>,
        products: &Products<Fe8>,
        rotated: &Rotated<Fe8>,
        place: Place,
    ) {
        let top_words = products.top_words(rotated, centre, entry);
        let mut any = 0;
        for &(first, last) in filter.widened() {
            any |= nearest(&top_words, first, last);
        }
        self.suspects |= u32::from(any != 0) << place.slot;
    }

    #[inline(always)]
    fn take_suspects(&mut self, _: &Filter) -> u32 {
        std::mem::take(&mut self.suspects)
    }
}

/// A screen for many intervals. It collects the top words in filled coarse buckets without
/// branching, and looks them up later, when the stores have long completed.
#[derive(Debug, Zeroable)]
pub struct LookupScreen {
    /// A copy of the filter's coarse bitmap, beside the other data, because every top word is
    /// looked up in it.
    coarse: [u32; COARSE_WORDS],
    /// The collected top words, `count` of them. A store writes a whole vector.
    top_words: [u32; ROOM],
    count: usize,
    /// The indices in `top_words` of those kept for the second lookup.
    places: [u32; ROOM],
    /// `count` after each slot.
    ends: [u16; SLOTS],
    /// Number of slots filled so far.
    slots: usize,
}

impl Screen<Fe8> for LookupScreen {
    fn begin(&mut self, filter: &Filter, _: &[Entry<Fe>]) {
        self.coarse.copy_from_slice(filter.coarse());
    }

    #[inline(always)]
    fn add(
        &mut self,
        _: &Filter,
        centre: &Centre<Fe8>,
        entry: &Entry<Fe8>,
        products: &Products<Fe8>,
        rotated: &Rotated<Fe8>,
        place: Place,
    ) {
        let slot = place.slot;
        let mut count = self.count;
        for some in products.top_words(rotated, centre, entry) {
            let marked = in_buckets(some, &self.coarse);
            // SAFETY: the contract above; at most 144 top words a slot come before, so 16 more have
            // room.
            unsafe {
                let together = _mm512_maskz_compress_epi32(marked, some);
                _mm512_storeu_si512(self.top_words.as_mut_ptr().add(count).cast(), together);
            }
            count += marked.count_ones() as usize;
        }
        self.count = count;
        self.ends[slot] = count as u16;
        self.slots = slot + 1;
    }

    #[inline(always)]
    fn take_suspects(&mut self, filter: &Filter) -> u32 {
        let mut slots = 0;
        // First, the top words in filled fine buckets move together in place, and their indices are
        // kept.
        let (count, mut at) = (std::mem::take(&mut self.count), 0);
        let mut kept = 0;
        while at < count {
            // SAFETY: the contract above; both arrays have room for 16 beyond any count, and writes
            // stay behind reads.
            unsafe {
                let some = _mm512_loadu_si512(self.top_words.as_ptr().add(at).cast());
                let filled = in_fine_buckets(some, valid(count - at), filter);
                let places = _mm512_add_epi32(
                    _mm512_set1_epi32(at as i32),
                    _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                );
                let (some, places) =
                    (_mm512_maskz_compress_epi32(filled, some), _mm512_maskz_compress_epi32(filled, places));
                _mm512_storeu_si512(self.top_words.as_mut_ptr().add(kept).cast(), some);
                _mm512_storeu_si512(self.places.as_mut_ptr().add(kept).cast(), places);
                kept += filled.count_ones() as usize;
            }
            at += 16;
        }
        let mut at = 0;
        while at < kept {
            // SAFETY: as above.
            let some = unsafe { _mm512_loadu_si512(self.top_words.as_ptr().add(at).cast()) };
            let mut found = in_ranges(some, valid(kept - at), filter);
            while found != 0 {
                let place = self.places[at + found.trailing_zeros() as usize];
                found &= found - 1;
                let slot = self.ends[..self.slots].partition_point(|&end| u32::from(end) <= place);
                slots |= 1 << slot;
            }
            at += 16;
        }
        slots
    }
}

/// Bits of the first `count` of sixteen, or of all.
#[inline(always)]
fn valid(count: usize) -> u16 {
    if count < 16 { (1 << count) - 1 } else { u16::MAX }
}

/// See [`crate::search::cpu::screen::Screened::marks`].
#[inline(always)]
pub fn marks(filter: &Filter, top_words: &[__m512i; 9]) -> Marks {
    let mut marks = [0; 9];
    for n in 0..9 {
        marks[n] = in_buckets(top_words[n], filter.coarse());
    }
    marks
}

/// Bits of the top words in filled coarse buckets.
#[inline(always)]
fn in_buckets(top_words: __m512i, buckets: &[u32; COARSE_WORDS]) -> u16 {
    // SAFETY: the contract above; there is a bit for every bucket, so every word that is gathered
    // is one of these. A rotation takes its count modulo 32, which is the bit's place in the word.
    unsafe {
        let word = _mm512_srli_epi32::<{ 32 - COARSE_BITS + 5 }>(top_words);
        let words = _mm512_i32gather_epi32::<4>(word, buckets.as_ptr().cast());
        let turned = _mm512_rorv_epi32(words, _mm512_srli_epi32::<{ 32 - COARSE_BITS }>(top_words));
        _mm512_test_epi32_mask(turned, _mm512_set1_epi32(1))
    }
}

/// Bits of the valid top words in filled fine buckets.
#[inline(always)]
fn in_fine_buckets(top_words: __m512i, valid: u16, filter: &Filter) -> u16 {
    let buckets = filter.buckets();
    // SAFETY: the contract above; there is a bit for every bucket, so every word that is gathered
    // is one of these.
    unsafe {
        let bucket = _mm512_srl_epi32(top_words, _mm_cvtsi32_si128(filter.place_bits() as i32));
        let words = _mm512_i32gather_epi32::<4>(_mm512_srli_epi32::<5>(bucket), buckets.as_ptr().cast());
        _mm512_mask_test_epi32_mask(valid, _mm512_rorv_epi32(words, bucket), _mm512_set1_epi32(1))
    }
}

/// Bits of the valid top words in their bucket's ranges of places. All valid ones are in filled
/// buckets.
#[inline(always)]
fn in_ranges(top_words: __m512i, valid: u16, filter: &Filter) -> u16 {
    let (buckets, ranks, [one, two]) = (filter.buckets(), filter.ranks(), filter.places());
    let mut found = 0;
    // SAFETY: the contract above; a valid lane's bucket has its bit set, so its rank is below the
    // number of set bits, which is how many ranges there are. No other lane is gathered.
    unsafe {
        let zero = _mm512_setzero_si512();
        let bucket = _mm512_srl_epi32(top_words, _mm_cvtsi32_si128(filter.place_bits() as i32));
        let bit = _mm512_and_si512(bucket, _mm512_set1_epi32(31));
        let below = _mm512_sub_epi32(_mm512_sllv_epi32(_mm512_set1_epi32(1), bit), _mm512_set1_epi32(1));
        let word = _mm512_srli_epi32::<5>(bucket);
        let words = _mm512_mask_i32gather_epi32::<4>(zero, valid, word, buckets.as_ptr().cast());
        let rank = _mm512_mask_i32gather_epi32::<4>(zero, valid, word, ranks.as_ptr().cast());
        let rank = _mm512_add_epi32(rank, _mm512_popcnt_epi32(_mm512_and_si512(words, below)));
        let place = _mm512_and_si512(top_words, _mm512_set1_epi32((1 << filter.place_bits()) - 1));
        for places in [one, two] {
            let range = _mm512_mask_i32gather_epi32::<4>(zero, valid, rank, places.as_ptr().cast());
            let begun = _mm512_mask_cmple_epu32_mask(valid, _mm512_srli_epi32::<16>(range), place);
            let last = _mm512_and_si512(range, _mm512_set1_epi32(0xffff));
            found |= _mm512_mask_cmple_epu32_mask(begun, place, last);
        }
    }
    found
}

/// Bits of the lanes with a top word in an interval, by its upper 32 bits.
#[inline(always)]
fn nearest(top_words: &[__m512i; 9], first: u64, last: u64) -> u16 {
    let (first, last) = ((first >> 32) as i32, (last >> 32) as i32);
    // SAFETY: the contract above.
    unsafe {
        let first_in_all = _mm512_set1_epi32(first);
        let mut least = _mm512_sub_epi32(top_words[0], first_in_all);
        for &top in &top_words[1..] {
            least = _mm512_min_epu32(least, _mm512_sub_epi32(top, first_in_all));
        }
        _mm512_cmple_epu32_mask(least, _mm512_set1_epi32(last.wrapping_sub(first)))
    }
}
