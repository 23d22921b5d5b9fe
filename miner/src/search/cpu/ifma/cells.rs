//! The screen of the IFMA kernel for some dozen intervals. It looks every top word up in tables
//! that fit into registers, so it reads no memory.
//!
//! The contract of every `unsafe` is that of the module `ifma`.

use super::fe8::Fe8;
use crate::search::cpu::cells::{CELL_SHIFT, MOST_TABLES, SLOTS_OF_TABLE};
use crate::search::cpu::field::Fe;
use crate::search::cpu::filter::Filter;
use crate::search::cpu::formula::Row;
use crate::search::cpu::screen::{Place, Screen};
use crate::search::cpu::table::Entry;
use bytemuck::Zeroable;
use std::arch::x86_64::*;

/// A table for vectors of 32 numbers of 16 bits.
#[derive(Clone, Copy, Debug, Zeroable)]
struct Table {
    slots: [[u16; SLOTS_OF_TABLE / 2]; 2],
    /// The shift, in every lane.
    shift: [u16; 32],
}

/// A screen that looks every top word up in the filter's cells.
#[derive(Debug, Zeroable)]
pub struct CellScreen {
    tables: [Table; MOST_TABLES],
    /// Tables in use.
    count: usize,
    /// Bits of the slots with a top word in a cell.
    suspects: u64,
}

impl Screen<Fe8> for CellScreen {
    fn begin(&mut self, filter: &Filter, _: &[Entry<Fe>]) {
        let Some(cells) = filter.cells() else { return };
        self.count = cells.tables().len();
        for (table, cells) in self.tables.iter_mut().zip(cells.tables()) {
            table.shift = [cells.shift; 32];
            table.slots[0].copy_from_slice(&cells.slots[..32]);
            table.slots[1].copy_from_slice(&cells.slots[32..]);
        }
    }

    #[inline(always)]
    fn add<const W: usize>(&mut self, _: &Filter, row: &Row<Fe8, W>, place: Place) {
        for w in 0..W {
            let top_words = row.top_words(w);
            let passes = match self.count {
                1 => self.passes::<1>(&top_words),
                2 => self.passes::<2>(&top_words),
                _ => self.passes::<MOST_TABLES>(&top_words),
            };
            self.suspects |= u64::from(passes) << (place.slot + w);
        }
    }

    #[inline(always)]
    fn take_suspects(&mut self, _: &Filter, _: bool) -> u64 {
        std::mem::take(&mut self.suspects)
    }
}

impl CellScreen {
    /// Whether a top word is in a cell of the first `COUNT` tables.
    #[inline(always)]
    fn passes<const COUNT: usize>(&self, top_words: &[__m512i; 9]) -> bool {
        // SAFETY: the contract above; the arrays are 64 readable bytes each.
        unsafe {
            let (high_halves, low_halves) = (halves(1), halves(0));
            let mut unlike = u32::MAX;
            for pair in 0..5 {
                let (one, other) = (top_words[2 * pair], top_words[(2 * pair + 1).min(8)]);
                let high = _mm512_permutex2var_epi16(one, high_halves, other);
                let low = _mm512_permutex2var_epi16(one, low_halves, other);
                let last = _mm512_srli_epi16::<CELL_SHIFT>(low);
                for table in &self.tables[..COUNT] {
                    let shift = _mm512_loadu_si512(table.shift.as_ptr().cast());
                    let place = _mm512_xor_si512(last, _mm512_srlv_epi16(high, shift));
                    let [first, second] = [&table.slots[0], &table.slots[1]];
                    let found = _mm512_permutex2var_epi16(
                        _mm512_loadu_si512(first.as_ptr().cast()),
                        place,
                        _mm512_loadu_si512(second.as_ptr().cast()),
                    );
                    unlike = _mm512_mask_cmpneq_epi16_mask(unlike, found, high);
                }
            }
            unlike != u32::MAX
        }
    }
}

/// Indices of the lower or the upper halves of two vectors of 32-bit numbers.
#[inline(always)]
fn halves(upper: u16) -> __m512i {
    let mut indices = [0u16; 32];
    for (at, index) in indices.iter_mut().enumerate() {
        *index = 2 * at as u16 + upper;
    }
    // SAFETY: the contract above; the array is 64 readable bytes.
    unsafe { _mm512_loadu_si512(indices.as_ptr().cast()) }
}
