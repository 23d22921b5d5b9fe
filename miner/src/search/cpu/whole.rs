//! The kernel that compares whole keys, for patterns about which the first 32 bits of a key say
//! little. It computes the eighteen x-coordinates of an entry in full and tests their texts.
//!
//! With the products y0, y1, y2, a and b of [`super::formula`]:
//!
//! ```text
//! s_k = y0 + β^k·y1 + β^2k·y2        x(A ± λ^k·I) = (a ± b)·s_k - xA - β^k·xi
//! ```
//!
//! `βx` takes a product, and `β²x = -x - βx`. In all, this takes 13 products more than the top
//! words need.

use super::field::Fe;
use super::filter::Filter;
use super::formula::{Centre, Products, Row, address};
use super::quick::{QuickTests, QuickWords};
use super::screen::{Marks, Place, Screen, Screened};
use super::simd::SimdField;
use super::table::{ENTRIES, Entry};
use super::text::{TextField, passes_a_test, passing};
use crate::pattern::TextTests;
use bytemuck::Zeroable;

/// `β^k·xi` of an entry for k = 0, 1, 2, the same in every lane.
#[derive(Clone, Copy)]
struct EntryPoints<F: SimdField>([F::Constant; 3]);

// SAFETY: `SimdField` requires it of its constants.
unsafe impl<F: SimdField> Zeroable for EntryPoints<F> {}

/// A screen that compares the whole keys of every entry.
pub struct WholeScreen<F: WholeField> {
    points: [EntryPoints<F>; ENTRIES],
    /// β
    pub beta: F::ConstantFactor,
    tables: F::Tables,
    /// Not zero once `points`, `beta` and `tables` are computed.
    is_ready: u32,
    /// The quick tests of the filter, if `has_quick` is not zero.
    pub quick: F::Quick,
    has_quick: u32,
    /// A bit for each slot of the screen whose entry has a key that may match.
    suspects: u64,
}

// SAFETY: every field is `Zeroable`.
unsafe impl<F: WholeField> Zeroable for WholeScreen<F> {}

/// A field type that can search for whole keys. The functions of that search are compiled once for
/// the processor, because they are too long to be inlined into the walk.
pub trait WholeField: TextField {
    /// Quick tests in the form that the processor's kernel reads.
    type Quick: Zeroable;

    /// Converts quick tests into the form [`WholeField::Quick`].
    fn quick(tests: &QuickTests) -> Self::Quick;

    /// Whether a candidate may match, by the quick tests. `false` is always right.
    fn may_pass(keys: &KeysOf<Self>, tests: &TextTests) -> bool;

    /// Calls [`KeysOf::marks`], compiled for the processor.
    fn marks_of(keys: &KeysOf<Self>, filter: &Filter) -> Marks;
}

/// The keys of an entry around a vector of centres, before they are computed.
#[derive(Clone, Copy)]
pub struct KeysOf<'a, F: WholeField> {
    /// The screen that compares them.
    pub screen: &'a WholeScreen<F>,
    /// The centres.
    pub centre: &'a Centre<F>,
    /// The entry's products.
    pub products: &'a Products<F>,
    /// The entry's index in the table.
    pub at: usize,
}

/// A field type whose keys are compared in words of 64 bits.
pub trait WordField: WholeField<Quick = QuickWords> {
    /// `a·b - c - d`. Each is a product, a constant, a difference or the x of a centre; one of a and b
    /// may be a sum of two of [`TextField::plus`].
    fn product_less(a: &Self, b: &Self, c: Self, d: Self) -> Self;

    /// `-a - b` for a result of [`WordField::product_less`] and a product with a prepared factor.
    fn minus_sum(a: Self, b: Self) -> Self;

    /// The number, a result of those or a product with a prepared factor, in words of 64 bits; and
    /// bits of the lanes in which it may be p or more, or wrong.
    fn loose_words(&self) -> ([Self::Word; 4], u8);

    /// The number in a lane of four words.
    fn lane_of(words: &[Self::Word; 4], lane: usize) -> Fe;
}

impl<F: WordField> KeysOf<'_, F> {
    /// [`WholeField::may_pass`] by words.
    #[inline(always)]
    pub fn may_pass_by_words(&self, tests: &TextTests) -> bool {
        let beta = &self.screen.beta;
        let factors = factors_of_keys(self.products, beta);
        for n in 0..6 {
            let keys = loose_keys(&factors, n, self.centre.x, self.turned(n / 2), beta);
            if passes(&self.screen.quick, tests, &keys) {
                return true;
            }
        }
        false
    }
}

/// The keys `β^j·x(A ± λ^k·I)` of the point `2k + sign`, for [`WordField::loose_words`]. `turned` is
/// `β^k·xi`.
#[inline(always)]
pub fn loose_keys<F: WordField>(
    (sum, difference, s): &(F, F, [F; 3]),
    n: usize,
    x: F,
    turned: F,
    beta: &F::ConstantFactor,
) -> [F; 3] {
    let first = F::product_less(if n.is_multiple_of(2) { sum } else { difference }, &s[n / 2], x, turned);
    let second = first.times_constant(beta);
    [first, second, F::minus_sum(first, second)]
}

