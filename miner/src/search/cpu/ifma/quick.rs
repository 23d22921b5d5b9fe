//! Quick tests of whole keys, eight side by side. The contract of every `unsafe` is that of the
//! module `ifma`.

use super::field::Fe8;
use super::keys::{Limbs, unsure};
use super::text::{matrices_of, transposed, words_of};
use super::vector::{all, load, right};
use crate::pattern::TextTests;
use crate::search::cpu::quick::{Equal, MAX_GROUPS, MAX_VALUES, PARITIES, QuickTests, WORDS};
use crate::search::cpu::simd::SimdField;
use crate::search::cpu::text::passes_a_test;
use bytemuck::Zeroable;
use std::arch::x86_64::*;

/// Number of parities that are computed together: the bits of a byte.
const TOGETHER: usize = 8;

/// Number of keys that are tested together: those of two points.
const KEYS: usize = 6;

/// [`QuickTests`] in the form that the IFMA kernel reads.
#[derive(Zeroable)]
pub struct Quick8 {
    /// Mask and value of the lowest limb, if `has_low` is not zero.
    low: [u64; 2],
    has_low: usize,
    groups: usize,
    /// For each limb of a key, or for each word of 64 bits if words are compared, a matrix for each
    /// byte of a lane.
    matrices: [[[[u64; 8]; 5]; PARITIES / TOGETHER]; MAX_GROUPS],
    /// Numbers of values for even and for odd words.
    counts: [usize; 2],
    /// The values, packed into four words of 64 bits, the same in every lane.
    values: [[[[u64; 8]; 4]; MAX_VALUES]; 2],
    has_equal: [usize; 2],
    compares_words: usize,
}

impl Quick8 {
    /// Prepares quick tests.
    pub fn new(tests: &QuickTests) -> Quick8 {
        let mut quick = Quick8::zeroed();
        if let Some((mask, value)) = tests.low {
            (quick.low, quick.has_low) = ([mask, value], 1);
        }
        quick.groups = tests.parities.len();
        let bits = if tests.compares_words() { 64 } else { 52 };
        for (matrices, masks) in quick.matrices.iter_mut().zip(&tests.parities) {
            for (matrices, masks) in matrices.iter_mut().zip(masks.chunks_exact(TOGETHER)) {
                *matrices = matrices_of(masks, bits);
            }
        }
        for (n, rounds) in [&tests.even, &tests.odd].into_iter().enumerate() {
            quick.counts[n] = rounds.len();
            for (to, values) in quick.values[n].iter_mut().zip(rounds) {
                for at in 0..WORDS {
                    let value = u64::from(values[at]) << (16 * (at % 4));
                    to[at / 4].iter_mut().for_each(|lane| *lane |= value);
                }
            }
        }
        quick.compares_words = usize::from(tests.compares_words());
        quick.has_equal = [Equal::Even, Equal::EvenAndOdd].map(|equal| usize::from(tests.equal as u8 >= equal as u8));
        quick
    }

    /// Whether one of these keys passes a quick test and a test of its text, or may be p or more.
    /// The tests are only right for a key below p.
    #[inline(always)]
    pub fn passes_one(&self, keys: &[Limbs; KEYS], tests: &TextTests) -> bool {
        let mut found = 0;
        if self.compares_words != 0 {
            let mut words = [[keys[0][0]; 4]; KEYS];
            for n in 0..KEYS {
                words[n] = words_of(&keys[n]);
            }
            found |= self.have_words(&words) | self.have_even_parities(&words);
        } else if self.groups > 0 {
            found |= self.have_even_parities(keys);
        }
        if self.has_low != 0 {
            found |= self.have_low_bits(keys);
        }
        unsure(keys) != 0 || found != 0 && has_one(keys, found, tests)
    }

    /// Bits of the keys, eight for each, that pass a group of parities. The `N` parts of a key are
    /// its limbs or its words of 64 bits.
    #[inline(always)]
    fn have_even_parities<const N: usize>(&self, keys: &[[__m512i; N]; KEYS]) -> u64 {
        let mut found = 0;
        for matrices in &self.matrices[..self.groups] {
            let some = are_even(keys, &matrices[0]);
            // Few keys pass the first eight parities.
            if some != 0 {
                found |= some & are_even(keys, &matrices[1]);
            }
        }
        found
    }

    #[inline(always)]
    fn have_low_bits(&self, keys: &[Limbs; KEYS]) -> u64 {
        let [mask, value] = self.low.map(|bits| all(bits as i64));
        let mut found = 0;
        for (n, key) in keys.iter().enumerate() {
            // SAFETY: the processor has the instructions (the contract of `super`).
            let lanes = unsafe { _mm512_testn_epi64_mask(_mm512_xor_si512(key[0], value), mask) };
            found |= u64::from(lanes) << (8 * n);
        }
        found
    }

    /// Bits of the keys, eight for each, of which a word of 16 bits has one of its values.
    #[inline(always)]
    fn have_words(&self, keys: &[[__m512i; 4]; KEYS]) -> u64 {
        let mut others = [u32::MAX; KEYS];
        let mut all_others = u32::MAX;
        for (others, key) in others.iter_mut().zip(keys) {
            *others = self.other_words(key);
            all_others &= *others;
        }
        let mut found = 0;
        if all_others == u32::MAX {
            return found;
        }
        for (n, others) in others.iter().enumerate() {
            let mut words = !others;
            while words != 0 {
                found |= 1 << (8 * n as u32 + words.trailing_zeros() / 4);
                words &= words - 1;
            }
        }
        found
    }

