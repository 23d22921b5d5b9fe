//! The top words of an entry around four centres, one centre in each 64-bit lane, and the screens
//! that test them.
//!
//! **Truncated products.** Of a product w·y modulo p only the upper 32 bits are wanted. With w0…w7
//! the limbs of w of 32 bits, and f_i and g_i the two uppermost limbs of `y·2^(32·i) mod p`:
//!
//! ```text
//! top word of w·y  =  Σ w_i·(f_i + g_i/2^32)  modulo 2^32        g_i = f_(i+1)
//! ```
//!
//! Nine numbers f0…f8 are the prepared factor of y, which serves four products. f0…f5 are the limbs
//! y7…y2; f6 is y1, f7 is y0 + y7 and f8 is y6 + 977·y7, each with what is folded or carried into it.
//!
//! **Error.** The omitted part of each of the first seven factors is below one unit of g_i, that of
//! the last below 2.1 units. Dropping the fraction of the sum of the w_i·g_i is less than one more.
//! So a top word is 0 to 11 too low, and [`CENTRING`] makes it -6 to 5.
//!
//! The contract of every `unsafe` is that of the module `avx2`.

use super::CENTRES;
use crate::search::cpu::field::Fe;
use crate::search::cpu::filter::{COARSE_BITS, Filter};
use crate::search::cpu::formula::{Centre, Row};
use crate::search::cpu::screen::{Place, Screen};
use bytemuck::Zeroable;
use std::arch::x86_64::*;

/// Top words whose bits are collected in one number. A multiple of the words of a vector.
const WORDS_TOGETHER: usize = 24;
/// Added to each truncated product, so that its error is about as large in both directions.
const CENTRING: i32 = 5;

/// The largest error of a candidate's top word in both directions, in units of 2^-64 of the field. A
/// truncated product is off by -6 to 5, its rotation by β² (minus the sum of the other two) by -10
/// to 12. A candidate sums three such terms of `a` and three of `b`, which makes 72. The dropped
/// fractions of the centre's x and the entry's x, and a residue that wrapped past p in each of eight
/// terms, add less than 16.
pub const SLACK: u64 = 88 << 32;

/// A screen of rows: compares each top word with every interval if there are FEW, and otherwise looks
/// it up in the filter's buckets.
#[derive(Debug, Zeroable)]
pub struct RowScreen<const FEW: bool> {
    /// The top words of the centres' x and βx, less the [`CENTRING`].
    centres: [[u32; 2 * CENTRES]; 2],
    /// Bits of the slots with a top word in an interval.
    suspects: u64,
}

impl<const FEW: bool> Screen<Fe<true>> for RowScreen<FEW> {
    fn begin_round(&mut self, centres: &[Centre<Fe<true>>]) {
        self.centres = top_words_of_centres(centres);
    }

    #[inline(always)]
    fn add<const W: usize>(&mut self, filter: &Filter, row: &Row<Fe<true>, W>, place: Place) {
        // SAFETY: the contract above.
        let marked = unsafe { marked_centres::<FEW, W>(filter, row, &self.centres) };
        self.suspects |= u64::from(marked) << place.slot;
    }

    #[inline(always)]
    fn take_suspects(&mut self, _: &Filter, _: bool) -> u64 {
        std::mem::take(&mut self.suspects)
    }
}

/// Bits of the centres with a top word in an interval. A function of its own: in one with the products
/// the compiler keeps fewer numbers in registers.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline(never)]
fn marked_centres<const FEW: bool, const W: usize>(
    filter: &Filter,
    row: &Row<Fe<true>, W>,
    centres: &[[u32; 2 * CENTRES]; 2],
) -> u32 {
    let top_words = top_words_of_row(row, centres);
    if FEW { compared(filter, &top_words) } else { looked_up(filter, &top_words) }
}

/// Bits of the centres with a top word in an interval.
#[inline(always)]
fn compared(filter: &Filter, top_words: &[__m256i; 9]) -> u32 {
    let mut words = 0;
    for &(first, last) in filter.widened() {
        let (first, last) = ((first >> 32) as i32, (last >> 32) as i32);
        // SAFETY: the contract above.
        unsafe {
            let first_in_all = _mm256_set1_epi32(first);
            let mut least = _mm256_sub_epi32(top_words[0], first_in_all);
            for &top in &top_words[1..] {
                least = _mm256_min_epu32(least, _mm256_sub_epi32(top, first_in_all));
            }
            let within = _mm256_min_epu32(least, _mm256_set1_epi32(last.wrapping_sub(first)));
            words |= _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(least, within)));
        }
    }
    // A centre has two neighbouring words.
    let either = words | words >> 1;
    (either & 1 | either >> 1 & 2 | either >> 2 & 4 | either >> 3 & 8) as u32
}

