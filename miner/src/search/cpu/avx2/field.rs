//! The operations of the field type of the kernel `avx2`. The table of `super` has the bounds.
//!
//! The contract of every `unsafe` is that of the module `avx2`.

use crate::search::cpu::field::Fe;
use crate::search::cpu::simd::{Job, SimdField, Summand, instructions};
use bytemuck::Zeroable;
use std::arch::asm;
use std::arch::x86_64::*;

/// Bits of a digit.
const BITS: usize = 29;
/// The bits of a digit.
pub const DIGIT: i64 = (1 << BITS) - 1;
/// The bits of the top digit of a number below 2^256.
pub const TOP_DIGIT: i64 = (1 << 24) - 1;
/// 2^256 mod p is this and 2^32, which is 8 times 2^29.
pub const FOLD_256: i64 = 977;
/// 2^261 mod p is this and 2^37, which is 2^8 times 2^29.
const FOLD_261: i64 = FOLD_256 << 5;
/// Added to the top words of a sum of two products, each of which is 0 to 7 too low.
const CENTRING: i64 = 7;

/// 16p, with digits larger than those of any sum. They are those of `2^31 + (2^31-4)·2^29 + … +
/// (2^28-4)·2^232 = 2^260`, from which 16·(2^256-p) is subtracted.
pub const SIXTEEN_P: [i64; 9] = {
    let mut digits = [(1 << 31) - 4; 9];
    digits[0] = (1 << 31) - 16 * FOLD_256;
    digits[1] -= 16 * 8;
    digits[8] = (1 << 28) - 4;
    digits
};

/// Four numbers modulo p.
#[derive(Clone, Copy, Debug, Zeroable)]
pub struct Fe4(pub [__m256i; 9]);

/// A prepared factor: a number times 2^(29·i) modulo p, for i = 0…8.
#[derive(Clone, Copy, Debug)]
pub struct Factor4(pub [[__m256i; 9]; 9]);

instructions! {
    pub fn all(value: i64) -> __m256i = _mm256_set1_epi64x(value);
    pub fn plus(a: __m256i, b: __m256i) -> __m256i = _mm256_add_epi64(a, b);
    pub fn minus(a: __m256i, b: __m256i) -> __m256i = _mm256_sub_epi64(a, b);
    /// The product of the lower halves of the lanes.
    pub fn times(a: __m256i, b: __m256i) -> __m256i = _mm256_mul_epu32(a, b);
    pub fn and(a: __m256i, b: __m256i) -> __m256i = _mm256_and_si256(a, b);
    pub fn right<const N: i32>(a: __m256i) -> __m256i = _mm256_srli_epi64::<N>(a);
    pub fn left<const N: i32>(a: __m256i) -> __m256i = _mm256_slli_epi64::<N>(a);
}

/// Column k of the product of two numbers.
#[inline(always)]
fn column(a: &[__m256i; 9], b: &[__m256i; 9], k: usize) -> __m256i {
    let (mut i, last) = if k < 9 { (0, k) } else { (k - 8, 8) };
    let mut sum = times(a[i], b[k - i]);
    while i < last {
        i += 1;
        sum = plus(sum, times(a[i], b[k - i]));
    }
    sum
}

/// Column k of a square. `doubled` is 2a.
#[inline(always)]
fn column_of_square(a: &[__m256i; 9], doubled: &[__m256i; 9], k: usize) -> __m256i {
    let mut i = k.saturating_sub(8);
    let mut sum = if k.is_multiple_of(2) { times(a[k / 2], a[k / 2]) } else { all(0) };
    while 2 * i < k {
        sum = plus(sum, times(a[i], doubled[k - i]));
        i += 1;
    }
    sum
}

/// The same reference, by which the compiler cannot tell that vectors made of its numbers were needed
/// before: it would keep 81 of them on the stack, which takes longer than to make them again.
#[inline(always)]
fn reloaded<T>(reference: &T) -> &T {
    let mut pointer: *const T = reference;
    // SAFETY: an empty text, which leaves the pointer as it is.
    unsafe {
        asm!("/* {} */", inout(reg) pointer, options(readonly, nostack, preserves_flags));
        &*pointer
    }
}

/// Repeats a block for each value: the compiler would not unroll such long loops.
macro_rules! repeated {
    ($n:ident in $($value:literal)* => $block:block) => {
        $({
            let $n = $value;
            $block
        })*
    };
}

