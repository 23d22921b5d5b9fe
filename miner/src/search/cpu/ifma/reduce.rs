//! Columns of products, reduced to numbers of five limbs. The table of `super` has the bounds.

use super::vector::{all, and, high, left, low, plus, right};
use crate::search::cpu::field::Fe;
use std::arch::x86_64::__m512i;

/// The low 52 bits of a limb.
pub const LIMB: i64 = (1 << 52) - 1;
/// The low 48 bits of the top limb: a number below 2^256.
pub const TOP_LIMB: i64 = (1 << 48) - 1;
/// The low 51 bits of the top limb: a number below 2^259.
pub const WIDE_TOP_LIMB: i64 = (1 << 51) - 1;
/// 2^256 mod p.
pub const FOLD_256: i64 = 0x1_0000_03d1;
/// 2^259 mod p.
pub const FOLD_259: i64 = FOLD_256 << 3;
/// 2^260 mod p.
pub const FOLD_260: i64 = FOLD_256 << 4;

/// Carries from l0 up to l4, which keeps its excess. The other limbs keep the bits they carried.
#[inline(always)]
pub fn carried(mut l: [__m512i; 5]) -> [__m512i; 5] {
    for at in 0..4 {
        l[at + 1] = plus(l[at + 1], right::<52>(l[at]));
    }
    l
}

/// The number with these ten columns of a product, each below 2^56 + 2^52.
///
/// The upper five columns are carried to limbs h0…h4 and folded down by 2^260. The product is below
/// 2^519, so h4 is below 2^52. Of the other limbs only 52 bits are read. Then the excess above
/// 2^260 (below 2^37) and the bits of l4 from 2^256 on (below 2^9) are folded down by 2^256.
/// Together they are below 2^42, and the fold multiplies them by less than 2^33. Then l3 is below
/// 2^57, and its carry below 2^6.
#[inline(always)]
pub fn reduced(c: [__m512i; 10]) -> [__m512i; 5] {
    carried(folded(c))
}

/// [`reduced`], with limbs that are not carried yet. They are below 2^57, the top one below 2^48.
#[inline(always)]
pub fn folded(c: [__m512i; 10]) -> [__m512i; 5] {
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
    [l0, l1, l2, l3, l4]
}

/// The number with these six columns, each below 2^56. The uppermost column is a sum of five values
/// below 2^48 + 2^6, so it is below 2^51 - 2^4. Together with the bits of l4 from 2^259 on (below
/// 2^5), it is folded down by 2^259. The number folded down is below 2^52.
#[inline(always)]
pub fn reduced_at_259([mut l0, mut l1, l2, l3, mut l4, l5]: [__m512i; 6]) -> [__m512i; 5] {
    let top = plus(right::<51>(l4), left::<1>(l5));
    l4 = and(l4, all(WIDE_TOP_LIMB));
    let fold = all(FOLD_259);
    (l0, l1) = (low(l0, top, fold), high(l1, top, fold));
    carried([l0, l1, l2, l3, l4])
}

/// The columns of a square: the ten mixed products once and doubled, and the five squares.
#[inline(always)]
pub fn square_columns(a: [__m512i; 5]) -> [__m512i; 10] {
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

/// A number y, prepared for [`top_of_product`].
pub struct Uppers {
    /// The limbs 4, 3, 2 and 1 of y: the limb 4 of `y·2^(52·i)` modulo p for i = 0…3, without the carry
    /// into that of i = 3.
    limbs: [__m512i; 4],
    /// Limb 4 for i = 3.
    third: __m512i,
    /// Limbs 4 and 3 for i = 4.
    fourth: [__m512i; 2],
}

/// Prepares a product or a square: its limb 4 is below 2^48 + 2^6.
///
/// 2^260 is 2^36 + 15,632. So `y·2^208` has y0 in limb 4, and y4 times that in the limbs 4 and 3.
#[inline(always)]
pub fn uppers([y0, y1, y2, y3, y4]: [__m512i; 5]) -> Uppers {
    let fold = all(FOLD_260);
    let third = low(high(all(0), y3, fold), y4, fold);
    let upper = plus(high(and(y0, all(LIMB)), y4, fold), right::<52>(third));
    Uppers { limbs: [y4, y3, y2, y1], third: plus(y1, right::<52>(upper)), fourth: [upper, third] }
}

/// The upper 64 bits of a·y, too low by less than 16·2^16 units of 2^-64, and 2^64 times any number.
///
/// They are limb 4 with its fraction, which has 16 bits. It is the sum of `a_i·(y·2^(52·i) mod p)`, of
/// which two limbs each are kept. In units of 2^208, a_i times the limbs below is less than 1, for i =
/// 2, of which a carry is missing, and for i = 4 less than 3; each of five upper halves drops less than 1.
#[inline(always)]
pub fn top_of_product(a: [__m512i; 5], y: &Uppers) -> __m512i {
    let [y4, y3, y2, y1] = y.limbs;
    let [upper, lower] = y.fourth;
    let mut limb = high(all(0), a[0], y3);
    limb = low(limb, a[0], y4);
    limb = high(limb, a[1], y2);
    limb = low(limb, a[1], y3);
    limb = high(limb, a[2], y1);
    limb = low(limb, a[2], y2);
    limb = high(limb, a[3], upper);
    limb = low(limb, a[3], y.third);
    limb = high(limb, a[4], lower);
    limb = low(limb, a[4], upper);
    left::<16>(limb)
}

/// The five limbs of a number.
pub fn limbs(value: Fe) -> [u64; 5] {
    let [a, b, c, d] = value.0;
    let mask = LIMB as u64;
    [a & mask, (a >> 52 | b << 12) & mask, (b >> 40 | c << 24) & mask, (c >> 28 | d << 36) & mask, d >> 16]
}
