//! The operations of the IFMA kernel's field type.
//!
//! Every `unsafe` here relies on the contract of `super`: the processor has the instructions.

use super::keys::KeyFactors;
use super::lookup::LoadScreen;
use super::marks::{self, CellScreen};
use super::quick::Quick8;
use super::reduce::{
    FOLD_256, LIMB, TOP_LIMB, carried, limbs, reduced, reduced_at_259, square_columns, top_of_product, uppers,
};
use super::text::passes_by_text;
use super::vector::{all, and, high, load, low, minus, plus, right, store};
use crate::pattern::TextTests;
use crate::search::cpu::field::Fe;
use crate::search::cpu::filter::Filter;
use crate::search::cpu::lookup::GatherScreen;
use crate::search::cpu::quick::QuickTests;
use crate::search::cpu::screen::{CompareScreen, Marks, Screened};
use crate::search::cpu::simd::{Job, SimdField, Summand, instructions};
use crate::search::cpu::whole::{KeysOf, WholeField, WholeScreen};
use bytemuck::Zeroable;
use std::arch::x86_64::*;

/// 16p, with limbs so large that no limb of a subtrahend (below 2^52; the top one below 2^52 - 2)
/// exceeds them. They are those of 2^53 + (2^53-2)·2^52 + (2^53-2)·2^104 + (2^53-2)·2^156 +
/// (2^52-2)·2^208 = 2^260, from which 16·(2^256-p) is subtracted.
const SIXTEEN_P: [i64; 5] = [(1 << 53) - 16 * FOLD_256, (1 << 53) - 2, (1 << 53) - 2, (1 << 53) - 2, (1 << 52) - 2];

impl SimdField for Fe8 {
    const LANES: usize = 8;

    /// A top word has 32 bits here. In units of 2^-32, the top word of a product is too low by less
    /// than 0.01, and by less than 1 for its dropped fraction. So its rotation by β² is less than
    /// 2.1 too high. A candidate sums six such terms and two exact top words, and each term may
    /// wrap once: within ±(6·2.1 + 2 + 6).
    const SLACK: u64 = 21 << 32;

    type Constant = [u64; 5];
    type ConstantFactor = [[u64; 5]; 5];
    type Factor = Factor8;
    /// Sixteen top words of 32 bits: the sums in the lower half, the differences in the upper.
    type TopWords = __m512i;

