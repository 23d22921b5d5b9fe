//! Two numbers modulo p side by side, on aarch64: products in scalar registers as in the portable
//! kernel, top words and the tests of whole keys in vectors (NEON).
//!
//! **The contract of every `unsafe` in this module:** the processor has NEON, as every aarch64
//! processor that Rust compiles for has.

use super::field::{FOLD, Fe};
use super::filter::Filter;
use super::quick::{QuickTests, QuickWords};
use super::screen::{CompareScreen, LookupScreen, Marks, Screened};
use super::simd::{SimdField, Summand, instructions};
use super::text::{Lanes, checksum};
use super::whole::{KeysOf, WholeField, WholeScreen, WordField, may_pass_by_words};
use crate::pattern::TextTests;
use bytemuck::Zeroable;
use std::arch::aarch64::*;
use std::arch::asm;

/// Added to the top words of a sum of two products, each of which is 0 to 12 too low.
const CENTRING: u64 = 12;

/// Two numbers modulo p.
#[derive(Clone, Copy, Debug, Zeroable)]
pub struct Fe2([Fe; 2]);

/// A number whose lanes are computed one by one.
macro_rules! both {
    ($at:ident => $value:expr) => {
        Fe2([
            {
                let $at = 0;
                $value
            },
            {
                let $at = 1;
                $value
            },
        ])
    };
}

/// The eight words of 32 bits of a number, the lowest first.
#[inline(always)]
fn words_of(number: &Fe) -> [uint32x4_t; 2] {
    let limbs = number.0.as_ptr().cast::<u32>();
    // SAFETY: the contract above; the number has eight readable words.
    unsafe { [vld1q_u32(limbs), vld1q_u32(limbs.add(4))] }
}

/// The words in the opposite order.
#[inline(always)]
fn reversed(words: uint32x4_t) -> uint32x4_t {
    const ORDER: [u8; 16] = [12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3];
    // SAFETY: the contract above; the array has 16 readable bytes.
    unsafe { vreinterpretq_u32_u8(vqtbl1q_u8(vreinterpretq_u8_u32(words), vld1q_u8(ORDER.as_ptr()))) }
}

/// For i = 0…7, the uppermost and the second word of `y·2^(32·i)` modulo p, for each lane's y.
#[inline(always)]
fn uppers(y: &Fe2) -> [[[uint32x4_t; 2]; 2]; 2] {
    let words = [words_of(&y.0[0]), words_of(&y.0[1])];
    // SAFETY: the contract above.
    unsafe {
        // What y·2^224 has above 2^256 is the same as its upper words and 977 times them, lower down.
        let top = vzip2q_u64(vreinterpretq_u64_u32(words[0][1]), vreinterpretq_u64_u32(words[1][1]));
        let low = vzip1q_u64(vreinterpretq_u64_u32(words[0][0]), vreinterpretq_u64_u32(words[1][0]));
        let (seven, six, fold) = (vshrn_n_u64::<32>(top), vmovn_u64(top), vdup_n_u32(FOLD as u32));
        let second = vaddw_u32(vsraq_n_u64::<32>(vmull_u32(seven, fold), vmull_u32(six, fold)), six);
        let above = vsraq_n_u64::<32>(vshrq_n_u64::<32>(top), second);
        // The words 7 and 6 of y·2^192, and the words 7 and 6 of y·2^224.
        let six = vreinterpretq_u32_u64(vaddq_u64(low, above));
        let seven = vreinterpretq_u64_u32(vtrn1q_u32(six, vreinterpretq_u32_u64(second)));
        let six = vreinterpretq_u64_u32(vrev64q_u32(six));
        let of_lane = |[low, high]: [uint32x4_t; 2], six: uint64x1_t, seven: uint64x1_t| {
            let with = |words: uint32x4_t, last: uint64x1_t| {
                vreinterpretq_u32_u64(vcombine_u64(vget_low_u64(vreinterpretq_u64_u32(words)), last))
            };
            let (first, rest) = (reversed(high), reversed(low));
            let last = with(rest, six);
            // The carry into word 7 of y·2^192 does not count for y·2^160, whose lower word it would
            // bring to 2^32.
            [[first, last], [vextq_u32::<1>(first, rest), with(vextq_u32::<1>(rest, rest), seven)]]
        };
        [
            of_lane(words[0], vget_low_u64(six), vget_low_u64(seven)),
            of_lane(words[1], vget_high_u64(six), vget_high_u64(seven)),
        ]
    }
}

