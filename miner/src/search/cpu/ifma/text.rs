//! Whole keys, their checksums and their texts, eight side by side. The contract of every `unsafe` is
//! that of the module `ifma`.
//!
//! The checksum is a linear map over GF(2). It has a matrix of 8 × 8 bits for each byte of a key's
//! limbs and each byte of the checksum. `vgf2p8affineqb` multiplies a matrix by 64 bytes at once.

use super::field::Fe8;
use super::quick::words_of;
use super::reduce::{FOLD_256, LIMB, TOP_LIMB, carried};
use super::vector::{all, and, load, low, minus, plus, right};
use crate::pattern::{CHECKSUM_BITS, ChecksumTables, ChecksumTest};
use crate::search::cpu::simd::SimdField;
#[cfg(test)]
use crate::search::cpu::text::whole_text;
use crate::search::cpu::text::{Lanes, TextField};
use bytemuck::Zeroable;
use std::arch::x86_64::*;

/// 32p, with limbs larger than the sum of two numbers below 2^52. They are those of 2^54 +
/// (2^54-4)·2^52 + …, from which 32·(2^256-p) is subtracted.
const THIRTY_TWO_P: [i64; 5] = [(1 << 54) - 32 * FOLD_256, (1 << 54) - 4, (1 << 54) - 4, (1 << 54) - 4, (1 << 53) - 4];

/// The text of the number in each lane, for tests.
#[cfg(test)]
pub fn words_of_lanes(value: Fe8) -> [[u64; 5]; 8] {
    assert!(super::vector::is_supported());
    let words = whole_text::<Fe8>(value.key(), &Tables::new()).map(super::vector::store);
    std::array::from_fn(|lane| words.map(|word| word[lane]))
}

/// The lanes of two vectors of numbers that pass a test of their checksums, for tests.
#[cfg(test)]
pub fn lanes_that_pass(values: [Fe8; 2], test: &ChecksumTest) -> [u8; 2] {
    assert!(super::vector::is_supported());
    Fe8::checksums_may_pass(values.map(Fe8::key), test, &Tables::new())
}

/// A key in each lane: five limbs, all but the last with 52 bits.
#[derive(Clone, Copy)]
pub struct Key8([__m512i; 5]);

/// The number with these limbs, each from 0 to below 2^56, reduced to below 2^256. That fails with
/// a probability of 2^-100: after the fold, a carry that would run through more than one limb is
/// left where it is.
#[inline(always)]
fn normalized(l: [__m512i; 5]) -> Key8 {
    let [a, b, c, d, e] = carried(l);
    let mask = all(LIMB);
    let a = low(and(a, mask), right::<48>(e), all(FOLD_256));
    let b = plus(and(b, mask), right::<52>(a));
    let c = plus(and(c, mask), right::<52>(b));
    Key8([and(a, mask), and(b, mask), c, and(d, mask), and(e, all(TOP_LIMB))])
}

impl TextField for Fe8 {
    type Key = Key8;
    type Word = __m512i;
    type Tables = Tables;

    fn tables() -> Tables {
        Tables::new()
    }

    #[inline(always)]
    fn plus(a: Fe8, b: Fe8) -> Fe8 {
        let (a, b) = (a.summand().0.0, b.summand().0.0);
        Fe8(carried([plus(a[0], b[0]), plus(a[1], b[1]), plus(a[2], b[2]), plus(a[3], b[3]), plus(a[4], b[4])]))
    }

    #[inline(always)]
    fn key(self) -> Key8 {
        normalized(self.summand().0.0)
    }

    #[inline(always)]
    fn key_less(self, a: Fe8, b: Fe8) -> Key8 {
        let (mut l, a, b) = (self.summand().0.0, a.summand().0.0, b.summand().0.0);
        for at in 0..5 {
            l[at] = minus(minus(plus(l[at], all(THIRTY_TWO_P[at])), a[at]), b[at]);
        }
        normalized(l)
    }

    #[inline(always)]
    fn key_of_negative(a: Key8, b: Key8) -> Key8 {
        let mut l = a.0;
        for at in 0..5 {
            l[at] = minus(minus(all(THIRTY_TWO_P[at]), a.0[at]), b.0[at]);
        }
        normalized(l)
    }

    #[inline(always)]
    fn from_key(key: Key8) -> Fe8 {
        Fe8(key.0)
    }

    #[inline(always)]
    fn words(key: Key8) -> [__m512i; 4] {
        words_of(&key.0)
    }

    #[inline(always)]
    fn checksum(key: Key8, tables: &Tables) -> __m512i {
        tables.checksum(key.0)
    }