/// A product plus an addend. The upper columns are carried to digits first, then each is folded into
/// the lower columns as these are carried:
///
/// ```text
/// 2^(29·(9+n)) = (2^8·2^29 + 31,264)·2^(29·n)
/// ```
///
/// Digit 17 is below 2^24, so it can be folded twice. The top digit's excess is then below 2^16.
macro_rules! reduced {
    ($column:ident, $a:expr, $b:expr, $addend:expr) => {{
        let (a, b, addend): (&[__m256i; 9], &[__m256i; 9], &[__m256i; 9]) = ($a, $b, $addend);
        let (mask, fold) = (all(DIGIT), all(FOLD_261));
        let mut upper = [mask; 9];
        let column_8 = plus($column(a, b, 8), addend[8]);
        let mut before = right::<29>(column_8);
        repeated!(n in 0 1 2 3 4 5 6 7 => {
            let column = plus($column(a, b, n + 9), before);
            upper[n] = and(column, mask);
            before = right::<29>(column);
        });
        upper[8] = before;
        let above = left::<8>(upper[8]);
        let mut digits = [mask; 9];
        before = times(above, fold);
        repeated!(n in 0 1 2 3 4 5 6 7 => {
            let column = plus(plus($column(a, b, n), addend[n]), plus(times(upper[n], fold), before));
            digits[n] = and(column, mask);
            let next = if n == 0 { plus(upper[0], above) } else { upper[n] };
            before = plus(right::<29>(column), left::<8>(next));
        });
        let top = plus(plus(and(column_8, mask), times(upper[8], fold)), before);
        digits[8] = and(top, all(TOP_DIGIT));
        fold_top(digits, right::<24>(top))
    }};
}

/// Adds `excess·2^256`, an excess below 2^16, to a number whose digits are below 2^29.
#[inline(always)]
pub fn fold_top(mut digits: [__m256i; 9], excess: __m256i) -> Fe4 {
    let lowest = plus(digits[0], times(excess, all(FOLD_256)));
    digits[0] = and(lowest, all(DIGIT));
    digits[1] = plus(digits[1], plus(left::<3>(excess), right::<29>(lowest)));
    Fe4(digits)
}

/// A product by a prepared factor, plus an addend. Each of the nine columns is below 2^62.3, the top
/// one below 2^58. The top digit keeps 26 bits. Its excess is below 2^32.
macro_rules! folded {
    ($number:expr, $addend:expr, |$i:ident, $n:ident| $part:expr) => {{
        let (number, addend): (&[__m256i; 9], &[__m256i; 9]) = ($number, $addend);
        let (mask, mut before) = (all(DIGIT), all(0));
        let mut digits = [mask; 9];
        repeated!($n in 0 1 2 3 4 5 6 7 8 => {
            let mut column = plus(addend[$n], before);
            repeated!($i in 0 1 2 3 4 5 6 7 8 => {
                column = plus(column, times(number[$i], $part));
            });
            digits[$n] = and(column, if $n < 8 { mask } else { all((1 << 26) - 1) });
            before = if $n < 8 { right::<29>(column) } else { right::<26>(column) };
        });
        let lowest = plus(digits[0], times(before, all(FOLD_256 << 2)));
        let second = plus(digits[1], plus(left::<5>(before), right::<29>(lowest)));
        (digits[0], digits[1]) = (and(lowest, mask), and(second, mask));
        digits[2] = plus(digits[2], right::<29>(second));
        Fe4(digits)
    }};
}

/// `a·b + addend`, an addend with digits below 2^32.
#[inline(always)]
pub fn product_plus(a: &Fe4, b: &Fe4, addend: &[__m256i; 9]) -> Fe4 {
    reduced!(column, &a.0, &b.0, addend)
}

/// The nine digits of a number below 2^256.
fn digits(Fe(limbs): Fe) -> [u64; 9] {
    std::array::from_fn(|at| {
        let (limb, bit) = (BITS * at / 64, BITS * at % 64);
        let next = if bit > 64 - BITS && limb < 3 { limbs[limb + 1] << (64 - bit) } else { 0 };
        (limbs[limb] >> bit | next) & DIGIT as u64
    })
}

