//! The screens of the IFMA kernel for many intervals. Every top word is first looked up in the
//! filter's coarse bitmap, by one of two methods. Words in filled buckets are collected, and looked
//! up in the finer tables later.
//!
//! The contract of every `unsafe` is that of the module `ifma`.

use super::VECTORS;
use super::field::Fe8;
use super::marks::in_buckets;
use crate::search::cpu::field::Fe;
use crate::search::cpu::filter::{COARSE_BITS, COARSE_WORDS, Filter};
use crate::search::cpu::formula::{Centre, Products, Rotated, Row};
use crate::search::cpu::screen::{LAG, Marks, Place, SLOTS, STEPS, Screen};
use crate::search::cpu::table::Entry;
use bytemuck::Zeroable;
use std::arch::asm;
use std::arch::x86_64::*;

/// Slots of [`LAG`] entries.
const LAG_SLOTS: usize = LAG * VECTORS;
/// The most slots between two calls of [`Screen::take_suspects`].
const MOST_SLOTS: usize = SLOTS + LAG_SLOTS;
/// Top words of a slot.
const WORDS_OF_SLOT: usize = 16 * STEPS;
/// Room for the top words of all slots, and for the last vector store.
const ROOM: usize = WORDS_OF_SLOT * MOST_SLOTS + 16;
/// Number of bits by which top words are rotated to the left. Then the lowest five bits are a bit's
/// place in a word of the coarse bitmap, and the bits above are the word's index.
const TURN: i32 = COARSE_BITS as i32;

/// A screen that looks up sixteen top words with one gather.
#[derive(Debug, Zeroable)]
pub struct GatherScreen {
    /// A copy of the filter's coarse bitmap, beside the other data, because every top word is
    /// looked up in it.
    coarse: [u32; COARSE_WORDS],
    collected: Collected,
}

impl Screen<Fe8> for GatherScreen {
    fn begin(&mut self, filter: &Filter, _: &[Entry<Fe>]) {
        self.coarse.copy_from_slice(filter.coarse());
        self.collected.clear();
    }

    #[inline(always)]
    fn add<const W: usize>(&mut self, _: &Filter, row: &Row<Fe8, W>, _: Place) {
        for w in 0..W {
            for some in row.top_words(w) {
                self.collected.add(some, in_buckets(some, &self.coarse));
            }
            self.collected.end_slot();
        }
    }

    #[inline(always)]
    fn take_suspects(&mut self, filter: &Filter, _: bool) -> u64 {
        self.collected.take_suspects(filter) << LAG_SLOTS
    }

    #[inline(always)]
    fn marks(
        &self,
        _: &Filter,
        centre: &Centre<Fe8>,
        entry: &Entry<Fe8>,
        products: &Products<Fe8>,
        place: Place,
    ) -> Marks {
        self.collected.marks(centre, entry, products, place.slot - LAG_SLOTS)
    }
}

/// A screen that looks up each top word with a single load, while the products of the next entry
/// are computed. The vector multiplications leave the processor's scalar units idle.
#[derive(Debug, Zeroable)]
pub struct LoadScreen {
    /// A copy of the filter's coarse bitmap, as in [`GatherScreen`].
    coarse: [u32; COARSE_WORDS],
    /// The top words of the entry before, rotated by [`TURN`].
    top_words: [[[u32; 16]; STEPS]; VECTORS],
    collected: Collected,
    /// Not zero before the first entry of a round, when `top_words` are those of another round.
    is_fresh: u32,
}

impl Screen<Fe8> for LoadScreen {
    fn begin(&mut self, filter: &Filter, _: &[Entry<Fe>]) {
        self.coarse.copy_from_slice(filter.coarse());
        self.collected.clear();
        self.is_fresh = 1;
    }

    #[inline(always)]
    fn step(&mut self, vector: usize, step: usize) {
        let count = self.collected.count;
        self.collected.count = look_up(&self.top_words[vector][step], &self.coarse, &mut self.collected.words, count);
        if step == STEPS - 1 {
            self.collected.end_slot();
        }
    }

    #[inline(always)]
    fn add<const W: usize>(&mut self, _: &Filter, row: &Row<Fe8, W>, _: Place) {
        if self.is_fresh != 0 {
            self.collected.empty_slots();
            self.is_fresh = 0;
        }
        for w in 0..W {
            for (kept, some) in self.top_words[w].iter_mut().zip(row.top_words(w)) {
                // SAFETY: the contract above; the array is 64 writable bytes.
                unsafe { _mm512_storeu_si512(kept.as_mut_ptr().cast(), _mm512_rol_epi32::<TURN>(some)) }
            }
        }
    }

    #[inline(always)]
    fn take_suspects(&mut self, filter: &Filter, is_last: bool) -> u64 {
        if is_last {
            self.finish();
        }
        self.collected.take_suspects(filter)
    }

