//! One table entry, six points, eighteen candidates (`docs/search.md`), written once for every field type.

use super::field::Fe;
use super::lanes::Lanes;
use super::table::{Affine, Entry};

/// What the formula needs of a centre; one in each lane.
#[derive(Clone, Copy, Debug)]
pub struct Centre<F: Lanes> {
    pub point: Affine<F>,
    x_squared: F,
    /// z = xA³
    z: F,
    /// z + 14, and β(z + 14): what A' and βA' take from the centre.
    a: F,
    beta_a: F,
    /// The tops of xA, βxA, β²xA, exact.
    x_tops: [F::Tops; 3],
}

impl<F: Lanes> Centre<F> {
    #[inline(always)]
    pub fn new(point: Affine<F>) -> Centre<F> {
        let number = |value: Fe| F::of(&F::constant(value));
        let beta = number(Fe::BETA);
        let x_squared = point.x.square();
        let z = x_squared.mul(point.x);
        let a = z.add(number(Fe::from_small(14)));
        let beta_x = point.x.mul(beta);
        let x_tops = [point.x, beta_x, beta_x.mul(beta)].map(|value| {
            let mut tops = [0; 8];
            for (lane, top) in tops.iter_mut().enumerate().take(F::LANES) {
                *top = value.lane(lane).canonical().top();
            }
            F::tops_from_lanes(&tops)
        });
        Centre { point, x_squared, z, a, beta_a: a.mul(beta), x_tops }
    }

    /// `z - u`, the factor of an entry in the shared inversion. Zero where the centre is ±λ^k times the entry's point.
    #[inline(always)]
    pub fn factor(&self, entry: &Entry<F::Constant>) -> F {
        self.z.sub(F::of(&entry.u))
    }

    /// The centre of one lane.
    pub fn lane(&self, lane: usize) -> Centre<Fe> {
        Centre::new(Affine { x: self.point.x.lane(lane), y: self.point.y.lane(lane) })
    }
}

/// The products that all 18 candidates of an entry are sums of.
#[derive(Clone, Copy, Debug)]
pub struct Products<F> {
    y: [F; 3],
    a: F,
    beta_a: F,
    b: F,
    beta_b: F,
}

/// The tops of `factor·y`, `β·factor·y` and `β²·factor·y`, the last as minus the sum of the others.
#[inline(always)]
fn rotations<F: Lanes>(factor: F, beta_factor: F, y: F) -> [F::Tops; 3] {
    let (zero, one) = (factor.top_of_product(y), beta_factor.top_of_product(y));
    [zero, one, F::sub_tops(F::sub_tops(F::tops(0), zero), one)]
}

/// The place of a candidate among an entry's 18: turn k, sign (1 for minus), rotation j.
#[inline(always)]
pub fn place(k: usize, sign: usize, j: usize) -> usize {
    (k * 2 + sign) * 3 + j
}

/// Turn k, sign and rotation j of the candidate at a [`place`].
pub fn address(place: usize) -> (usize, usize, usize) {
    (place / 6, place / 3 % 2, place % 3)
}

impl<F: Lanes> Products<F> {
    /// `t` is `1/(z - u)`.
    #[inline(always)]
    pub fn new(centre: &Centre<F>, entry: &Entry<F::Constant>, t: F) -> Products<F> {
        let t_squared = t.square();
        let h = F::of(&entry.u3).mul(t_squared);
        let t_h = t.add(h);
        Products {
            y: [
                centre.point.x.mul(t_h),
                F::of(&entry.x).mul(t.add(t_h)),
                F::of(&entry.x2_3).mul(centre.x_squared.mul(t_squared)),
            ],
            a: F::of(&entry.u).add(centre.a),
            beta_a: F::of(&entry.beta_u).add(centre.beta_a),
            b: F::of(&entry.y_2).mul(centre.point.y),
            beta_b: F::of(&entry.beta_y_2).mul(centre.point.y),
        }
    }

    /// The approximate tops of all candidates `β^j·x(A ± λ^k·I)`, each at its [`place`]. Within [`Lanes::SLACK`] of the
    /// exact ones, modulo 2^64.
    #[inline(always)]
    pub fn tops(&self, centre: &Centre<F>, entry: &Entry<F::Constant>) -> [F::Tops; 18] {
        let [y0, y1, y2] = self.y;
        let a = [
            rotations(self.a, self.beta_a, y0),
            rotations(self.a, self.beta_a, y1),
            rotations(self.a, self.beta_a, y2),
        ];
        let b = [
            rotations(self.b, self.beta_b, y0),
            rotations(self.b, self.beta_b, y1),
            rotations(self.b, self.beta_b, y2),
        ];
        let mut tops = [F::tops(0); 18];
        for k in 0..3 {
            for j in 0..3 {
                let (second, third) = ((j + k) % 3, (j + 2 * k) % 3);
                let s_a = F::add_tops(F::add_tops(a[0][j], a[1][second]), a[2][third]);
                let s_b = F::add_tops(F::add_tops(b[0][j], b[1][second]), b[2][third]);
                let x = F::add_tops(centre.x_tops[j], F::tops(entry.x_tops[second]));
                let middle = F::sub_tops(s_a, x);
                tops[place(k, 0, j)] = F::sub_tops(middle, s_b);
                tops[place(k, 1, j)] = F::add_tops(middle, s_b);
            }
        }
        tops
    }

    /// The products of one lane.
    pub fn lane(&self, lane: usize) -> Products<Fe> {
        Products {
            y: self.y.map(|y| y.lane(lane)),
            a: self.a.lane(lane),
            beta_a: self.beta_a.lane(lane),
            b: self.b.lane(lane),
            beta_b: self.beta_b.lane(lane),
        }
    }
}

impl Products<Fe> {
    /// `β^j·x(A ± λ^k·I)`, exact and below p.
    pub fn exact(&self, centre: &Centre<Fe>, entry: &Entry<Fe>, k: usize, sign: usize, j: usize) -> Fe {
        let beta_power = |power: usize| [Fe::ONE, Fe::BETA, Fe::BETA.square()][power % 3];
        let s = self.y[0].add(beta_power(k).mul(self.y[1])).add(beta_power(2 * k).mul(self.y[2]));
        let (a_s, b_s) = (self.a.mul(s), self.b.mul(s));
        let sum = if sign == 1 { a_s.add(b_s) } else { a_s.sub(b_s) };
        let x = sum.sub(centre.point.x).sub(beta_power(k).mul(entry.x));
        x.mul(beta_power(j)).canonical()
    }
}
