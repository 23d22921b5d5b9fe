//! The checksums of keys, eight side by side.
//!
//! The checksum is a linear map over GF(2). It has a matrix of 8 × 8 bits for each byte of a key's
//! limbs and each byte of the checksum. `vgf2p8affineqb` multiplies a matrix by 64 bytes at once.
//! The contract of every `unsafe` is that of the module `ifma`.

use super::vector::{all, left, load};
use crate::pattern::{CHECKSUM_BITS, ChecksumTables, ChecksumTest, UNUSED_BITS};
use bytemuck::Zeroable;
use std::arch::x86_64::*;

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

    /// The checksum in each lane, in its place in the last text word.
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
            left::<UNUSED_BITS>(_mm512_xor_si512(lanes, all(self.zero)))
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
