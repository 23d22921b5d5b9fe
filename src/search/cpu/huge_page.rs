//! Memory in huge pages.
//!
//! On some sets of small pages the search is a fifth slower for as long as they are held. That is
//! one cause of slow starts, not the only one; `docs/performance.md` has the figures.

use bytemuck::Zeroable;
use std::alloc::{Layout, alloc, handle_alloc_error};

/// A value aligned to 2 MiB, the size of a huge page on most systems, and padded to whole ones.
#[repr(align(0x20_0000))]
pub struct HugePage<T>(pub T);

impl<T: Zeroable> HugePage<T> {
    /// All zeros, in huge pages where the system has them.
    pub fn zeroed() -> Box<HugePage<T>> {
        let layout = Layout::new::<HugePage<T>>();
        // SAFETY: the layout's size is not zero, since its alignment is not. The allocator is the
        // one the box returns the memory to. `T: Zeroable` makes zeros a valid value.
        unsafe {
            let memory = alloc(layout);
            if memory.is_null() {
                handle_alloc_error(layout);
            }
            // Before the first write: afterwards the pages are small ones.
            advise_huge_pages(memory, layout.size());
            memory.write_bytes(0, layout.size());
            Box::from_raw(memory.cast())
        }
    }
}

/// Asks for huge pages. Without them the search is slower now and then.
#[cfg(target_os = "linux")]
fn advise_huge_pages(memory: *mut u8, size: usize) {
    use rustix::mm::{Advice, madvise};
    // SAFETY: this advice changes the size of the pages and nothing of their contents.
    if let Err(error) = unsafe { madvise(memory.cast(), size, Advice::LinuxHugepage) } {
        tracing::debug!(%error, "the search has no huge pages");
    }
}

#[cfg(not(target_os = "linux"))]
fn advise_huge_pages(_: *mut u8, _: usize) {}
