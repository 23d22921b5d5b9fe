//! The eighteen keys of an entry, eight lanes side by side, for quick tests. The contract of every
//! `unsafe` is that of the module `ifma`.
//!
//! Numbers are reduced only as far as the next operation needs. Their bounds, in units of 2^256
//! plus a little:
//!
//! | number | below |
//! | --- | --- |
//! | y0, y1, y2, xA | 1 |
//! | a, b, β·(y1 - y2) | 2, 8, 8 |
//! | a + b, a - b + 9p | 10, 11 |
//! | s0, s1, s2 | 3, 11, 11 |
//!
//! So a product is below 121·2^512, and below 2^519 with its addend.

use super::field::Fe8;
use super::reduce::{FOLD_256, FOLD_260, LIMB, TOP_LIMB, carried, folded};
use super::vector::{all, and, high, low, minus, plus, right};
use crate::search::cpu::formula::Products;
use crate::search::cpu::simd::SimdField;
use std::arch::x86_64::*;

/// `n·p` with limbs so large that others can be subtracted from them without a borrow. Each is a
/// little less than `2^(52+bits)`, and the top one is `n·2^48 - 2^bits`.
const fn multiple_of_p(n: i64, bits: u32) -> [i64; 5] {
    let (limb, lent) = (1 << (52 + bits), 1 << bits);
    [limb - n * FOLD_256, limb - lent, limb - lent, limb - lent, (n << 48) - lent]
}

/// Five limbs in each lane. The top one counts as a whole, the others only with their low 52 bits.
pub type Limbs = [__m512i; 5];

/// Sums of an entry's products around eight centres, from which its keys are computed.
pub struct KeyFactors<'a> {
    /// `[a + b, a - b + 9p]`
    ab: [Limbs; 2],
    /// `y0 + β^k·y1 + β^2k·y2`, plus a multiple of p.
    s: [Limbs; 3],
    /// `4p - xA`
    minus_x: Limbs,
    beta: &'a [[u64; 5]; 5],
}

impl KeyFactors<'_> {
    /// The factors of an entry around centres with this x. `beta` is β.
    #[inline(always)]
    pub fn new<'a>(products: &Products<Fe8>, x: Fe8, beta: &'a [[u64; 5]; 5]) -> KeyFactors<'a> {
        let (ab, s) = factors_of_keys(products, beta);
        KeyFactors { ab, s, minus_x: less(all_limbs(multiple_of_p(4, 2)), exact(x.0)), beta }
    }

    /// The keys `β^j·x(A ± λ^k·I)`, each at `[3·sign + j]`. A number whose top limb is 2^48 - 1 or
    /// more may be p or more. `turned` is `β^k·xi`.
    #[inline(always)]
    pub fn keys(&self, k: usize, turned: Fe8) -> [Limbs; 6] {
        let addend = less(self.minus_x, turned.0);
        let mut keys = [addend; 6];
        let mut rests = [addend; 2];
        for sign in 0..2 {
            let value = folded(columns(self.ab[sign], self.s[k], addend));
            rests[sign] = less(all_limbs(multiple_of_p(4, 6)), value);
            keys[3 * sign] = carried(value);
        }
        for sign in 0..2 {
            let value = times_beta(keys[3 * sign], self.beta);
            keys[3 * sign + 1] = carried(value);
            keys[3 * sign + 2] = carried(below_2_256(less(rests[sign], value)));
        }
        keys
    }
}

/// A bit for each lane in which one of these six keys may be p or more.
#[inline(always)]
pub fn unsure(keys: &[Limbs; 6]) -> u8 {
    let mut sure = u8::MAX;
    for limbs in keys {
        // SAFETY: the processor has the instructions (the contract of `super`).
        sure = unsafe { _mm512_mask_cmplt_epu64_mask(sure, limbs[4], all(TOP_LIMB)) };
    }
    !sure
}