/// Bits of the centres with a top word that the filter marks. Looks each word up in the coarse bitmap
/// by a load: gathers are slow on many processors. Few words are left for the finer tables.
#[inline(always)]
fn looked_up(filter: &Filter, top_words: &[__m256i; 9]) -> u32 {
    let coarse = filter.coarse();
    let words = stored(top_words);
    let mut marked = 0;
    for words in words.as_flattened().chunks_exact(WORDS_TOGETHER) {
        let mut filled = 0u64;
        for word in words.iter().rev() {
            let bucket = word >> (32 - COARSE_BITS);
            filled = filled << 1 | u64::from(coarse[bucket as usize / 32] >> (bucket % 32) & 1);
        }
        while filled != 0 {
            let at = filled.trailing_zeros() as usize;
            filled &= filled - 1;
            marked |= u32::from(filter.is_marked(u64::from(words[at]) << 32)) << (at % (2 * CENTRES) / 2);
        }
    }
    marked
}

/// The top words in memory.
#[inline(always)]
fn stored(top_words: &[__m256i; 9]) -> [[u32; 8]; 9] {
    let mut words = [[0; 8]; 9];
    for (words, &some) in words.iter_mut().zip(top_words) {
        // SAFETY: the contract above; the array is 32 writable bytes.
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), some) }
    }
    words
}

/// The top words of x and βx of these centres, less the [`CENTRING`].
fn top_words_of_centres(centres: &[Centre<Fe<true>>]) -> [[u32; 2 * CENTRES]; 2] {
    let mut top_words = [[0; 2 * CENTRES]; 2];
    for (at, centre) in centres.iter().enumerate() {
        for (top_words, [sum, difference]) in top_words.iter_mut().zip(centre.x_top_words) {
            top_words[2 * at] = ((sum >> 32) as u32).wrapping_sub(2 * CENTRING as u32);
            top_words[2 * at + 1] = (difference >> 32) as u32;
        }
    }
    top_words
}

/// The approximate top words of an entry's candidates, each at `[3·k + j][2·centre + sign]`.
#[cfg(test)]
#[target_feature(enable = "avx2")]
pub fn top_words_in_memory(row: &Row<Fe<true>, CENTRES>) -> [[u32; 2 * CENTRES]; 9] {
    stored(&top_words_of_row(row, &top_words_of_centres(row.centres)))
}

/// The approximate top words of all candidates of an entry, those of a turn and a rotation in each
/// vector. The lower half of a lane is the sum's, the upper half the difference's. `centres` has the
/// top words of the centres' x and βx.
#[inline(always)]
pub fn top_words_of_row<const W: usize>(row: &Row<Fe<true>, W>, centres: &[[u32; 2 * CENTRES]; 2]) -> [__m256i; 9] {
    let factors = [[&row.a, &row.b], [&row.beta_a, &row.beta_b]];
    // SAFETY: the contract above; the arrays are 32 readable bytes.
    unsafe {
        let zero = _mm256_setzero_si256();
        let mut prepared = [[zero; 9]; 3];
        for (prepared, y) in prepared.iter_mut().zip(&row.y) {
            *prepared = prepare(&limbs_of(y));
        }
        let centring = _mm256_set1_epi64x(2 * i64::from(CENTRING));
        let mut terms = [[zero; 3]; 3];
        for j in 0..2 {
            let (a, b) = (limbs_of(factors[j][0]), limbs_of(factors[j][1]));
            for i in 0..3 {
                let (a, b) = (truncated_product(&a, &prepared[i]), truncated_product(&b, &prepared[i]));
                let difference = _mm256_slli_epi64::<32>(_mm256_sub_epi32(a, b));
                terms[i][j] = _mm256_blend_epi32::<0b1010_1010>(_mm256_add_epi32(a, b), difference);
            }
            let centre = _mm256_loadu_si256(centres[j].as_ptr().cast());
            let entry = _mm256_set1_epi32((row.entry.x_top_words[j] >> 32) as i32);
            terms[0][j] = _mm256_sub_epi32(terms[0][j], centre);
            terms[1][j] = _mm256_add_epi32(_mm256_sub_epi32(terms[1][j], entry), centring);
            terms[2][j] = _mm256_add_epi32(terms[2][j], centring);
        }
        for term in &mut terms {
            // β² is -1 - β.
            term[2] = _mm256_sub_epi32(zero, _mm256_add_epi32(term[0], term[1]));
        }
        let mut top_words = [zero; 9];
        for k in 0..3 {
            for j in 0..3 {
                let two = _mm256_add_epi32(terms[0][j], terms[1][(j + k) % 3]);
                top_words[k * 3 + j] = _mm256_add_epi32(two, terms[2][(j + 2 * k) % 3]);
            }
        }
        top_words
    }
}

