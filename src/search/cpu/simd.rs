//! What the formula needs of a field type: one number modulo p, or several side by side.

use super::field::Fe;
use super::filter::Filter;
use super::huge_page::Zeros;

/// Marks on an entry's 18 top_words in up to eight lanes: bit `8·sign + lane` of word `3·turn + rotation`.
///
/// **Closures.** What the inner loop runs must be `#[inline(always)]` down to the instructions, or the vector kernels
/// fall apart into calls: no closures there, not even in `map` or `fold`.
pub type Marks = [u16; 9];

/// Entries, around one vector of centres each, whose top_words are looked at together at most.
pub const SLOTS: usize = 32;

/// What is kept of the top_words of up to [`SLOTS`] entries until they are looked at together. A type for each way to look at
/// them: whichever it is, the inner loop knows no other.
pub trait Notes<F: Lanes>: Zeros {
    /// Called before the first slot with a filter.
    fn begin(&mut self, _filter: &Filter) {}

    /// Keeps whatever of these top_words may concern anyone. `slot`: from 0 on, one more each time.
    fn note(&mut self, filter: &Filter, top_words: &[F::TopWords; 9], slot: usize);

    /// The slots, as bits, of which a top may concern anyone, and forgets them all. No others do.
    fn noted(&mut self, filter: &Filter) -> u32;
}

/// Numbers that [`Lanes::sum`] may add as they are.
#[derive(Clone, Copy, Debug)]
pub struct Tidy<F>(pub F);

/// `LANES` numbers modulo p, each in its lane. All operations work lane by lane.
///
/// Values are lazily reduced; how far is each type's own affair. Every value that an operation gives may go into every
/// other, but for two things: a sum is not summed again, and of two numbers that are summed one at most is a product by
/// something made ready.
pub trait Lanes: Copy + Zeros {
    /// Numbers side by side, at most eight.
    const LANES: usize;

    /// How far a top, summed as the formula does, may be off, either way, in units of 2^-64 of the field.
    const SLACK: u64;

    /// A number that is the same in every lane, as a table keeps it.
    type Constant: Copy + Zeros;

    /// Such a number, made ready to multiply by.
    type ConstantFactor: Copy + Zeros;

    /// A number in each lane, made ready to multiply many others by.
    type Factor: Copy;

    /// The approximate top_words of two numbers in each lane, a sum and a difference, modulo 2^64.
    type TopWords: Copy;

    fn constant(value: Fe) -> Self::Constant;

    fn constant_factor(value: Fe) -> Self::ConstantFactor;

    fn of(constant: &Self::Constant) -> Tidy<Self>;

    /// One number a lane, as many as there are lanes.
    fn from_lanes(values: &[Fe]) -> Self;

    fn lane(self, lane: usize) -> Fe;

    fn tidy(self) -> Tidy<Self>;

    fn sum(a: Tidy<Self>, b: Tidy<Self>) -> Self;

    fn sub(self, other: Self) -> Self;

    fn mul(self, other: Self) -> Self;

    fn square(self) -> Self;

    /// `self² + addend`.
    fn square_plus(self, addend: Tidy<Self>) -> Self;

    fn factor(self) -> Self::Factor;

    fn times(self, factor: &Self::Factor) -> Self;

    fn times_constant(self, factor: &Self::ConstantFactor) -> Self;

    /// The top_words of `a·y + b·y` and `a·y - b·y`, near those of the canonical numbers; how near, [`Lanes::SLACK`] says.
    fn tops_of_products(a: Self, b: Self, y: Self) -> Self::TopWords;

    /// This top for the sums and the differences of all lanes.
    fn top_words(top: u64) -> Self::TopWords;

    /// A top for each lane, for its sum and its difference.
    fn tops_from_lanes(values: &[u64]) -> Self::TopWords;

    fn add_tops(a: Self::TopWords, b: Self::TopWords) -> Self::TopWords;

    fn sub_tops(a: Self::TopWords, b: Self::TopWords) -> Self::TopWords;

    /// The sum's top in a lane, or the difference's.
    fn top(top_words: Self::TopWords, difference: bool, lane: usize) -> u64;

    /// Filters of so many intervals or fewer are looked at by [`Lanes::Few`], others by [`Lanes::Many`].
    const FEW_INTERVALS: usize;

    type Few: Notes<Self>;

    type Many: Notes<Self>;

    /// Which of these top_words, in which lanes, may concern anyone. What is not marked certainly does not.
    fn marks(filter: &Filter, top_words: &[Self::TopWords; 9]) -> Marks;

    /// `1/self`, and 0 for 0: `self^(p-2)` by libsecp256k1's addition chain (255 squarings, 15 products).
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

    /// Squared `times` times.
    #[inline(always)]
    fn squared(self, times: u32) -> Self {
        let mut value = self;
        for _ in 0..times {
            value = value.square();
        }
        value
    }

    /// Lanes that are zero, as bits.
    #[inline(always)]
    fn zero_lanes(self) -> u32 {
        (0..Self::LANES).filter(|&lane| self.lane(lane).is_zero()).fold(0, |mask, lane| mask | 1 << lane)
    }
}
