//! The lookup of the IFMA kernel by single loads, for processors on which gathers are slow.
//!
//! The contract of every `unsafe` is that of the module `ifma`.

use super::VECTORS;
use super::field::Fe8;
use crate::search::cpu::filter::{COARSE_BITS, COARSE_WORDS, Filter};
use crate::search::cpu::formula::Row;
use crate::search::cpu::lookup::{Collected, ROOM};
use crate::search::cpu::screen::{Marks, Place, STEPS, Screen};
use crate::search::cpu::table::Table;
use bytemuck::Zeroable;
use std::arch::asm;
use std::arch::x86_64::*;

/// Number of bits by which top words are rotated to the left. Then the lowest five bits are a bit's
/// place in a word of the coarse bitmap, and the bits above are the word's index.
const TURN: u32 = COARSE_BITS;

/// A screen that looks up each top word with a single load, while the products of the next entry
/// are computed. The vector multiplications leave the processor's scalar units idle.
#[derive(Debug, Zeroable)]
pub struct LoadScreen {
    /// A copy of the filter's coarse bitmap, beside the other data, because every top word is
    /// looked up in it.
    coarse: [u32; COARSE_WORDS],
    /// The top words of the entry before, rotated by [`TURN`].
    top_words: [[[u32; 16]; STEPS]; VECTORS],
    collected: Collected,
    /// Not zero before the first entry of a round, when `top_words` are those of another round.
    is_fresh: u32,
}

impl Screen<Fe8> for LoadScreen {
    fn begin(&mut self, filter: &Filter, _: &Table<Fe8>) {
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
                unsafe { _mm512_storeu_si512(kept.as_mut_ptr().cast(), _mm512_rol_epi32::<{ TURN as i32 }>(some)) }
            }
        }
    }

    #[inline(always)]
    fn take_suspects(&mut self, filter: &Filter, is_last: bool) -> u64 {
        if is_last {
            // The last entry of a round has none after it.
            for (vector, step) in (0..VECTORS).flat_map(|vector| (0..STEPS).map(move |step| (vector, step))) {
                self.step(vector, step);
            }
            self.is_fresh = 1;
        }
        self.collected.take_suspects::<Fe8>(filter, TURN)
    }

    #[inline(always)]
    fn marks(&self, _: &Filter, row: &Row<Fe8, 1>, place: Place) -> Marks {
        self.collected.marks(row, place.slot)
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
            // `count` is below ROOM as long as no more than MAX_SLOTS are filled. Nothing else is
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