    #[inline(always)]
    fn apart<J: Job>(job: J) -> J::Output {
        #[target_feature(
            enable = "avx512f,avx512dq,avx512bw,avx512ifma,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,popcnt,bmi1,bmi2,lzcnt"
        )]
        #[inline(never)]
        fn apart<J: Job>(job: J) -> J::Output {
            job.run()
        }
        // SAFETY: the processor has the instructions (the contract of `super`).
        unsafe { apart(job) }
    }

    fn constant(value: Fe) -> [u64; 5] {
        limbs(value)
    }

    fn constant_factor(value: Fe) -> [[u64; 5]; 5] {
        let mut powers = [[0; 5]; 5];
        let mut value = value;
        for power in &mut powers {
            *power = limbs(value.canonical());
            value = value.mul(Fe::from_small(1 << 52));
        }
        powers
    }

    #[inline(always)]
    fn from_constant(constant: &[u64; 5]) -> Summand<Fe8> {
        let [a, b, c, d, e] = *constant;
        Summand(Fe8([all(a as i64), all(b as i64), all(c as i64), all(d as i64), all(e as i64)]))
    }

    #[inline(always)]
    fn from_lanes(values: &[Fe]) -> Fe8 {
        let mut lanes = [[0u64; 8]; 5];
        for (lane, value) in values.iter().enumerate().take(8) {
            for (limb, part) in lanes.iter_mut().zip(limbs(*value)) {
                limb[lane] = part;
            }
        }
        let [a, b, c, d, e] = lanes;
        Fe8([load(&a), load(&b), load(&c), load(&d), load(&e)])
    }

    #[inline(always)]
    fn lane(self, lane: usize) -> Fe {
        let [a, b, c, d, e] = self.summand().0.0;
        let [a, b, c, d, e] = [store(a)[lane], store(b)[lane], store(c)[lane], store(d)[lane], store(e)[lane]];
        // l4 is below 2^52, so at most 4 bits lie above 2^256.
        let value = Fe([a | b << 52, b >> 12 | c << 40, c >> 24 | d << 28, d >> 36 | e << 16]);
        value.add(Fe([(e >> 48) * FOLD_256 as u64, 0, 0, 0]))
    }

    #[inline(always)]
    fn summand(self) -> Summand<Fe8> {
        let [a, b, c, d, e] = self.0;
        let mask = all(LIMB);
        Summand(Fe8([and(a, mask), and(b, mask), and(c, mask), and(d, mask), e]))
    }

    #[inline(always)]
    fn sum(Summand(a): Summand<Fe8>, Summand(b): Summand<Fe8>) -> Fe8 {
        let (a, b) = (a.0, b.0);
        Fe8(carried([plus(a[0], b[0]), plus(a[1], b[1]), plus(a[2], b[2]), plus(a[3], b[3]), plus(a[4], b[4])]))
    }

    // `self + 16p - other`. The bits from 2^256 on (below 2^5) are folded.
    #[inline(always)]
    fn sub(self, other: Fe8) -> Fe8 {
        let (mut l, other) = (self.summand().0.0, other.summand().0.0);
        for at in 0..5 {
            l[at] = minus(plus(l[at], all(SIXTEEN_P[at])), other[at]);
        }
        // Carries first, because the carry into l4 may bring the number above 2^256.
        l = Fe8(carried(l)).summand().0.0;
        l[0] = low(l[0], right::<48>(l[4]), all(FOLD_256));
        l[4] = and(l[4], all(TOP_LIMB));
        Fe8(carried(l))
    }

    // Schoolbook: 25 products, each in two halves. A column has at most nine of these halves, each
    // below 2^52.
    #[inline(always)]
    fn mul(self, other: Fe8) -> Fe8 {
        let (a, b) = (self.0, other.0);
        let mut c = [all(0); 10];
        for i in 0..5 {
            for j in 0..5 {
                c[i + j] = low(c[i + j], a[i], b[j]);
                c[i + j + 1] = high(c[i + j + 1], a[i], b[j]);
            }
        }
        Fe8(reduced(c))
    }

    #[inline(always)]
    fn square(self) -> Fe8 {
        Fe8(reduced(square_columns(self.0)))
    }

    #[inline(always)]
    fn square_plus(self, Summand(addend): Summand<Fe8>) -> Fe8 {
        let mut c = square_columns(self.0);
        for (column, limb) in c.iter_mut().zip(addend.0) {
            *column = plus(*column, limb);
        }
        Fe8(reduced(c))
    }

    // Only for products and differences: the powers of a factor need limbs like those of products.
    #[inline(always)]
    fn factor(self) -> Factor8 {
        let two_52 = Fe8([all(0), all(1), all(0), all(0), all(0)]);
        let mut powers = [self.mul(Fe8([all(1), all(0), all(0), all(0), all(0)])); 5];
        for at in 1..5 {
            powers[at] = powers[at - 1].mul(two_52);
        }
        Factor8([powers[0].0, powers[1].0, powers[2].0, powers[3].0, powers[4].0])
    }

    #[inline(always)]
    fn times_plus(self, factor: &Factor8, Summand(addend): Summand<Fe8>) -> Fe8 {
        let mut c = [all(0); 6];
        c[..5].copy_from_slice(&addend.0);
        for i in 0..5 {
            for j in 0..5 {
                c[j] = low(c[j], self.0[i], factor.0[i][j]);
                c[j + 1] = high(c[j + 1], self.0[i], factor.0[i][j]);
            }
        }
        Fe8(reduced_at_259(c))
    }

    #[inline(always)]
    fn times_constant(self, factor: &[[u64; 5]; 5]) -> Fe8 {
        let mut c = [all(0); 6];
        for (limb, power) in self.0.into_iter().zip(factor) {
            for (j, &part) in power.iter().enumerate() {
                let part = all(part as i64);
                c[j] = low(c[j], limb, part);
                c[j + 1] = high(c[j + 1], limb, part);
            }
        }
        Fe8(reduced_at_259(c))
    }

    #[inline(always)]
    fn top_words_of_products(a: &Fe8, b: &Fe8, y: &Fe8) -> __m512i {
        let y = uppers(y.0);
        let top_words = upper_halves(top_of_product(a.0, &y), top_of_product(b.0, &y));
        // SAFETY: the processor has the instructions (the contract of `super`).
        unsafe {
            let swapped = _mm512_shuffle_i64x2::<0b01_00_11_10>(top_words, top_words);
            _mm512_mask_sub_epi32(_mm512_add_epi32(top_words, swapped), DIFFERENCES, swapped, top_words)
        }
    }

    #[inline(always)]
    fn top_words_from_lanes(values: &[u64]) -> __m512i {
        let mut lanes = [0; 8];
        lanes.copy_from_slice(&values[..8]);
        upper_halves(load(&lanes), load(&lanes))
    }

    instructions! {
        fn top_words(top: u64) -> __m512i = _mm512_set1_epi32((top >> 32) as i32);
        fn add_top_words(a: __m512i, b: __m512i) -> __m512i = _mm512_add_epi32(a, b);
        fn sub_top_words(a: __m512i, b: __m512i) -> __m512i = _mm512_sub_epi32(a, b);
    }

    #[inline(always)]
    fn top_word(top_words: __m512i, difference: bool, lane: usize) -> u64 {
        let words = store(top_words);
        let word = usize::from(difference) * 8 + lane;
        words[word / 2] >> (32 * (word % 2)) << 32
    }
}

