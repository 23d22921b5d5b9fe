//! Eight numbers modulo p side by side: five limbs of 52 bits, with AVX-512 IFMA (`vpmadd52luq`, `vpmadd52huq`).
//!
//! **The contract of every `unsafe` in this module:** the processor has AVX-512 F, DQ, IFMA and VPOPCNTDQ, POPCNT, BMI
//! and LZCNT. [`walk_ifma`] is the one way in, and [`is_supported`] must have said yes before it is called. Everything
//! else here is inlined into it.
//!
//! **Limbs.** A number is `l0 + l1·2^52 + … + l4·2^208`, where of l0…l3 the low 52 bits count: what stands above them has
//! been carried already. The multiply instructions read 52 bits of a limb and need no masks; sums do, which is what
//! [`Tidy`] is for. l4 counts as a whole and must stay below 2^52:
//!
//! | from | l4 below | value below |
//! | --- | --- | --- |
//! | a constant, a product, a square, a difference | 2^48 + 2^6 | 2^256 + 2^214 |
//! | a product with a prepared factor | 2^51 + 2^6 | 2^259 + 2^214 |
//! | a sum, one of the two at most being of the second kind | 2^51 + 2^49 | 2^259 + 2^257 |
//!
//! So a product is below 2^519, and its uppermost column below 2^52.

mod marks;

use self::marks::{Compared, LookedUp};
use super::field::Fe;
use super::filter::Filter;
use super::huge_page::Zeros;
use super::simd::{Lanes, Marks, Tidy};
use super::table::Table;
use super::walk::{Scratch, Sought, Walked, walk};
use crate::key::StartPoint;
use std::arch::x86_64::*;

const LIMB: i64 = (1 << 52) - 1;
const TOP_LIMB: i64 = (1 << 48) - 1;
/// 51 bits.
const WIDE_TOP_LIMB: i64 = (1 << 51) - 1;
/// 2^256 mod p.
const FOLD_256: i64 = 0x1_0000_03d1;
/// 2^259 mod p.
const FOLD_259: i64 = FOLD_256 << 3;
/// 2^260 mod p.
const FOLD_260: i64 = FOLD_256 << 4;
/// 16p, written with limbs so large that no limb of a subtrahend (below 2^52; the top one below 2^52 - 2) exceeds its
/// own: 2^53 + (2^53-2)·2^52 + (2^53-2)·2^104 + (2^53-2)·2^156 + (2^52-2)·2^208 is 2^260, and 16·(2^256-p) is taken off.
const SIXTEEN_P: [i64; 5] = [(1 << 53) - 16 * FOLD_256, (1 << 53) - 2, (1 << 53) - 2, (1 << 53) - 2, (1 << 52) - 2];

/// Whether this processor can run what is in here.
pub fn is_supported() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512ifma")
        && is_x86_feature_detected!("avx512vpopcntdq")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
}

/// Vectors of eight centres a round.
pub const VECTORS: usize = 2;

/// [`walk`], compiled for AVX-512 IFMA.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vpopcntdq,popcnt,bmi1,bmi2,lzcnt")]
pub fn walk_ifma(
    table: &Table<Fe8>,
    start: &StartPoint,
    rounds: u64,
    sought: &Sought,
    scratch: &mut Scratch<Fe8, VECTORS>,
) -> Walked {
    walk(table, start, rounds, sought, scratch)
}

/// Eight numbers modulo p.
#[derive(Clone, Copy, Debug)]
pub struct Fe8([__m512i; 5]);

// SAFETY: numbers.
unsafe impl Zeros for Fe8 {}

#[inline(always)]
fn all(value: i64) -> __m512i {
    // SAFETY: the contract above.
    unsafe { _mm512_set1_epi64(value) }
}

#[inline(always)]
fn plus(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the contract above.
    unsafe { _mm512_add_epi64(a, b) }
}

#[inline(always)]
fn minus(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the contract above.
    unsafe { _mm512_sub_epi64(a, b) }
}

#[inline(always)]
fn and(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the contract above.
    unsafe { _mm512_and_si512(a, b) }
}

#[inline(always)]
fn right<const BITS: u32>(a: __m512i) -> __m512i {
    // SAFETY: the contract above.
    unsafe { _mm512_srli_epi64::<BITS>(a) }
}

#[inline(always)]
fn left<const BITS: u32>(a: __m512i) -> __m512i {
    // SAFETY: the contract above.
    unsafe { _mm512_slli_epi64::<BITS>(a) }
}