/// The top words of a factor y: for i = 0…8, the upper 32 bits and the next 31 bits of `y·2^(29·i)`
/// modulo p.
#[inline(always)]
fn uppers(y: &[__m256i; 9]) -> [[__m256i; 2]; 9] {
    let (zero, fold) = (all(0), all(FOLD_261));
    let mut uppers = [[zero; 2]; 9];
    for (i, upper) in uppers.iter_mut().enumerate() {
        // Digits 8, 7 and 6 of the shifted number. What is shifted beyond digit 8 is folded down.
        let mut top = y[8 - i];
        let mut second = if i < 8 { y[7 - i] } else { left::<8>(y[7]) };
        let mut third = if i < 7 { y[6 - i] } else { plus(left::<8>(y[14 - i]), times(y[15 - i], fold)) };
        if i == 6 {
            third = plus(third, left::<8>(y[8]));
        }
        if i == 7 {
            second = plus(second, left::<8>(y[8]));
        }
        if i == 8 {
            second = plus(second, times(y[8], fold));
            top = plus(top, left::<8>(y[8]));
        }
        let lower = plus(left::<10>(second), right::<19>(third));
        *upper = [plus(left::<8>(top), right::<31>(lower)), and(lower, all((1 << 31) - 1))];
    }
    uppers
}

/// The top word of w·y in the lower half of each lane, 0 to 7 too low. The dropped bits of each of the
/// nine `y·2^(29·i)` are below 1 unit of 2^-31, and digits of w below 2^30 + 2^20, which makes 4.6;
/// dropping the fractions of two sums makes less than 2 more.
#[inline(always)]
fn truncated_product(w: &[__m256i; 9], y: &[[__m256i; 2]; 9]) -> __m256i {
    let mut top = times(w[0], y[0][0]);
    let (mut low, mut high) = (times(w[0], y[0][1]), times(w[8], y[8][1]));
    for i in 1..9 {
        top = plus(top, times(w[i], y[i][0]));
    }
    // A sum of all nine could be 2^64 or more.
    for i in 1..4 {
        low = plus(low, times(w[i], y[i][1]));
    }
    for i in 4..8 {
        high = plus(high, times(w[i], y[i][1]));
    }
    plus(top, plus(right::<31>(low), right::<31>(high)))
}

impl SimdField for Fe4 {
    const LANES: usize = 4;

    /// A top word has 32 bits here. That of a sum or a difference of two products is off by -7 to 7,
    /// and its rotation by β² (minus the sum of the other two) by -14 to 14. A candidate sums three
    /// such terms, which makes 42. The dropped fractions of the centre's x and the entry's x, and a
    /// residue that wrapped past p in each of eight terms, add at most 10.
    const SLACK: u64 = 54 << 32;

    type Constant = [u64; 9];
    type ConstantFactor = [[u32; 9]; 9];
    type Factor = Factor4;
    /// Eight top words of 32 bits: the sum's in the lower half of a lane, the difference's in the
    /// upper.
    type TopWords = __m256i;

    #[inline(always)]
    fn apart<J: Job>(job: J) -> J::Output {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
        #[inline(never)]
        fn apart<J: Job>(job: J) -> J::Output {
            job.run()
        }
        // SAFETY: the contract above.
        unsafe { apart(job) }
    }

    fn constant(value: Fe) -> [u64; 9] {
        digits(value)
    }

    fn constant_factor(value: Fe) -> [[u32; 9]; 9] {
        let mut powers = [[0; 9]; 9];
        let mut value = value;
        for power in &mut powers {
            *power = digits(value.canonical()).map(|digit| digit as u32);
            value = value.mul(Fe::from_small(1 << BITS));
        }
        powers
    }

    #[inline(always)]
    fn from_constant(constant: &[u64; 9]) -> Summand<Fe4> {
        let mut number = Fe4([all(0); 9]);
        for (digit, &part) in number.0.iter_mut().zip(constant) {
            *digit = all(part as i64);
        }
        Summand(number)
    }

    #[inline(always)]
    fn from_lanes(values: &[Fe]) -> Fe4 {
        let mut lanes = [[0u64; 4]; 9];
        for (lane, value) in values.iter().enumerate().take(4) {
            for (digit, part) in lanes.iter_mut().zip(digits(*value)) {
                digit[lane] = part;
            }
        }
        Fe4(bytemuck::cast(lanes))
    }

    #[inline(always)]
    fn lane(self, lane: usize) -> Fe {
        let digits: [[u64; 4]; 9] = bytemuck::cast(self.0);
        let mut limbs = [0u64; 5];
        let mut carry = 0u128;
        let mut filled = 0;
        let mut limb = 0;
        for digit in digits.map(|digit| digit[lane]) {
            carry += u128::from(digit) << filled;
            filled += BITS;
            if filled >= 64 {
                limbs[limb] = carry as u64;
                carry >>= 64;
                (limb, filled) = (limb + 1, filled - 64);
            }
        }
        limbs[limb] = carry as u64;
        let [a, b, c, d, excess] = limbs;
        Fe([a, b, c, d]).add(Fe([excess * (8 << BITS | FOLD_256 as u64), 0, 0, 0]))
    }

