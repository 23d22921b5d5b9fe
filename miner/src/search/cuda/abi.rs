//! The structures that host and kernels exchange: `kernels/abi.h` in Rust. Both sides assert the
//! layout.

use super::constants::{
    ACCEPTED_WORDS, FIRST_BITS, LOW_TESTS, MASKED_ROUNDS, MOST_RUN, PARITY_GROUPS, RUN_ROUNDS, TEXT_WORDS,
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
    pub run_mask: [u32; MOST_RUN as usize],
    pub run_value: [u32; MOST_RUN as usize],
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

const _: () = {
    assert!(size_of::<Point>() == 64 && offset_of!(Point, y) == 32);
    assert!(size_of::<Suspect>() == 16 && size_of::<Counters>() == 16 && size_of::<Interval>() == 16);
    assert!(offset_of!(Suspect, step) == 4 && offset_of!(Suspect, entry) == 8 && offset_of!(Suspect, which) == 12);
    assert!(offset_of!(Counters, hits) == 4 && offset_of!(Counters, skipped) == 8);
    assert!(offset_of!(Interval, last) == 8);
    assert!(size_of::<DeviceMember>() == 24 && size_of::<DeviceChecks>() == 32);
    assert!(offset_of!(DeviceMember, last) == 8 && offset_of!(DeviceMember, words) == 16);
    assert!(
        offset_of!(DeviceChecks, members) == 8
            && offset_of!(DeviceChecks, words) == 16
            && offset_of!(DeviceChecks, checksums) == 24
    );
    assert!(size_of::<DeviceTextTest>() == 196);
    assert!(size_of::<WholeSearch>() == 32 + 32 * FIRST_BITS as usize + 4 * ACCEPTED_WORDS as usize);
    assert!(offset_of!(DeviceTextTest, places) == 84 && offset_of!(DeviceTextTest, run) == 124);
    assert!(offset_of!(DeviceTextTest, run_mask) == 132);
    assert!(offset_of!(WholeSearch, key_tests) == 16 && offset_of!(WholeSearch, first_bits) == 32);
    assert!(
        size_of::<DeviceScreen>()
            == 32 + 32 * RUN_ROUNDS as usize + 16 + 64 * MASKED_ROUNDS as usize + 512 * PARITY_GROUPS as usize
    );
    assert!(
        offset_of!(DeviceScreen, has_runs) == 16
            && offset_of!(DeviceScreen, run) == 32
            && offset_of!(DeviceScreen, extra) == 128
    );
    assert!(
        offset_of!(DeviceScreen, masked) == 144
            && offset_of!(DeviceScreen, parities) == 144 + 64 * MASKED_ROUNDS as usize
    );
    assert!(size_of::<Search>() == 14 * 8 + 8 * 4 + 64);
    assert!(
        offset_of!(Search, groups) == 32 && offset_of!(Search, centres) == 56 && offset_of!(Search, counters) == 80
    );
    assert!(offset_of!(Search, intervals) == 104 && offset_of!(Search, interval_count) == 112);
    assert!(offset_of!(Search, entries) == 124 && offset_of!(Search, hit_capacity) == 140);
    assert!(offset_of!(Search, step) == 144);
};

/// Marks structures that may be passed to kernels and may lie in device memory.
macro_rules! shared {
    ($($structure:ty)*) => {$(
        // SAFETY: plain numbers in C layout, with no padding.
        unsafe impl DeviceRepr for $structure {}
        // SAFETY: zeroed memory is a valid value.
        unsafe impl ValidAsZeroBits for $structure {}
    )*};
}

shared!(Point Suspect Counters Interval DeviceMember DeviceChecks DeviceTextTest WholeSearch DeviceScreen Search);

/// The words of a structure, in the order of its fields.
pub fn words_of<T: DeviceRepr>(structure: &T) -> Vec<u32> {
    // SAFETY: plain numbers in C layout, with no padding (`DeviceRepr` above).
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(structure).cast::<u32>(), size_of::<T>() / 4) }.to_vec()
}
