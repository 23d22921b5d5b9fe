//! Eight numbers modulo p side by side: five limbs of 52 bits, with AVX-512 IFMA (`vpmadd52luq`, `vpmadd52huq`).
//!
//! **The contract of every `unsafe` in this file:** the processor has AVX-512 F, DQ and IFMA. [`walk_ifma`] is the one
//! way in, and [`is_supported`] must have said yes before it is called. Everything else here is inlined into it.
//!
//! **Limbs.** A number is `l0 + l1·2^52 + … + l4·2^208` with l0…l3 below 2^52. The multiply instructions read 52 bits of
//! a limb, so l4 must stay below 2^52 as well; how large it gets:
//!
//! | from | l4 below | value below |
//! | --- | --- | --- |
//! | a constant, a product, a square, a difference | 2^48 + 2^6 | 2^256 + 2^214 |
//! | a sum of two of these | 2^49 + 2^7 | 2^257 + 2^215 |
//! | a sum of one of these and such a sum | 2^50 | 2^258 |

use super::field::Fe;
use super::filter::Filter;
use super::lanes::{Lanes, Marks};
use super::table::Table;
use super::walk::{Scratch, Walked, walk};
use crate::key::BasePoint;
use std::arch::x86_64::*;

const LIMB: i64 = (1 << 52) - 1;
const TOP_LIMB: i64 = (1 << 48) - 1;
/// 2^256 mod p.
const FOLD_256: i64 = 0x1_0000_03d1;
/// 2^260 mod p.
const FOLD_260: i64 = FOLD_256 << 4;
/// 8p, written with limbs so large that no limb of a subtrahend (below 2^52; the top one below 2^51 - 2) exceeds its own:
/// 2^53 + (2^53-2)·2^52 + (2^53-2)·2^104 + (2^53-2)·2^156 + (2^51-2)·2^208 is 2^259, and 8·(2^256-p) is taken off.
const EIGHT_P: [i64; 5] = [(1 << 53) - 8 * FOLD_256, (1 << 53) - 2, (1 << 53) - 2, (1 << 53) - 2, (1 << 51) - 2];
/// Sets of so few intervals are compared with one by one; larger ones are looked up in the map.
const FEW_INTERVALS: usize = 4;

/// Whether this processor can run what is in here.
pub fn is_supported() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512ifma")
}

/// [`walk`], compiled for AVX-512 IFMA.
#[target_feature(enable = "avx512f,avx512dq,avx512ifma")]
pub fn walk_ifma(
    table: &Table<Fe8>,
    base: &BasePoint,
    rounds: u64,
    filter: &Filter,
    hits_wanted: usize,
    scratch: &mut Scratch<Fe8>,
) -> Walked {
    walk(table, base, rounds, filter, hits_wanted, scratch)
}

/// Eight numbers modulo p.
#[derive(Clone, Copy, Debug)]
pub struct Fe8([__m512i; 5]);

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

/// Carries from l0 up to l4, which is left as large as it gets.
#[inline(always)]
fn carried(mut l: [__m512i; 5]) -> Fe8 {
    for at in 0..4 {
        l[at + 1] = plus(l[at + 1], right::<52>(l[at]));
        l[at] = and(l[at], all(LIMB));
    }
    Fe8(l)
}