/// Whether one of the keys passes the quick tests and a test of its text in some lane. A key that may
/// be p or more counts as passed.
#[inline(always)]
pub fn passes<F: WordField>(quick: &QuickWords, tests: &TextTests, keys: &[F; 3]) -> bool {
    let (one, two, three) = (keys[0].loose_words(), keys[1].loose_words(), keys[2].loose_words());
    let lanes = [quick.passing(&one.0), quick.passing(&two.0), quick.passing(&three.0)];
    let unsure = one.1 | two.1 | three.1;
    if unsure | lanes[0] | lanes[1] | lanes[2] == 0 {
        return false;
    }
    unsure != 0 || is_one::<F>(&[one.0, two.0, three.0], lanes, tests)
}

/// Whether one of the keys in these lanes passes a test of its text.
#[cold]
fn is_one<F: WordField>(words: &[[F::Word; 4]; 3], lanes: [u8; 3], tests: &TextTests) -> bool {
    let is_one = |(words, lanes): (&[F::Word; 4], u8)| {
        (0..F::LANES).any(|lane| lanes >> lane & 1 == 1 && passes_a_test(tests, F::lane_of(words, lane)))
    };
    words.iter().zip(lanes).any(is_one)
}

impl<F: WholeField + Screened> Screen<F> for WholeScreen<F> {
    const READS_TOP_WORDS: bool = false;

    fn begin(&mut self, filter: &Filter, plain: &[Entry<Fe>]) {
        self.has_quick = 0;
        if let Some(tests) = filter.quick_tests() {
            (self.quick, self.has_quick) = (F::quick(tests), 1);
        }
        if self.is_ready == 0 {
            self.beta = F::constant_factor(Fe::BETA);
            self.tables = F::tables();
            for (points, entry) in self.points.iter_mut().zip(plain) {
                let turned = entry.x.mul(Fe::BETA);
                points.0 = [entry.x, turned, turned.mul(Fe::BETA)].map(|x| F::constant(x.canonical()));
            }
            self.is_ready = 1;
        }
    }

    #[inline(always)]
    fn add<const W: usize>(&mut self, filter: &Filter, row: &Row<F, W>, place: Place) {
        for w in 0..W {
            let (screen, centre, products) = (&*self, &row.centres[w], &row.products[w]);
            let keys = KeysOf { screen, centre, products, at: place.entry };
            let is_suspect = match filter.text_tests() {
                Some(tests) if self.has_quick != 0 => F::may_pass(&keys, tests),
                _ => F::marks_of(&keys, filter) != [0; 9],
            };
            self.suspects |= u64::from(is_suspect) << (place.slot + w);
        }
    }

    #[inline(always)]
    fn take_suspects(&mut self, _: &Filter, _: bool) -> u64 {
        std::mem::take(&mut self.suspects)
    }

    #[inline(always)]
    fn marks(&self, filter: &Filter, centre: &Centre<F>, _: &Entry<F>, products: &Products<F>, place: Place) -> Marks {
        F::marks_of(&KeysOf { screen: self, centre, products, at: place.entry }, filter)
    }
}

impl<F: WholeField> KeysOf<'_, F> {
    /// β^k·xi of the entry.
    #[inline(always)]
    pub fn turned(&self, k: usize) -> F {
        F::from_constant(&self.screen.points[self.at].0[k]).0
    }

    /// The candidates that pass a test.
    #[inline(always)]
    pub fn marks(&self, filter: &Filter) -> Marks {
        let mut marks = [0; 9];
        let Some(tests) = filter.text_tests() else { return marks };
        let keys = self.reduced();
        for (word, mark) in marks.iter_mut().enumerate() {
            let (k, j) = address(word);
            let [sum, difference] = passing::<F>(tests, [keys[2 * k][j], keys[2 * k + 1][j]], &self.screen.tables);
            *mark = u16::from(sum) | u16::from(difference) << 8;
        }
        marks
    }

    /// The keys `β^j·x(A ± λ^k·I)`, each at `[2k + sign][j]`.
    ///
    /// A product is a chain of some 80 cycles. Each step is taken for all six points before the
    /// next, so that the processor has other products to work on.
    #[inline(always)]
    fn reduced(&self) -> [[F::Key; 3]; 6] {
        let (sum, difference, s) = factors_of_keys(self.products, &self.screen.beta);
        let mut points = [sum; 6];
        for k in 0..3 {
            points[2 * k] = sum.mul(s[k]);
            points[2 * k + 1] = difference.mul(s[k]);
        }
        let mut first = [sum.key(); 6];
        for n in 0..6 {
            first[n] = points[n].key_less(self.centre.x, self.turned(n / 2));
        }
        for n in 0..6 {
            points[n] = F::from_key(first[n]).times_constant(&self.screen.beta);
        }
        let mut keys = [[first[0]; 3]; 6];
        for n in 0..6 {
            let beta_x = points[n].key();
            keys[n] = [first[n], beta_x, F::key_of_negative(first[n], beta_x)];
        }
        keys
    }
}

/// The factors of an entry's points: `a + b`, `a - b`, and `y0 + β^k·y1 + β^2k·y2` for k = 0, 1, 2.
/// `beta` is β.
#[inline(always)]
pub fn factors_of_keys<F: TextField>(products: &Products<F>, beta: &F::ConstantFactor) -> (F, F, [F; 3]) {
    let Products { y: [y0, y1, y2], a, b, .. } = *products;
    // β² is -1 - β, and β⁴ is β.
    let turned = y1.sub(y2).times_constant(beta);
    let s = [F::plus(F::plus(y0, y1), y2), F::plus(y0.sub(y2), turned), y0.sub(y1).sub(turned)];
    (F::plus(a, b), a.sub(b), s)
}