/// `sum` + the low 52 bits of a·b.
#[inline(always)]
fn low(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the contract above.
    unsafe { _mm512_madd52lo_epu64(sum, a, b) }
}

/// `sum` + the high 52 bits of a·b.
#[inline(always)]
fn high(sum: __m512i, a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the contract above.
    unsafe { _mm512_madd52hi_epu64(sum, a, b) }
}

#[inline(always)]
fn load(values: &[u64; 8]) -> __m512i {
    // SAFETY: the contract above; the array is 64 readable bytes, and unaligned loads are allowed.
    unsafe { _mm512_loadu_si512(values.as_ptr().cast()) }
}

#[inline(always)]
fn store(value: __m512i) -> [u64; 8] {
    let mut values = [0; 8];
    // SAFETY: the contract above; the array is 64 writable bytes, and unaligned stores are allowed.
    unsafe { _mm512_storeu_si512(values.as_mut_ptr().cast(), value) };
    values
}

/// Carries from l0 up to l4, which is left as large as it gets. The limbs keep what was carried.
#[inline(always)]
fn carried(mut l: [__m512i; 5]) -> Fe8 {
    for at in 0..4 {
        l[at + 1] = plus(l[at + 1], right::<52>(l[at]));
    }
    Fe8(l)
}

/// A product's ten columns, each below 2^56 + 2^52, as a number.
///
/// The upper five are carried to limbs h0…h4 (the whole is below 2^519, so h4 is below 2^52; of the others 52 bits are
/// read) and folded down by 2^260; what that puts above 2^260 (below 2^37) and the bits of l4 from 2^256 on (below 2^9)
/// are folded down by 2^256: together below 2^42, times 2^33. Then l3 is below 2^57, its carry below 2^6.
#[inline(always)]
fn reduced(c: [__m512i; 10]) -> Fe8 {
    let [mut l0, mut l1, mut l2, mut l3, mut l4, h0, mut h1, mut h2, mut h3, mut h4] = c;
    h1 = plus(h1, right::<52>(h0));
    h2 = plus(h2, right::<52>(h1));
    h3 = plus(h3, right::<52>(h2));
    h4 = plus(h4, right::<52>(h3));
    let fold = all(FOLD_260);
    (l0, l1) = (low(l0, h0, fold), high(l1, h0, fold));
    (l1, l2) = (low(l1, h1, fold), high(l2, h1, fold));
    (l2, l3) = (low(l2, h2, fold), high(l3, h2, fold));
    (l3, l4) = (low(l3, h3, fold), high(l4, h3, fold));
    l4 = low(l4, h4, fold);
    let above = high(all(0), h4, fold);
    let top = plus(right::<48>(l4), left::<4>(above));
    l4 = and(l4, all(TOP_LIMB));
    let fold = all(FOLD_256);
    (l0, l1) = (low(l0, top, fold), high(l1, top, fold));
    carried([l0, l1, l2, l3, l4])
}

/// A number times `2^(52·i)` for i = 0…4: what a product is made of when it is folded before it is made.
#[derive(Clone, Copy, Debug)]
pub struct Factor8([[__m512i; 5]; 5]);

/// Six columns, each below 2^56, as a number. The uppermost, a sum of five values below 2^48 + 2^6, is below 2^51 - 2^4;
/// with the bits of l4 from 2^259 on (below 2^5) it is folded down by 2^259, and is below 2^52 then.
#[inline(always)]
fn reduced_at_259([mut l0, mut l1, l2, l3, mut l4, l5]: [__m512i; 6]) -> Fe8 {
    let top = plus(right::<51>(l4), left::<1>(l5));
    l4 = and(l4, all(WIDE_TOP_LIMB));
    let fold = all(FOLD_259);
    (l0, l1) = (low(l0, top, fold), high(l1, top, fold));
    carried([l0, l1, l2, l3, l4])
}

/// The columns of a square: the ten mixed products once and doubled, and the five squares.
#[inline(always)]
fn square_columns(a: [__m512i; 5]) -> [__m512i; 10] {
    let mut c = [all(0); 10];
    for i in 0..5 {
        for j in i + 1..5 {
            c[i + j] = low(c[i + j], a[i], a[j]);
            c[i + j + 1] = high(c[i + j + 1], a[i], a[j]);
        }
    }
    for column in c.iter_mut().take(9).skip(1) {
        *column = plus(*column, *column);
    }
    for i in 0..5 {
        c[2 * i] = low(c[2 * i], a[i], a[i]);
        c[2 * i + 1] = high(c[2 * i + 1], a[i], a[i]);
    }
    c
}

