//! Counts the heap bytes in use, which shows leaks even if the allocator keeps freed memory.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of counters. Threads that share a counter slow each other down.
const SHARES: usize = 32;

/// Bytes allocated minus bytes freed, modulo 2^64. A block may be freed by a thread that uses
/// another counter, so only the sum has a meaning.
static IN_USE: [Share; SHARES] = [const { Share(AtomicUsize::new(0)) }; SHARES];

/// One counter, with cache lines of its own.
#[repr(align(128))]
struct Share(AtomicUsize);

thread_local! {
    /// Index of the counter that this thread uses. `const` and without a destructor, so an
    /// allocator may read it.
    static OWN: Cell<usize> = const { Cell::new(SHARES) };
}

/// Index for the next new thread. Threads get the counters in rotation.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Heap bytes in use; 0 if the program's allocator is not [`Counted`]. Memory that SQLite and GPU
/// drivers allocate on their own is not counted.
pub fn heap_in_use() -> usize {
    IN_USE.iter().fold(0, |sum, share| sum.wrapping_add(share.0.load(Ordering::Relaxed)))
}

#[inline]
fn own() -> &'static AtomicUsize {
    let share = OWN.with(|own| {
        if own.get() == SHARES {
            own.set(NEXT.fetch_add(1, Ordering::Relaxed) % SHARES);
        }
        own.get()
    });
    &IN_USE[share].0
}

/// An allocator that counts the bytes allocated through it.
pub struct Counted<A>(pub A);

// SAFETY: every block comes from the inner allocator and returns to it with the same layout.
// Counting touches no block. `realloc` is the trait's default: a new block, a copy, and a free of
// the old block, which the inner allocator may clear.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counted<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is passed on unchanged.
        counted(unsafe { self.0.alloc(layout) }, layout)
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is passed on unchanged.
        counted(unsafe { self.0.alloc_zeroed(layout) }, layout)
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        own().fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's contract is passed on unchanged.
        unsafe { self.0.dealloc(block, layout) };
    }
}

#[inline]
fn counted(block: *mut u8, layout: Layout) -> *mut u8 {
    if !block.is_null() {
        own().fetch_add(layout.size(), Ordering::Relaxed);
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::System;

    /// An allocator that is always out of memory.
    struct Empty;

    // SAFETY: a null pointer says that there is no memory.
    unsafe impl GlobalAlloc for Empty {
        unsafe fn alloc(&self, _: Layout) -> *mut u8 {
            std::ptr::null_mut()
        }

        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
    }

    /// No other test uses `Counted`, so the sum changes only here.
    #[test]
    fn allocated_bytes_count_until_they_are_freed() {
        let (counted, small, large) =
            (Counted(System), Layout::array::<u8>(100).unwrap(), Layout::array::<u8>(1_000).unwrap());
        // SAFETY: each block is freed once, with its current layout.
        unsafe {
            let (one, other) = (counted.alloc(small), counted.alloc_zeroed(large));
            assert_eq!(heap_in_use(), 1_100);
            let one = counted.realloc(one, small, 1_000);
            assert_eq!(heap_in_use(), 2_000);
            let one = one as usize;
            std::thread::spawn(move || Counted(System).dealloc(one as *mut u8, large)).join().unwrap();
            assert_eq!(heap_in_use(), 1_000);
            counted.dealloc(other, large);
            assert!(Counted(Empty).alloc(large).is_null());
        }
        assert_eq!(heap_in_use(), 0);
    }
}
