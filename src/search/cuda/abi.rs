//! What the host and the kernels pass to each other: `kernels/abi.h` in Rust.

use crate::key::StartPoint;
use cudarc::driver::{DeviceRepr, ValidAsZeroBits};

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

/// Bytes of a table entry: eight field elements and two top_words, padded to a multiple of 16.
pub const ENTRY_BYTES: usize = 8 * 32 + 16;

/// Bytes of a table entry's matrices for the tensor cores.
pub const MATRICES_BYTES: usize = 10 * 1024;

/// Bytes that the tensor form may keep of a centre in device memory: eleven field elements.
pub const CENTRE_BYTES: usize = 11 * 32;

/// One candidate: which thread of the launch, which of its centres, which table entry, and `k·6 + minus·3 + j`.
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

/// The argument of the search kernels; addresses are of the device.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Search {
    pub start_points: u64,
    pub stretches: u64,
    pub table: u64,
    pub matrices: u64,
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
    assert!(size_of::<Point>() == 64);
    assert!(size_of::<Suspect>() == 16 && size_of::<Counters>() == 16 && size_of::<Interval>() == 16);
    assert!(size_of::<Search>() == 13 * 8 + 8 * 4 + 64);
};

// SAFETY: plain numbers in C layout, with no padding; all zero bits are a value of each.
unsafe impl DeviceRepr for Point {}
unsafe impl ValidAsZeroBits for Point {}
unsafe impl DeviceRepr for Suspect {}
unsafe impl ValidAsZeroBits for Suspect {}
unsafe impl DeviceRepr for Counters {}
unsafe impl ValidAsZeroBits for Counters {}
unsafe impl DeviceRepr for Interval {}
unsafe impl ValidAsZeroBits for Interval {}
unsafe impl DeviceRepr for Search {}
