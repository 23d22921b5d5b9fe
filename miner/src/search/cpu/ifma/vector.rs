//! The AVX-512 instructions of the IFMA kernel, on eight lanes of 64 bits.
//!
//! Every `unsafe` here relies on the contract of `super`: the processor has the instructions.

use std::arch::x86_64::*;
use std::hint::black_box;
use std::time::Instant;

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

/// The same number in every lane.
#[inline(always)]
pub fn all(value: i64) -> __m512i {
    // SAFETY: the processor has the instructions (the contract of `super`).
    unsafe { _mm512_set1_epi64(value) }
}

/// `a + b`
#[inline(always)]
pub fn plus(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the processor has the instructions (the contract of `super`).
    unsafe { _mm512_add_epi64(a, b) }
}

/// `a - b`
#[inline(always)]
pub fn minus(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the processor has the instructions (the contract of `super`).
    unsafe { _mm512_sub_epi64(a, b) }
}

/// `a & b`
#[inline(always)]
pub fn and(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the processor has the instructions (the contract of `super`).
    unsafe { _mm512_and_si512(a, b) }
}

/// `a >> BITS`
#[inline(always)]
pub fn right<const BITS: u32>(a: __m512i) -> __m512i {
    // SAFETY: the processor has the instructions (the contract of `super`).
    unsafe { _mm512_srli_epi64::<BITS>(a) }
}

/// `a << BITS`
#[inline(always)]
pub fn left<const BITS: u32>(a: __m512i) -> __m512i {
    // SAFETY: the processor has the instructions (the contract of `super`).
    unsafe { _mm512_slli_epi64::<BITS>(a) }
}

/// `sum` + the low 52 bits of a·b.
#[inline(always)]
pub fn low(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the processor has the instructions (the contract of `super`).
    unsafe { _mm512_madd52lo_epu64(sum, a, b) }
}

/// `sum` + the high 52 bits of a·b.
#[inline(always)]
pub fn high(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the processor has the instructions (the contract of `super`).
    unsafe { _mm512_madd52hi_epu64(sum, a, b) }
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

/// Number of independent chains: more than the latency of an instruction in cycles, times the
/// instructions started per cycle.
const CHAINS: usize = 12;

/// Measures the `vpmadd52` instructions per second, with `times` of them in each chain.
#[target_feature(
    enable = "avx512f,avx512dq,avx512bw,avx512ifma,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,popcnt,bmi1,bmi2,lzcnt"
)]
pub fn multiplies_a_second(times: u64) -> f64 {
    let mut sums = [all(1); CHAINS];
    let (a, b) = (black_box(all(3)), black_box(all(5)));
    let began = Instant::now();
    for _ in 0..times {
        for sum in &mut sums {
            *sum = low(*sum, a, b);
        }
    }
    black_box(sums);
    (CHAINS as u64 * times) as f64 / began.elapsed().as_secs_f64()
}
