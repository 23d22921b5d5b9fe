//! The working memory of a walk: prefix products, and all screens. Each filter uses one screen.
//!
//! It is in huge pages. With an unlucky set of small pages the search is a fifth slower for as long as
//! it uses them. That is one cause of slow runs, but not the only one; `docs/performance.md` has the
//! figures.

use super::filter::{Filter, Lookup};
use super::screen::{Screen, Screened};
use super::table::{ENTRIES, Table};
use crate::search::os::advise_huge_pages;
use bytemuck::Zeroable;
use std::alloc::{Layout, alloc, handle_alloc_error};

/// The working memory of a walk, kept between walks.
pub struct Scratch<F: Screened, const W: usize>(Box<HugePage<Memory<F, W>>>);

/// The prefix products of a round, and every screen.
pub struct Memory<F: Screened, const W: usize> {
    /// The prefix products of a round's factors, by entry. The backward pass replaces each one by
    /// the q of its entry.
    pub prefixes: [[F; W]; ENTRIES],
    /// [`Screened::Few`]
    pub few: F::Few,
    /// [`Screened::Cells`]
    pub cells: F::Cells,
    /// [`Screened::Gathers`]
    pub gathers: F::Gathers,
    /// [`Screened::Loads`]
    pub loads: F::Loads,
    /// [`Screened::Whole`]
    pub whole: F::Whole,
}

// SAFETY: every field is `Zeroable`: numbers and screens of a `SimdField`.
unsafe impl<F: Screened, const W: usize> Zeroable for Memory<F, W> {}

/// The screen that a walk uses.
#[derive(Clone, Copy, Debug)]
pub enum Screens {
    Few,
    Cells,
    Gathers,
    Loads,
    Whole,
}

impl<F: Screened, const W: usize> Memory<F, W> {
    /// Chooses the screen for a filter, and prepares it.
    pub fn begin(&mut self, filter: &Filter, table: &Table<F>) -> Screens {
        let screens = match filter.lookup() {
            _ if filter.text_tests().is_some() => Screens::Whole,
            _ if filter.intervals().len() <= F::FEW_INTERVALS => Screens::Few,
            _ if F::HAS_ONE_LOOKUP => Screens::Loads,
            _ if filter.cells().is_some() => Screens::Cells,
            Lookup::Gathers => Screens::Gathers,
            Lookup::Loads => Screens::Loads,
        };
        match screens {
            Screens::Whole => self.whole.begin(filter, table),
            Screens::Few => self.few.begin(filter, table),
            Screens::Cells => self.cells.begin(filter, table),
            Screens::Gathers => self.gathers.begin(filter, table),
            Screens::Loads => self.loads.begin(filter, table),
        }
        screens
    }
}

impl<F: Screened, const W: usize> Scratch<F, W> {
    /// Memory for one thread.
    pub fn new() -> Scratch<F, W> {
        Scratch(HugePage::zeroed())
    }

    /// The memory itself.
    pub fn memory(&mut self) -> &mut Memory<F, W> {
        &mut self.0.0
    }
}

/// A value aligned to 2 MiB, the size of a huge page on most systems, and padded to a multiple of
/// it.
#[repr(align(0x20_0000))]
pub struct HugePage<T>(pub T);

impl<T: Zeroable> HugePage<T> {
    /// A zeroed value, in huge pages if the system has them.
    pub fn zeroed() -> Box<HugePage<T>> {
        let layout = Layout::new::<HugePage<T>>();
        // SAFETY: the layout's size is not zero, since its alignment is not. The allocator is the
        // one the box returns the memory to. `T: Zeroable` makes zeros a valid value.
        unsafe {
            let memory = alloc(layout);
            if memory.is_null() {
                handle_alloc_error(layout);
            }
            // Must come before the first write, because that allocates small pages.
            advise_huge_pages(memory, layout.size());
            memory.write_bytes(0, layout.size());
            Box::from_raw(memory.cast())
        }
    }
}
