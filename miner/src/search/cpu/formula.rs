//! One table entry around one centre: six points, eighteen candidates
//! (`docs/developers/search.md`). Written once for every field type.
//!
//! This form is equivalent to the one there. It has `s = √-3 = 2β + 1`, and `q = 2·xA·t` in place
//! of `t`. Computing q costs nothing, because the shared inverse is scaled by `2·xA` once a round:
//!
//! ```text
//! g  = 1/(s·xA)         e0 = (s·xA/2)·q + g     e1 = (s·xi/2)·q
//! y0 = e0² - g²         y1 = e0·e1              y2 = e1²              -Y0, -Y1, -Y2 there
//! a  = -(u + z + 14)    b  = 2yi·yA             (also βa and βb)
//! β^j·x(A ± λ^k·I) = [a·y0 ± b·y0]_j + [a·y1 ± b·y1]_(j+k) + [a·y2 ± b·y2]_(j+2k) - [xA]_j - [xi]_(j+k)
//! ```
//!
//! `[v]_j` is `β^j·v`. With c = s·xA/2, `e0² - g² = c²q² + 2cg·q`, and 2cg is 1. So y0 is `(c·q)² + q`, which is -Y0 because `z·t = 1 + u·t` and `3·xA⁴·t² - 2·xA·t
//! = xA·(3·z·t² - 2t) = xA·(t + 3u·t²)`. The proofs for y1 and y2 are similar. From q, this form
//! takes 1 multiplication, 2 by constants of the entry or the centre, and 2 squarings. The other form
//! takes 5 multiplications and 1 squaring.

use super::field::Fe;
use super::simd::{SimdField, Summand};
use super::table::{Affine, Entry};

/// The values of the centres `A` that the formula uses; one centre in each lane.
#[derive(Clone, Copy, Debug)]
pub struct Centre<F: SimdField> {
    /// xA
    pub x: F,
    /// yA
    y: F,
    /// s·xA/2
    e0: F::Factor,
    /// 1/(s·xA)
    g: Summand<F>,
    /// -g²
    minus_g_2: Summand<F>,
    /// -(z + 14): the centre's part of a.
    a: Summand<F>,
    /// β times `-(z + 14)`: the centre's part of βa.
    beta_a: Summand<F>,
    /// The top words of xA and βxA, exact.
    pub x_top_words: [F::TopWords; 2],
}

/// This number in every lane.
#[inline(always)]
pub fn broadcast<F: SimdField>(value: Fe) -> Summand<F> {
    F::from_constant(&F::constant(value))
}

/// z = x³.
#[inline(always)]
pub fn cube<F: SimdField>(x: F) -> Summand<F> {
    x.square().mul(x).summand()
}

/// `z - u`, the factor of an entry in the shared inversion. Zero if the centre is ±λ^k times the
/// entry's point.
#[inline(always)]
pub fn factor<F: SimdField>(z: Summand<F>, entry: &Entry<F>) -> F {
    F::sum(F::from_constant(&entry.minus_u), z)
}

impl<F: SimdField> Centre<F> {
    /// The centre at `point`. `z` is [`cube`] of its x, `inverse` is `1/x`. No point has an x of
    /// zero, because 7 is not a square modulo p.
    #[inline(always)]
    pub fn new(point: Affine<F>, z: Summand<F>, inverse: F) -> Centre<F> {
        let beta = broadcast::<F>(Fe::BETA).0;
        let a = broadcast::<F>(Fe::ZERO.sub(Fe::from_small(14))).0.sub(z.0);
        let beta_x = point.x.mul(beta);
        let mut x_top_words = [F::top_words(0); 2];
        for (top_words, value) in x_top_words.iter_mut().zip([point.x, beta_x]) {
            let mut lanes = [0; 8];
            for (lane, top) in lanes.iter_mut().enumerate().take(F::LANES) {
                *top = value.lane(lane).canonical().top();
            }
            *top_words = F::top_words_from_lanes(&lanes);
        }
        let g = inverse.mul(broadcast::<F>(Fe::INVERSE_ROOT).0);
        Centre {
            x: point.x,
            y: point.y,
            e0: point.x.mul(broadcast::<F>(Fe::HALF_ROOT).0).factor(),
            g: g.summand(),
            minus_g_2: broadcast::<F>(Fe::ZERO).0.sub(g.square()).summand(),
            a: a.summand(),
            beta_a: a.mul(beta).summand(),
            x_top_words,
        }
    }
}

/// Other work that is done between the products, so that the processor can overlap both: the lookup of
/// earlier top words.
pub trait Between {
    /// Does the next part.
    fn product(&mut self);
}

/// Nothing else is done.
impl Between for () {
    #[inline(always)]
    fn product(&mut self) {}
}

/// The products whose sums are the 18 candidates of an entry.
#[derive(Clone, Copy, Debug)]
pub struct Products<F> {
    /// y0, y1, y2
    pub y: [F; 3],
    /// a
    pub a: F,
    /// b
    pub b: F,
}

/// Turn k and rotation j of the candidates in a word of [`Row::top_words`].
pub fn address(word: usize) -> (usize, usize) {
    (word / 3, word % 3)
}