/// The top of a·y in units of 2^-64, low by less than 46,910·2^16.
///
/// It is the fourth limb alone: columns 4, 8 and 9, and what of the latter two the folding by 2^260 = 2^36 + 15,632 puts
/// there. Left out are the carry into the fourth limb (a sum of seven values below 2^52 and a little: at most 8 of its
/// units, 2^-48), and of column 8 (a sum of three such values) the part times 15,632: less than 46,896 units. The part
/// times 2^36 is column 8 itself, 2^16 units of 2^-64 to one of the limb's; what it misses in carries is 6 of the former.
#[inline(always)]
fn top_of_product(a: [__m512i; 5], y: [__m512i; 5]) -> __m512i {
    let mut limb = high(all(0), a[0], y[3]);
    limb = low(limb, a[0], y[4]);
    limb = high(limb, a[1], y[2]);
    limb = low(limb, a[1], y[3]);
    limb = high(limb, a[2], y[1]);
    limb = low(limb, a[2], y[2]);
    limb = high(limb, a[3], y[0]);
    limb = low(limb, a[3], y[1]);
    limb = low(limb, a[4], y[0]);
    let column_9 = high(all(0), a[4], y[4]);
    let mut column_8 = low(all(0), a[4], y[4]);
    column_8 = high(column_8, a[3], y[4]);
    column_8 = high(column_8, a[4], y[3]);
    limb = low(limb, column_9, all(FOLD_260));
    plus(left::<16>(limb), column_8)
}

fn limbs_of(value: Fe) -> [u64; 5] {
    let [a, b, c, d] = value.0;
    let mask = LIMB as u64;
    [a & mask, (a >> 52 | b << 12) & mask, (b >> 40 | c << 24) & mask, (c >> 28 | d << 36) & mask, d >> 16]
}

#[cfg(test)]
impl Fe8 {
    /// The same limbs in every lane.
    pub fn of_limbs(limbs: [u64; 5]) -> Fe8 {
        assert!(is_supported());
        Fe8(limbs.map(|limb| load(&[limb; 8])))
    }
}

impl Lanes for Fe8 {
    const LANES: usize = 8;

    /// TopWords are 32 bits. In units of 2^-32 a product's top is low by less than 0.72 + 1 (its fraction is dropped), so its
    /// rotation by β² is less than 3.5 high. Six such terms, two exact top_words and a wrap a term: within ±(6·3.5 + 2 + 6).
    const SLACK: u64 = 32 << 32;

    const FEW_INTERVALS: usize = 4;

    type Constant = [u64; 5];
    type ConstantFactor = [[u64; 5]; 5];
    type Factor = Factor8;
    /// Sixteen of 32 bits: the sums in the lower half, the differences in the upper.
    type TopWords = __m512i;
    type Few = Compared;
    type Many = LookedUp;

    fn constant(value: Fe) -> [u64; 5] {
        limbs_of(value)
    }

    fn constant_factor(value: Fe) -> [[u64; 5]; 5] {
        let mut powers = [[0; 5]; 5];
        let mut value = value;
        for power in &mut powers {
            *power = limbs_of(value.canonical());
            value = value.mul(Fe::from_small(1 << 52));
        }
        powers
    }

    #[inline(always)]
    fn of(constant: &[u64; 5]) -> Tidy<Fe8> {
        let [a, b, c, d, e] = *constant;
        Tidy(Fe8([all(a as i64), all(b as i64), all(c as i64), all(d as i64), all(e as i64)]))
    }

    #[inline(always)]
    fn from_lanes(values: &[Fe]) -> Fe8 {
        let mut limbs = [[0u64; 8]; 5];
        for (lane, value) in values.iter().enumerate().take(8) {
            for (limb, part) in limbs.iter_mut().zip(limbs_of(*value)) {
                limb[lane] = part;
            }
        }
        let [a, b, c, d, e] = limbs;
        Fe8([load(&a), load(&b), load(&c), load(&d), load(&e)])
    }

    #[inline(always)]
    fn lane(self, lane: usize) -> Fe {
        let [a, b, c, d, e] = self.tidy().0.0;
        let [a, b, c, d, e] = [store(a)[lane], store(b)[lane], store(c)[lane], store(d)[lane], store(e)[lane]];
        // l4 is below 2^52: what lies above 2^256 is at most 4 bits.
        let value = Fe([a | b << 52, b >> 12 | c << 40, c >> 24 | d << 28, d >> 36 | e << 16]);
        value.add(Fe([(e >> 48) * FOLD_256 as u64, 0, 0, 0]))
    }

