//! The screen of the vector kernels for many intervals. It first looks up every top word in the
//! filter's coarse bitmap. Words in filled buckets are collected, and looked up in the finer tables
//! later.

use super::filter::{COARSE_WORDS, Filter};
use super::formula::Row;
use super::screen::{LAG, Marks, Place, SLOTS, STEPS, Screen, Screened};
use super::table::Table;
use bytemuck::Zeroable;
use std::marker::PhantomData;

/// Slots of [`LAG`] entries, of two vectors of centres each.
pub const LAG_SLOTS: usize = LAG * 2;
/// The most slots between two calls of [`Screen::take_suspects`].
const MAX_SLOTS: usize = SLOTS + LAG_SLOTS;
/// The most top words of a slot.
const WORDS_OF_SLOT: usize = 16 * STEPS;
/// Room for the top words of all slots, and for the last vector store.
pub const ROOM: usize = WORDS_OF_SLOT * MAX_SLOTS + 16;
/// A field type with `2·LANES` top words of 32 bits in a vector.
pub trait VectorTopWords: Screened {
    /// Collects the top words in filled coarse buckets, behind the `count` words that were collected
    /// before. Returns the new count.
    fn collect(
        top_words: Self::TopWords,
        coarse: &[u32; COARSE_WORDS],
        collected: &mut [u32; ROOM],
        count: usize,
    ) -> usize;

    /// A word of [`Marks`]: the candidates with this top word.
    fn equal(top_words: Self::TopWords, word: u32) -> u16;

    /// Rotates `count` words to the right by `turn` bits, and moves those together that are in filled
    /// fine buckets. Writes their indices to `kept` and returns their number.
    #[inline(always)]
    fn keep_fine(
        words: &mut [u32; ROOM],
        (count, turn): (usize, u32),
        kept: &mut [u32; ROOM],
        filter: &Filter,
    ) -> usize {
        let mut number = 0;
        for at in 0..count {
            let word = words[at].rotate_right(turn);
            let bucket = word >> filter.place_bits();
            (words[number], kept[number]) = (word, at as u32);
            number += (filter.buckets()[bucket as usize / 32] >> (bucket % 32) & 1) as usize;
        }
        number
    }
}

/// A screen that looks up the top words of a vector with one gather.
#[derive(Debug)]
pub struct GatherScreen<F> {
    /// A copy of the filter's coarse bitmap, beside the other data, because every top word is
    /// looked up in it.
    coarse: [u32; COARSE_WORDS],
    collected: Collected,
    field: PhantomData<F>,
}

// SAFETY: all its values are `Zeroable`.
unsafe impl<F> Zeroable for GatherScreen<F> {}

impl<F: VectorTopWords> Screen<F> for GatherScreen<F> {
    fn begin(&mut self, filter: &Filter, _: &Table<F>) {
        self.coarse.copy_from_slice(filter.coarse());
        self.collected.clear();
    }

    #[inline(always)]
    fn add<const W: usize>(&mut self, _: &Filter, row: &Row<F, W>, _: Place) {
        for w in 0..W {
            for some in row.top_words(w) {
                let count = self.collected.count;
                self.collected.count = F::collect(some, &self.coarse, &mut self.collected.words, count);
            }
            self.collected.end_slot();
        }
    }

    #[inline(always)]
    fn take_suspects(&mut self, filter: &Filter, _: bool) -> u64 {
        self.collected.take_suspects::<F>(filter, 0) << LAG_SLOTS
    }

    #[inline(always)]
    fn marks(&self, _: &Filter, row: &Row<F, 1>, place: Place) -> Marks {
        self.collected.marks(row, place.slot - LAG_SLOTS)
    }
}

/// Top words in filled coarse buckets.
#[derive(Debug, Zeroable)]
pub struct Collected {
    /// The top words; `count` of them. A store writes a whole vector.
    pub words: [u32; ROOM],
    /// Their number.
    pub count: usize,
    /// `count` after each slot.
    ends: [u32; MAX_SLOTS],
    /// Number of slots filled so far.
    slots: usize,
    /// Indices of the words that are in filled fine buckets, too.
    kept: [u32; ROOM],
    /// The top words that may match, with their slots; `found_count` of them.
    found: [[u32; 2]; ROOM],
    found_count: usize,
}

impl Collected {
    /// Drops all words and slots.
    pub fn clear(&mut self) {
        (self.count, self.slots, self.found_count) = (0, 0, 0);
    }

    /// Drops the words of the slots so far, but keeps the number of slots.
    #[inline(always)]
    pub fn empty_slots(&mut self) {
        self.count = 0;
        self.ends = [0; MAX_SLOTS];
    }

    /// Begins the next slot: words added from now on belong to it.
    #[inline(always)]
    pub fn end_slot(&mut self) {
        self.ends[self.slots] = self.count as u32;
        self.slots += 1;
    }

    /// Bits of the slots with a word in a range of the filter, in the order in which they were
    /// filled. The words are rotated to the left by `turn` bits. Empties the collection.
    #[inline(always)]
    pub fn take_suspects<F: VectorTopWords>(&mut self, filter: &Filter, turn: u32) -> u64 {
        let kept = F::keep_fine(&mut self.words, (self.count, turn), &mut self.kept, filter);
        let (mut suspects, mut slot) = (0, 0);
        self.found_count = 0;
        for index in 0..kept {
            if !filter.is_marked(self.words[index]) {
                continue;
            }
            while self.ends[slot] <= self.kept[index] {
                slot += 1;
            }
            suspects |= 1 << slot;
            self.found[self.found_count] = [slot as u32, self.words[index]];
            self.found_count += 1;
        }
        (self.count, self.slots) = (0, 0);
        suspects
    }

    /// The candidates of an entry whose top words were found in this slot.
    #[inline(always)]
    pub fn marks<F: VectorTopWords>(&self, row: &Row<F, 1>, slot: usize) -> Marks {
        let top_words = row.top_words(0);
        let mut marks = [0; 9];
        for &[_, word] in self.found[..self.found_count].iter().filter(|found| found[0] == slot as u32) {
            for at in 0..9 {
                marks[at] |= F::equal(top_words[at], word);
            }
        }
        marks
    }
}
