//! How much of the heap is in use. What grows without end shows here, whatever the allocator keeps for later.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Each thread counts in one of these: in a single one they would wait for each other.
const SHARES: usize = 32;

/// Bytes given out less bytes given back, modulo 2^64. A block may come back in another share than it was given out in.
static LIVE: [Share; SHARES] = [const { Share(AtomicUsize::new(0)) }; SHARES];

/// On cache lines of its own.
#[repr(align(128))]
struct Share(AtomicUsize);

thread_local! {
    /// Which share this thread counts in. Without a destructor and made before the thread runs: an allocator may ask for it.
    static OWN: Cell<usize> = const { Cell::new(SHARES) };
}

/// Gives out the shares in turn.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Bytes of the heap that are in use; 0 in a program whose allocator is not [`Counted`]. What SQLite and a GPU's driver take
/// for themselves is not in it.
pub fn live() -> usize {
    LIVE.iter().fold(0, |sum, share| sum.wrapping_add(share.0.load(Ordering::Relaxed)))
}

#[inline]
fn own() -> &'static AtomicUsize {
    let share = OWN.with(|own| {
        if own.get() == SHARES {
            own.set(NEXT.fetch_add(1, Ordering::Relaxed) % SHARES);
        }
        own.get()
    });
    &LIVE[share].0
}

/// Keeps the gaps between blocks small: a pool of the heap for two cores each, and large blocks beside them. For the first line
/// of a program. (A single pool for 16 cores holds all threads up: a flood of strangers took 15 s for 2.)
///
/// glibc gives each thread a pool of its own, up to eight a core, and threads for blocking work come and go: what a burst took in
/// one pool serves no other. And as large blocks come back it grows the size from which it sets a block aside, up to 32 MiB, and
/// twice that is held for later. Other allocators are left to themselves.
pub fn tune_malloc() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use std::ffi::c_int;
        /// `M_ARENA_MAX` and `M_MMAP_THRESHOLD` of glibc's `malloc.h`.
        const POOLS: c_int = -8;
        const LARGE: c_int = -3;
        unsafe extern "C" {
            fn mallopt(what: c_int, value: c_int) -> c_int;
        }
        // SAFETY: as glibc declares it. It sets a figure; one that it does not know changes nothing.
        unsafe {
            let pools = std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
            mallopt(POOLS, c_int::try_from(pools).unwrap_or(c_int::MAX));
            mallopt(LARGE, 128 << 10);
        }
    }
}

/// An allocator that counts what another gives out.
pub struct Counted<A>(pub A);

// SAFETY: every block comes from the allocator below and goes back to it, with the layout it was asked for; counting touches
// none. `realloc` is left as the trait has it: a new block, a copy, and the old one given back, which the one below may clear.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counted<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        given(unsafe { self.0.alloc(layout) }, layout)
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        given(unsafe { self.0.alloc_zeroed(layout) }, layout)
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        own().fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { self.0.dealloc(block, layout) };
    }
}

#[inline]
fn given(block: *mut u8, layout: Layout) -> *mut u8 {
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
    fn what_is_given_out_counts_until_it_comes_back() {
        let (counted, small, large) =
            (Counted(System), Layout::array::<u8>(100).unwrap(), Layout::array::<u8>(1_000).unwrap());
        // SAFETY: each block goes back once, with the layout it has then.
        unsafe {
            let (one, other) = (counted.alloc(small), counted.alloc_zeroed(large));
            assert_eq!(live(), 1_100);
            let one = counted.realloc(one, small, 1_000);
            assert_eq!(live(), 2_000);
            let one = one as usize;
            std::thread::spawn(move || Counted(System).dealloc(one as *mut u8, large)).join().unwrap();
            assert_eq!(live(), 1_000);
            counted.dealloc(other, large);
            assert!(Counted(Empty).alloc(large).is_null());
        }
        assert_eq!(live(), 0);
    }
}
