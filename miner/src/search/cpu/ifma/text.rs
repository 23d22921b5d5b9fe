//! Whole keys, their checksums and their texts, eight side by side. The contract of every `unsafe` is
//! that of the module `ifma`.
//!
//! The checksum is a linear map over GF(2). It has a matrix of 8 × 8 bits for each byte of a key's
//! words and each byte of the checksum. `vgf2p8affineqb` multiplies a matrix by 64 bytes at once.

use super::keys::{Limbs, unsure};
use super::vector::{all, left, load};
use crate::pattern::{CHECKSUM_BITS, ChecksumTables, ChecksumTest, TextTests};
use crate::search::conditions::{KEY_BITS, mask_of};
use crate::search::cpu::quick::wide;
use crate::search::cpu::simd::instructions;
use crate::search::cpu::text::{Lanes, passing};
use bytemuck::Zeroable;
use std::arch::x86_64::*;

/// Whether one of these keys passes a test of its text, or may be p or more.
#[inline(always)]
pub fn passes_by_text(keys: &[Limbs; 6], tests: &TextTests, tables: &Tables) -> bool {
    let mut found = unsure(keys);
    for j in 0..3 {
        let [one, other] = passing(tests, [&words_of(&keys[j]), &words_of(&keys[3 + j])], tables);
        found |= one | other;
    }
    found != 0
}

/// The key in words of 64 bits.
#[inline(always)]
pub fn words_of(&[a, b, c, d, e]: &Limbs) -> [__m512i; 4] {
    // SAFETY: the processor has the instructions (the contract of `super`). 0xca: a ? b : c.
    unsafe {
        [
            _mm512_ternarylogic_epi64::<0xca>(all((1 << 52) - 1), a, left::<52>(b)),
            _mm512_shldi_epi64::<40>(c, left::<12>(b)),
            _mm512_shldi_epi64::<28>(d, left::<12>(c)),
            _mm512_shldi_epi64::<16>(e, left::<12>(d)),
        ]
    }
}

impl Lanes for __m512i {
    type Tables = Tables;

    instructions! {
        fn all(word: u64) -> __m512i = _mm512_set1_epi64(word as i64);
        fn and(self, other: __m512i) -> __m512i = _mm512_and_si512(self, other);
        fn or(self, other: __m512i) -> __m512i = _mm512_or_si512(self, other);
        fn xor(self, other: __m512i) -> __m512i = _mm512_xor_si512(self, other);
        fn plus(self, other: __m512i) -> __m512i = _mm512_add_epi64(self, other);
        fn left(self, bits: u32) -> __m512i = _mm512_sll_epi64(self, _mm_cvtsi32_si128(bits as i32));
        fn right(self, bits: u32) -> __m512i = _mm512_srl_epi64(self, _mm_cvtsi32_si128(bits as i32));
        fn filled(self) -> u8 = _mm512_test_epi64_mask(self, self);
    }

    #[inline(always)]
    fn every_lane() -> u8 {
        u8::MAX
    }

    fn tables() -> Tables {
        let masks: Vec<[u64; 4]> = (0..CHECKSUM_BITS as usize).map(|bit| wide(&mask_of(KEY_BITS + bit))).collect();
        let matrices = std::array::from_fn(|byte| matrices_of(masks.chunks(8).nth(byte).unwrap_or_default(), 64));
        Tables { matrices, zero: i64::from(ChecksumTables::get().zero) }
    }

    #[inline(always)]
    fn checksums(key: &[__m512i; 4], tables: &Tables) -> __m512i {
        let bytes = transposed(*key);
        let mut sums = [all(0); 4];
        for (sum, matrices) in sums.iter_mut().zip(&tables.matrices) {
            *sum = parts(matrices, &bytes);
        }
        // SAFETY: the processor has the instructions (the contract of `super`).
        unsafe {
            let lanes = _mm512_maskz_permutexvar_epi8(0x0f0f_0f0f_0f0f_0f0f, byte_of_sum(), added(sums));
            _mm512_xor_si512(lanes, all(tables.zero))
        }
    }

    #[inline(always)]
    fn checksums_may_pass(keys: [&[__m512i; 4]; 2], test: &ChecksumTest, tables: &Tables) -> [u8; 2] {
        let (low, high) = (&tables.matrices[test.bytes[0]], &tables.matrices[test.bytes[1]]);
        let (one, other) = (transposed(*keys[0]), transposed(*keys[1]));
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

/// Tables of the checksum.
#[derive(Clone, Copy, Zeroable)]
pub struct Tables {
    /// For each byte of the checksum, those of [`matrices_of`].
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

/// One byte of the checksum as a sum of parts: byte `8·n + lane` is the part of the bytes n of this
/// lane's words.
#[inline(always)]
fn parts(matrices: &[[u64; 8]; 5], bytes: &[__m512i; 4]) -> __m512i {
    let mut sum = all(0);
    for at in 0..4 {
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