/// The sums of `w_i·f_i` for uppermost words f and for second ones, modulo 2^64: each as two numbers,
/// of even and of odd i.
///
/// Written in assembly, because the compiler would compute many products at once, and keep what it
/// has loaded on the stack.
#[inline(always)]
fn sums_of_products(w: &Fe, [[f0, f4], [g0, g4]]: [[uint32x4_t; 2]; 2]) -> [uint64x2_t; 2] {
    let (sum, second): (uint64x2_t, uint64x2_t);
    // SAFETY: the contract above; the number has 32 readable bytes.
    unsafe {
        asm!(
            "ldp {w0:q}, {w4:q}, [{w}]",
            "umull {sum:v}.2d, {w0:v}.2s, {f0:v}.2s",
            "umull {second:v}.2d, {w0:v}.2s, {g0:v}.2s",
            "umlal2 {sum:v}.2d, {w0:v}.4s, {f0:v}.4s",
            "umlal2 {second:v}.2d, {w0:v}.4s, {g0:v}.4s",
            "umlal {sum:v}.2d, {w4:v}.2s, {f4:v}.2s",
            "umlal {second:v}.2d, {w4:v}.2s, {g4:v}.2s",
            "umlal2 {sum:v}.2d, {w4:v}.4s, {f4:v}.4s",
            "umlal2 {second:v}.2d, {w4:v}.4s, {g4:v}.4s",
            w = in(reg) w,
            f0 = in(vreg) f0,
            f4 = in(vreg) f4,
            g0 = in(vreg) g0,
            g4 = in(vreg) g4,
            w0 = out(vreg) _,
            w4 = out(vreg) _,
            sum = out(vreg) sum,
            second = out(vreg) second,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    [sum, second]
}

/// The top word of w·y in the lower half of each lane, 0 to 12 too low.
///
/// It is the sum of `w_i·(y·2^(32·i) mod p)` over the eight words of w, of which [`uppers`] keeps two
/// words of each. In units of the top word, w_i times the words below is less than 1; for i = 5, of
/// which a carry is missing, less than 3; for i = 7, whose second word is up to 2 too low, less than
/// 2. Dropping the fraction of the sum is less than 1. Overflows have no part in the lower half.
#[inline(always)]
fn truncated_product(w: &Fe2, y: &[[[uint32x4_t; 2]; 2]; 2]) -> uint64x2_t {
    let (one, other) = (sums_of_products(&w.0[0], y[0]), sums_of_products(&w.0[1], y[1]));
    // SAFETY: the contract above.
    unsafe { vsraq_n_u64::<32>(vpaddq_u64(one[0], other[0]), vpaddq_u64(one[1], other[1])) }
}

/// A product of two numbers, whose first row is given: `Fe::mul_plus` with a third fewer instructions.
macro_rules! product {
    ($a:ident, $b:ident, $($first:expr),* ; $($operands:tt)*) => {{
        let (Fe([a0, a1, a2, a3]), Fe([b0, b1, b2, b3])) = ($a, $b);
        // SAFETY: the instructions read and write registers only.
        unsafe {
            asm!(
                // Adds a times a limb of b. The uppermost limb of the sum is new.
                ".macro row b, r0, r1, r2, r3, r4",
                "mul {t}, {a0}, \\b", "adds \\r0, \\r0, {t}",
                "mul {t}, {a1}, \\b", "adcs \\r1, \\r1, {t}",
                "mul {t}, {a2}, \\b", "adcs \\r2, \\r2, {t}",
                "mul {t}, {a3}, \\b", "adcs \\r3, \\r3, {t}",
                "umulh {t}, {a3}, \\b", "adc \\r4, {t}, xzr",
                "umulh {t}, {a0}, \\b", "adds \\r1, \\r1, {t}",
                "umulh {t}, {a1}, \\b", "adcs \\r2, \\r2, {t}",
                "umulh {t}, {a2}, \\b", "adcs \\r3, \\r3, {t}",
                "adc \\r4, \\r4, xzr",
                ".endm",
                $($first,)*
                "row {b1}, {r1}, {r2}, {r3}, {r4}, {r5}",
                "row {b2}, {r2}, {r3}, {r4}, {r5}, {r6}",
                "row {b3}, {r3}, {r4}, {r5}, {r6}, {r7}",
                ".purgem row",
                // 2^256 is FOLD. The limb above is then at most FOLD + 1.
                "mul {t}, {r4}, {fold}", "adds {r0}, {r0}, {t}",
                "mul {t}, {r5}, {fold}", "adcs {r1}, {r1}, {t}",
                "mul {t}, {r6}, {fold}", "adcs {r2}, {r2}, {t}",
                "mul {t}, {r7}, {fold}", "adcs {r3}, {r3}, {t}",
                "umulh {r7}, {r7}, {fold}", "adc {r7}, {r7}, xzr",
                "umulh {t}, {r4}, {fold}", "adds {r1}, {r1}, {t}",
                "umulh {t}, {r5}, {fold}", "adcs {r2}, {r2}, {t}",
                "umulh {t}, {r6}, {fold}", "adcs {r3}, {r3}, {t}",
                "adc {r7}, {r7}, xzr",
                "mul {t}, {r7}, {fold}", "umulh {r7}, {r7}, {fold}",
                "adds {r0}, {r0}, {t}", "adcs {r1}, {r1}, {r7}", "adcs {r2}, {r2}, xzr", "adcs {r3}, {r3}, xzr",
                // What carries once more leaves less than 2^68.
                "csel {t}, {fold}, xzr, cs", "adds {r0}, {r0}, {t}", "adc {r1}, {r1}, xzr",
                a0 = in(reg) a0, a1 = in(reg) a1, a2 = in(reg) a2, a3 = in(reg) a3,
                b0 = in(reg) b0, b1 = in(reg) b1, b2 = in(reg) b2, b3 = in(reg) b3,
                fold = in(reg) FOLD,
                r4 = out(reg) _, r5 = out(reg) _, r6 = out(reg) _, r7 = out(reg) _,
                t = out(reg) _,
                $($operands)*
                options(pure, nomem, nostack),
            );
        }
    }};
}

/// `a·b`
#[inline(always)]
fn product(a: Fe, b: Fe) -> Fe {
    let (r0, r1, r2, r3): (u64, u64, u64, u64);
    product!(
        a, b,
        "mul {r0}, {a0}, {b0}", "umulh {r1}, {a0}, {b0}",
        "mul {t}, {a1}, {b0}", "adds {r1}, {r1}, {t}", "umulh {r2}, {a1}, {b0}",
        "mul {t}, {a2}, {b0}", "adcs {r2}, {r2}, {t}", "umulh {r3}, {a2}, {b0}",
        "mul {t}, {a3}, {b0}", "adcs {r3}, {r3}, {t}", "umulh {r4}, {a3}, {b0}",
        "adc {r4}, {r4}, xzr";
        r0 = out(reg) r0, r1 = out(reg) r1, r2 = out(reg) r2, r3 = out(reg) r3,
    );
    Fe([r0, r1, r2, r3])
}

/// `a·b + c`. The largest product and the largest c together are below 2^512.
#[inline(always)]
fn product_plus(a: Fe, b: Fe, Fe([c0, c1, c2, c3]): Fe) -> Fe {
    let (r0, r1, r2, r3): (u64, u64, u64, u64);
    product!(
        a, b,
        "row {b0}, {r0}, {r1}, {r2}, {r3}, {r4}";
        r0 = inout(reg) c0 => r0, r1 = inout(reg) c1 => r1, r2 = inout(reg) c2 => r2, r3 = inout(reg) c3 => r3,
    );
    Fe([r0, r1, r2, r3])
}

impl SimdField for Fe2 {
    const LANES: usize = 2;

    /// A top word has 32 bits here. That of a sum or a difference of two products is off by -12 to
    /// 12, and its rotation by β² (minus the sum of the other two) by -24 to 24. A candidate sums
    /// three such terms, which makes 72. The dropped fractions of the centre's x and the entry's x,
    /// and a residue that wrapped past p in each of eight terms, add at most 10.
    const SLACK: u64 = 84 << 32;

    type Constant = Fe;
    type ConstantFactor = Fe;
    type Factor = Fe2;
    /// The top word of a lane's sum, then that of its difference.
    type TopWords = uint32x4_t;

    fn constant(value: Fe) -> Fe {
        value
    }

    fn constant_factor(value: Fe) -> Fe {
        value
    }

    #[inline(always)]
    fn from_constant(constant: &Fe) -> Summand<Fe2> {
        Summand(Fe2([*constant; 2]))
    }

    #[inline(always)]
    fn from_lanes(values: &[Fe]) -> Fe2 {
        Fe2([values[0], values[1]])
    }

    #[inline(always)]
    fn lane(self, lane: usize) -> Fe {
        self.0[lane]
    }

    #[inline(always)]
    fn summand(self) -> Summand<Fe2> {
        Summand(self)
    }

    #[inline(always)]
    fn sum(Summand(a): Summand<Fe2>, Summand(b): Summand<Fe2>) -> Fe2 {
        both!(at => a.0[at].add(b.0[at]))
    }

    #[inline(always)]
    fn sub(self, other: Fe2) -> Fe2 {
        both!(at => Fe::sub(self.0[at], other.0[at]))
    }

    #[inline(always)]
    fn mul(self, other: Fe2) -> Fe2 {
        both!(at => product(self.0[at], other.0[at]))
    }

    #[inline(always)]
    fn square(self) -> Fe2 {
        both!(at => product(self.0[at], self.0[at]))
    }

    #[inline(always)]
    fn square_plus(self, Summand(addend): Summand<Fe2>) -> Fe2 {
        both!(at => product_plus(self.0[at], self.0[at], addend.0[at]))
    }

    #[inline(always)]
    fn factor(self) -> Fe2 {
        self
    }

    #[inline(always)]
    fn times_plus(self, factor: &Fe2, Summand(addend): Summand<Fe2>) -> Fe2 {
        both!(at => product_plus(self.0[at], factor.0[at], addend.0[at]))
    }

    #[inline(always)]
    fn times_constant(self, factor: &Fe) -> Fe2 {
        both!(at => product(self.0[at], *factor))
    }

    #[inline(always)]
    fn top_words_of_products(a: &Fe2, b: &Fe2, y: &Fe2) -> uint32x4_t {
        let uppers = uppers(y);
        let (a, b) = (truncated_product(a, &uppers), truncated_product(b, &uppers));
        // SAFETY: the contract above.
        unsafe {
            let (sum, difference) = (vaddq_u64(vaddq_u64(a, b), vdupq_n_u64(CENTRING)), vsubq_u64(a, b));
            vtrn1q_u32(vreinterpretq_u32_u64(sum), vreinterpretq_u32_u64(difference))
        }
    }

    #[inline(always)]
    fn top_words_from_lanes(values: &[u64]) -> uint32x4_t {
        let words: [u32; 4] = std::array::from_fn(|at| (values[at / 2] >> 32) as u32);
        // SAFETY: the contract above; the array has four readable words.
        unsafe { vld1q_u32(words.as_ptr()) }
    }

    instructions! {
        fn top_words(top: u64) -> uint32x4_t = vdupq_n_u32((top >> 32) as u32);
        fn add_top_words(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t = vaddq_u32(a, b);
        fn sub_top_words(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t = vsubq_u32(a, b);
    }

    #[inline(always)]
    fn top_word(top_words: uint32x4_t, difference: bool, lane: usize) -> u64 {
        u64::from(stored(top_words)[2 * lane + usize::from(difference)]) << 32
    }
}

#[inline(always)]
fn stored(words: uint32x4_t) -> [u32; 4] {
    let mut stored = [0; 4];
    // SAFETY: the contract above; the array has room for four words.
    unsafe { vst1q_u32(stored.as_mut_ptr(), words) };
    stored
}

impl Screened for Fe2 {
    const HAS_ONE_LOOKUP: bool = true;
    const FEW_INTERVALS: usize = 8;

    type Few = CompareScreen;
    type Cells = LookupScreen;
    type Gathers = LookupScreen;
    type Loads = LookupScreen;
    type Whole = WholeScreen<Fe2>;

    #[inline(always)]
    fn marks(filter: &Filter, top_words: &[uint32x4_t; 9]) -> Marks {
        let mut marks = [0; 9];
        for (mark, &some) in marks.iter_mut().zip(top_words) {
            for (at, word) in stored(some).into_iter().enumerate() {
                *mark |= u16::from(filter.is_marked(word)) << (at / 2 + 8 * (at % 2));
            }
        }
        marks
    }

    #[inline(always)]
    fn is_one_within(top_words: &[uint32x4_t; 9], first: u32, width: u32) -> bool {
        // SAFETY: the contract above.
        unsafe {
            let first = vdupq_n_u32(first);
            let mut least = vsubq_u32(top_words[0], first);
            for &top in &top_words[1..] {
                least = vminq_u32(least, vsubq_u32(top, first));
            }
            vminvq_u32(least) <= width
        }
    }
}

impl Lanes for uint64x2_t {
    /// No tables of its own: those of `pattern` serve one key at a time.
    type Tables = ();

    instructions! {
        fn all(word: u64) -> uint64x2_t = vdupq_n_u64(word);
        fn and(self, other: uint64x2_t) -> uint64x2_t = vandq_u64(self, other);
        fn or(self, other: uint64x2_t) -> uint64x2_t = vorrq_u64(self, other);
        fn xor(self, other: uint64x2_t) -> uint64x2_t = veorq_u64(self, other);
        fn plus(self, other: uint64x2_t) -> uint64x2_t = vaddq_u64(self, other);
        fn left(self, bits: u32) -> uint64x2_t = vshlq_u64(self, vdupq_n_s64(i64::from(bits)));
        fn right(self, bits: u32) -> uint64x2_t = vshlq_u64(self, vdupq_n_s64(-i64::from(bits)));
    }

    #[inline(always)]
    fn filled(self) -> u8 {
        // SAFETY: the contract above.
        let filled = unsafe { vget_lane_u64::<0>(vreinterpret_u64_u32(vmovn_u64(vtstq_u64(self, self)))) };
        (filled & 1 | filled >> 62 & 2) as u8
    }

    #[inline(always)]
    fn every_lane() -> u8 {
        3
    }

    fn tables() {}

    fn checksums(key: &[uint64x2_t; 4], (): &()) -> uint64x2_t {
        let [one, other] = [0, 1].map(|lane| u64::from(checksum(&Fe2::lane_of(key, lane))));
        // SAFETY: the contract above.
        unsafe { vcombine_u64(vcreate_u64(one), vcreate_u64(other)) }
    }
}

/// The limbs of both numbers side by side.
#[inline(always)]
fn limbs_of(Fe2([Fe(one), Fe(other)]): Fe2) -> [uint64x2_t; 4] {
    // SAFETY: the contract above.
    let pair = |at: usize| unsafe { vcombine_u64(vcreate_u64(one[at]), vcreate_u64(other[at])) };
    [pair(0), pair(1), pair(2), pair(3)]
}

impl WordField for Fe2 {
    #[inline(always)]
    fn plus(a: Fe2, b: Fe2) -> Fe2 {
        both!(at => a.0[at].add(b.0[at]))
    }

    #[inline(always)]
    fn product_less(a: &Fe2, b: &Fe2, c: Fe2, d: Fe2) -> Fe2 {
        both!(at => product_plus(a.0[at], b.0[at], Fe::sub(Fe::ZERO, c.0[at].add(d.0[at]))))
    }

    #[inline(always)]
    fn minus_sum(a: Fe2, b: Fe2) -> Fe2 {
        both!(at => Fe::minus_sum(a.0[at], b.0[at]))
    }

    #[inline(always)]
    fn loose_words(&self) -> ([uint64x2_t; 4], u8) {
        let words = limbs_of(*self);
        (words, words[3].xor(Lanes::all(u64::MAX)).empty())
    }

    #[inline(always)]
    fn have_equal_parts(words: &[uint64x2_t; 4], values: &[u64; 4]) -> u8 {
        let mut any = uint64x2_t::all(0);
        for at in 0..4 {
            let value = uint64x2_t::all(values[at]);
            // SAFETY: the contract above.
            let equal = unsafe { vceqq_u16(vreinterpretq_u16_u64(words[at]), vreinterpretq_u16_u64(value)) };
            // SAFETY: the contract above.
            any = any.or(unsafe { vreinterpretq_u64_u16(equal) });
        }
        any.filled()
    }

    #[inline(always)]
    fn lane_of(words: &[uint64x2_t; 4], lane: usize) -> [u64; 4] {
        // SAFETY: the contract above.
        words.map(|word| unsafe { [vgetq_lane_u64::<0>(word), vgetq_lane_u64::<1>(word)] }[lane])
    }
}

impl WholeField for Fe2 {
    type Word = uint64x2_t;
    type Quick = QuickWords;

    fn quick(tests: &QuickTests) -> QuickWords {
        QuickWords::new(tests)
    }

    #[inline(always)]
    fn may_pass(keys: &KeysOf<Fe2>, tests: &TextTests) -> bool {
        may_pass_by_words(keys, tests)
    }
}