    #[inline(always)]
    fn checksums_may_pass([one, other]: [Key8; 2], test: &ChecksumTest, tables: &Tables) -> [u8; 2] {
        tables.pass([one.0, other.0], test)
    }
}

impl Lanes for __m512i {
    #[inline(always)]
    fn all(word: u64) -> __m512i {
        all(word as i64)
    }

    #[inline(always)]
    fn and(self, other: __m512i) -> __m512i {
        and(self, other)
    }

    #[inline(always)]
    fn or(self, other: __m512i) -> __m512i {
        // SAFETY: the processor has the instructions (the contract of `super`).
        unsafe { _mm512_or_si512(self, other) }
    }

    #[inline(always)]
    fn xor(self, other: __m512i) -> __m512i {
        // SAFETY: the processor has the instructions (the contract of `super`).
        unsafe { _mm512_xor_si512(self, other) }
    }

    #[inline(always)]
    fn plus(self, other: __m512i) -> __m512i {
        plus(self, other)
    }

    #[inline(always)]
    fn left(self, bits: u32) -> __m512i {
        // SAFETY: the processor has the instructions (the contract of `super`).
        unsafe { _mm512_sll_epi64(self, _mm_cvtsi32_si128(bits as i32)) }
    }

    #[inline(always)]
    fn right(self, bits: u32) -> __m512i {
        // SAFETY: the processor has the instructions (the contract of `super`).
        unsafe { _mm512_srl_epi64(self, _mm_cvtsi32_si128(bits as i32)) }
    }

    #[inline(always)]
    fn filled(self) -> u8 {
        // SAFETY: the processor has the instructions (the contract of `super`).
        unsafe { _mm512_test_epi64_mask(self, self) }
    }

    #[inline(always)]
    fn every_lane() -> u8 {
        u8::MAX
    }

    #[inline(always)]
    fn have_equal_parts(words: &[__m512i; 4], values: &[u64; 4]) -> u8 {
        let mut any = all(0);
        for at in 0..4 {
            // SAFETY: the processor has the instructions (the contract of `super`).
            any = any.or(unsafe {
                let equal = _mm512_cmpeq_epi16_mask(words[at], all(values[at] as i64));
                _mm512_movm_epi16(equal)
            });
        }
        any.filled()
    }
}

/// Tables of the checksum.
#[derive(Clone, Copy, Zeroable)]
pub struct Tables {
    /// For each byte of the checksum and each limb, a matrix for each byte of a lane.
    matrices: [[[u64; 8]; 5]; 4],
    /// The checksum of zero.
    zero: i64,
}

/// The matrices of up to eight masks: for each limb of `bits` bits, a matrix for each byte of a
/// lane. Each byte of a key is multiplied by its matrix. Bit n of the sum of these products is the
/// parity of the key's bits under mask n.
pub fn matrices_of(masks: &[[u64; 4]], bits: usize) -> [[u64; 8]; 5] {
    let mut matrices = [[0; 8]; 5];
    for (row, mask) in masks.iter().enumerate().take(8) {
        for place in (0..256).filter(|place| mask[place / 64] >> (place % 64) & 1 == 1) {
            let (limb, byte, bit) = (place / bits, place % bits / 8, place % bits % 8);
            // Byte 7 - r of a matrix is the row that gives bit r. Its bits are the columns.
            matrices[limb][byte] |= 1u64 << (8 * (7 - row) + bit);
        }
    }
    matrices
}

impl Tables {
    /// Computes the tables.
    pub fn new() -> Tables {
        let tables = ChecksumTables::get();
        let mut matrices = [[[0; 8]; 5]; 4];
        for place in 0..256 {
            // The part of the checksum that this bit of x adds. Bits are counted from the lowest.
            let part = tables.bytes[31 - place / 8][1 << (place % 8)];
            let (limb, byte, bit) = (place / 52, place % 52 / 8, place % 52 % 8);
            for row in (0..CHECKSUM_BITS as usize).filter(|row| part >> row & 1 == 1) {
                // Byte 7 - r of a matrix is the row that gives bit r. Its bits are the columns.
                matrices[row / 8][limb][byte] |= 1u64 << (8 * (7 - row % 8) + bit);
            }
        }
        Tables { matrices, zero: i64::from(tables.zero) }
    }

    /// The checksum in each lane.
    #[inline(always)]
    pub fn checksum(&self, limbs: [__m512i; 5]) -> __m512i {
        let bytes = transposed(limbs);
        let mut sums = [all(0); 4];
        for (sum, matrices) in sums.iter_mut().zip(&self.matrices) {
            *sum = parts(matrices, &bytes);
        }
        // SAFETY: the processor has the instructions (the contract of `super`).
        unsafe {
            let lanes = _mm512_maskz_permutexvar_epi8(0x0f0f_0f0f_0f0f_0f0f, byte_of_sum(), added(sums));
            _mm512_xor_si512(lanes, all(self.zero))
        }
    }

