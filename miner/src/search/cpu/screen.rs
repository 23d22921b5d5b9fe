//! Screens: first tests of the candidates of some entries.

use super::filter::Filter;
use super::formula::{Centre, Row};
use super::simd::SimdField;
use super::table::Table;
use bytemuck::Zeroable;

/// Marked candidates of an entry in up to eight lanes: bit `8·sign + lane` of word `3·turn +
/// rotation`.
pub type Marks = [u16; 9];

/// Slots of a [`Screen`]. Each is one entry around one vector of centres.
pub const SLOTS: usize = 32;

/// Calls of [`Screen::step`] for each slot.
pub const STEPS: usize = 9;

/// Number of entries by which a screen may be late in reporting a suspect.
pub const LAG: usize = 1;

/// The place of an entry: its index in the table, and its slot in the screen.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Index in the table.
    pub entry: usize,
    /// Number of the slot.
    pub slot: usize,
}

/// A first test of the candidates of up to [`SLOTS`] entries. Each method has its own type, so that
/// the inner loop is compiled for only one.
pub trait Screen<F: Screened>: Zeroable {
    /// Whether the screen reads top words, for which an entry takes one more product.
    const READS_TOP_WORDS: bool = true;

    /// Prepares for another filter. Called before the first slot with it.
    fn begin(&mut self, _filter: &Filter, _table: &Table<F>) {}

    /// Prepares for other centres. Called at the beginning of a round.
    #[inline(always)]
    fn begin_round(&mut self, _centres: &[Centre<F>]) {}

    /// Adds the candidates of an entry. `place` has the slot of the first vector. Slots are
    /// numbered from 0 and added in order.
    fn add<const W: usize>(&mut self, filter: &Filter, row: &Row<F, W>, place: Place);

    /// Continues the work that [`Screen::add`] has put off. Called [`STEPS`] times for each vector
    /// of an entry, vector by vector and in order. The calls are between the products, so that the
    /// processor does both at once.
    #[inline(always)]
    fn step(&mut self, _vector: usize, _step: usize) {}

    /// Returns bits of the slots in which a candidate may match, and empties the screen. No
    /// candidate of another slot matches. `is_last` marks the end of a round.
    fn take_suspects(&mut self, filter: &Filter, is_last: bool) -> u64;

    /// The candidates of an entry that may match. Unmarked candidates do not match. The entry is in
    /// a slot that [`Screen::take_suspects`] returned last.
    #[inline(always)]
    fn marks(&self, filter: &Filter, row: &Row<F, 1>, _place: Place) -> Marks {
        let top_words = row.top_words(0);
        let mut marks = F::marks(filter, &top_words);
        for (word, mark) in marks.iter_mut().enumerate() {
            let mut bits = *mark;
            while bits != 0 {
                let bit = bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let top = F::top_word(top_words[word], bit / 8 == 1, bit % 8);
                *mark &= !(u16::from(!filter.is_marked((top >> 32) as u32)) << bit);
            }
        }
        marks
    }
}

/// A screen for few intervals: compares every top word with every interval.
#[derive(Debug, Zeroable)]
pub struct CompareScreen(u64);

impl<F: Screened> Screen<F> for CompareScreen {
    #[inline(always)]
    fn add<const W: usize>(&mut self, filter: &Filter, row: &Row<F, W>, place: Place) {
        for w in 0..W {
            let top_words = row.top_words(w);
            let mut any = false;
            for &(first, last) in filter.intervals() {
                any |= F::is_one_within(&top_words, first, last.wrapping_sub(first));
            }
            self.0 |= u64::from(any) << (place.slot + w);
        }
    }

    #[inline(always)]
    fn take_suspects(&mut self, _: &Filter, _: bool) -> u64 {
        std::mem::take(&mut self.0)
    }
}

/// A screen that looks up each top word at once, and keeps one bit per slot.
#[derive(Debug, Zeroable)]
pub struct LookupScreen(u64);

impl<F: Screened> Screen<F> for LookupScreen {
    #[inline(always)]
    fn add<const W: usize>(&mut self, filter: &Filter, row: &Row<F, W>, place: Place) {
        for w in 0..W {
            let any = F::marks(filter, &row.top_words(w)) != [0; 9];
            self.0 |= u64::from(any) << (place.slot + w);
        }
    }

    #[inline(always)]
    fn take_suspects(&mut self, _: &Filter, _: bool) -> u64 {
        std::mem::take(&mut self.0)
    }
}

/// A field type with its screens.
pub trait Screened: SimdField {
    /// Whether the field has only one method of looking up top words, [`Screened::Loads`]. Then
    /// the inner loop is not compiled for cells and gathers.
    const HAS_ONE_LOOKUP: bool = false;

    /// Filters of at most this many intervals use [`Screened::Few`].
    const FEW_INTERVALS: usize;

    /// The screen for few intervals.
    type Few: Screen<Self>;

    /// The screen for intervals that fit into [`super::cells::CellTables`].
    type Cells: Screen<Self>;

    /// The screen for more intervals with [`super::filter::Lookup::Gathers`].
    type Gathers: Screen<Self>;

    /// The screen for more intervals with [`super::filter::Lookup::Loads`].
    type Loads: Screen<Self>;

    /// The screen that compares whole keys.
    type Whole: Screen<Self>;

    /// Whether the upper 32 bits of a top word are at least `first`, and by at most `width`.
    fn is_one_within(top_words: &[Self::TopWords; 9], first: u32, width: u32) -> bool;

    /// The candidates that may match, by their top words. Unmarked candidates do not match.
    fn marks(filter: &Filter, top_words: &[Self::TopWords; 9]) -> Marks;
}
