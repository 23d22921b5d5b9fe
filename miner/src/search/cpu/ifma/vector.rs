//! The AVX-512 instructions of the IFMA kernel, on eight lanes of 64 bits.
//!
//! Every `unsafe` here relies on the contract of `super`: the processor has the instructions.

use crate::search::cpu::simd::instructions;
use std::arch::x86_64::*;

/// Whether this processor has all instructions of the IFMA kernel.
pub fn is_supported() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512ifma")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("avx512vpopcntdq")
        && is_x86_feature_detected!("gfni")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
}

instructions! {
    /// The same number in every lane.
    pub fn all(value: i64) -> __m512i = _mm512_set1_epi64(value);
    pub fn plus(a: __m512i, b: __m512i) -> __m512i = _mm512_add_epi64(a, b);
    pub fn minus(a: __m512i, b: __m512i) -> __m512i = _mm512_sub_epi64(a, b);
    pub fn and(a: __m512i, b: __m512i) -> __m512i = _mm512_and_si512(a, b);
    pub fn right<const BITS: u32>(a: __m512i) -> __m512i = _mm512_srli_epi64::<BITS>(a);
    pub fn left<const BITS: u32>(a: __m512i) -> __m512i = _mm512_slli_epi64::<BITS>(a);
    /// `sum` + the low 52 bits of a·b.
    pub fn low(sum: __m512i, a: __m512i, b: __m512i) -> __m512i = _mm512_madd52lo_epu64(sum, a, b);
    /// `sum` + the high 52 bits of a·b.
    pub fn high(sum: __m512i, a: __m512i, b: __m512i) -> __m512i = _mm512_madd52hi_epu64(sum, a, b);
}

/// Loads one number per lane from memory.
#[inline(always)]
pub fn load(values: &[u64; 8]) -> __m512i {
    // SAFETY: the processor has the instructions (the contract of `super`); the array is 64
    // readable bytes, and unaligned loads are allowed.
    unsafe { _mm512_loadu_si512(values.as_ptr().cast()) }
}

/// Stores the numbers of all lanes to memory.
#[inline(always)]
pub fn store(value: __m512i) -> [u64; 8] {
    let mut values = [0; 8];
    // SAFETY: the processor has the instructions (the contract of `super`); the array is 64
    // writable bytes, and unaligned stores are allowed.
    unsafe { _mm512_storeu_si512(values.as_mut_ptr().cast(), value) };
    values
}