    #[inline(always)]
    fn marks(
        &self,
        _: &Filter,
        centre: &Centre<Fe8>,
        entry: &Entry<Fe8>,
        products: &Products<Fe8>,
        place: Place,
    ) -> Marks {
        self.collected.marks(centre, entry, products, place.slot)
    }
}

impl LoadScreen {
    /// Looks up the top words of the last entry of a round.
    #[inline(never)]
    fn finish(&mut self) {
        for vector in 0..VECTORS {
            for step in 0..STEPS {
                self.step(vector, step);
            }
        }
        self.is_fresh = 1;
    }
}

/// Collects those of sixteen rotated top words that are in filled coarse buckets. `count` words
/// were collected before. Returns the new count.
///
/// Written in assembly, because the compiler takes half as many instructions again, and keeps fewer
/// numbers of the products in registers.
#[inline(always)]
fn look_up(top_words: &[u32; 16], coarse: &[u32; COARSE_WORDS], collected: &mut [u32; ROOM], count: usize) -> usize {
    let mut count = count;
    macro_rules! all {
        ($($at:literal)*) => {
            // SAFETY: the contract above. Each `pair` is two of the sixteen top words. An index has
            // COARSE_BITS - 5 bits, so it is inside the bitmap. A slot has 144 top words, so
            // `count` is below ROOM as long as no more than MOST_SLOTS are filled. Nothing else is
            // written.
            unsafe {
                asm!(
                    $(
                        concat!("mov {pair}, qword ptr [{words} + 8*", $at, "]"),
                        "bextr {one:e}, {pair:e}, {low:e}",
                        "bextr {other}, {pair}, {high}",
                        "mov {one:e}, dword ptr [{coarse} + 4*{one}]",
                        "mov {other:e}, dword ptr [{coarse} + 4*{other}]",
                        "mov dword ptr [{collected} + 4*{count}], {pair:e}",
                        "bt {one:e}, {pair:e}",
                        "adc {count}, 0",
                        "shr {pair}, 32",
                        "mov dword ptr [{collected} + 4*{count}], {pair:e}",
                        "bt {other:e}, {pair:e}",
                        "adc {count}, 0",
                    )*
                    words = in(reg) top_words.as_ptr(),
                    coarse = in(reg) coarse.as_ptr(),
                    collected = in(reg) collected.as_mut_ptr(),
                    low = in(reg) u64::from(COARSE_BITS - 5) << 8 | 5,
                    high = in(reg) u64::from(COARSE_BITS - 5) << 8 | 37,
                    one = out(reg) _,
                    other = out(reg) _,
                    pair = out(reg) _,
                    count = inout(reg) count,
                    options(nostack),
                )
            }
        };
    }
    all!(0 1 2 3 4 5 6 7);
    count
}

/// Top words in filled coarse buckets.
#[derive(Debug, Zeroable)]
struct Collected {
    /// The top words, rotated by [`TURN`]; `count` of them. A store writes a whole vector.
    words: [u32; ROOM],
    count: usize,
    /// `count` after each slot.
    ends: [u32; MOST_SLOTS],
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
    fn clear(&mut self) {
        (self.count, self.slots, self.found_count) = (0, 0, 0);
    }

    /// Drops the words of the slots so far, but keeps the number of slots.
    #[inline(always)]
    fn empty_slots(&mut self) {
        self.count = 0;
        self.ends = [0; MOST_SLOTS];
    }

    /// Adds the marked ones of sixteen top words.
    #[inline(always)]
    fn add(&mut self, some: __m512i, marked: u16) {
        // SAFETY: the contract above; at most 144 top words a slot come before, so 16 more have
        // room.
        unsafe {
            let together = _mm512_maskz_compress_epi32(marked, _mm512_rol_epi32::<TURN>(some));
            _mm512_storeu_si512(self.words.as_mut_ptr().add(self.count).cast(), together);
        }
        self.count += marked.count_ones() as usize;
    }

    /// Begins the next slot: words added from now on belong to it.
    #[inline(always)]
    fn end_slot(&mut self) {
        self.ends[self.slots] = self.count as u32;
        self.slots += 1;
    }