    /// Four bits for each lane, one for each place of a word of 16 bits in 64 bits. A bit is set if
    /// none of the words at that place, in the key's four words of 64 bits, has one of its values.
    #[inline(always)]
    fn other_words(&self, even: &[__m512i; 4]) -> u32 {
        let mut others = u32::MAX;
        for values in &self.values[0][..self.counts[0]] {
            for at in 0..4 {
                // SAFETY: the processor has the instructions (the contract of `super`).
                others = unsafe { _mm512_mask_cmpneq_epi16_mask(others, even[at], load(&values[at])) };
            }
        }
        if self.counts[1] + self.has_equal[1] > 0 {
            let odd = odd_words(even);
            for values in &self.values[1][..self.counts[1]] {
                for at in 0..4 {
                    // SAFETY: as above.
                    others = unsafe { _mm512_mask_cmpneq_epi16_mask(others, odd[at], load(&values[at])) };
                }
            }
            if self.has_equal[1] != 0 {
                others = differ(others, &odd_words(&differences(even)));
            }
        }
        if self.has_equal[0] != 0 {
            others = differ(others, &differences(even));
        }
        others
    }
}

/// Clears the bits of places at which some word of `differences` is zero. The lowest bit of a word
/// does not count.
#[inline(always)]
fn differ(mut words: u32, differences: &[__m512i; 4]) -> u32 {
    for &word in differences {
        // SAFETY: the processor has the instructions (the contract of `super`).
        words = unsafe { _mm512_mask_cmpgt_epu16_mask(words, word, _mm512_set1_epi16(1)) };
    }
    words
}

/// The exclusive or of the key and the key moved down by five bits.
#[inline(always)]
fn differences(&[a, b, c, d]: &[__m512i; 4]) -> [__m512i; 4] {
    // SAFETY: the processor has the instructions (the contract of `super`).
    unsafe {
        [
            _mm512_xor_si512(a, _mm512_shrdi_epi64::<5>(a, b)),
            _mm512_xor_si512(b, _mm512_shrdi_epi64::<5>(b, c)),
            _mm512_xor_si512(c, _mm512_shrdi_epi64::<5>(c, d)),
            _mm512_xor_si512(d, right::<5>(d)),
        ]
    }
}

/// The key moved down by a byte. Its words are those that begin at an odd byte of the key.
#[inline(always)]
fn odd_words(&[a, b, c, d]: &[__m512i; 4]) -> [__m512i; 4] {
    // SAFETY: the processor has the instructions (the contract of `super`).
    unsafe {
        [_mm512_shrdi_epi64::<8>(a, b), _mm512_shrdi_epi64::<8>(b, c), _mm512_shrdi_epi64::<8>(c, d), right::<8>(d)]
    }
}

/// Bits of the keys (eight for each, one a lane) of which eight parities are even.
#[inline(always)]
fn are_even<const N: usize>(keys: &[[__m512i; N]; KEYS], matrices: &[[u64; 8]; 5]) -> u64 {
    let mut sums = [all(0); KEYS];
    for n in 0..KEYS {
        let bytes = transposed(keys[n]);
        let mut parts = [all(0); 5];
        for at in 0..N {
            // SAFETY: the processor has the instructions (the contract of `super`).
            parts[at] = unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(bytes[at], load(&matrices[at])) };
        }
        sums[n] = exclusive_or(exclusive_or(parts[0], parts[1], parts[2]), parts[3], parts[4]);
    }
    let [a, b, c, d, e, f] = sums;
    // SAFETY: the processor has the instructions (the contract of `super`).
    unsafe {
        // The eight parts of a lane's sum are 64 bits apart. Three additions, each of which halves
        // their number, sum them up for all keys side by side.
        let ab = _mm512_xor_si512(_mm512_shuffle_i64x2::<0x44>(a, b), _mm512_shuffle_i64x2::<0xee>(a, b));
        let cd = _mm512_xor_si512(_mm512_shuffle_i64x2::<0x44>(c, d), _mm512_shuffle_i64x2::<0xee>(c, d));
        let ef = _mm512_xor_si512(_mm512_shuffle_i64x2::<0x44>(e, f), _mm512_shuffle_i64x2::<0xee>(e, f));
        let abcd = _mm512_xor_si512(_mm512_shuffle_i64x2::<0x88>(ab, cd), _mm512_shuffle_i64x2::<0xdd>(ab, cd));
        let efef = _mm512_xor_si512(_mm512_shuffle_i64x2::<0x88>(ef, ef), _mm512_shuffle_i64x2::<0xdd>(ef, ef));
        let sums = _mm512_xor_si512(_mm512_unpacklo_epi64(abcd, efef), _mm512_unpackhi_epi64(abcd, efef));
        // The bytes of `even` belong to the keys a, e, b, f, c, e, d, f.
        let even = _mm512_testn_epi8_mask(sums, sums);
        let byte = |from: u32| even >> (8 * from) & 0xff;
        byte(0) | byte(2) << 8 | byte(4) << 16 | byte(6) << 24 | byte(1) << 32 | byte(3) << 40
    }
}

/// `a ^ b ^ c`
#[inline(always)]
fn exclusive_or(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    // SAFETY: the processor has the instructions (the contract of `super`).
    unsafe { _mm512_ternarylogic_epi64::<0x96>(a, b, c) }
}

/// Whether one of the keys with these bits, eight for each, passes a test of its text.
#[cold]
#[inline(never)]
fn has_one(keys: &[Limbs; KEYS], mut found: u64, tests: &TextTests) -> bool {
    while found != 0 {
        let bit = found.trailing_zeros() as usize;
        found &= found - 1;
        if passes_a_test(tests, &Fe8(keys[bit / 8]).lane(bit % 8).0) {
            return true;
        }
    }
    false
}