/// The limbs of 32 bits of four numbers, the least first. Those with an even index have the next
/// limb in the upper half of their lanes.
#[inline(always)]
fn limbs_of(numbers: &[Fe<true>]) -> [__m256i; 8] {
    // SAFETY: the contract above; a number is 32 readable bytes.
    unsafe {
        let r0 = _mm256_loadu_si256(numbers[0].0.as_ptr().cast());
        let r1 = _mm256_loadu_si256(numbers[1].0.as_ptr().cast());
        let r2 = _mm256_loadu_si256(numbers[2].0.as_ptr().cast());
        let r3 = _mm256_loadu_si256(numbers[3].0.as_ptr().cast());
        let (a, b) = (_mm256_unpacklo_epi64(r0, r1), _mm256_unpackhi_epi64(r0, r1));
        let (c, d) = (_mm256_unpacklo_epi64(r2, r3), _mm256_unpackhi_epi64(r2, r3));
        let (l0, l2) = (_mm256_permute2x128_si256::<0x20>(a, c), _mm256_permute2x128_si256::<0x20>(b, d));
        let (l4, l6) = (_mm256_permute2x128_si256::<0x31>(a, c), _mm256_permute2x128_si256::<0x31>(b, d));
        [l0, upper(l0), l2, upper(l2), l4, upper(l4), l6, upper(l6)]
    }
}

/// f0…f8 of y with these limbs. Only the lower halves of the lanes count.
#[inline(always)]
fn prepare(y: &[__m256i; 8]) -> [__m256i; 9] {
    // SAFETY: the contract above.
    unsafe {
        let (factor, mask) = (_mm256_set1_epi64x(977), _mm256_set1_epi64x(0xffff_ffff));
        let (y7, y6) = (_mm256_mul_epu32(y[7], factor), _mm256_mul_epu32(y[6], factor));
        let f8 = plus(plus(_mm256_and_si256(y7, mask), _mm256_and_si256(y[6], mask)), upper(y6));
        let f7 = plus(plus(_mm256_and_si256(y[0], mask), y[7]), plus(upper(y7), upper(f8)));
        let f6 = plus(y[1], upper(f7));
        // Carries that go so far are rare.
        let f5 = plus(_mm256_and_si256(y[2], mask), upper(f6));
        let f4 = plus(y[3], upper(f5));
        let f3 = plus(_mm256_and_si256(y[4], mask), upper(f4));
        let f2 = plus(y[5], upper(f3));
        let f1 = plus(_mm256_and_si256(y[6], mask), upper(f2));
        [plus(y[7], upper(f1)), f1, f2, f3, f4, f5, f6, f7, f8]
    }
}

/// The top words of w·y, in the lower halves of the lanes.
#[inline(always)]
fn truncated_product(w: &[__m256i; 8], y: &[__m256i; 9]) -> __m256i {
    // SAFETY: the contract above.
    unsafe {
        let (mut top, mut next) = (_mm256_mul_epu32(w[0], y[0]), _mm256_mul_epu32(w[0], y[1]));
        macro_rules! add_limbs {
            ($($i:literal)*) => {
                $(
                    top = plus(top, _mm256_mul_epu32(w[$i], y[$i]));
                    next = plus(next, _mm256_mul_epu32(w[$i], y[$i + 1]));
                )*
            };
        }
        add_limbs!(1 2 3 4 5 6 7);
        plus(top, upper(next))
    }
}

/// `a + b`, in lanes of 64 bits.
#[inline(always)]
fn plus(a: __m256i, b: __m256i) -> __m256i {
    // SAFETY: the contract above.
    unsafe { _mm256_add_epi64(a, b) }
}

/// The upper halves of the lanes.
#[inline(always)]
fn upper(a: __m256i) -> __m256i {
    // SAFETY: the contract above.
    unsafe { _mm256_srli_epi64::<32>(a) }
}
