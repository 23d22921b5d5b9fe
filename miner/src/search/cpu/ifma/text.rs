//! Whole keys and their texts, eight side by side. The contract of every `unsafe` is that of the
//! module `ifma`.

use super::checksum::Tables;
use super::fe8::Fe8;
use super::reduce::{FOLD_256, LIMB, TOP_LIMB, carried};
use super::vector::{all, and, left, low, minus, plus, right};
use crate::pattern::{ChecksumTest, TextWords, WORD_BITS};
use crate::search::cpu::simd::SimdField;
use crate::search::cpu::text::{LOWER, TextField};
use std::arch::x86_64::*;

/// 32p, with limbs larger than the sum of two numbers below 2^52. They are those of 2^54 +
/// (2^54-4)·2^52 + …, from which 32·(2^256-p) is subtracted.
const THIRTY_TWO_P: [i64; 5] = [(1 << 54) - 32 * FOLD_256, (1 << 54) - 4, (1 << 54) - 4, (1 << 54) - 4, (1 << 53) - 4];

/// The text of the number in each lane, for tests.
#[cfg(test)]
pub fn words_of_lanes(value: Fe8) -> [[u64; 5]; 8] {
    assert!(super::vector::is_supported());
    let words = Fe8::whole_text(value.key(), &Tables::new()).map(super::vector::store);
    std::array::from_fn(|lane| words.map(|word| word[lane]))
}

/// The lanes of two vectors of numbers that pass a test of their checksums, for tests.
#[cfg(test)]
pub fn lanes_that_pass(values: [Fe8; 2], test: &ChecksumTest) -> [u8; 2] {
    assert!(super::vector::is_supported());
    Fe8::checksums_may_pass(values.map(Fe8::key), test, &Tables::new())
}

/// The bits of a text word.
const WORD: i64 = (1 << WORD_BITS) - 1;

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
    fn text(key: Key8) -> TextWords<__m512i> {
        let [a, b, c, d, e] = key.0;
        [
            either(left::<12>(e), right::<40>(d)),
            masked_either(left::<20>(d), right::<32>(c)),
            masked_either(left::<28>(c), right::<24>(b)),
            masked_either(left::<36>(b), right::<16>(a)),
            left::<44>(and(a, all(0xffff))),
        ]
    }

    #[inline(always)]
    fn whole_text(key: Key8, tables: &Tables) -> TextWords<__m512i> {
        let [t0, t1, t2, t3, last] = Fe8::text(key);
        [t0, t1, t2, t3, either(last, tables.checksum(key.0))]
    }

    #[inline(always)]
    fn checksums_may_pass([one, other]: [Key8; 2], test: &ChecksumTest, tables: &Tables) -> [u8; 2] {
        tables.pass([one.0, other.0], test)
    }

    #[inline(always)]
    fn agree(word: __m512i, mask: u64, value: u64) -> u8 {
        // SAFETY: the processor has the instructions (the contract of `super`).
        unsafe { _mm512_testn_epi64_mask(_mm512_xor_si512(word, all(value as i64)), all(mask as i64)) }
    }

    #[inline(always)]
    fn differences(so_far: __m512i, word: __m512i, mask: u64, value: u64) -> __m512i {
        // SAFETY: the processor has the instructions (the contract of `super`). 0x28: (a ^ b) & c.
        let differing = unsafe { _mm512_ternarylogic_epi64::<0x28>(word, all(value as i64), all(mask as i64)) };
        either(so_far, differing)
    }

    #[inline(always)]
    fn unequal(so_far: __m512i, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the processor has the instructions (the contract of `super`). 0xf6: a | (b ^ c).
        unsafe { _mm512_ternarylogic_epi64::<0xf6>(so_far, a, b) }
    }

    #[inline(always)]
    fn next_character(word: __m512i, next: __m512i) -> __m512i {
        masked_either(left::<5>(word), right::<55>(next))
    }

    #[inline(always)]
    fn zero_characters(word: __m512i, places: u64) -> u8 {
        let lower = all(LOWER as i64);
        let carried = plus(and(word, lower), lower);
        // SAFETY: the processor has the instructions (the contract of `super`). 0x02: !(a | b) & c.
        unsafe {
            let zero = _mm512_ternarylogic_epi64::<0x02>(carried, word, all(places as i64));
            _mm512_test_epi64_mask(zero, zero)
        }
    }

    #[inline(always)]
    fn no_word() -> __m512i {
        all(0)
    }
}

/// `a | b`
#[inline(always)]
fn either(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the processor has the instructions (the contract of `super`).
    unsafe { _mm512_or_si512(a, b) }
}

/// `a & WORD | b`
#[inline(always)]
fn masked_either(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the processor has the instructions (the contract of `super`). 0xec: (a & c) | b.
    unsafe { _mm512_ternarylogic_epi64::<0xec>(a, b, all(WORD)) }
}
