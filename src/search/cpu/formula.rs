//! One table entry, six points, eighteen candidates (`docs/search.md`).

use super::field::Fe;
use super::table::{Affine, Entry};

/// How far an approximate top may be off, either way, in units of 2^-64 of the field.
///
/// A product's top is low by 0 to 9, so its rotation by β², minus the sum of the other two, is up to 18 high. A top sums
/// three such terms of `A'` and three of `B` (each within [-9, 18], added or subtracted) and three exact tops with
/// fractions dropped: within ±6·18 + 3 = ±111. A residue that wrapped past p adds ±1 a term: ±123.
pub const SLACK: u64 = 128;

/// What the formula needs of a centre.
#[derive(Clone, Copy, Debug)]
pub struct Centre {
    pub point: Affine,
    x_squared: Fe,
    /// z = xA³
    pub z: Fe,
    /// z + 14, and β(z + 14): what A' and βA' take from the centre.
    a: Fe,
    beta_a: Fe,
    /// The tops of xA, βxA, β²xA, exact.
    x_tops: [u64; 3],
}

impl Centre {
    pub fn new(point: Affine) -> Centre {
        let x_squared = point.x.square();
        let z = x_squared.mul(point.x);
        let a = z.add(Fe::from_small(14));
        let beta_x = point.x.mul(Fe::BETA);
        let rotations = [point.x, beta_x, beta_x.mul(Fe::BETA)];
        let x_tops = rotations.map(|value| value.canonical().top());
        Centre { point, x_squared, z, a, beta_a: a.mul(Fe::BETA), x_tops }
    }

    /// `z - u`, the factor of an entry in the shared inversion. Zero where the centre is ±λ^k times the entry's point.
    #[inline(always)]
    pub fn factor(&self, entry: &Entry) -> Fe {
        self.z.sub(entry.u)
    }
}

/// The products that all 18 candidates of an entry are sums of.
#[derive(Clone, Copy, Debug)]
pub struct Products {
    y: [Fe; 3],
    a: Fe,
    beta_a: Fe,
    b: Fe,
    beta_b: Fe,
}

impl Products {
    /// `t` is `1/(z - u)`.
    #[inline(always)]
    pub fn new(centre: &Centre, entry: &Entry, t: Fe) -> Products {
        let t_squared = t.square();
        let h = entry.u3.mul(t_squared);
        let t_h = t.add(h);
        Products {
            y: [centre.point.x.mul(t_h), entry.x.mul(t.add(t_h)), entry.x2_3.mul(centre.x_squared.mul(t_squared))],
            a: entry.u.add(centre.a),
            beta_a: entry.beta_u.add(centre.beta_a),
            b: entry.y_2.mul(centre.point.y),
            beta_b: entry.beta_y_2.mul(centre.point.y),
        }
    }

    /// The approximate tops of all candidates, `[k][sign][j]`: of `β^j·x(A ± λ^k·I)`, sign 0 for plus. Within
    /// [`SLACK`] of the exact ones, modulo 2^64.
    #[inline(always)]
    pub fn tops(&self, centre: &Centre, entry: &Entry) -> [[[u64; 3]; 2]; 3] {
        let rotations = |factor: Fe, beta_factor: Fe, y: Fe| {
            let (zero, one) = (factor.top_of_product(y), beta_factor.top_of_product(y));
            [zero, one, 0u64.wrapping_sub(zero).wrapping_sub(one)]
        };
        let a = self.y.map(|y| rotations(self.a, self.beta_a, y));
        let b = self.y.map(|y| rotations(self.b, self.beta_b, y));
        let mut tops = [[[0; 3]; 2]; 3];
        for (k, signs) in tops.iter_mut().enumerate() {
            for j in 0..3 {
                let (second, third) = ((j + k) % 3, (j + 2 * k) % 3);
                let s_a = a[0][j].wrapping_add(a[1][second]).wrapping_add(a[2][third]);
                let s_b = b[0][j].wrapping_add(b[1][second]).wrapping_add(b[2][third]);
                let middle = s_a.wrapping_sub(centre.x_tops[j]).wrapping_sub(entry.x_tops[second]);
                signs[0][j] = middle.wrapping_sub(s_b);
                signs[1][j] = middle.wrapping_add(s_b);
            }
        }
        tops
    }

    /// `β^j·x(A ± λ^k·I)`, exact and below p.
    pub fn exact(&self, centre: &Centre, entry: &Entry, k: usize, minus: bool, j: usize) -> Fe {
        let beta_power = |power: usize| [Fe::ONE, Fe::BETA, Fe::BETA.square()][power % 3];
        let s = self.y[0].add(beta_power(k).mul(self.y[1])).add(beta_power(2 * k).mul(self.y[2]));
        let (a_s, b_s) = (self.a.mul(s), self.b.mul(s));
        let sum = if minus { a_s.add(b_s) } else { a_s.sub(b_s) };
        let x = sum.sub(centre.point.x).sub(beta_power(k).mul(entry.x));
        x.mul(beta_power(j)).canonical()
    }
}
