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
use super::formula::{Centre, Products, Row};
use super::quick::{QuickTests, QuickWords};
use super::screen::{Marks, Place, Screen, Screened};
use super::simd::{Job, SimdField};
use super::table::{ENTRIES, Table};
use super::text::{Lanes, passes_a_test, passing};
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
    /// Tables of the checksum.
    pub tables: <F::Word as Lanes>::Tables,
    /// Not zero once `points`, `beta` and `tables` are computed.
    is_ready: u32,
    quick: F::Quick,
    has_quick: u32,
    /// A bit for each slot of the screen whose entry has a key that may match.
    suspects: u64,
}

// SAFETY: every field is `Zeroable`.
unsafe impl<F: WholeField> Zeroable for WholeScreen<F> {}

/// A field type that can search for whole keys.
pub trait WholeField: SimdField {
    /// A word of 64 bits of a key in each lane.
    type Word: Lanes;

    /// Quick tests in the form that the processor's kernel reads.
    type Quick: Zeroable;

    /// Converts quick tests into the form [`WholeField::Quick`].
    fn quick(tests: &QuickTests) -> Self::Quick;

    /// Whether one of an entry's candidates may match, by the tests of texts, of which quick tests are
    /// made first if there are some. `false` is always right.
    fn may_pass(keys: &KeysOf<Self>, tests: &TextTests) -> bool;
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

impl<F: WholeField> KeysOf<'_, F> {
    /// β^k·xi of the entry.
    #[inline(always)]
    pub fn turned(&self, k: usize) -> F {
        F::from_constant(&self.screen.points[self.at].0[k]).0
    }

    /// The quick tests, if there are some.
    #[inline(always)]
    pub fn quick(&self) -> Option<&F::Quick> {
        (self.screen.has_quick != 0).then_some(&self.screen.quick)
    }
}

/// Calls [`WholeField::may_pass`], which is too long to be inlined into the walk.
struct MayPass<'a, F: WholeField> {
    keys: KeysOf<'a, F>,
    tests: &'a TextTests,
}

impl<F: WholeField> Job for MayPass<'_, F> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        F::may_pass(&self.keys, self.tests)
    }
}

/// A field type whose keys are compared in words of 64 bits.
pub trait WordField: WholeField<Quick = QuickWords> {
    /// `a + b`. At most one of the two is a sum or a product with a prepared factor. The result may
    /// only be multiplied, or added once more.
    fn plus(a: Self, b: Self) -> Self;

    /// `a·b - c - d`. Each is a product, a constant, a difference or the x of a centre; one of a and b
    /// may be a sum of two of [`WordField::plus`].
    fn product_less(a: &Self, b: &Self, c: Self, d: Self) -> Self;

    /// `-a - b` for a result of [`WordField::product_less`] and a product with a prepared factor.
    fn minus_sum(a: Self, b: Self) -> Self;

    /// The number, a result of those or a product with a prepared factor, in words of 64 bits; and
    /// bits of the lanes in which it may be p or more, or wrong.
    fn loose_words(&self) -> ([Self::Word; 4], u8);

    /// Bits of the lanes in which a part of 16 bits is the same in a word and in the value.
    fn have_equal_parts(words: &[Self::Word; 4], values: &[u64; 4]) -> u8;

    /// The number in a lane of four words.
    fn lane_of(words: &[Self::Word; 4], lane: usize) -> [u64; 4];
}

