//! What the formula needs of a field type: one number modulo p, or several side by side.

use super::field::Fe;
use super::filter::Filter;

/// Marks on an entry's 18 tops in up to eight lanes: top n in lane l is bit `8·(n mod 2) + l` of word `n / 2`.
///
/// **Closures.** What the inner loop runs must be `#[inline(always)]` down to the instructions, or the vector kernels
/// fall apart into calls: no closures there, not even in `map` or `fold`.
pub type Marks = [u16; 9];

/// `LANES` numbers modulo p, each in its lane. All operations work lane by lane.
///
/// Values are lazily reduced; how far is each type's own affair, as long as sums of two products (or of a product and
/// such a sum), and differences of such, may be multiplied.
pub trait Lanes: Copy {
    /// Numbers side by side.
    const LANES: usize;

    /// How far [`Lanes::top_of_product`], summed as the formula does, may be off, either way, in units of 2^-64 of the
    /// field.
    const SLACK: u64;

    /// A number that is the same in every lane, as a table keeps it.
    type Constant: Copy;

    /// Approximate top 64 bits, a number modulo 2^64 in each lane.
    type Tops: Copy;

    fn constant(value: Fe) -> Self::Constant;

    fn of(constant: &Self::Constant) -> Self;

    /// One number a lane, as many as there are lanes.
    fn from_lanes(values: &[Fe]) -> Self;

    fn lane(self, lane: usize) -> Fe;

    fn add(self, other: Self) -> Self;

    fn sub(self, other: Self) -> Self;

    fn mul(self, other: Self) -> Self;

    fn square(self) -> Self;

    /// Near the top of the canonical product; how near, [`Lanes::SLACK`] says.
    fn top_of_product(self, other: Self) -> Self::Tops;

    /// The same top in every lane.
    fn tops(top: u64) -> Self::Tops;

    fn tops_from_lanes(values: &[u64]) -> Self::Tops;

    fn top(tops: Self::Tops, lane: usize) -> u64;

    fn add_tops(a: Self::Tops, b: Self::Tops) -> Self::Tops;

    fn sub_tops(a: Self::Tops, b: Self::Tops) -> Self::Tops;

    /// Which of these tops, in which lanes, may concern anyone. What is not marked certainly does not.
    fn marks(filter: &Filter, tops: &[Self::Tops; 18]) -> Marks;

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

impl Lanes for Fe {
    const LANES: usize = 1;

    /// A product's top is low by 0 to 9, so its rotation by β², minus the sum of the other two, is up to 18 high. A top
    /// sums three such terms of `A'` and three of `B` (each within [-9, 18], added or subtracted) and three exact tops
    /// with fractions dropped: within ±6·18 + 3 = ±111. A residue that wrapped past p adds ±1 a term: ±123.
    const SLACK: u64 = 128;

    type Constant = Fe;
    type Tops = u64;

    fn constant(value: Fe) -> Fe {
        value
    }

    #[inline(always)]
    fn of(constant: &Fe) -> Fe {
        *constant
    }

    #[inline(always)]
    fn from_lanes(values: &[Fe]) -> Fe {
        values[0]
    }

    #[inline(always)]
    fn lane(self, _: usize) -> Fe {
        self
    }

    #[inline(always)]
    fn add(self, other: Fe) -> Fe {
        Fe::add(self, other)
    }

    #[inline(always)]
    fn sub(self, other: Fe) -> Fe {
        Fe::sub(self, other)
    }

    #[inline(always)]
    fn mul(self, other: Fe) -> Fe {
        Fe::mul(self, other)
    }

    #[inline(always)]
    fn square(self) -> Fe {
        Fe::square(self)
    }

    #[inline(always)]
    fn top_of_product(self, other: Fe) -> u64 {
        Fe::top_of_product(self, other)
    }

    #[inline(always)]
    fn tops(top: u64) -> u64 {
        top
    }

    #[inline(always)]
    fn tops_from_lanes(values: &[u64]) -> u64 {
        values[0]
    }

    #[inline(always)]
    fn top(tops: u64, _: usize) -> u64 {
        tops
    }

    #[inline(always)]
    fn add_tops(a: u64, b: u64) -> u64 {
        a.wrapping_add(b)
    }

    #[inline(always)]
    fn sub_tops(a: u64, b: u64) -> u64 {
        a.wrapping_sub(b)
    }

    #[inline(always)]
    fn marks(filter: &Filter, tops: &[u64; 18]) -> Marks {
        let mut marks = [0; 9];
        let mut any = false;
        for &top in tops {
            any |= filter.is_marked(top);
        }
        if any {
            for (n, &top) in tops.iter().enumerate() {
                marks[n / 2] |= u16::from(filter.is_marked(top)) << (8 * (n % 2));
            }
        }
        marks
    }
}
