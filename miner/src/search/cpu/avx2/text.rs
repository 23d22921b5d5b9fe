//! Whole keys, four side by side. The contract of every `unsafe` is that of the module `avx2`.

use super::Fe4;
use super::field::{DIGIT, FOLD_256, SIXTEEN_P, TOP_DIGIT, all, and, left, minus, plus, product_plus, right, times};
use crate::pattern::TextTests;
use crate::search::cpu::quick::{QuickTests, QuickWords};
use crate::search::cpu::simd::{SimdField, Summand, instructions};
use crate::search::cpu::text::{Lanes, checksum};
use crate::search::cpu::whole::{KeysOf, WholeField, WordField, may_pass_by_words};
use std::arch::x86_64::*;

impl Lanes for __m256i {
    /// No tables of its own: those of `pattern` serve one key at a time.
    type Tables = ();

    instructions! {
        fn all(word: u64) -> __m256i = _mm256_set1_epi64x(word as i64);
        fn and(self, other: __m256i) -> __m256i = _mm256_and_si256(self, other);
        fn or(self, other: __m256i) -> __m256i = _mm256_or_si256(self, other);
        fn xor(self, other: __m256i) -> __m256i = _mm256_xor_si256(self, other);
        fn plus(self, other: __m256i) -> __m256i = _mm256_add_epi64(self, other);
        fn left(self, bits: u32) -> __m256i = _mm256_sll_epi64(self, _mm_cvtsi32_si128(bits as i32));
        fn right(self, bits: u32) -> __m256i = _mm256_srl_epi64(self, _mm_cvtsi32_si128(bits as i32));
        fn empty(self) -> u8 = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(self, all(0)))) as u8;
    }

    #[inline(always)]
    fn filled(self) -> u8 {
        self.empty() ^ 15
    }

    #[inline(always)]
    fn every_lane() -> u8 {
        15
    }

    fn tables() {}

    fn checksums(key: &[__m256i; 4], (): &()) -> __m256i {
        let sums: [u64; 4] = std::array::from_fn(|lane| checksum(&Fe4::lane_of(key, lane)).into());
        bytemuck::cast(sums)
    }
}

/// Carries once through all digits. The top digit keeps what is carried into it.
#[inline(always)]
fn one_pass(mut d: [__m256i; 9]) -> [__m256i; 9] {
    for at in 0..8 {
        d[at + 1] = plus(d[at + 1], right::<29>(d[at]));
        d[at] = and(d[at], all(DIGIT));
    }
    d
}

/// Folds the bits from 2^256 on, of a top digit below 2^32.
#[inline(always)]
fn fold_top_of(mut d: [__m256i; 9]) -> Fe4 {
    let excess = right::<24>(d[8]);
    d[8] = and(d[8], all(TOP_DIGIT));
    d[0] = plus(d[0], times(excess, all(FOLD_256)));
    d[1] = plus(d[1], left::<3>(excess));
    Fe4(d)
}

/// `16p - a - b` by digits, which are not carried.
#[inline(always)]
fn sixteen_p_less(a: &Fe4, b: &Fe4) -> [__m256i; 9] {
    let mut d = a.0;
    for at in 0..9 {
        d[at] = minus(minus(all(SIXTEEN_P[at]), a.0[at]), b.0[at]);
    }
    d
}

/// Four words of 64 bits of digits below 2^29.
#[inline(always)]
fn words_of(d: &[__m256i; 9]) -> [__m256i; 4] {
    [
        d[0].or(left::<29>(d[1])).or(left::<58>(d[2])),
        right::<6>(d[2]).or(left::<23>(d[3])).or(left::<52>(d[4])),
        right::<12>(d[4]).or(left::<17>(d[5])).or(left::<46>(d[6])),
        right::<18>(d[6]).or(left::<11>(d[7])).or(left::<40>(d[8])),
    ]
}

impl WordField for Fe4 {
    #[inline(always)]
    fn plus(a: Fe4, b: Fe4) -> Fe4 {
        Fe4::sum(Summand(a), Summand(b))
    }

    #[inline(always)]
    fn product_less(a: &Fe4, b: &Fe4, c: Fe4, d: Fe4) -> Fe4 {
        product_plus(a, b, &sixteen_p_less(&c, &d))
    }

    #[inline(always)]
    fn minus_sum(a: Fe4, b: Fe4) -> Fe4 {
        Fe4(sixteen_p_less(&a, &b))
    }

    #[inline(always)]
    fn loose_words(&self) -> ([__m256i; 4], u8) {
        // All digits below 2^29, but a top digit of 2^24 or more may be left.
        let d = one_pass(fold_top_of(self.0).0);
        // SAFETY: the contract above.
        let large = unsafe { _mm256_cmpgt_epi64(d[8], all(TOP_DIGIT - 1)) };
        (words_of(&d), large.filled())
    }

    #[inline(always)]
    fn have_equal_parts(words: &[__m256i; 4], values: &[u64; 4]) -> u8 {
        let mut any = all(0);
        for at in 0..4 {
            // SAFETY: the contract above.
            any = any.or(unsafe { _mm256_cmpeq_epi16(words[at], all(values[at] as i64)) });
        }
        any.filled()
    }

    #[inline(always)]
    fn lane_of(words: &[__m256i; 4], lane: usize) -> [u64; 4] {
        let words: [[u64; 4]; 4] = bytemuck::cast(*words);
        words.map(|word| word[lane])
    }
}

impl WholeField for Fe4 {
    type Word = __m256i;
    type Quick = QuickWords;

    fn quick(tests: &QuickTests) -> QuickWords {
        QuickWords::new(tests)
    }

    #[inline(always)]
    fn may_pass(keys: &KeysOf<Fe4>, tests: &TextTests) -> bool {
        may_pass_by_words(keys, tests)
    }
}
