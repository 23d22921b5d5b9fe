//! Memory in huge pages.
//!
//! With an unlucky set of small pages the search is a fifth slower for as long as it uses them.
//! That is one cause of slow runs, but not the only one; `docs/performance.md` has the figures.

use crate::search::os::advise_huge_pages;
use bytemuck::Zeroable;
use std::alloc::{Layout, alloc, handle_alloc_error};

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
