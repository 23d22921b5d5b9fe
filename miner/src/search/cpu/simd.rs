//! The interface of a field type: one number modulo p, or several side by side (SIMD).
//!
//! **Closures.** Every function in the inner loop must be `#[inline(always)]`, down to the
//! instructions, or the compiler turns parts of the vector kernels into calls. A closure cannot
//! have this attribute, so the inner loop has none, not even in `map` or `fold`.

use super::field::Fe;
use bytemuck::Zeroable;

/// Work for the instructions of one kernel. [`SimdField::apart`] inlines it into a function of its
/// own, which is compiled for them.
pub trait Job {
    /// The result.
    type Output;

    /// Does the work. Inlined always.
    fn run(self) -> Self::Output;
}

/// Defines functions that are one expression each, inlined always.
///
/// Each relies on the contract of its module: the processor has the instructions.
macro_rules! instructions {
    ($($(#[$doc:meta])* $visible:vis fn $name:ident$(<const $n:ident: $kind:ty>)?($($arguments:tt)*) -> $result:ty = $value:expr;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        $visible fn $name$(<const $n: $kind>)?($($arguments)*) -> $result {
            // SAFETY: the contract of the module.
            unsafe { $value }
        }
    )*};
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) use instructions;

/// A number in the form that [`SimdField::sum`] can add directly.
#[derive(Clone, Copy, Debug)]
pub struct Summand<F>(pub F);

/// `LANES` numbers modulo p, each in its lane. All operations work lane by lane.
///
/// Values are lazily reduced, each type in its own way. Every result may be an operand, with two
/// exceptions: a sum is not summed again, and of two summands at most one is a product by a
/// [`SimdField::Factor`] or [`SimdField::ConstantFactor`].
pub trait SimdField: Copy + Zeroable {
    /// Numbers side by side, at most eight.
    const LANES: usize;

    /// Largest error of a candidate's top word in both directions, in units of 2^-64 of the field.
    const SLACK: u64;

    /// A number that is the same in every lane, in the form a table keeps.
    type Constant: Copy + Zeroable;

    /// A number that is the same in every lane, prepared as a factor.
    type ConstantFactor: Copy + Zeroable;

    /// A number in each lane, prepared as a factor of many others.
    type Factor: Copy;

    /// The approximate top words of two numbers in each lane, a sum and a difference, modulo 2^64.
    type TopWords: Copy;

    /// Does a job in a function that is compiled for this field's instructions.
    ///
    /// A function of its own for each job: the compiler's time grows faster than a function's length.
    #[inline(never)]
    fn apart<J: Job>(job: J) -> J::Output {
        job.run()
    }

    /// A number for the table.
    fn constant(value: Fe) -> Self::Constant;

    /// A number for the table, prepared as a factor.
    fn constant_factor(value: Fe) -> Self::ConstantFactor;

    /// The constant in every lane.
    fn from_constant(constant: &Self::Constant) -> Summand<Self>;

    /// One number per lane. `values` has at least `LANES` numbers.
    fn from_lanes(values: &[Fe]) -> Self;

    /// The number in a lane.
    fn lane(self, lane: usize) -> Fe;

    /// The number, prepared for a sum.
    fn summand(self) -> Summand<Self>;

    /// `a + b`
    fn sum(a: Summand<Self>, b: Summand<Self>) -> Self;

    /// `self - other`
    fn sub(self, other: Self) -> Self;

    /// `self · other`
    fn mul(self, other: Self) -> Self;

    /// `self²`
    fn square(self) -> Self;

    /// `self² + addend`
    fn square_plus(self, addend: Summand<Self>) -> Self;

    /// The number, prepared as a factor.
    fn factor(self) -> Self::Factor;

    /// `self · factor + addend`
    fn times_plus(self, factor: &Self::Factor, addend: Summand<Self>) -> Self;

    /// `self · factor`, the same factor in every lane.
    fn times_constant(self, factor: &Self::ConstantFactor) -> Self;

    /// The top words of `a·y + b·y` and `a·y - b·y`, within a third of [`SimdField::SLACK`].
    fn top_words_of_products(a: &Self, b: &Self, y: &Self) -> Self::TopWords;

    /// One top word, the same for the sum and the difference of every lane.
    fn top_words(top_word: u64) -> Self::TopWords;

    /// A top word for each lane, for its sum and its difference.
    fn top_words_from_lanes(values: &[u64]) -> Self::TopWords;

    /// `a + b`, top word by top word.
    fn add_top_words(a: Self::TopWords, b: Self::TopWords) -> Self::TopWords;

    /// `a - b`, top word by top word.
    fn sub_top_words(a: Self::TopWords, b: Self::TopWords) -> Self::TopWords;

    /// The top word of a lane's sum, or of its difference.
    fn top_word(top_words: Self::TopWords, difference: bool, lane: usize) -> u64;

    /// `1/self`, and 0 for 0: `self^(p-2)` by libsecp256k1's addition chain of 255 squarings and 15
    /// products.
    #[inline(always)]
    fn invert(self) -> Self {
        // ones_n is self^(2^n - 1).
        let ones_2 = self.squared(1).mul(self);
        let ones_3 = ones_2.squared(1).mul(self);
        let ones_6 = ones_3.squared(3).mul(ones_3);
        let ones_9 = ones_6.squared(3).mul(ones_3);
        let ones_11 = ones_9.squared(2).mul(ones_2);
        let ones_22 = ones_11.squared(11).mul(ones_11);
        let ones_44 = ones_22.squared(22).mul(ones_22);
        let ones_88 = ones_44.squared(44).mul(ones_44);
        let ones_176 = ones_88.squared(88).mul(ones_88);
        let ones_220 = ones_176.squared(44).mul(ones_44);
        let ones_223 = ones_220.squared(3).mul(ones_3);
        // p - 2 is 223 ones, a zero, 22 ones, 0000101101.
        let head = ones_223.squared(23).mul(ones_22);
        let head = head.squared(5).mul(self);
        let head = head.squared(3).mul(ones_2);
        head.squared(2).mul(self)
    }

    /// Squares the number `times` times.
    #[inline(always)]
    fn squared(self, times: u32) -> Self {
        let mut value = self;
        for _ in 0..times {
            value = value.square();
        }
        value
    }

    /// Whether the number in some lane is zero.
    #[inline(always)]
    fn has_zero(self) -> bool {
        (0..Self::LANES).any(|lane| self.lane(lane).is_zero())
    }
}