/// [`WholeField::may_pass`] by words.
#[inline(always)]
pub fn may_pass_by_words<F: WordField>(keys: &KeysOf<F>, tests: &TextTests) -> bool {
    let beta = &keys.screen.beta;
    let factors = factors_of_keys(keys.products, beta);
    for n in 0..6 {
        let points = loose_keys(&factors, n, keys.centre.x, keys.turned(n / 2), beta);
        if passes(keys.quick(), tests, &points, &keys.screen.tables) {
            return true;
        }
    }
    false
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
pub fn passes<F: WordField>(
    quick: Option<&QuickWords>,
    tests: &TextTests,
    keys: &[F; 3],
    tables: &<F::Word as Lanes>::Tables,
) -> bool {
    let (one, two, three) = (keys[0].loose_words(), keys[1].loose_words(), keys[2].loose_words());
    let unsure = one.1 | two.1 | three.1;
    let Some(quick) = quick else {
        let [first, second] = passing(tests, [&one.0, &two.0], tables);
        return unsure | first | second | passing(tests, [&three.0; 2], tables)[0] != 0;
    };
    let lanes = [quick.passing::<F>(&one.0), quick.passing::<F>(&two.0), quick.passing::<F>(&three.0)];
    if unsure | lanes[0] | lanes[1] | lanes[2] == 0 {
        return false;
    }
    unsure != 0 || is_one::<F>(&[one.0, two.0, three.0], lanes, tests)
}

/// Whether one of the keys in these lanes passes a test of its text.
#[cold]
fn is_one<F: WordField>(words: &[[F::Word; 4]; 3], lanes: [u8; 3], tests: &TextTests) -> bool {
    let is_one = |(words, lanes): (&[F::Word; 4], u8)| {
        (0..F::LANES).any(|lane| lanes >> lane & 1 == 1 && passes_a_test(tests, &F::lane_of(words, lane)))
    };
    words.iter().zip(lanes).any(is_one)
}

impl<F: WholeField + Screened> Screen<F> for WholeScreen<F> {
    const READS_TOP_WORDS: bool = false;

    fn begin(&mut self, filter: &Filter, table: &Table<F>) {
        self.has_quick = 0;
        if let Some(tests) = filter.quick_tests() {
            (self.quick, self.has_quick) = (F::quick(tests), 1);
        }
        if self.is_ready == 0 {
            self.beta = F::constant_factor(Fe::BETA);
            self.tables = F::Word::tables();
            for (points, entry) in self.points.iter_mut().zip(&table.entries.0) {
                points.0 = turned(entry.x).map(F::constant);
            }
            self.is_ready = 1;
        }
    }

    #[inline(always)]
    fn add<const W: usize>(&mut self, filter: &Filter, row: &Row<F, W>, place: Place) {
        let Some(tests) = filter.text_tests() else { return };
        for w in 0..W {
            let keys = KeysOf { screen: self, centre: &row.centres[w], products: &row.products[w], at: place.entry };
            let is_suspect = F::apart(MayPass { keys, tests });
            self.suspects |= u64::from(is_suspect) << (place.slot + w);
        }
    }

    #[inline(always)]
    fn take_suspects(&mut self, _: &Filter, _: bool) -> u64 {
        std::mem::take(&mut self.suspects)
    }

    /// One lane after the other: there are few suspects.
    #[inline(always)]
    fn marks(&self, filter: &Filter, row: &Row<F, 1>, _: Place) -> Marks {
        let mut marks = [0; 9];
        let Some(tests) = filter.text_tests() else { return marks };
        for lane in 0..F::LANES {
            mark_lane(&row.products[0].lane(lane), row.centres[0].x.lane(lane), row.x(), tests, lane, &mut marks);
        }
        marks
    }
}

/// Marks the candidates of an entry around one centre whose texts pass a test, or may be wrong. `x` is
/// the centre's, `xi` the entry's.
#[cold]
#[inline(never)]
fn mark_lane(products: &Products<Fe>, x: Fe, xi: Fe, tests: &TextTests, lane: usize, marks: &mut Marks) {
    let factors = factors_of_keys(products, &Fe::BETA);
    let turned = turned(xi);
    for n in 0..6 {
        for (j, key) in loose_keys(&factors, n, x, turned[n / 2], &Fe::BETA).iter().enumerate() {
            let (words, unsure) = key.loose_words();
            let is_marked = unsure != 0 || passes_a_test(tests, &words);
            marks[n / 2 * 3 + j] |= u16::from(is_marked) << (8 * (n % 2) + lane);
        }
    }
}

/// `β^k·xi` for k = 0, 1, 2, below p.
fn turned(xi: Fe) -> [Fe; 3] {
    let turned = xi.mul(Fe::BETA);
    [xi, turned, turned.mul(Fe::BETA)].map(Fe::canonical)
}

/// The factors of an entry's points: `a + b`, `a - b`, and `y0 + β^k·y1 + β^2k·y2` for k = 0, 1, 2.
/// `beta` is β.
#[inline(always)]
pub fn factors_of_keys<F: WordField>(products: &Products<F>, beta: &F::ConstantFactor) -> (F, F, [F; 3]) {
    let Products { y: [y0, y1, y2], a, b, .. } = *products;
    // β² is -1 - β, and β⁴ is β.
    let turned = y1.sub(y2).times_constant(beta);
    let s = [F::plus(F::plus(y0, y1), y2), F::plus(y0.sub(y2), turned), y0.sub(y1).sub(turned)];
    (F::plus(a, b), a.sub(b), s)
}
