//! Whole keys, four side by side. The contract of every `unsafe` is that of the module `avx2`.

use super::Fe4;
use super::field::{DIGIT, FOLD_256, SIXTEEN_P, TOP_DIGIT, all, and, left, plus, product_plus, right, times};
use crate::pattern::TextTests;
use crate::search::cpu::field::Fe;
use crate::search::cpu::filter::Filter;
use crate::search::cpu::quick::{QuickTests, QuickWords};
use crate::search::cpu::screen::Marks;
use crate::search::cpu::simd::{SimdField, Summand};
use crate::search::cpu::text::{Lanes, TextField, checksum};
use crate::search::cpu::whole::{KeysOf, WholeField, WordField};
use std::arch::x86_64::*;

impl Lanes for __m256i {
    #[inline(always)]
    fn all(word: u64) -> __m256i {
        all(word as i64)
    }

    #[inline(always)]
    fn and(self, other: __m256i) -> __m256i {
        and(self, other)
    }

    #[inline(always)]
    fn or(self, other: __m256i) -> __m256i {
        // SAFETY: the contract above.
        unsafe { _mm256_or_si256(self, other) }
    }

    #[inline(always)]
    fn xor(self, other: __m256i) -> __m256i {
        // SAFETY: the contract above.
        unsafe { _mm256_xor_si256(self, other) }
    }

    #[inline(always)]
    fn plus(self, other: __m256i) -> __m256i {
        plus(self, other)
    }

    #[inline(always)]
    fn left(self, bits: u32) -> __m256i {
        // SAFETY: the contract above.
        unsafe { _mm256_sll_epi64(self, _mm_cvtsi32_si128(bits as i32)) }
    }

    #[inline(always)]
    fn right(self, bits: u32) -> __m256i {
        // SAFETY: the contract above.
        unsafe { _mm256_srl_epi64(self, _mm_cvtsi32_si128(bits as i32)) }
    }

    #[inline(always)]
    fn filled(self) -> u8 {
        self.empty() ^ 15
    }

    #[inline(always)]
    fn every_lane() -> u8 {
        15
    }

    #[inline(always)]
    fn empty(self) -> u8 {
        // SAFETY: the contract above.
        unsafe { _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(self, all(0)))) as u8 }
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
}

/// The number with all digits below 2^29. `is_whole` carries twice: the result is below 2^256 but with
/// a probability of 2^-200. With one pass, a top digit of 2^24 or more may be left.
#[inline(always)]
fn carried(digits: [__m256i; 9], is_whole: bool) -> [__m256i; 9] {
    let mut d = digits;
    if is_whole {
        d = one_pass(d);
    }
    let Fe4(folded) = fold_top_of(d);
    one_pass(folded)
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

/// `16p·n - a - b` by digits, which are not carried.
#[inline(always)]
fn multiple_less(n: i64, a: &Fe4, b: &Fe4) -> [__m256i; 9] {
    let mut d = a.0;
    for at in 0..9 {
        // SAFETY: the contract above.
        d[at] = unsafe { _mm256_sub_epi64(_mm256_sub_epi64(all(n * SIXTEEN_P[at]), a.0[at]), b.0[at]) };
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

impl TextField for Fe4 {
    /// Its digits are below 2^29, the top one below 2^24.
    type Key = Fe4;
    type Word = __m256i;
    /// No tables of its own: those of `pattern` serve one key at a time.
    type Tables = ();

    fn tables() {}

    #[inline(always)]
    fn plus(a: Fe4, b: Fe4) -> Fe4 {
        Fe4::sum(Summand(a), Summand(b))
    }

    #[inline(always)]
    fn key(self) -> Fe4 {
        Fe4(carried(self.0, true))
    }

    #[inline(always)]
    fn key_less(self, a: Fe4, b: Fe4) -> Fe4 {
        let mut d = multiple_less(1, &a, &b);
        for (digit, addend) in d.iter_mut().zip(self.0) {
            *digit = plus(*digit, addend);
        }
        Fe4(carried(d, true))
    }

    #[inline(always)]
    fn key_of_negative(a: Fe4, b: Fe4) -> Fe4 {
        Fe4(carried(multiple_less(1, &a, &b), true))
    }

    #[inline(always)]
    fn from_key(key: Fe4) -> Fe4 {
        key
    }

    #[inline(always)]
    fn words(key: Fe4) -> [__m256i; 4] {
        words_of(&key.0)
    }

    fn checksum(key: Fe4, (): &()) -> __m256i {
        let mut sums = [0; 4];
        for (lane, sum) in sums.iter_mut().enumerate() {
            *sum = u64::from(checksum(&key.lane(lane).0));
        }
        bytemuck::cast(sums)
    }
}

impl WordField for Fe4 {
    #[inline(always)]
    fn product_less(a: &Fe4, b: &Fe4, c: Fe4, d: Fe4) -> Fe4 {
        product_plus(a, b, &multiple_less(1, &c, &d))
    }

    #[inline(always)]
    fn minus_sum(a: Fe4, b: Fe4) -> Fe4 {
        Fe4(multiple_less(1, &a, &b))
    }

    #[inline(always)]
    fn loose_words(&self) -> ([__m256i; 4], u8) {
        let d = carried(self.0, false);
        // SAFETY: the contract above.
        let large = unsafe { _mm256_cmpgt_epi64(d[8], all(TOP_DIGIT - 1)) };
        (words_of(&d), large.filled())
    }

    #[inline(always)]
    fn lane_of(words: &[__m256i; 4], lane: usize) -> Fe {
        let words: [[u64; 4]; 4] = bytemuck::cast(*words);
        Fe([words[0][lane], words[1][lane], words[2][lane], words[3][lane]])
    }
}

impl WholeField for Fe4 {
    type Quick = QuickWords;

    fn quick(tests: &QuickTests) -> QuickWords {
        QuickWords::new(tests)
    }

    #[inline(always)]
    fn may_pass(keys: &KeysOf<Fe4>, tests: &TextTests) -> bool {
        // SAFETY: the contract above.
        unsafe { may_pass(keys, tests) }
    }

    #[inline(always)]
    fn marks_of(keys: &KeysOf<Fe4>, filter: &Filter) -> Marks {
        // SAFETY: the contract above.
        unsafe { marks_of(keys, filter) }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline(never)]
fn may_pass(keys: &KeysOf<Fe4>, tests: &TextTests) -> bool {
    keys.may_pass_by_words(tests)
}

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
#[inline(never)]
fn marks_of(keys: &KeysOf<Fe4>, filter: &Filter) -> Marks {
    keys.marks(filter)
}
