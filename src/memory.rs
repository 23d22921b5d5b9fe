//! Bytes of the heap in use: leaks show here, however much memory the allocator keeps for later.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of counters. Threads that shared one counter would slow each other down.
const SHARES: usize = 32;

/// Bytes allocated less bytes freed, modulo 2^64. A block may be freed in another share than it was
/// allocated in.
static IN_USE: [Share; SHARES] = [const { Share(AtomicUsize::new(0)) }; SHARES];

/// One counter, on cache lines of its own.
#[repr(align(128))]
struct Share(AtomicUsize);

thread_local! {
    /// The share this thread counts in. `const` and without a destructor, so that an allocator may
    /// use it.
    static OWN: Cell<usize> = const { Cell::new(SHARES) };
}

/// The next thread's share: shares are given out in turn.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Bytes of the heap in use; 0 in a program whose allocator is not [`Counted`].
/// Memory that SQLite and GPU drivers allocate themselves is not counted.
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

/// Sets glibc's malloc to return memory early: one arena for two cores, and `mmap` for blocks from
/// 128 KiB. Call it first in `main`. Does nothing with other C libraries.
///
/// By default glibc makes up to eight arenas a core, and memory freed in one serves no other. It
/// also raises the `mmap` threshold up to 32 MiB as large blocks are freed, and keeps twice that.
/// One arena for 16 cores is too few: a flood of messages took 15 s instead of 2.
pub fn tune_malloc() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use std::ffi::c_int;
        // From glibc's malloc.h.
        const M_ARENA_MAX: c_int = -8;
        const M_MMAP_THRESHOLD: c_int = -3;
        unsafe extern "C" {
            fn mallopt(parameter: c_int, value: c_int) -> c_int;
        }
        // SAFETY: the signature is glibc's. It sets a parameter; unknown parameters are ignored.
        unsafe {
            let arenas = std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
            mallopt(M_ARENA_MAX, c_int::try_from(arenas).unwrap_or(c_int::MAX));
            mallopt(M_MMAP_THRESHOLD, 128 << 10);
        }
    }
}

/// An allocator that counts the bytes another one allocates.
pub struct Counted<A>(pub A);

// SAFETY: every block comes from the allocator below and goes back to it with the same layout;
// counting touches no block. `realloc` is the trait's own: a new block, a copy, and the old block
// freed, which the allocator below may clear.
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

    /// Has nothing to give.
    struct Empty;

    // SAFETY: a null pointer says that there is no memory.
    unsafe impl GlobalAlloc for Empty {
        unsafe fn alloc(&self, _: Layout) -> *mut u8 {
            std::ptr::null_mut()
        }

        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
    }

    /// The only test that counts: the tests' own allocator does not.
    #[test]
    fn allocated_bytes_count_until_they_are_freed() {
        let (counted, small, large) =
            (Counted(System), Layout::array::<u8>(100).unwrap(), Layout::array::<u8>(1_000).unwrap());
        // SAFETY: each block goes back once, with the layout it has then.
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