impl WholeField for Fe8 {
    type Word = __m512i;
    type Quick = Quick8;

    fn quick(tests: &QuickTests) -> Quick8 {
        Quick8::new(tests)
    }

    #[inline(always)]
    fn may_pass(keys: &KeysOf<Fe8>, tests: &TextTests) -> bool {
        let factors = KeyFactors::new(keys.products, keys.centre.x, &keys.screen.beta);
        let mut passes = false;
        for k in 0..3 {
            let points = factors.keys(k, keys.turned(k));
            passes |= match keys.quick() {
                Some(quick) => quick.passes_one(&points, tests),
                None => passes_by_text(&points, tests, &keys.screen.tables),
            };
        }
        passes
    }
}

impl Screened for Fe8 {
    const FEW_INTERVALS: usize = 3;

    type Few = CompareScreen;
    type Cells = CellScreen;
    type Gathers = GatherScreen<Fe8>;
    type Loads = LoadScreen;
    type Whole = WholeScreen<Fe8>;

    #[inline(always)]
    fn marks(filter: &Filter, top_words: &[__m512i; 9]) -> Marks {
        marks::marks(filter, top_words)
    }

    #[inline(always)]
    fn is_one_within(top_words: &[__m512i; 9], first: u32, width: u32) -> bool {
        marks::is_one_within(top_words, first, width)
    }
}

/// Bits of the differences among sixteen top words.
const DIFFERENCES: u16 = 0xff00;

/// The upper 32 bits of the eight lanes of `a`, then of `b`.
#[inline(always)]
fn upper_halves(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the processor has the instructions (the contract of `super`).
    unsafe {
        let odd = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
        _mm512_permutex2var_epi32(a, odd, b)
    }
}

/// Eight numbers modulo p.
#[derive(Clone, Copy, Debug, Zeroable)]
pub struct Fe8(pub [__m512i; 5]);

/// A prepared factor: a number times `2^(52·i)` modulo p, for i = 0…4. So most of the folding of a
/// product with it is done in advance.
#[derive(Clone, Copy, Debug)]
pub struct Factor8(pub(super) [[__m512i; 5]; 5]);