impl<F: SimdField> Products<F> {
    /// The products of one lane.
    #[inline(always)]
    pub fn lane(&self, lane: usize) -> Products<Fe> {
        Products { y: self.y.map(|y| y.lane(lane)), a: self.a.lane(lane), b: self.b.lane(lane) }
    }
}

/// The products of an entry around all vectors of centres of a round, by vector.
pub struct Row<'a, F: SimdField, const W: usize> {
    /// The centres.
    pub centres: &'a [Centre<F>; W],
    /// The entry.
    entry: &'a Entry<F>,
    /// The products.
    pub products: [Products<F>; W],
    /// βa and βb, for top words.
    rotated: [[F; 2]; W],
}

impl<'a, F: SimdField, const W: usize> Row<'a, F, W> {
    /// A row for these centres, whose products are to be computed.
    pub fn new(centres: &'a [Centre<F>; W], entry: &'a Entry<F>) -> Row<'a, F, W> {
        let zero = F::zeroed();
        let products = [Products { y: [zero; 3], a: zero, b: zero }; W];
        Row { centres, entry, products, rotated: [[zero; 2]; W] }
    }

    /// The entry's x.
    pub fn x(&self) -> Fe {
        self.entry.x
    }

    /// Computes the products of an entry; those for top words if `is_rotated`. `between` is called
    /// after each product.
    #[inline(always)]
    pub fn compute(&mut self, entry: &'a Entry<F>, q: &[F; W], is_rotated: bool, between: &mut impl Between) {
        self.entry = entry;
        for (w, q) in q.iter().enumerate() {
            let (centre, products, rotated) = (&self.centres[w], &mut self.products[w], &mut self.rotated[w]);
            products.b = centre.y.times_constant(&entry.y_2);
            between.product();
            let e0 = q.times_plus(&centre.e0, centre.g);
            between.product();
            let e1 = q.times_constant(&entry.e1);
            between.product();
            products.y[2] = e1.square();
            between.product();
            products.y[1] = e1.mul(e0);
            between.product();
            products.y[0] = e0.square_plus(centre.minus_g_2);
            between.product();
            products.a = F::sum(F::from_constant(&entry.minus_u), centre.a);
            if is_rotated {
                rotated[1] = centre.y.times_constant(&entry.beta_y_2);
                rotated[0] = F::sum(F::from_constant(&entry.minus_beta_u), centre.beta_a);
            }
            between.product();
        }
    }

    /// The approximate top words of all candidates `β^j·x(A ± λ^k·I)` around the centres of a vector,
    /// each at its [`address`]. Within [`SimdField::SLACK`] of the exact ones, modulo 2^64.
    #[inline(always)]
    pub fn top_words(&self, w: usize) -> [F::TopWords; 9] {
        let (products, rotated, centre) = (&self.products[w], &self.rotated[w], &self.centres[w]);
        let zero = F::top_words(0);
        let mut terms = [[zero; 3]; 3];
        for (term, y) in terms.iter_mut().zip(&products.y) {
            term[0] = F::top_words_of_products(&products.a, &products.b, y);
            term[1] = F::top_words_of_products(&rotated[0], &rotated[1], y);
        }
        let [centre_zero, centre_one] = centre.x_top_words;
        let [entry_zero, entry_one] = self.entry.x_top_words;
        terms[0][0] = F::sub_top_words(terms[0][0], centre_zero);
        terms[0][1] = F::sub_top_words(terms[0][1], centre_one);
        terms[1][0] = F::sub_top_words(terms[1][0], F::top_words(entry_zero));
        terms[1][1] = F::sub_top_words(terms[1][1], F::top_words(entry_one));
        for term in &mut terms {
            // β² is -1 - β.
            term[2] = F::sub_top_words(F::sub_top_words(zero, term[0]), term[1]);
        }
        let mut top_words = [zero; 9];
        for k in 0..3 {
            for j in 0..3 {
                let two = F::add_top_words(terms[0][j], terms[1][(j + k) % 3]);
                top_words[k * 3 + j] = F::add_top_words(two, terms[2][(j + 2 * k) % 3]);
            }
        }
        top_words
    }
}

impl<'a, F: SimdField> Row<'a, F, 1> {
    /// The row of one vector of centres. `q` is `2·xA/(z - u)`.
    #[inline(always)]
    pub fn of(centre: &'a Centre<F>, entry: &'a Entry<F>, q: F) -> Row<'a, F, 1> {
        let mut row = Row::new(std::array::from_ref(centre), entry);
        row.compute(entry, &[q], true, &mut ());
        row
    }
}

impl Products<Fe> {
    /// `β^j·x(A ± λ^k·I)`, exact and below p. `xi` is the entry's x.
    pub fn exact(&self, centre_x: Fe, xi: Fe, (k, sign, j): (usize, usize, usize)) -> Fe {
        let powers = [Fe::ONE, Fe::BETA, Fe::BETA.square()];
        let beta_power = |power: usize| powers[power % 3];
        let s = self.y[0].add(beta_power(k).mul(self.y[1])).add(beta_power(2 * k).mul(self.y[2]));
        let ab = if sign == 1 { self.a.sub(self.b) } else { self.a.add(self.b) };
        let x = ab.mul(s).sub(centre_x).sub(beta_power(k).mul(xi));
        x.mul(beta_power(j)).canonical()
    }
}
