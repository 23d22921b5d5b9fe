//! Memory in one large page.
//!
//! What a walk reads and writes all the time should not lie on just any small pages: with some sets of them the search is a
//! fifth slower for as long as they are held. It is not the only cause of that; the figures are in `docs/performance.md`.

use std::alloc::{Layout, alloc, handle_alloc_error};

/// What is all zeros to begin with.
///
/// # Safety
///
/// A value whose bytes are all zero is a valid one.
pub unsafe trait Zeros {}

// SAFETY: a number.
unsafe impl Zeros for u32 {}
// SAFETY: a number.
unsafe impl Zeros for u64 {}
// SAFETY: as each of them is.
unsafe impl<T: Zeros, const N: usize> Zeros for [T; N] {}

/// Begins with a large page of most systems, and takes whole ones.
#[repr(align(0x20_0000))]
pub struct InLargePage<T>(pub T);

impl<T: Zeros> InLargePage<T> {
    /// All zeros, in large pages where the system has them.
    pub fn zeros() -> Box<InLargePage<T>> {
        let layout = Layout::new::<InLargePage<T>>();
        // SAFETY: the layout has a size, for its alignment is one. Zeros are a valid value, and the allocator is the one
        // that the box gives it back to.
        unsafe {
            let memory = alloc(layout);
            if memory.is_null() {
                handle_alloc_error(layout);
            }
            // Before anything is written there, or it is too late.
            ask_for_large_pages(memory, layout.size());
            memory.write_bytes(0, layout.size());
            Box::from_raw(memory.cast())
        }
    }
}

/// Where the system has none the search is merely slower now and then.
#[cfg(target_os = "linux")]
fn ask_for_large_pages(memory: *mut u8, size: usize) {
    use rustix::mm::{Advice, madvise};
    // SAFETY: advice on the kind of page changes nothing of what is in it.
    if let Err(error) = unsafe { madvise(memory.cast(), size, Advice::LinuxHugepage) } {
        tracing::debug!(%error, "the search has no large pages");
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_large_pages(_: *mut u8, _: usize) {}
