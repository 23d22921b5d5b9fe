//! The top words of the IFMA kernel compared with intervals and looked up: the operations of the common
//! screens, and a screen for some dozens of intervals.
//!
//! The contract of every `unsafe` is that of the module `ifma`.

use super::field::Fe8;
use crate::search::cpu::cells::{CELL_SHIFT, MAX_TABLES, SLOTS_OF_TABLE};
use crate::search::cpu::filter::{COARSE_BITS, COARSE_WORDS, Filter};
use crate::search::cpu::formula::Row;
use crate::search::cpu::lookup::{ROOM, VectorTopWords};
use crate::search::cpu::screen::{Marks, Place, Screen};
use crate::search::cpu::table::Table;
use bytemuck::Zeroable;
use std::arch::x86_64::*;

impl VectorTopWords for Fe8 {
    #[inline(always)]
    fn collect(top_words: __m512i, coarse: &[u32; COARSE_WORDS], collected: &mut [u32; ROOM], count: usize) -> usize {
        let marked = in_buckets(top_words, coarse);
        // SAFETY: the contract above; at most 144 top words a slot come before, so 16 more have room.
        unsafe {
            let together = _mm512_maskz_compress_epi32(marked, top_words);
            _mm512_storeu_si512(collected.as_mut_ptr().add(count).cast(), together);
        }
        count + marked.count_ones() as usize
    }

    #[inline(always)]
    fn equal(top_words: __m512i, word: u32) -> u16 {
        // SAFETY: the contract above.
        unsafe { _mm512_cmpeq_epi32_mask(top_words, _mm512_set1_epi32(word as i32)) }
    }

    #[inline(always)]
    fn keep_fine(
        words: &mut [u32; ROOM],
        (count, turn): (usize, u32),
        kept: &mut [u32; ROOM],
        filter: &Filter,
    ) -> usize {
        let (mut at, mut number, buckets) = (0, 0, filter.buckets());
        while at < count {
            let valid = if count - at < 16 { (1 << (count - at)) - 1 } else { u16::MAX };
            // SAFETY: the contract above; both arrays have room for 16 beyond any count, and writes
            // stay behind reads. There is a bit for every bucket, so every word that is gathered is
            // one of these.
            unsafe {
                let some = _mm512_loadu_si512(words.as_ptr().add(at).cast());
                let some = _mm512_rorv_epi32(some, _mm512_set1_epi32(turn as i32));
                let bucket = _mm512_srl_epi32(some, _mm_cvtsi32_si128(filter.place_bits() as i32));
                let bits = _mm512_i32gather_epi32::<4>(_mm512_srli_epi32::<5>(bucket), buckets.as_ptr().cast());
                let filled = _mm512_mask_test_epi32_mask(valid, _mm512_rorv_epi32(bits, bucket), _mm512_set1_epi32(1));
                let indices = _mm512_add_epi32(
                    _mm512_set1_epi32(at as i32),
                    _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                );
                let (some, indices) =
                    (_mm512_maskz_compress_epi32(filled, some), _mm512_maskz_compress_epi32(filled, indices));
                _mm512_storeu_si512(words.as_mut_ptr().add(number).cast(), some);
                _mm512_storeu_si512(kept.as_mut_ptr().add(number).cast(), indices);
                number += filled.count_ones() as usize;
            }
            at += 16;
        }
        number
    }
}

/// See [`crate::search::cpu::screen::Screened::is_one_within`].
#[inline(always)]
pub fn is_one_within(top_words: &[__m512i; 9], first: u32, width: u32) -> bool {
    // SAFETY: the contract above.
    unsafe {
        let first = _mm512_set1_epi32(first as i32);
        let mut least = _mm512_sub_epi32(top_words[0], first);
        for &top in &top_words[1..] {
            least = _mm512_min_epu32(least, _mm512_sub_epi32(top, first));
        }
        _mm512_cmple_epu32_mask(least, _mm512_set1_epi32(width as i32)) != 0
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

/// A table for vectors of 32 numbers of 16 bits.
#[derive(Clone, Copy, Debug, Zeroable)]
struct CellTable {
    slots: [[u16; SLOTS_OF_TABLE / 2]; 2],
    /// The shift, in every lane.
    shift: [u16; 32],
}

/// A screen that looks every top word up in the filter's cells.
#[derive(Debug, Zeroable)]
pub struct CellScreen {
    tables: [CellTable; MAX_TABLES],
    /// Tables in use.
    count: usize,
    /// Bits of the slots with a top word in a cell.
    suspects: u64,
}

impl Screen<Fe8> for CellScreen {
    fn begin(&mut self, filter: &Filter, _: &Table<Fe8>) {
        let Some(cells) = filter.cells() else { return };
        self.count = cells.tables().len();
        for (table, cells) in self.tables.iter_mut().zip(cells.tables()) {
            table.shift = [cells.shift; 32];
            table.slots[0].copy_from_slice(&cells.slots[..32]);
            table.slots[1].copy_from_slice(&cells.slots[32..]);
        }
    }

    #[inline(always)]
    fn add<const W: usize>(&mut self, _: &Filter, row: &Row<Fe8, W>, place: Place) {
        for w in 0..W {
            let top_words = row.top_words(w);
            let passes = match self.count {
                1 => self.passes::<1>(&top_words),
                2 => self.passes::<2>(&top_words),
                _ => self.passes::<MAX_TABLES>(&top_words),
            };
            self.suspects |= u64::from(passes) << (place.slot + w);
        }
    }

    #[inline(always)]
    fn take_suspects(&mut self, _: &Filter, _: bool) -> u64 {
        std::mem::take(&mut self.suspects)
    }
}

impl CellScreen {
    /// Whether a top word is in a cell of the first `COUNT` tables.
    #[inline(always)]
    fn passes<const COUNT: usize>(&self, top_words: &[__m512i; 9]) -> bool {
        // SAFETY: the contract above; the arrays are 64 readable bytes each.
        unsafe {
            let (high_halves, low_halves) = (halves(1), halves(0));
            let mut unlike = u32::MAX;
            for pair in 0..5 {
                let (one, other) = (top_words[2 * pair], top_words[(2 * pair + 1).min(8)]);
                let high = _mm512_permutex2var_epi16(one, high_halves, other);
                let low = _mm512_permutex2var_epi16(one, low_halves, other);
                let last = _mm512_srli_epi16::<CELL_SHIFT>(low);
                for table in &self.tables[..COUNT] {
                    let shift = _mm512_loadu_si512(table.shift.as_ptr().cast());
                    let place = _mm512_xor_si512(last, _mm512_srlv_epi16(high, shift));
                    let [first, second] = [&table.slots[0], &table.slots[1]];
                    let found = _mm512_permutex2var_epi16(
                        _mm512_loadu_si512(first.as_ptr().cast()),
                        place,
                        _mm512_loadu_si512(second.as_ptr().cast()),
                    );
                    unlike = _mm512_mask_cmpneq_epi16_mask(unlike, found, high);
                }
            }
            unlike != u32::MAX
        }
    }
}

/// Indices of the lower or the upper halves of two vectors of 32-bit numbers.
#[inline(always)]
fn halves(upper: u16) -> __m512i {
    let mut indices = [0u16; 32];
    for (at, index) in indices.iter_mut().enumerate() {
        *index = 2 * at as u16 + upper;
    }
    // SAFETY: the contract above; the array is 64 readable bytes.
    unsafe { _mm512_loadu_si512(indices.as_ptr().cast()) }
}
