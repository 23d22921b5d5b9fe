//! Arithmetic modulo p, slow and obvious, for tests of the kernels. It is in this package because
//! debug builds optimise only this one of ours.

/// A number of 32 bytes, big-endian.
pub type Number = [u8; 32];

/// p = 2^256 - 2^32 - 977, least significant limb first.
pub const P: [u64; 4] = [0xffff_fffe_ffff_fc2f, u64::MAX, u64::MAX, u64::MAX];

/// Limbs of 64 bits, least significant first.
pub fn to_limbs(n: &Number) -> [u64; 4] {
    std::array::from_fn(|i| u64::from_be_bytes(n[24 - 8 * i..32 - 8 * i].try_into().expect("eight bytes")))
}

/// The number that these limbs form.
pub fn from_limbs(n: [u64; 4]) -> Number {
    std::array::from_fn(|i| n[3 - i / 8].to_be_bytes()[i % 8])
}

/// The remainder modulo p of a number of any length, bit by bit: slow and obvious.
pub fn remainder(limbs: &[u64]) -> [u64; 4] {
    let mut r = [0u64; 4];
    for bit in (0..64 * limbs.len()).rev() {
        let over = r[3] >> 63;
        for i in (1..4).rev() {
            r[i] = r[i] << 1 | r[i - 1] >> 63;
        }
        r[0] = r[0] << 1 | limbs[bit / 64] >> (bit % 64) & 1;
        if over == 1 || !less(&r, &P) {
            let mut borrow = 0;
            for i in 0..4 {
                let d = r[i] as i128 - P[i] as i128 - borrow;
                r[i] = d as u64;
                borrow = i128::from(d < 0);
            }
        }
    }
    r
}

/// Whether a < b.
pub fn less(a: &[u64; 4], b: &[u64; 4]) -> bool {
    a.iter().rev().lt(b.iter().rev())
}

/// a·b, below p.
pub fn product(a: &Number, b: &Number) -> [u64; 4] {
    let (a, b) = (to_limbs(a), to_limbs(b));
    let mut wide = [0u64; 8];
    for i in 0..4 {
        let mut carry = 0u128;
        for j in 0..4 {
            carry += u128::from(a[i]) * u128::from(b[j]) + u128::from(wide[i + j]);
            wide[i + j] = carry as u64;
            carry >>= 64;
        }
        wide[i + 4] = carry as u64;
    }
    remainder(&wide)
}

/// a + b, below p.
pub fn sum(a: &Number, b: &Number) -> [u64; 4] {
    let (a, b) = (to_limbs(a), to_limbs(b));
    let (mut wide, mut carry) = ([0u64; 5], 0u128);
    for i in 0..4 {
        carry += u128::from(a[i]) + u128::from(b[i]);
        wide[i] = carry as u64;
        carry >>= 64;
    }
    wide[4] = carry as u64;
    remainder(&wide)
}

/// The representative below p.
pub fn canonical(n: &Number) -> Number {
    from_limbs(remainder(&to_limbs(n)))
}

/// The error of a truncated top word: `result`, in its lowest 32 bits, minus the upper 32 bits of
/// the exact product a·b mod p.
pub fn top_word_error(a: &Number, b: &Number, result: &Number) -> i32 {
    let exact = (product(a, b)[3] >> 32) as u32;
    (to_limbs(result)[0] as u32).wrapping_sub(exact).cast_signed()
}
