//! The geometry of a launch: which thread searches which stretch around which start point.
//!
//! Threads share a start point. Thread t of a start point walks up to `CENTRES` centres, beginning
//! at `P + (t + 1)·STRIDE·G`. Each centre covers `TABLE` multiples of G on both sides. Centres are
//! `STEP` multiples apart, so those of a start point never overlap.

use super::abi::Point;
use super::constants::WARPS;
pub use super::constants::{GROUP, MAX_STEPS, TABLE};
use crate::key::StartPoint;
use secp256k1::{PublicKey, SECP256K1, SecretKey};

/// Bytes of a field element.
pub const FIELD_BYTES: usize = 32;
/// Threads of a warp.
pub const WARP: u32 = 32;
/// Centres that a thread may visit in one launch. For most threads the first and the last centre
/// are cut short, so that different warps are at different stages of a centre.
pub const CENTRES: u32 = MAX_STEPS + 1;
/// Distance between neighbouring centres of a thread, in multiples of G.
pub const STEP: u64 = 2 * TABLE as u64 + 1;
/// Distance between the first centres of neighbouring threads, in multiples of G.
pub const STRIDE: u64 = CENTRES as u64 * STEP;
/// Prefix products per thread for a variant without groups: with this many it is fastest.
pub const KEPT_ALONE: u32 = 1024;
/// Threads that share a start point, for each warp of a block. So a launch has the same number of
/// start points whatever number of warps its blocks have.
const THREADS_PER_START_AND_WARP: u32 = 192;
/// The most threads that share a start point.
pub const MAX_THREADS_PER_START: u32 = THREADS_PER_START_AND_WARP * WARPS;

pub struct Geometry {
    pub multiprocessors: u32,
}

impl Geometry {
    /// Threads of a launch whose blocks have so many warps.
    pub fn threads(&self, warps: u32) -> u32 {
        self.multiprocessors * WARP * warps
    }

    /// The most threads of a launch.
    pub fn most_threads(&self) -> u32 {
        self.threads(WARPS)
    }

    pub fn starts(&self) -> u32 {
        self.most_threads().div_ceil(MAX_THREADS_PER_START)
    }
}

/// Threads that share a start point in a launch whose blocks have so many warps.
pub fn threads_per_start(warps: u32) -> u32 {
    THREADS_PER_START_AND_WARP * warps
}

/// The beginning of thread `t`'s stretch, relative to its start point.
pub fn stretch_start(t: u32) -> u64 {
    (u64::from(t) + 1) * STRIDE
}

/// `k·G`. `k` is not zero.
pub fn multiple_of_generator(k: u64) -> StartPoint {
    let mut bytes = [0; 32];
    bytes[24..].copy_from_slice(&k.to_be_bytes());
    let scalar = SecretKey::from_slice(&bytes).expect("not zero and below n");
    StartPoint::new(PublicKey::from_secret_key(SECP256K1, &scalar))
}

pub fn multiple(k: u64) -> Point {
    Point::of(&multiple_of_generator(k))
}

/// The part of each thread's stretch that a launch searches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Centres per thread.
    pub steps: u32,
    /// Table entries at each centre.
    pub entries: u32,
}

impl Extent {
    /// The extent of at most `entries` table entries per thread, with `table` at a centre or fewer,
    /// nearest to `table`.
    pub fn of_entries(entries: f64, table: u32) -> Extent {
        let steps = (entries / f64::from(table)).round().clamp(1.0, f64::from(MAX_STEPS));
        let entries = (entries / steps) as u32 / GROUP * GROUP;
        Extent { steps: steps as u32, entries: entries.clamp(GROUP, table) }
    }

    /// Four extents of about the same total: with `table` entries at a centre, with half of them,
    /// and so on.
    pub fn of_shorter_tables(table: u32) -> [Extent; 4] {
        [1, 2, 4, 8].map(|steps| Extent { steps, entries: (table / steps / GROUP * GROUP).max(GROUP) })
    }

    /// Table entries per thread, over all its centres.
    pub fn total(self) -> f64 {
        f64::from(self.steps) * f64::from(self.entries)
    }

    /// The given share of this extent, 0 to 1.
    pub fn part(self, share: f64) -> Extent {
        if share >= 1.0 { self } else { Extent::of_entries(self.total() * share, self.entries) }
    }
}

/// Bytes of device memory that prefix products may take. `free` bytes were free before the search
/// took any, and `left` are free now. The search may take `limit` bytes in all; `None` means half
/// of `free`.
pub fn memory_left(free: usize, left: usize, limit: Option<u64>) -> usize {
    let limit = limit.map_or(free / 2, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX).min(free));
    left.saturating_sub(free - limit)
}

/// Prefix products per thread that fit into `bytes`, at most as many as a whole table needs. A
/// multiple of [`GROUP`], so that the plain variant can be compared with the others.
pub fn prefixes_that_fit(bytes: usize, threads: usize) -> u32 {
    let fit = u32::try_from(bytes / (threads * FIELD_BYTES)).unwrap_or(u32::MAX);
    (fit / GROUP * GROUP).clamp(GROUP, TABLE / GROUP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_takes_the_memory_it_may_have_and_half_of_what_is_free_if_nothing_is_said() {
        const GB: usize = 1_000_000_000;
        for (free, taken, limit, expected) in [
            (8 * GB, GB, None, 3 * GB),
            (8 * GB, GB, Some(2 * GB as u64), GB),
            (8 * GB, GB, Some(GB as u64), 0),
            (8 * GB, GB, Some(1), 0),
            (8 * GB, GB, Some(8 * GB as u64), 7 * GB),
            (8 * GB, GB, Some(u64::MAX), 7 * GB),
            (8 * GB, 5 * GB, None, 0),
            (0, 0, None, 0),
        ] {
            assert_eq!(memory_left(free, free - taken, limit), expected, "{free} {taken} {limit:?}");
        }
        // Another program has taken the memory meanwhile.
        assert_eq!(memory_left(8 * GB, 0, Some(GB as u64)), 0);
    }

    #[test]
    fn shorter_tables_have_whole_groups_and_the_same_total() {
        for groups in 1..=TABLE / GROUP {
            let table = groups * GROUP;
            let extents = Extent::of_shorter_tables(table);
            assert_eq!(extents[0], Extent { steps: 1, entries: table });
            for extent in extents {
                assert!(extent.entries % GROUP == 0 && (GROUP..=table).contains(&extent.entries), "{extent:?}");
                assert!(extent.steps <= MAX_STEPS, "{extent:?}");
                let lost = f64::from(table) - extent.total();
                assert!(lost < f64::from(extent.steps * GROUP) && lost >= -f64::from(7 * GROUP), "{extent:?}");
            }
        }
    }

    #[test]
    fn memory_for_prefixes_is_as_much_as_fits_and_never_more_than_a_table_needs() {
        let threads = 67_584;
        let per_prefix = threads * FIELD_BYTES;
        assert_eq!(prefixes_that_fit(0, threads), GROUP);
        assert_eq!(prefixes_that_fit(103 * per_prefix, threads), 100);
        assert_eq!(prefixes_that_fit(usize::MAX, threads), TABLE / GROUP);
    }
}