/// `[a + b, a - b + 9p]`, and `y0 + β^k·y1 + β^2k·y2` plus a multiple of p for k = 0, 1, 2.
#[inline(always)]
fn factors_of_keys(products: &Products<Fe8>, beta: &[[u64; 5]; 5]) -> ([Limbs; 2], [Limbs; 3]) {
    let (a, b) = (exact(products.a.0), exact(products.b.0));
    let [y0, y1, y2] = [exact(products.y[0].0), exact(products.y[1].0), exact(products.y[2].0)];
    let turned = carried(less(more(y1, all_limbs(multiple_of_p(2, 1))), y2));
    let turned = exact(Fe8(turned).times_constant(beta).0);
    // β² is -1 - β, and β⁴ is β.
    let s = [
        more(more(y0, y1), y2),
        more(less(more(y0, all_limbs(multiple_of_p(2, 1))), y2), turned),
        less(less(more(y0, all_limbs(multiple_of_p(10, 2))), y1), turned),
    ];
    let difference = less(more(a, all_limbs(multiple_of_p(9, 1))), b);
    ([carried(more(a, b)), carried(difference)], [carried(s[0]), carried(s[1]), carried(s[2])])
}

/// The columns of `a·b + addend`.
#[inline(always)]
fn columns(a: Limbs, b: Limbs, addend: Limbs) -> [__m512i; 10] {
    let mut c = [all(0); 10];
    c[..5].copy_from_slice(&addend);
    for i in 0..5 {
        for j in 0..5 {
            c[i + j] = low(c[i + j], a[i], b[j]);
            c[i + j + 1] = high(c[i + j + 1], a[i], b[j]);
        }
    }
    c
}

/// `a·β` with limbs that are not carried yet, the top one below 2^48. The uppermost column is a sum
/// of five values below 2^48: it is folded down by 2^260.
#[inline(always)]
fn times_beta(a: Limbs, beta: &[[u64; 5]; 5]) -> Limbs {
    let mut c = [all(0); 6];
    for i in 0..5 {
        for j in 0..5 {
            let part = all(beta[i][j] as i64);
            c[j] = low(c[j], a[i], part);
            c[j + 1] = high(c[j + 1], a[i], part);
        }
    }
    let [mut l0, mut l1, l2, l3, l4, l5] = c;
    (l0, l1) = (low(l0, l5, all(FOLD_260)), high(l1, l5, all(FOLD_260)));
    below_2_256([l0, l1, l2, l3, l4])
}

/// Folds down the bits from 2^256 on, once. The other limbs are not carried yet: their carries may
/// bring the top limb to 2^48 or more again.
#[inline(always)]
fn below_2_256(mut l: Limbs) -> Limbs {
    l[0] = low(l[0], right::<48>(l[4]), all(FOLD_256));
    l[4] = and(l[4], all(TOP_LIMB));
    l
}

/// The limbs without the bits that were carried into the next limb.
#[inline(always)]
fn exact([a, b, c, d, e]: Limbs) -> Limbs {
    let mask = all(LIMB);
    [and(a, mask), and(b, mask), and(c, mask), and(d, mask), e]
}

#[inline(always)]
fn all_limbs([a, b, c, d, e]: [i64; 5]) -> Limbs {
    [all(a), all(b), all(c), all(d), all(e)]
}

/// `a + b`, limb by limb.
#[inline(always)]
fn more(a: Limbs, b: Limbs) -> Limbs {
    [plus(a[0], b[0]), plus(a[1], b[1]), plus(a[2], b[2]), plus(a[3], b[3]), plus(a[4], b[4])]
}

/// `a - b`, limb by limb.
#[inline(always)]
fn less(a: Limbs, b: Limbs) -> Limbs {
    [minus(a[0], b[0]), minus(a[1], b[1]), minus(a[2], b[2]), minus(a[3], b[3]), minus(a[4], b[4])]
}