    #[inline(always)]
    fn tidy(self) -> Tidy<Fe8> {
        let [a, b, c, d, e] = self.0;
        let mask = all(LIMB);
        Tidy(Fe8([and(a, mask), and(b, mask), and(c, mask), and(d, mask), e]))
    }

    #[inline(always)]
    fn sum(Tidy(a): Tidy<Fe8>, Tidy(b): Tidy<Fe8>) -> Fe8 {
        let (a, b) = (a.0, b.0);
        carried([plus(a[0], b[0]), plus(a[1], b[1]), plus(a[2], b[2]), plus(a[3], b[3]), plus(a[4], b[4])])
    }

    /// `self + 16p - other`, the bits from 2^256 on (below 2^5) folded down.
    #[inline(always)]
    fn sub(self, other: Fe8) -> Fe8 {
        let (mut l, other) = (self.tidy().0.0, other.tidy().0.0);
        for at in 0..5 {
            l[at] = minus(plus(l[at], all(SIXTEEN_P[at])), other[at]);
        }
        // l4 takes its carry first: it may be what passes 2^256.
        l = carried(l).tidy().0.0;
        l[0] = low(l[0], right::<48>(l[4]), all(FOLD_256));
        l[4] = and(l[4], all(TOP_LIMB));
        carried(l)
    }

    /// Schoolbook: 25 products, each in two halves. A column has at most nine of these, each below 2^52.
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
        reduced(c)
    }

    #[inline(always)]
    fn square(self) -> Fe8 {
        reduced(square_columns(self.0))
    }

    #[inline(always)]
    fn square_plus(self, Tidy(addend): Tidy<Fe8>) -> Fe8 {
        let mut c = square_columns(self.0);
        for (column, limb) in c.iter_mut().zip(addend.0) {
            *column = plus(*column, limb);
        }
        reduced(c)
    }

    /// Of a product or a difference: the limbs of a factor's powers must be those of products.
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
    fn times(self, factor: &Factor8) -> Fe8 {
        let mut c = [all(0); 6];
        for i in 0..5 {
            for j in 0..5 {
                c[j] = low(c[j], self.0[i], factor.0[i][j]);
                c[j + 1] = high(c[j + 1], self.0[i], factor.0[i][j]);
            }
        }
        reduced_at_259(c)
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
        reduced_at_259(c)
    }

    #[inline(always)]
    fn tops_of_products(a: Fe8, b: Fe8, y: Fe8) -> __m512i {
        let top_words = upper_halves(top_of_product(a.0, y.0), top_of_product(b.0, y.0));
        // SAFETY: the contract above.
        unsafe {
            let swapped = _mm512_shuffle_i64x2::<0b01_00_11_10>(top_words, top_words);
            _mm512_mask_sub_epi32(_mm512_add_epi32(top_words, swapped), DIFFERENCES, swapped, top_words)
        }
    }

    #[inline(always)]
    fn top_words(top: u64) -> __m512i {
        // SAFETY: the contract above.
        unsafe { _mm512_set1_epi32((top >> 32) as i32) }
    }

    #[inline(always)]
    fn tops_from_lanes(values: &[u64]) -> __m512i {
        let mut lanes = [0; 8];
        lanes.copy_from_slice(&values[..8]);
        upper_halves(load(&lanes), load(&lanes))
    }

    #[inline(always)]
    fn add_tops(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the contract above.
        unsafe { _mm512_add_epi32(a, b) }
    }

    #[inline(always)]
    fn sub_tops(a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: the contract above.
        unsafe { _mm512_sub_epi32(a, b) }
    }

    #[inline(always)]
    fn top(top_words: __m512i, difference: bool, lane: usize) -> u64 {
        let words = store(top_words);
        let word = usize::from(difference) * 8 + lane;
        words[word / 2] >> (32 * (word % 2)) << 32
    }

    #[inline(always)]
    fn marks(filter: &Filter, top_words: &[__m512i; 9]) -> Marks {
        marks::marks(filter, top_words)
    }
}

/// The places of the differences among sixteen.
const DIFFERENCES: u16 = 0xff00;

/// The upper 32 bits of the eight lanes of `a`, then of `b`.
#[inline(always)]
fn upper_halves(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the contract above.
    unsafe {
        let odd = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
        _mm512_permutex2var_epi32(a, odd, b)
    }
}
