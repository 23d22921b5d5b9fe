//! Four numbers modulo p side by side: nine digits of 29 bits, with AVX2 (`vpmuludq`).
//!
//! **The contract of every `unsafe` in this module:** the processor has AVX2, BMI1, BMI2, LZCNT and
//! POPCNT. The kernel is chosen only where [`is_supported`] is true, and only its walks use [`Fe4`].
//! Everything here is inlined into the functions of the walk for a round and a confirmation.
//!
//! **Digits.** A number is `d0 + d1·2^29 + … + d8·2^232`. No digit needs a mask before a product,
//! which reads 32 bits of it. Bounds:
//!
//! | from | d0 to d7 below | d8 below |
//! | --- | --- | --- |
//! | a constant, a product, a square, a difference | 2^29 + 2^19 | 2^24 |
//! | a product with a prepared factor | 2^29 + 2^19 | 2^26 |
//! | a sum, one of the two at most being of the second kind | 2^30 + 2^20 | 2^26 + 2^24 |
//!
//! So nine products of digits of two sums are below 2^63.2, and a product is below 2^517.

mod field;
mod text;

#[cfg(test)]
pub use field::Factor4;
pub use field::Fe4;

use super::filter::{COARSE_BITS, COARSE_WORDS, Filter};
use super::lookup::{GatherScreen, ROOM, VectorTopWords};
use super::screen::{CompareScreen, Marks, Screened};
use super::whole::WholeScreen;
use std::arch::x86_64::*;

/// Whether this processor has all instructions of the kernel.
pub fn is_supported() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

impl Screened for Fe4 {
    const HAS_ONE_LOOKUP: bool = true;
    const FEW_INTERVALS: usize = 8;

    type Few = CompareScreen;
    type Cells = GatherScreen<Fe4>;
    type Gathers = GatherScreen<Fe4>;
    type Loads = GatherScreen<Fe4>;
    type Whole = WholeScreen<Fe4>;

    #[inline(always)]
    fn marks(filter: &Filter, top_words: &[__m256i; 9]) -> Marks {
        let mut marks = [0; 9];
        for (mark, &some) in marks.iter_mut().zip(top_words) {
            let words: [u32; 8] = bytemuck::cast(some);
            for (at, word) in words.into_iter().enumerate() {
                *mark |= u16::from(filter.is_marked(word)) << (at / 2 + 8 * (at % 2));
            }
        }
        marks
    }

    #[inline(always)]
    fn is_one_within(top_words: &[__m256i; 9], first: u32, width: u32) -> bool {
        // SAFETY: the contract above.
        unsafe {
            let first = _mm256_set1_epi32(first as i32);
            let mut least = _mm256_sub_epi32(top_words[0], first);
            for &top in &top_words[1..] {
                least = _mm256_min_epu32(least, _mm256_sub_epi32(top, first));
            }
            let within = _mm256_min_epu32(least, _mm256_set1_epi32(width as i32));
            _mm256_movemask_epi8(_mm256_cmpeq_epi32(least, within)) != 0
        }
    }
}

/// For each set of eight elements, the order that brings them to the front.
static ORDERS: [[u8; 8]; 256] = {
    let mut orders = [[0; 8]; 256];
    let mut set = 0;
    while set < 256 {
        let (mut at, mut count) = (0, 0);
        while at < 8 {
            if set >> at & 1 == 1 {
                orders[set][count] = at as u8;
                count += 1;
            }
            at += 1;
        }
        set += 1;
    }
    orders
};

impl VectorTopWords for Fe4 {
    #[inline(always)]
    fn collect(top_words: __m256i, coarse: &[u32; COARSE_WORDS], collected: &mut [u32; ROOM], count: usize) -> usize {
        // SAFETY: the contract above. An index has COARSE_BITS - 5 bits, so it is inside the bitmap. At
        // most 72 top words a slot come before, so 8 more have room.
        unsafe {
            let word = _mm256_srli_epi32::<{ 32 - COARSE_BITS as i32 + 5 }>(top_words);
            let words = _mm256_i32gather_epi32::<4>(coarse.as_ptr().cast(), word);
            // The bit of the bucket becomes the sign: only its place counts of what is shifted out.
            let place = _mm256_srli_epi32::<{ 32 - COARSE_BITS as i32 }>(top_words);
            let from_top = _mm256_andnot_si256(place, _mm256_set1_epi32(31));
            let marked = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_sllv_epi32(words, from_top))) as usize;
            let order = _mm256_cvtepu8_epi32(_mm_loadl_epi64(ORDERS[marked].as_ptr().cast()));
            let together = _mm256_permutevar8x32_epi32(top_words, order);
            _mm256_storeu_si256(collected.as_mut_ptr().add(count).cast(), together);
            count + marked.count_ones() as usize
        }
    }

    #[inline(always)]
    fn equal(top_words: __m256i, word: u32) -> u16 {
        // SAFETY: the contract above.
        unsafe {
            let equal = _mm256_cmpeq_epi32(top_words, _mm256_set1_epi32(word as i32));
            let bits = _mm256_movemask_ps(_mm256_castsi256_ps(equal)) as u32;
            (_pext_u32(bits, 0x55) | _pext_u32(bits, 0xaa) << 8) as u16
        }
    }
}
