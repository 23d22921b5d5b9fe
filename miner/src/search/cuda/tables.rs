//! The tables of the search: multiples of G and constants computed from them, the same for every
//! launch.

use super::abi::Point;
use super::constants::{ENTRY_BYTES, GROUP, GROUP_BYTES, MATRICES, MATRIX_BYTES};
use super::geometry::{MOST_THREADS_PER_START, STRIDE, TABLE, multiple_of_generator};
use super::launch::groups_of_128;
use super::module::Kernels;
use crate::key::StartPoint;
use cudarc::driver::{CudaSlice, CudaStream, DriverError, PushKernelArg};
use std::sync::{Arc, OnceLock};

/// SearchTables in device memory.
pub struct SearchTables {
    pub entries: CudaSlice<u8>,
    /// The matrices of the entries' constants, for the tensor cores.
    pub matrices: CudaSlice<u8>,
    /// The matrices of the groups' constants, for the tensor cores.
    pub groups: CudaSlice<u8>,
    /// The multiple of G at which each thread of a start point begins, relative to the start point.
    pub stretches: CudaSlice<Point>,
}

impl SearchTables {
    /// Queues the kernels that build the tables from the points i·G.
    pub fn new(
        stream: &Arc<CudaStream>,
        kernels: &Kernels,
        points: &CudaSlice<Point>,
    ) -> Result<SearchTables, DriverError> {
        let mut entries = stream.alloc_zeros::<u8>((TABLE * ENTRY_BYTES) as usize)?;
        let mut build = stream.launch_builder(&kernels.build_table);
        build.arg(points).arg(&mut entries).arg(&TABLE);
        // SAFETY: the arguments match `build_table`. The grid covers the table, and the kernel
        // checks the table's end.
        unsafe { build.launch(groups_of_128(TABLE))? };
        let mut matrices = stream.alloc_zeros::<u8>((TABLE * MATRICES * MATRIX_BYTES) as usize)?;
        let mut build = stream.launch_builder(&kernels.build_matrices);
        build.arg(&entries).arg(&mut matrices).arg(&TABLE);
        // SAFETY: as above, with 32 threads per entry.
        unsafe { build.launch(groups_of_128(32 * TABLE))? };
        let count = TABLE / GROUP;
        let mut groups = stream.alloc_zeros::<u8>((count * GROUP_BYTES) as usize)?;
        let mut build = stream.launch_builder(&kernels.build_groups);
        build.arg(&entries).arg(&mut groups).arg(&count);
        // SAFETY: as above, with 32 threads per group.
        unsafe { build.launch(groups_of_128(32 * count))? };
        Ok(SearchTables { entries, matrices, groups, stretches: stream.clone_htod(&multiples().stretches)? })
    }
}

/// Multiples of G, computed by libsecp256k1.
pub struct Multiples {
    /// The points i·G for i from 1 to [`TABLE`].
    pub table: Vec<Point>,
    /// The multiple of G at which each thread of a start point begins, relative to the start point.
    pub stretches: Vec<Point>,
}

/// The multiples of this process. The first call takes some tens of milliseconds.
pub fn multiples() -> &'static Multiples {
    static MULTIPLES: OnceLock<Multiples> = OnceLock::new();
    MULTIPLES.get_or_init(|| Multiples {
        table: multiples_of(1, TABLE),
        stretches: multiples_of(STRIDE, MOST_THREADS_PER_START),
    })
}

/// The first `count` multiples of `k·G`, by additions, which take a fifth of the time.
fn multiples_of(k: u64, count: u32) -> Vec<Point> {
    let step = multiple_of_generator(k);
    let next = |sum: &StartPoint| sum.public_key().combine(step.public_key()).ok().map(StartPoint::new);
    std::iter::successors(Some(step), next).take(count as usize).map(|point| Point::of(&point)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::geometry::{multiple, stretch_start};
    use super::*;

    #[test]
    fn multiples_by_additions_are_those_by_multiplication() {
        let Multiples { table, stretches } = multiples();
        let words = |point: Point| (point.x, point.y);
        for at in [0, 1, 2, 1000, TABLE - 1] {
            assert_eq!(words(table[at as usize]), words(multiple(u64::from(at) + 1)), "entry {at}");
        }
        for thread in [0, 1, 2, 1000, MOST_THREADS_PER_START - 1] {
            assert_eq!(words(stretches[thread as usize]), words(multiple(stretch_start(thread))), "thread {thread}");
        }
        assert_eq!([table.len(), stretches.len()], [TABLE as usize, MOST_THREADS_PER_START as usize]);
    }
}
