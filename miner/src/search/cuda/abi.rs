//! The structures that host and kernels exchange: `kernels/abi.h` in Rust. Both sides assert the
//! layout.

use super::constants::{
    ACCEPTED_WORDS, FIRST_BITS, LOW_TESTS, MASKED_ROUNDS, MAX_RUN, PARITY_GROUPS, RUN_ROUNDS, TEXT_WORDS,
};
use crate::key::StartPoint;
use cudarc::driver::{DeviceRepr, ValidAsZeroBits};
use std::mem::offset_of;

/// An affine point: limbs of 32 bits, least significant first.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Point {
    pub x: [u32; 8],
    pub y: [u32; 8],
}

impl Point {
    pub fn of(point: &StartPoint) -> Point {
        let (x, y) = point.coordinates();
        Point { x: limbs(&x), y: limbs(&y) }
    }
}

/// A big-endian number as limbs.
pub fn limbs(bytes: &[u8; 32]) -> [u32; 8] {
    std::array::from_fn(|i| u32::from_be_bytes(std::array::from_fn(|b| bytes[28 - 4 * i + b])))
}

/// One candidate: the thread of the launch, which of the thread's centres, the table entry, and
/// `k·6 + minus·3 + j` (see `kernels/abi.h`).
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Suspect {
    pub thread: u32,
    pub step: u32,
    pub entry: u32,
    pub which: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Counters {
    pub suspects: u32,
    pub hits: u32,
    pub skipped: u32,
    pub unused: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Interval {
    pub first: u64,
    pub last: u64,
}

/// An interval of one pattern, and the index of the words that describe its other conditions.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct DeviceMember {
    pub first: u64,
    pub last: u64,
    pub words: u32,
    pub unused: u32,
}

/// Conditions on the keys inside the intervals of a launch. Addresses are device addresses;
/// `first_member` is 0 if there are none.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct DeviceChecks {
    pub first_member: u64,
    pub members: u64,
    pub words: u64,
    pub checksums: u64,
}

/// A test of a key's text, in words of six characters.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct DeviceTextTest {
    pub mask: [u32; TEXT_WORDS as usize],
    pub value: [u32; TEXT_WORDS as usize],
    pub words: u32,
    pub places: [u32; TEXT_WORDS as usize],
    pub run: u32,
    pub is_equal: u32,
    pub run_mask: [u32; MAX_RUN as usize],
    pub run_value: [u32; MAX_RUN as usize],
}

/// The second argument of the kernel that compares whole keys. Addresses are device addresses.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct WholeSearch {
    pub tests: u64,
    pub checksums: u64,
    pub key_tests: u32,
    pub checksum_tests: u32,
    pub has_first_bits: u32,
    pub unused: u32,
    pub first_bits: [[u32; 8]; FIRST_BITS as usize],
    pub accepted: [u32; ACCEPTED_WORDS as usize],
}

/// Quick tests of whole keys (see `kernels/abi.h`).
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct DeviceScreen {
    pub low: [[u32; 2]; LOW_TESTS as usize],
    pub has_runs: u32,
    pub has_differences: u32,
    pub masked_rounds: u32,
    pub parity_groups: u32,
    pub run: [[u32; 8]; RUN_ROUNDS as usize],
    pub extra: [u32; 4],
    pub masked: [[[u32; 8]; 2]; MASKED_ROUNDS as usize],
    pub parities: [[[u32; 4]; 32]; PARITY_GROUPS as usize],
}

/// The argument of the search kernels. Addresses are device addresses.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Search {
    pub start_points: u64,
    pub stretches: u64,
    pub table: u64,
    pub matrices: u64,
    pub groups: u64,
    pub constants: u64,
    pub prefixes: u64,
    pub centres: u64,
    pub suspects: u64,
    pub hits: u64,
    pub counters: u64,
    pub coarse: u64,
    pub fine: u64,
    pub intervals: u64,
    pub interval_count: u32,
    pub first_top: u32,
    pub top_width: u32,
    pub entries: u32,
    pub steps: u32,
    pub threads_per_start: u32,
    pub suspect_capacity: u32,
    pub hit_capacity: u32,
    pub step: Point,
}

/// Asserts the size of a structure and the offsets of some fields. Such a structure may be passed to
/// kernels and may lie in device memory.
macro_rules! layout {
    ($structure:ident, $size:expr $(, $field:ident at $offset:expr)*) => {
        const _: () = assert!(size_of::<$structure>() == $size $(&& offset_of!($structure, $field) == $offset)*);
        // SAFETY: plain numbers in C layout, with no padding.
        unsafe impl DeviceRepr for $structure {}
        // SAFETY: zeroed memory is a valid value.
        unsafe impl ValidAsZeroBits for $structure {}
    };
}

/// Bytes of [`WholeSearch::first_bits`], and of [`DeviceScreen::run`] and [`DeviceScreen::masked`].
const FIRST_BITS_BYTES: usize = 32 * FIRST_BITS as usize;
const RUN_BYTES: usize = 32 * RUN_ROUNDS as usize;
const MASKED_BYTES: usize = 64 * MASKED_ROUNDS as usize;

layout!(Point, 64, y at 32);
layout!(Suspect, 16, step at 4, entry at 8, which at 12);
layout!(Counters, 16, hits at 4, skipped at 8);
layout!(Interval, 16, last at 8);
layout!(DeviceMember, 24, last at 8, words at 16);
layout!(DeviceChecks, 32, members at 8, words at 16, checksums at 24);
layout!(DeviceTextTest, 196, places at 84, run at 124, run_mask at 132);
layout!(WholeSearch, 32 + FIRST_BITS_BYTES + 4 * ACCEPTED_WORDS as usize, key_tests at 16, first_bits at 32);
layout!(
    DeviceScreen,
    48 + RUN_BYTES + MASKED_BYTES + 512 * PARITY_GROUPS as usize,
    has_runs at 16,
    run at 32,
    extra at 32 + RUN_BYTES,
    masked at 48 + RUN_BYTES,
    parities at 48 + RUN_BYTES + MASKED_BYTES
);
layout!(
    Search,
    14 * 8 + 8 * 4 + 64,
    groups at 32,
    centres at 56,
    counters at 80,
    intervals at 104,
    interval_count at 112,
    entries at 124,
    hit_capacity at 140,
    step at 144
);

/// The words of a structure, in the order of its fields.
pub fn words_of<T: DeviceRepr>(structure: &T) -> Vec<u32> {
    // SAFETY: plain numbers in C layout, with no padding (`DeviceRepr` above).
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(structure).cast::<u32>(), size_of::<T>() / 4) }.to_vec()
}