    #[inline(always)]
    fn summand(self) -> Summand<Fe4> {
        Summand(self)
    }

    #[inline(always)]
    fn sum(Summand(a): Summand<Fe4>, Summand(b): Summand<Fe4>) -> Fe4 {
        let mut sum = a.0;
        for (sum, addend) in sum.iter_mut().zip(b.0) {
            *sum = plus(*sum, addend);
        }
        Fe4(sum)
    }

    #[inline(always)]
    fn sub(self, other: Fe4) -> Fe4 {
        let mut d = self.0;
        let mut carry = all(0);
        for at in 0..9 {
            let digit = plus(plus(d[at], minus(all(SIXTEEN_P[at]), other.0[at])), carry);
            carry = right::<29>(digit);
            d[at] = if at < 8 { and(digit, all(DIGIT)) } else { digit };
        }
        let top = d[8];
        d[8] = and(top, all(TOP_DIGIT));
        fold_top(d, right::<24>(top))
    }

    #[inline(always)]
    fn mul(self, other: Fe4) -> Fe4 {
        product_plus(&self, &other, &[all(0); 9])
    }

    #[inline(always)]
    fn square(self) -> Fe4 {
        self.square_plus(Summand(Fe4([all(0); 9])))
    }

    #[inline(always)]
    fn square_plus(self, addend: Summand<Fe4>) -> Fe4 {
        let mut doubled = self.0;
        for digit in &mut doubled {
            *digit = plus(*digit, *digit);
        }
        reduced!(column_of_square, &self.0, &doubled, &addend.0.0)
    }

    #[inline(always)]
    fn factor(self) -> Factor4 {
        let two_29 = Fe4::from_lanes(&[Fe::from_small(1 << BITS); 4]);
        let mut powers = [self.mul(Fe4::from_lanes(&[Fe::ONE; 4])); 9];
        for at in 1..9 {
            powers[at] = powers[at - 1].mul(two_29);
        }
        let [a, b, c, d, e, f, g, h, i] = powers;
        Factor4([a.0, b.0, c.0, d.0, e.0, f.0, g.0, h.0, i.0])
    }

    #[inline(always)]
    fn times_plus(self, factor: &Factor4, Summand(addend): Summand<Fe4>) -> Fe4 {
        folded!(&self.0, &addend.0, |i, n| factor.0[i][n])
    }

    #[inline(always)]
    fn times_constant(self, factor: &[[u32; 9]; 9]) -> Fe4 {
        let factor = reloaded(factor);
        // SAFETY: the contract above.
        folded!(&self.0, &[all(0); 9], |i, n| unsafe { _mm256_set1_epi32(factor[i][n] as i32) })
    }

    #[inline(always)]
    fn top_words_of_products(a: &Fe4, b: &Fe4, y: &Fe4) -> __m256i {
        let uppers = uppers(&y.0);
        let (a, b) = (truncated_product(&a.0, &uppers), truncated_product(&b.0, &uppers));
        let (sum, difference) = (plus(plus(a, b), all(CENTRING)), left::<32>(minus(a, b)));
        // SAFETY: the contract above.
        unsafe { _mm256_blend_epi32::<0b1010_1010>(sum, difference) }
    }

    #[inline(always)]
    fn top_words_from_lanes(values: &[u64]) -> __m256i {
        let words: [u32; 8] = std::array::from_fn(|at| (values[at / 2] >> 32) as u32);
        bytemuck::cast(words)
    }

    instructions! {
        fn top_words(top: u64) -> __m256i = _mm256_set1_epi32((top >> 32) as i32);
        fn add_top_words(a: __m256i, b: __m256i) -> __m256i = _mm256_add_epi32(a, b);
        fn sub_top_words(a: __m256i, b: __m256i) -> __m256i = _mm256_sub_epi32(a, b);
    }

    #[inline(always)]
    fn top_word(top_words: __m256i, difference: bool, lane: usize) -> u64 {
        let words: [u32; 8] = bytemuck::cast(top_words);
        u64::from(words[2 * lane + usize::from(difference)]) << 32
    }
}
