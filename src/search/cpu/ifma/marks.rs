//! Which of an entry's tops may concern anyone: compared with a few intervals, or looked up in the filter's buckets.
//!
//! The contract of every `unsafe` is that of the module above.

use crate::search::cpu::filter::Filter;
use crate::search::cpu::lanes::Marks;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// The filter's bitmap, asked for all tops, is to stay in the first cache: 16 KiB.
pub const BUCKET_BITS: u32 = 17;
pub const PLACE_BITS: u32 = 32 - BUCKET_BITS;
/// Sets of so few intervals are compared with one by one; larger ones are looked up in the map.
const FEW_INTERVALS: usize = 4;

/// See [`crate::search::cpu::lanes::Lanes::marks`].
#[inline(always)]
pub fn marks(filter: &Filter, tops: &[__m512i; 9]) -> Option<Marks> {
    let mut marks = [0; 9];
    if filter.widened().len() <= FEW_INTERVALS {
        let mut any = 0;
        for &(first, last) in filter.widened() {
            any |= nearest(tops, first, last);
        }
        if any == 0 {
            return None;
        }
        for &(first, last) in filter.widened() {
            for n in 0..9 {
                marks[n] |= within(tops[n], first, last);
            }
        }
        return Some(marks);
    }
    let mut any = 0;
    for n in 0..9 {
        marks[n] = in_buckets(tops[n], filter);
        any |= marks[n];
    }
    // Where nearly every entry has some, asking is a branch that nobody can predict.
    if (!filter.is_dense() && any == 0) || !any_in_places(tops, &marks, filter) {
        return None;
    }
    Some(marks)
}

/// Which tops are in a bucket that is not empty.
#[inline(always)]
fn in_buckets(tops: __m512i, filter: &Filter) -> u16 {
    let buckets = filter.buckets();
    // SAFETY: the contract above; there is a bit for every bucket, so every word that is gathered is one of these. A
    // rotation takes its count modulo 32, which is the bit's place in the word.
    unsafe {
        let word = _mm512_srli_epi32::<{ PLACE_BITS + 5 }>(tops);
        let words = _mm512_i32gather_epi32::<4>(word, buckets.as_ptr().cast());
        let turned = _mm512_rorv_epi32(words, _mm512_srli_epi32::<PLACE_BITS>(tops));
        _mm512_test_epi32_mask(turned, _mm512_set1_epi32(1))
    }
}

/// Which of these tops, all in buckets that are not empty, are in such a bucket's ranges of places.
#[inline(always)]
fn in_places(tops: __m512i, valid: u16, filter: &Filter) -> u16 {
    let (buckets, ranks, [one, two]) = (filter.buckets(), filter.ranks(), filter.places());
    let mut found = 0;
    // SAFETY: the contract above; a valid lane's bucket has its bit set, so its rank is below the number of set bits,
    // which is how many ranges there are. No other lane is gathered.
    unsafe {
        let zero = _mm512_setzero_si512();
        let word = _mm512_srli_epi32::<{ PLACE_BITS + 5 }>(tops);
        let bit = _mm512_and_si512(_mm512_srli_epi32::<PLACE_BITS>(tops), _mm512_set1_epi32(31));
        let below = _mm512_sub_epi32(_mm512_sllv_epi32(_mm512_set1_epi32(1), bit), _mm512_set1_epi32(1));
        let words = _mm512_mask_i32gather_epi32::<4>(zero, valid, word, buckets.as_ptr().cast());
        let rank = _mm512_mask_i32gather_epi32::<4>(zero, valid, word, ranks.as_ptr().cast());
        let rank = _mm512_add_epi32(rank, _mm512_popcnt_epi32(_mm512_and_si512(words, below)));
        let place = _mm512_and_si512(tops, _mm512_set1_epi32((1 << PLACE_BITS) - 1));
        for places in [one, two] {
            let range = _mm512_mask_i32gather_epi32::<4>(zero, valid, rank, places.as_ptr().cast());
            let begun = _mm512_mask_cmple_epu32_mask(valid, _mm512_srli_epi32::<16>(range), place);
            let last = _mm512_and_si512(range, _mm512_set1_epi32(0xffff));
            found |= _mm512_mask_cmple_epu32_mask(begun, place, last);
        }
    }
    found
}

/// Whether any of the marked tops is in its bucket's places. They are moved together first: a few of the 144 are marked,
/// and four times as many looks are needed as for the mark.
#[inline(always)]
fn any_in_places(tops: &[__m512i; 9], marks: &Marks, filter: &Filter) -> bool {
    let mut together = [MaybeUninit::<u32>::uninit(); 9 * 16 + 16];
    let mut count = 0;
    for n in 0..9 {
        // SAFETY: the contract above; at most 16 tops a word come before, so 16 more have room.
        unsafe {
            let marked = _mm512_maskz_compress_epi32(marks[n], tops[n]);
            _mm512_storeu_si512(together.as_mut_ptr().add(count).cast(), marked);
        }
        count += marks[n].count_ones() as usize;
    }
    let mut at = 0;
    loop {
        // SAFETY: the contract above; what is read was written, as each store writes 16.
        let some = unsafe { _mm512_loadu_si512(together.as_ptr().add(at).cast()) };
        let valid = if count - at < 16 { (1 << (count - at)) - 1 } else { u16::MAX };
        if in_places(some, valid, filter) != 0 {
            return true;
        }
        at += 16;
        if at >= count {
            return false;
        }
    }
}

/// Which tops have their upper 32 bits in an interval.
#[inline(always)]
fn within(tops: __m512i, first: u64, last: u64) -> u16 {
    let (first, last) = ((first >> 32) as i32, (last >> 32) as i32);
    // SAFETY: the contract above.
    unsafe {
        let above = _mm512_sub_epi32(tops, _mm512_set1_epi32(first));
        _mm512_cmple_epu32_mask(above, _mm512_set1_epi32(last.wrapping_sub(first)))
    }
}

/// Whether any top has: zero if none.
#[inline(always)]
fn nearest(tops: &[__m512i; 9], first: u64, last: u64) -> u16 {
    let (first, last) = ((first >> 32) as i32, (last >> 32) as i32);
    // SAFETY: the contract above.
    unsafe {
        let first_in_all = _mm512_set1_epi32(first);
        let mut least = _mm512_sub_epi32(tops[0], first_in_all);
        for &top in &tops[1..] {
            least = _mm512_min_epu32(least, _mm512_sub_epi32(top, first_in_all));
        }
        _mm512_cmple_epu32_mask(least, _mm512_set1_epi32(last.wrapping_sub(first)))
    }
}
