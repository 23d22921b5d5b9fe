//! The screen of the IFMA kernel for a few intervals, and the lookup of top words in the filter's
//! coarse buckets.
//!
//! The contract of every `unsafe` is that of the module `ifma`.

use super::fe8::Fe8;
use crate::search::cpu::filter::{COARSE_BITS, COARSE_WORDS, Filter};
use crate::search::cpu::formula::Row;
use crate::search::cpu::screen::{Marks, Place, Screen};
use bytemuck::Zeroable;
use std::arch::x86_64::*;

/// A screen for few intervals: compares every top word with every interval.
#[derive(Debug, Zeroable)]
pub struct CompareScreen {
    /// Bits of the slots with a top word in an interval.
    suspects: u64,
}

impl Screen<Fe8> for CompareScreen {
    #[inline(always)]
    fn add<const W: usize>(&mut self, filter: &Filter, row: &Row<Fe8, W>, place: Place) {
        for w in 0..W {
            let top_words = row.top_words(w);
            let mut any = 0;
            for &(first, last) in filter.widened() {
                any |= nearest(&top_words, first, last);
            }
            self.suspects |= u64::from(any != 0) << (place.slot + w);
        }
    }

    #[inline(always)]
    fn take_suspects(&mut self, _: &Filter, _: bool) -> u64 {
        std::mem::take(&mut self.suspects)
    }
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
pub fn in_buckets(top_words: __m512i, buckets: &[u32; COARSE_WORDS]) -> u16 {
    // SAFETY: the contract above; there is a bit for every bucket, so every word that is gathered
    // is one of these. A rotation takes its count modulo 32, which is the bit's place in the word.
    unsafe {
        let word = _mm512_srli_epi32::<{ 32 - COARSE_BITS + 5 }>(top_words);
        let words = _mm512_i32gather_epi32::<4>(word, buckets.as_ptr().cast());
        let turned = _mm512_rorv_epi32(words, _mm512_srli_epi32::<{ 32 - COARSE_BITS }>(top_words));
        _mm512_test_epi32_mask(turned, _mm512_set1_epi32(1))
    }
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
