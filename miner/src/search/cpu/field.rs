//! Numbers modulo p = 2^256 - 2^32 - 977: four limbs of 64 bits, the least first.
//!
//! A number may have any value below 2^256 and stands for its residue, so p + 1 and 1 are the same
//! number. Only [`Fe::canonical`] reduces fully. Every operation accepts and returns such values.

use bytemuck::Zeroable;

/// 2^256 mod p.
pub const FOLD: u64 = 0x1_0000_03d1;

/// p.
const PRIME: [u64; 4] = [0xffff_fffe_ffff_fc2f, u64::MAX, u64::MAX, u64::MAX];

/// A number modulo p, lazily reduced.
#[derive(Clone, Copy, Debug, Default, Zeroable)]
pub struct Fe(pub [u64; 4]);

impl Fe {
    /// 0
    pub const ZERO: Self = Fe([0; 4]);

    /// 1
    pub const ONE: Self = Fe([1, 0, 0, 0]);

    /// β, a cube root of 1 modulo p: `λ·(x, y) = (βx, y)`.
    pub const BETA: Self =
        Fe([0xc139_6c28_7195_01ee, 0x9cf0_4975_12f5_8995, 0x6e64_479e_ac34_34e9, 0x7ae9_6a2b_657c_0710]);

    /// s/2 for s = 2β + 1, a square root of -3.
    pub const HALF_ROOT: Self =
        Fe([0xc139_6c27_f195_0006, 0x9cf0_4975_12f5_8995, 0x6e64_479e_ac34_34e9, 0xfae9_6a2b_657c_0710]);

    /// 1/s.
    pub const INVERSE_ROOT: Self =
        Fe([0x29d9_b7e4_5ef1_fc2b, 0xecb5_245c_9e06_f99c, 0x0bbd_2596_37dd_320e, 0x58b9_b938_6702_a5f5]);

    /// A number below 2^64.
    pub fn from_small(value: u64) -> Self {
        Fe([value, 0, 0, 0])
    }

    /// The number with these 32 bytes, the most significant first.
    pub fn from_be_bytes(bytes: &[u8; 32]) -> Self {
        let limb = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        Fe([limb(24), limb(16), limb(8), limb(0)])
    }

    /// The 32 bytes of a canonical number, the most significant first.
    pub fn to_be_bytes(self) -> [u8; 32] {
        std::array::from_fn(|at| self.0[3 - at / 8].to_be_bytes()[at % 8])
    }

    /// The same number, below p.
    pub fn canonical(self) -> Self {
        let mut limbs = self.0;
        let mut borrow = false;
        for (limb, prime) in limbs.iter_mut().zip(PRIME) {
            let (difference, first) = limb.overflowing_sub(prime);
            let (difference, second) = difference.overflowing_sub(u64::from(borrow));
            (*limb, borrow) = (difference, first | second);
        }
        if borrow { self } else { Fe(limbs) }
    }

    /// Whether the number is 0 modulo p.
    pub fn is_zero(self) -> bool {
        self.canonical().0 == [0; 4]
    }

    /// `self + other`
    #[inline(always)]
    pub fn add(self, other: Self) -> Self {
        let mut carry = 0u128;
        let mut sum = [0; 4];
        for ((sum, a), b) in sum.iter_mut().zip(self.0).zip(other.0) {
            carry += u128::from(a) + u128::from(b);
            *sum = carry as u64;
            carry >>= 64;
        }
        fold_carry(sum, carry as u64)
    }

    /// `self - other`
    #[inline(always)]
    pub fn sub(self, other: Self) -> Self {
        let (difference, borrow) = sub_limbs(self.0, other.0);
        // The borrow added 2^256, which is FOLD, so FOLD is subtracted. That borrows once more only
        // from a value below FOLD. Its lowest limb is then so large that no further borrow occurs.
        let (difference, again) = sub_limbs(difference, [u64::from(borrow) * FOLD, 0, 0, 0]);
        Fe([difference[0].wrapping_sub(u64::from(again) * FOLD), difference[1], difference[2], difference[3]])
    }

    /// `self · other`
    #[inline(always)]
    pub fn mul(self, other: Self) -> Self {
        self.mul_plus(other, Fe::ZERO)
    }