    /// Bits of the slots with a word in a range of the filter, in the order in which they were
    /// filled. Empties the collection.
    #[inline(always)]
    fn take_suspects(&mut self, filter: &Filter) -> u64 {
        // First, moves the words in filled fine buckets together in place, and keeps their indices.
        let (count, mut at, mut kept) = (self.count, 0, 0);
        while at < count {
            // SAFETY: the contract above; both arrays have room for 16 beyond any count, and writes
            // stay behind reads.
            unsafe {
                let some = _mm512_loadu_si512(self.words.as_ptr().add(at).cast());
                let some = _mm512_ror_epi32::<TURN>(some);
                let filled = in_fine_buckets(some, valid(count - at), filter);
                let places = _mm512_add_epi32(
                    _mm512_set1_epi32(at as i32),
                    _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                );
                let (some, places) =
                    (_mm512_maskz_compress_epi32(filled, some), _mm512_maskz_compress_epi32(filled, places));
                _mm512_storeu_si512(self.words.as_mut_ptr().add(kept).cast(), some);
                _mm512_storeu_si512(self.kept.as_mut_ptr().add(kept).cast(), places);
                kept += filled.count_ones() as usize;
            }
            at += 16;
        }
        let (mut suspects, mut slot) = (0, 0);
        (self.found_count, at) = (0, 0);
        while at < kept {
            // SAFETY: as above.
            let some = unsafe { _mm512_loadu_si512(self.words.as_ptr().add(at).cast()) };
            let mut found = in_ranges(some, valid(kept - at), filter);
            while found != 0 {
                let index = at + found.trailing_zeros() as usize;
                found &= found - 1;
                while self.ends[slot] <= self.kept[index] {
                    slot += 1;
                }
                suspects |= 1 << slot;
                self.found[self.found_count] = [slot as u32, self.words[index]];
                self.found_count += 1;
            }
            at += 16;
        }
        (self.count, self.slots) = (0, 0);
        suspects
    }

    /// The candidates of an entry whose top words were found in this slot.
    #[inline(always)]
    fn marks(&self, centre: &Centre<Fe8>, entry: &Entry<Fe8>, products: &Products<Fe8>, slot: usize) -> Marks {
        let top_words = products.top_words(&Rotated::new(centre, entry), centre, entry);
        let mut marks = [0; 9];
        for &[_, word] in self.found[..self.found_count].iter().filter(|found| found[0] == slot as u32) {
            for at in 0..9 {
                // SAFETY: the contract above.
                marks[at] |= unsafe { _mm512_cmpeq_epi32_mask(top_words[at], _mm512_set1_epi32(word as i32)) };
            }
        }
        marks
    }
}

/// Bits of the first `count` of sixteen words, or of all if `count` is larger.
#[inline(always)]
fn valid(count: usize) -> u16 {
    if count < 16 { (1 << count) - 1 } else { u16::MAX }
}

/// Bits of the valid top words in filled fine buckets.
#[inline(always)]
fn in_fine_buckets(top_words: __m512i, valid: u16, filter: &Filter) -> u16 {
    let buckets = filter.buckets();
    // SAFETY: the contract above; there is a bit for every bucket, so every word that is gathered
    // is one of these.
    unsafe {
        let bucket = _mm512_srl_epi32(top_words, _mm_cvtsi32_si128(filter.place_bits() as i32));
        let words = _mm512_i32gather_epi32::<4>(_mm512_srli_epi32::<5>(bucket), buckets.as_ptr().cast());
        _mm512_mask_test_epi32_mask(valid, _mm512_rorv_epi32(words, bucket), _mm512_set1_epi32(1))
    }
}

/// Bits of the valid top words in their bucket's ranges of places. All valid ones are in filled
/// buckets.
#[inline(always)]
fn in_ranges(top_words: __m512i, valid: u16, filter: &Filter) -> u16 {
    let (buckets, ranks, [one, two]) = (filter.buckets(), filter.ranks(), filter.places());
    let mut found = 0;
    // SAFETY: the contract above; a valid lane's bucket has its bit set, so its rank is below the
    // number of set bits, which is how many ranges there are. No other lane is gathered.
    unsafe {
        let zero = _mm512_setzero_si512();
        let bucket = _mm512_srl_epi32(top_words, _mm_cvtsi32_si128(filter.place_bits() as i32));
        let bit = _mm512_and_si512(bucket, _mm512_set1_epi32(31));
        let below = _mm512_sub_epi32(_mm512_sllv_epi32(_mm512_set1_epi32(1), bit), _mm512_set1_epi32(1));
        let word = _mm512_srli_epi32::<5>(bucket);
        let words = _mm512_mask_i32gather_epi32::<4>(zero, valid, word, buckets.as_ptr().cast());
        let rank = _mm512_mask_i32gather_epi32::<4>(zero, valid, word, ranks.as_ptr().cast());
        let rank = _mm512_add_epi32(rank, _mm512_popcnt_epi32(_mm512_and_si512(words, below)));
        let place = _mm512_and_si512(top_words, _mm512_set1_epi32((1 << filter.place_bits()) - 1));
        for places in [one, two] {
            let range = _mm512_mask_i32gather_epi32::<4>(zero, valid, rank, places.as_ptr().cast());
            let begun = _mm512_mask_cmple_epu32_mask(valid, _mm512_srli_epi32::<16>(range), place);
            let last = _mm512_and_si512(range, _mm512_set1_epi32(0xffff));
            found |= _mm512_mask_cmple_epu32_mask(begun, place, last);
        }
    }
    found
}
