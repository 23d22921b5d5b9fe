//! The tables of the search: multiples of G and constants computed from them, the same for every
//! launch.

use super::abi::Point;
use super::constants::{ENTRY_BYTES, GROUP, GROUP_BYTES, MATRICES, MATRIX_BYTES, WHOLE_ENTRY_BYTES};
use super::geometry::{MAX_THREADS_PER_START, STRIDE, TABLE, multiple_of_generator};
use crate::key::StartPoint;
use cudarc::driver::{CudaModule, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg};
use std::sync::{Arc, OnceLock};

/// The tables in device memory.
pub struct SearchTables {
    pub entries: CudaSlice<u8>,
    /// The matrices of the entries' constants, for the tensor cores.
    pub matrices: CudaSlice<u8>,
    /// The matrices of the groups' constants, for the tensor cores.
    pub groups: CudaSlice<u8>,
    /// The multiple of G at which each thread of a start point begins, relative to the start point.
    pub stretches: CudaSlice<Point>,
    /// The entries for the search of whole keys.
    pub whole: CudaSlice<u8>,
    /// The matrix of β for the tensor cores.
    pub beta: CudaSlice<u8>,
}

impl SearchTables {
    /// Queues the kernels that build the tables.
    pub fn new(stream: &Arc<CudaStream>, module: &Arc<CudaModule>) -> Result<SearchTables, DriverError> {
        const GROUPS: u32 = TABLE / GROUP;
        let points = stream.clone_htod(&multiples().table)?;
        let alloc = |bytes: u32| stream.alloc_zeros::<u8>(bytes as usize);
        let mut entries = alloc(TABLE * ENTRY_BYTES)?;
        let function = module.load_function("build_table")?;
        let mut build = stream.launch_builder(&function);
        build.arg(&points).arg(&mut entries).arg(&TABLE);
        // SAFETY: the arguments match `build_table`. The grid covers the table, and the kernel
        // checks the table's end.
        unsafe { build.launch(groups_of_128(TABLE))? };
        let mut matrices = alloc(TABLE * MATRICES * MATRIX_BYTES)?;
        let function = module.load_function("build_matrices")?;
        let mut build = stream.launch_builder(&function);
        build.arg(&entries).arg(&mut matrices).arg(&TABLE);
        // SAFETY: as above, with 32 threads per entry.
        unsafe { build.launch(groups_of_128(32 * TABLE))? };
        let mut groups = alloc(GROUPS * GROUP_BYTES)?;
        let function = module.load_function("build_groups")?;
        let mut build = stream.launch_builder(&function);
        build.arg(&entries).arg(&mut groups).arg(&GROUPS);
        // SAFETY: as above, with 32 threads per group.
        unsafe { build.launch(groups_of_128(32 * GROUPS))? };
        let (mut whole, mut beta) = (alloc(TABLE * WHOLE_ENTRY_BYTES)?, alloc(MATRIX_BYTES)?);
        let function = module.load_function("build_whole_table")?;
        let mut build = stream.launch_builder(&function);
        build.arg(&points).arg(&mut whole).arg(&TABLE).arg(&mut beta);
        // SAFETY: as for `build_table`.
        unsafe { build.launch(groups_of_128(TABLE))? };
        let stretches = stream.clone_htod(&multiples().stretches)?;
        Ok(SearchTables { entries, matrices, groups, stretches, whole, beta })
    }
}

/// A grid of blocks of 128 threads, at least `threads` of them.
fn groups_of_128(threads: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (threads.div_ceil(128), 1, 1), block_dim: (128, 1, 1), shared_mem_bytes: 0 }
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
        stretches: multiples_of(STRIDE, MAX_THREADS_PER_START),
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
        for thread in [0, 1, 2, 1000, MAX_THREADS_PER_START - 1] {
            assert_eq!(words(stretches[thread as usize]), words(multiple(stretch_start(thread))), "thread {thread}");
        }
        assert_eq!([table.len(), stretches.len()], [TABLE as usize, MAX_THREADS_PER_START as usize]);
    }
}