    /// `self · other + addend`. Schoolbook: 16 products, then the upper half folded down by
    /// 2^256 = 2^32 + 977.
    #[inline(always)]
    pub fn mul_plus(self, other: Self, addend: Self) -> Self {
        let (a, b) = (self.0, other.0);
        let mut wide = [0u64; 8];
        // The largest product and the largest addend together are below 2^512.
        wide[..4].copy_from_slice(&addend.0);
        for i in 0..4 {
            let mut carry = 0;
            for j in 0..4 {
                (wide[i + j], carry) = mul_add(a[i], b[j], wide[i + j], carry);
            }
            wide[i + 4] = carry;
        }
        let mut low = [0u64; 4];
        let mut carry = 0;
        for at in 0..4 {
            (low[at], carry) = mul_add(wide[at + 4], FOLD, wide[at], carry);
        }
        fold_carry(low, carry)
    }

    /// `self²`
    #[inline(always)]
    pub fn square(self) -> Self {
        self.mul(self)
    }

    /// `2 · self`
    #[inline(always)]
    pub fn double(self) -> Self {
        self.add(self)
    }

    /// The top 64 bits.
    #[inline(always)]
    pub fn top(self) -> u64 {
        self.0[3]
    }

    /// The top 64 bits of `self·other mod p`, at most 9 too low.
    ///
    /// With w0…w7 the limbs of the 512-bit product, the top limb of the result is `w3 + (w7·2^64 +
    /// w6)·FOLD / 2^64`, up to carries. These parts are omitted: the carry into w3 (from a sum of
    /// five values below 2^64 and a carry: at most 5); the low halves and the carry of w6 (at most
    /// 6, which FOLD / 2^64 makes less than 1); the fraction of the quotient (1); and the carry out
    /// of limb 2 of the folded sum (at most 2). Values that wrap around 2^256 add FOLD at the
    /// bottom, which does not change the top.
    #[inline(always)]
    pub fn top_of_product(self, other: Self) -> u64 {
        let (a, b) = (self.0, other.0);
        let high = |x: u64, y: u64| ((u128::from(x) * u128::from(y)) >> 64) as u64;
        let w3 = a[0]
            .wrapping_mul(b[3])
            .wrapping_add(a[1].wrapping_mul(b[2]))
            .wrapping_add(a[2].wrapping_mul(b[1]))
            .wrapping_add(a[3].wrapping_mul(b[0]))
            .wrapping_add(high(a[0], b[2]))
            .wrapping_add(high(a[1], b[1]))
            .wrapping_add(high(a[2], b[0]));
        // At most (2^64-1)^2 + 2·(2^64-2), which is below 2^128.
        let w76 = u128::from(a[3]) * u128::from(b[3]) + u128::from(high(a[3], b[2])) + u128::from(high(a[2], b[3]));
        w3.wrapping_add(((w76 >> 64) as u64).wrapping_mul(FOLD)).wrapping_add(high(w76 as u64, FOLD))
    }
}

/// `x·y + addend + carry`, low and high half. Never overflows: (2^64-1)^2 + 2·(2^64-1) is 2^128 -
/// 1.
#[inline(always)]
fn mul_add(x: u64, y: u64, addend: u64, carry: u64) -> (u64, u64) {
    let sum = u128::from(x) * u128::from(y) + u128::from(addend) + u128::from(carry);
    (sum as u64, (sum >> 64) as u64)
}

#[inline(always)]
fn sub_limbs(a: [u64; 4], b: [u64; 4]) -> ([u64; 4], bool) {
    let mut borrow = false;
    let mut difference = [0; 4];
    for at in 0..4 {
        let (first, one) = a[at].overflowing_sub(b[at]);
        let (second, two) = first.overflowing_sub(u64::from(borrow));
        (difference[at], borrow) = (second, one | two);
    }
    (difference, borrow)
}

/// `limbs + carry·2^256`, for a carry below 2^35. Adding carry·FOLD may carry once more. The rest
/// is then below 2^68, so the last addition ends within two limbs.
#[inline(always)]
fn fold_carry(limbs: [u64; 4], carry: u64) -> Fe {
    let mut sum = u128::from(limbs[0]) + u128::from(carry) * u128::from(FOLD);
    let mut out = [sum as u64, 0, 0, 0];
    for at in 1..4 {
        sum = (sum >> 64) + u128::from(limbs[at]);
        out[at] = sum as u64;
    }
    let (low, carried) = out[0].overflowing_add((sum >> 64) as u64 * FOLD);
    out[0] = low;
    out[1] = out[1].wrapping_add(u64::from(carried));
    Fe(out)
}