    /// For each of two keys, bits of the lanes that pass the test.
    #[inline(always)]
    pub fn pass(&self, keys: [[__m512i; 5]; 2], test: &ChecksumTest) -> [u8; 2] {
        let (low, high) = (&self.matrices[test.bytes[0]], &self.matrices[test.bytes[1]]);
        let (one, other) = (transposed(keys[0]), transposed(keys[1]));
        let sums = added([parts(low, &one), parts(high, &one), parts(low, &other), parts(high, &other)]);
        let mut passing = 0;
        for &value in &test.sums {
            // SAFETY: the processor has the instructions (the contract of `super`).
            let agreeing =
                unsafe { _mm512_testn_epi8_mask(_mm512_xor_si512(sums, in_turn(value)), in_turn(test.mask)) };
            passing |= agreeing & agreeing >> 16;
        }
        [passing as u8, (passing >> 32) as u8]
    }
}

/// One byte of the checksum as a sum of parts: byte `8·n + lane` is the part of the bytes n of this
/// lane's limbs.
#[inline(always)]
fn parts(matrices: &[[u64; 8]; 5], bytes: &[__m512i; 5]) -> __m512i {
    let mut sum = all(0);
    for at in 0..5 {
        // SAFETY: the processor has the instructions (the contract of `super`).
        unsafe {
            sum = _mm512_xor_si512(sum, _mm512_gf2p8affine_epi64_epi8::<0>(bytes[at], load(&matrices[at])));
        }
    }
    sum
}

/// Limbs with byte n of all lanes side by side.
#[inline(always)]
pub fn transposed<const N: usize>(limbs: [__m512i; N]) -> [__m512i; N] {
    let mut bytes = limbs;
    for at in 0..N {
        // SAFETY: the processor has the instructions (the contract of `super`).
        bytes[at] = unsafe { _mm512_permutexvar_epi8(byte_of_lane(), limbs[at]) };
    }
    bytes
}

/// Adds the parts of four bytes of the checksum, without the constant: byte `16·n + lane` of the
/// result is byte n of this lane.
#[inline(always)]
fn added([a, b, c, d]: [__m512i; 4]) -> __m512i {
    // SAFETY: the processor has the instructions (the contract of `super`).
    unsafe {
        let ab = _mm512_xor_si512(_mm512_shuffle_i64x2::<0x44>(a, b), _mm512_shuffle_i64x2::<0xee>(a, b));
        let cd = _mm512_xor_si512(_mm512_shuffle_i64x2::<0x44>(c, d), _mm512_shuffle_i64x2::<0xee>(c, d));
        let sums = _mm512_xor_si512(_mm512_shuffle_i64x2::<0x88>(ab, cd), _mm512_shuffle_i64x2::<0xdd>(ab, cd));
        _mm512_xor_si512(sums, _mm512_shuffle_epi32::<0x4e>(sums))
    }
}

/// A vector with sixteen bytes of the first value, sixteen of the second, and both again.
#[inline(always)]
fn in_turn([one, other]: [u8; 2]) -> __m512i {
    // SAFETY: the processor has the instructions (the contract of `super`).
    unsafe {
        let (one, other) = (_mm512_set1_epi8(one as i8), _mm512_set1_epi8(other as i8));
        _mm512_mask_blend_epi8(0xffff_0000_ffff_0000, one, other)
    }
}

/// Indices that bring byte n of a lane to byte `8·n + lane` of a vector.
#[inline(always)]
fn byte_of_lane() -> __m512i {
    const PLACES: [u8; 64] = {
        let mut places = [0; 64];
        let mut at = 0;
        while at < 64 {
            places[at] = (8 * (at % 8) + at / 8) as u8;
            at += 1;
        }
        places
    };
    // SAFETY: the processor has the instructions (the contract of `super`); the array has 64 bytes.
    unsafe { _mm512_loadu_si512(PLACES.as_ptr().cast()) }
}

/// Indices that bring byte `16·n + lane` of a vector to byte n of that lane, for n below 4.
#[inline(always)]
fn byte_of_sum() -> __m512i {
    const PLACES: [u8; 64] = {
        let mut places = [0; 64];
        let mut at = 0;
        while at < 64 {
            places[at] = (16 * (at % 4) + at / 8) as u8;
            at += 1;
        }
        places
    };
    // SAFETY: as in `byte_of_lane`.
    unsafe { _mm512_loadu_si512(PLACES.as_ptr().cast()) }
}
