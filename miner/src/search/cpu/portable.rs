//! The portable field type: one number modulo p at a time, on any processor.

use super::field::{FOLD, Fe};
use super::filter::Filter;
use super::quick::{QuickTests, QuickWords};
use super::screen::{CompareScreen, LookupScreen, Marks, Screened};
use super::simd::{SimdField, Summand};
use super::whole::{KeysOf, WholeField, WholeScreen, WordField, may_pass_by_words};
use crate::pattern::TextTests;

impl SimdField for Fe {
    const LANES: usize = 1;

    /// The top word of a product is 0 to 9 too low. Its rotation by β² is minus the sum of the
    /// other two, so it is up to 18 too high. A candidate's top word sums three such terms of `a`
    /// and three of `b` (each off by -9 to 18, added or subtracted), and two exact ones with
    /// fractions dropped: within ±(6·18 + 2) = ±110. A residue that wrapped past p adds ±1 a term:
    /// ±122.
    const SLACK: u64 = 128;

    type Constant = Self;
    type ConstantFactor = Self;
    type Factor = Self;
    type TopWords = [u64; 2];

    fn constant(value: Fe) -> Self {
        value
    }

    fn constant_factor(value: Fe) -> Self {
        value
    }

    #[inline(always)]
    fn from_constant(constant: &Self) -> Summand<Self> {
        Summand(*constant)
    }

    #[inline(always)]
    fn from_lanes(values: &[Fe]) -> Self {
        values[0]
    }

    #[inline(always)]
    fn lane(self, _: usize) -> Fe {
        self
    }

    #[inline(always)]
    fn summand(self) -> Summand<Self> {
        Summand(self)
    }

    #[inline(always)]
    fn sum(a: Summand<Self>, b: Summand<Self>) -> Self {
        a.0.add(b.0)
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Fe::sub(self, other)
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Fe::mul(self, other)
    }

    #[inline(always)]
    fn square(self) -> Self {
        Fe::square(self)
    }

    #[inline(always)]
    fn square_plus(self, addend: Summand<Self>) -> Self {
        self.mul_plus(self, addend.0)
    }

    #[inline(always)]
    fn factor(self) -> Self {
        self
    }

    #[inline(always)]
    fn times_plus(self, factor: &Self, addend: Summand<Self>) -> Self {
        self.mul_plus(*factor, addend.0)
    }

    #[inline(always)]
    fn times_constant(self, factor: &Self) -> Self {
        Fe::mul(self, *factor)
    }

    #[inline(always)]
    fn top_words_of_products(a: &Self, b: &Self, y: &Self) -> [u64; 2] {
        let (a, b) = (a.top_of_product(*y), b.top_of_product(*y));
        [a.wrapping_add(b), a.wrapping_sub(b)]
    }

    #[inline(always)]
    fn top_words(top: u64) -> [u64; 2] {
        [top; 2]
    }

    #[inline(always)]
    fn top_words_from_lanes(values: &[u64]) -> [u64; 2] {
        [values[0]; 2]
    }

    #[inline(always)]
    fn add_top_words(a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
        [a[0].wrapping_add(b[0]), a[1].wrapping_add(b[1])]
    }

    #[inline(always)]
    fn sub_top_words(a: [u64; 2], b: [u64; 2]) -> [u64; 2] {
        [a[0].wrapping_sub(b[0]), a[1].wrapping_sub(b[1])]
    }

    #[inline(always)]
    fn top_word(top_words: [u64; 2], difference: bool, _: usize) -> u64 {
        top_words[usize::from(difference)]
    }
}

impl WholeField for Fe {
    type Word = u64;
    type Quick = QuickWords;

    fn quick(tests: &QuickTests) -> QuickWords {
        QuickWords::new(tests)
    }

    #[inline(always)]
    fn may_pass(keys: &KeysOf<Fe>, tests: &TextTests) -> bool {
        may_pass_by_words(keys, tests)
    }
}

impl WordField for Fe {
    #[inline(always)]
    fn plus(a: Fe, b: Fe) -> Fe {
        a.add(b)
    }

    #[inline(always)]
    fn product_less(a: &Fe, b: &Fe, c: Fe, d: Fe) -> Fe {
        a.mul_plus(*b, Fe::sub(Fe::ZERO, c.add(d)))
    }

    /// If the upper 64 bits of the result are all ones, it may be wrong.
    ///
    /// With s the lower 256 bits of the sum a + b, and c its carry: `-(s + c·2^256) = (2^256 - 1 - s)
    /// + 1 - (1 + c)·2^256`. There `2^256 - 1 - s` is s with its bits inverted, and 2^256 is
    /// [`FOLD`].
    #[inline(always)]
    fn minus_sum(a: Fe, b: Fe) -> Fe {
        let mut carry = 0u128;
        let mut sum = [0; 4];
        for (sum, (a, b)) in sum.iter_mut().zip(a.0.into_iter().zip(b.0)) {
            carry += u128::from(a) + u128::from(b);
            *sum = carry as u64;
            carry >>= 64;
        }
        let less = (1 + carry as u64) * FOLD - 1;
        let (low, mut borrow) = (!sum[0]).overflowing_sub(less);
        let mut negative = [low, 0, 0, 0];
        for at in 1..4 {
            (negative[at], borrow) = (!sum[at]).overflowing_sub(u64::from(borrow));
        }
        Fe(negative)
    }

    #[inline(always)]
    fn loose_words(&self) -> ([u64; 4], u8) {
        (self.0, u8::from(self.top() == u64::MAX))
    }

    #[inline(always)]
    fn have_equal_parts(words: &[u64; 4], values: &[u64; 4]) -> u8 {
        let (words, values) = (bytemuck::cast_ref::<_, [u16; 16]>(words), bytemuck::cast_ref::<_, [u16; 16]>(values));
        let mut any = [0; 16];
        for at in 0..16 {
            any[at] = if words[at] == values[at] { u16::MAX } else { 0 };
        }
        u8::from(bytemuck::cast::<[u16; 16], [u64; 4]>(any) != [0; 4])
    }

    #[inline(always)]
    fn lane_of(words: &[u64; 4], _: usize) -> [u64; 4] {
        *words
    }
}

impl Screened for Fe {
    const HAS_ONE_LOOKUP: bool = true;
    const FEW_INTERVALS: usize = 2;

    type Few = CompareScreen;
    type Cells = LookupScreen;
    type Gathers = LookupScreen;
    type Loads = LookupScreen;
    type Whole = WholeScreen<Fe>;

    #[inline(always)]
    fn marks(filter: &Filter, top_words: &[[u64; 2]; 9]) -> Marks {
        let mut marks = [0; 9];
        for (mark, &[sum, difference]) in marks.iter_mut().zip(top_words) {
            let is_marked = |top: u64| u16::from(filter.is_marked((top >> 32) as u32));
            *mark = is_marked(sum) | is_marked(difference) << 8;
        }
        marks
    }

    #[inline(always)]
    fn is_one_within(top_words: &[[u64; 2]; 9], first: u32, width: u32) -> bool {
        let mut any = false;
        for top in top_words.as_flattened() {
            any |= ((top >> 32) as u32).wrapping_sub(first) <= width;
        }
        any
    }
}
