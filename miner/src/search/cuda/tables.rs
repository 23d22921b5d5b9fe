//! The tables of the search: multiples of G and constants computed from them, the same for every
//! launch.

use super::abi::Point;
use super::buffers::Buffer;
use super::constants::{ENTRY_BYTES, GROUP, GROUP_BYTES, MATRICES, MATRIX_BYTES};
use super::geometry::TABLE;
use super::launch::groups_of_128;
use super::module::Kernels;
use super::multiples::multiples;
use cudarc::driver::{CudaSlice, CudaStream, DriverError, PushKernelArg};
use std::sync::Arc;

/// Tables in device memory.
pub struct Tables {
    pub entries: CudaSlice<u8>,
    /// The matrices of the entries' constants, for the tensor cores.
    pub matrices: CudaSlice<u8>,
    /// The matrices of the groups' constants, for the tensor cores.
    pub groups: CudaSlice<u8>,
    /// The multiple of G at which each thread of a start point begins, relative to the start point.
    pub stretches: CudaSlice<Point>,
}

impl Tables {
    /// Queues the kernels that build the tables from the points i·G.
    pub fn new(stream: &Arc<CudaStream>, kernels: &Kernels, points: &CudaSlice<Point>) -> Result<Tables, DriverError> {
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
        Ok(Tables { entries, matrices, groups, stretches: stream.clone_htod(&multiples().stretches)? })
    }

    /// All buffers. Destructures every field: a new buffer cannot be forgotten here.
    pub fn buffers(&self) -> Vec<Buffer<'_>> {
        let Tables { entries, matrices, groups, stretches } = self;
        vec![
            Buffer::on_device("table", entries),
            Buffer::on_device("matrices", matrices),
            Buffer::on_device("groups", groups),
            Buffer::on_device("stretches", stretches),
        ]
    }
}