/// A product's ten columns, each below 2^56, as a number.
///
/// The upper five are carried to limbs h0…h4 below 2^52 (the whole is below 2^520) and folded down by 2^260; what that
/// puts above 2^260 (below 2^37) and the bits of l4 from 2^256 on (below 2^9) are folded down by 2^256: together below
/// 2^42, times 2^33. Then l3 is below 2^57, its carry below 2^6.
#[inline(always)]
fn reduced(c: [__m512i; 10]) -> Fe8 {
    let [mut l0, mut l1, mut l2, mut l3, mut l4, mut h0, mut h1, mut h2, mut h3, mut h4] = c;
    (h1, h0) = (plus(h1, right::<52>(h0)), and(h0, all(LIMB)));
    (h2, h1) = (plus(h2, right::<52>(h1)), and(h1, all(LIMB)));
    (h3, h2) = (plus(h3, right::<52>(h2)), and(h2, all(LIMB)));
    (h4, h3) = (plus(h4, right::<52>(h3)), and(h3, all(LIMB)));
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

fn limbs_of(value: Fe) -> [u64; 5] {
    let [a, b, c, d] = value.0;
    let mask = LIMB as u64;
    [a & mask, (a >> 52 | b << 12) & mask, (b >> 40 | c << 24) & mask, (c >> 28 | d << 36) & mask, d >> 16]
}

impl Lanes for Fe8 {
    const LANES: usize = 8;

    /// In units of 2^-48, of which a top has 48 bits: a product's top is low by at most 10 (the carry into the fourth
    /// limb, a sum of nine values below 2^52 and a little: at most 9; the fractions of the folded part: 1), so its
    /// rotation by β² is up to 20 high. Six such terms, three exact tops and a wrap a term: within ±6·20 + 3 + 6 = ±129.
    const SLACK: u64 = 256 << 16;

    type Constant = [u64; 5];
    type Tops = __m512i;

    fn constant(value: Fe) -> [u64; 5] {
        limbs_of(value)
    }

    #[inline(always)]
    fn of(constant: &[u64; 5]) -> Fe8 {
        let [a, b, c, d, e] = *constant;
        Fe8([all(a as i64), all(b as i64), all(c as i64), all(d as i64), all(e as i64)])
    }

    #[inline(always)]
    fn from_lanes(values: &[Fe]) -> Fe8 {
        let mut limbs = [[0u64; 8]; 5];
        for (lane, value) in values.iter().enumerate().take(8) {
            for (limb, part) in limbs.iter_mut().zip(limbs_of(*value)) {
                limb[lane] = part;
            }
        }
        Fe8(limbs.map(|limb| load(&limb)))
    }

    #[inline(always)]
    fn lane(self, lane: usize) -> Fe {
        let [a, b, c, d, e] = self.0.map(|limb| store(limb)[lane]);
        // l4 is below 2^52: what lies above 2^256 is at most 4 bits.
        let value = Fe([a | b << 52, b >> 12 | c << 40, c >> 24 | d << 28, d >> 36 | e << 16]);
        value.add(Fe([(e >> 48) * FOLD_256 as u64, 0, 0, 0]))
    }

    #[inline(always)]
    fn add(self, other: Fe8) -> Fe8 {
        let (a, b) = (self.0, other.0);
        carried([plus(a[0], b[0]), plus(a[1], b[1]), plus(a[2], b[2]), plus(a[3], b[3]), plus(a[4], b[4])])
    }

    /// `self + 8p - other`, the bits from 2^256 on (below 2^4) folded down.
    #[inline(always)]
    fn sub(self, other: Fe8) -> Fe8 {
        let mut l = self.0;
        for at in 0..5 {
            l[at] = minus(plus(l[at], all(EIGHT_P[at])), other.0[at]);
        }
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

    /// The ten mixed products once and doubled, and the five squares.
    #[inline(always)]
    fn square(self) -> Fe8 {
        let a = self.0;
        let mut c = [all(0); 10];
        for i in 0..5 {
            for j in i + 1..5 {
                c[i + j] = low(c[i + j], a[i], a[j]);
                c[i + j + 1] = high(c[i + j + 1], a[i], a[j]);
            }
        }
        for column in &mut c {
            *column = plus(*column, *column);
        }
        for i in 0..5 {
            c[2 * i] = low(c[2 * i], a[i], a[i]);
            c[2 * i + 1] = high(c[2 * i + 1], a[i], a[i]);
        }
        reduced(c)
    }

    /// The fourth limb alone: columns 4, 8 and 9, and what of the latter two the folding by 2^260 puts there. Its 48
    /// bits stand at the top of 64.
    #[inline(always)]
    fn top_of_product(self, other: Fe8) -> __m512i {
        let (a, b) = (self.0, other.0);
        let mut l4 = low(all(0), a[0], b[4]);
        let mut also = high(all(0), a[0], b[3]);
        l4 = low(l4, a[1], b[3]);
        also = high(also, a[1], b[2]);
        l4 = low(l4, a[2], b[2]);
        also = high(also, a[2], b[1]);
        l4 = low(l4, a[3], b[1]);
        also = high(also, a[3], b[0]);
        l4 = low(l4, a[4], b[0]);
        let h3 = high(high(low(all(0), a[4], b[4]), a[3], b[4]), a[4], b[3]);
        let h4 = plus(high(all(0), a[4], b[4]), right::<52>(h3));
        l4 = low(l4, h4, all(FOLD_260));
        // Only 52 bits of h3 are read: its carry is in h4.
        also = high(also, h3, all(FOLD_260));
        left::<16>(plus(l4, also))
    }

    #[inline(always)]
    fn tops(top: u64) -> __m512i {
        all(top as i64)
    }

    #[inline(always)]
    fn tops_from_lanes(values: &[u64]) -> __m512i {
        let mut lanes = [0; 8];
        lanes.copy_from_slice(&values[..8]);
        load(&lanes)
    }

    #[inline(always)]
    fn top(tops: __m512i, lane: usize) -> u64 {
        store(tops)[lane]
    }

    #[inline(always)]
    fn add_tops(a: __m512i, b: __m512i) -> __m512i {
        plus(a, b)
    }

    #[inline(always)]
    fn sub_tops(a: __m512i, b: __m512i) -> __m512i {
        minus(a, b)
    }

    /// Sixteen tops at a time, by their upper 32 bits.
    #[inline(always)]
    fn marks(filter: &Filter, tops: &[__m512i; 18]) -> Marks {
        let mut marks = [0; 9];
        if filter.widened().len() <= FEW_INTERVALS {
            for n in 0..9 {
                let upper = upper_halves(tops[2 * n], tops[2 * n + 1]);
                for &(first, last) in filter.widened() {
                    let (first, last) = ((first >> 32) as i32, (last >> 32) as i32);
                    // SAFETY: the contract above.
                    marks[n] |= unsafe {
                        let above = _mm512_sub_epi32(upper, _mm512_set1_epi32(first));
                        _mm512_cmple_epu32_mask(above, _mm512_set1_epi32(last.wrapping_sub(first)))
                    };
                }
            }
        } else {
            let (map, shift) = filter.map();
            for n in 0..9 {
                let upper = upper_halves(tops[2 * n], tops[2 * n + 1]);
                // SAFETY: the contract above; the map has a bit for every value of the index, so every word that is
                // gathered lies within it.
                marks[n] = unsafe {
                    let index = _mm512_srl_epi32(upper, _mm_cvtsi32_si128(shift as i32));
                    let words = _mm512_i32gather_epi32::<4>(_mm512_srli_epi32::<5>(index), map.as_ptr().cast());
                    let bit = _mm512_and_si512(index, _mm512_set1_epi32(31));
                    _mm512_test_epi32_mask(_mm512_srlv_epi32(words, bit), _mm512_set1_epi32(1))
                };
            }
        }
        marks
    }
}

/// The upper 32 bits of the eight lanes of `a`, then of `b`.
#[inline(always)]
fn upper_halves(a: __m512i, b: __m512i) -> __m512i {
    // SAFETY: the contract above.
    unsafe {
        let odd = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
        _mm512_permutex2var_epi32(a, odd, b)
    }
}
