//! A few dozen intervals as a set of cells that fits into vector registers.
//!
//! A **cell** is a value of the upper 22 bits of a top word. Its `high` is the upper 16 of these
//! bits, its `middle` the lower 16. A cell has one place in each table of 64 slots, and is kept in
//! one of them:
//!
//! ```text
//! place = (middle ^ high >> shift) mod 64        slots[place] = high
//! ```
//!
//! The place and the content of its slot together determine all bits of the cell, so no other cell
//! passes.

/// Number of lower bits that do not belong to the cell, of the 32 bits of a top word. With fewer,
/// the 16 bits of a slot and the place in a table would not determine the cell.
pub const CELL_SHIFT: u32 = 10;
/// Slots of a table: the 16-bit numbers of the two vectors that one instruction looks up in.
pub const SLOTS_OF_TABLE: usize = 64;
/// The most tables.
pub const MAX_TABLES: usize = 3;
/// Number of shifts that are tried, from 0 on. With a larger shift, the shifted number would have
/// fewer than six bits.
const SHIFTS: u16 = 11;
/// The most cells: with more, three tables are rarely enough.
const MAX_CELLS: usize = 160;

/// One table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CellTable {
    /// Number of bits by which the upper 16 bits are shifted to the right for a cell's place.
    pub shift: u16,
    /// The upper 16 bits of the cell at each place.
    pub slots: [u16; SLOTS_OF_TABLE],
}

/// One to three tables. A word passes if it passes one of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CellTables(Vec<CellTable>);

impl CellTables {
    /// The cells of intervals of the upper 32 bits of top words, both ends included. `None` if there are
    /// no intervals, or too many cells.
    pub fn new(intervals: &[(u32, u32)]) -> Option<CellTables> {
        let mut cells = Vec::new();
        for &(first, last) in intervals {
            let (first, last) = (first >> CELL_SHIFT, last >> CELL_SHIFT);
            let first = cells.last().map_or(first, |&newest: &u32| first.max(newest + 1));
            cells.extend((first..=last).take(MAX_CELLS + 1 - cells.len()));
            if cells.len() > MAX_CELLS {
                return None;
            }
        }
        if cells.is_empty() {
            return None;
        }
        let shifts = || 0..SHIFTS;
        let one = shifts().map(|a| vec![a]);
        let two = shifts().flat_map(|a| (a + 1..SHIFTS).map(move |b| vec![a, b]));
        let three = shifts().map(|a| vec![a, (a + 3) % SHIFTS, (a + 7) % SHIFTS]);
        one.chain(two).chain(three).find_map(|shifts| placed(&cells, &shifts)).map(CellTables)
    }

    /// The tables.
    pub fn tables(&self) -> &[CellTable] {
        &self.0
    }
}

/// Tables with these shifts that hold all cells; `None` if some cell finds no place.
fn placed(cells: &[u32], shifts: &[u16]) -> Option<Vec<CellTable>> {
    let mut owners = vec![[None; SLOTS_OF_TABLE]; shifts.len()];
    for &cell in cells {
        let mut seen = vec![[false; SLOTS_OF_TABLE]; shifts.len()];
        if !place(cell, shifts, &mut owners, &mut seen) {
            return None;
        }
    }
    let slots = |owners: [Option<u32>; SLOTS_OF_TABLE]| owners.map(|owner| high(owner.unwrap_or(cells[0])));
    let table = |(owners, &shift)| CellTable { shift, slots: slots(owners) };
    Some(owners.into_iter().zip(shifts).map(table).collect())
}

/// Finds a place for a cell, and moves other cells to other places of theirs if needed. `seen`
/// marks the places tried. Returns whether the cell has a place.
fn place(
    cell: u32,
    shifts: &[u16],
    owners: &mut [[Option<u32>; SLOTS_OF_TABLE]],
    seen: &mut [[bool; SLOTS_OF_TABLE]],
) -> bool {
    for (table, &shift) in shifts.iter().enumerate() {
        let at = place_of(cell, shift);
        if std::mem::replace(&mut seen[table][at], true) {
            continue;
        }
        if owners[table][at].is_none_or(|owner| place(owner, shifts, owners, seen)) {
            owners[table][at] = Some(cell);
            return true;
        }
    }
    false
}

/// The upper 16 bits of a cell's words.
fn high(cell: u32) -> u16 {
    (cell >> (16 - CELL_SHIFT)) as u16
}

/// The place of a cell in a table.
fn place_of(cell: u32, shift: u16) -> usize {
    (cell as u16 ^ high(cell) >> shift) as usize % SLOTS_OF_TABLE
}

#[cfg(test)]
impl CellTables {
    /// Whether a word passes, by its upper 32 bits.
    pub fn passes(&self, upper: u32) -> bool {
        let cell = upper >> CELL_SHIFT;
        self.0.iter().any(|table| table.slots[place_of(cell, table.shift)] == high(cell))
    }
}
