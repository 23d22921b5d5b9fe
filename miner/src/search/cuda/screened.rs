//! The fast kernels for whole keys, on GPUs whose tensor cores count bits (compute capability 8.0
//! to below 10.0).

use super::abi::{Point, Screen, Search, WholeSearch};
use super::buffers::Buffer;
use super::constants::{MATRIX_BYTES, PARITY_GROUPS, SCRATCH_BYTES, TENSOR_THREADS, WHOLE_ENTRY_BYTES, WHOLE_FIELDS};
use super::geometry::{FIELD_BYTES, Geometry, TABLE};
use super::launch::groups_of_128;
use super::screen::Tests;
use cudarc::driver::sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
use cudarc::driver::{
    CudaFunction, CudaModule, CudaSlice, CudaStream, DevicePtr, DriverError, LaunchConfig, PushKernelArg,
};
use std::sync::Arc;

/// Shared memory of a block: per thread the fields, a kept key, its name and two pieces of scratch
/// memory; then the parities.
const SHARED_BYTES: u32 =
    TENSOR_THREADS * ((WHOLE_FIELDS + 1) * FIELD_BYTES as u32 + 4 + 2 * SCRATCH_BYTES) + PARITY_GROUPS * 512;

/// The kernels and their tables.
pub struct Screened {
    any: CudaFunction,
    ends: CudaFunction,
    runs: CudaFunction,
    table: CudaSlice<u8>,
    /// The matrix of β for the tensor cores.
    beta: CudaSlice<u8>,
}

impl Screened {
    /// Builds the tables from the points i·G. `None` if the module lacks the kernels, or the GPU or
    /// the limit leaves a block too little shared memory for them.
    pub fn new(
        stream: &Arc<CudaStream>,
        module: &Arc<CudaModule>,
        points: &CudaSlice<Point>,
        shared_memory: Option<u32>,
    ) -> Result<Option<Screened>, DriverError> {
        if shared_memory.is_some_and(|limit| SHARED_BYTES > limit) {
            return Ok(None);
        }
        let kernel = |name: &str| {
            let kernel = module.load_function(name)?;
            kernel.set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, SHARED_BYTES as i32)?;
            Ok(kernel)
        };
        let load = || {
            let kernels = [kernel("whole_screened")?, kernel("whole_ends")?, kernel("whole_runs")?];
            Ok((kernels, module.load_function("build_whole_table")?))
        };
        let ([any, ends, runs], build) = match load() {
            Ok(all) => all,
            Err(error) => {
                let error: DriverError = error;
                tracing::debug!(%error, "no screened search of whole keys");
                return Ok(None);
            }
        };
        let mut table = stream.alloc_zeros::<u8>((TABLE * WHOLE_ENTRY_BYTES) as usize)?;
        let mut beta = stream.alloc_zeros::<u8>(MATRIX_BYTES as usize)?;
        let mut launch = stream.launch_builder(&build);
        launch.arg(points).arg(&mut table).arg(&TABLE).arg(&mut beta);
        // SAFETY: the arguments match `build_whole_table`. The grid covers the table, and the
        // kernel checks its end.
        unsafe { launch.launch(groups_of_128(TABLE))? };
        Ok(Some(Screened { any, ends, runs, table, beta }))
    }

    /// Queues the kernel that makes the tests of the screen.
    pub fn search(
        &self,
        stream: &Arc<CudaStream>,
        search: &Search,
        whole: &WholeSearch,
        screen: &Screen,
        geometry: &Geometry,
    ) -> Result<(), DriverError> {
        let config = LaunchConfig {
            grid_dim: (geometry.threads() / TENSOR_THREADS, 1, 1),
            block_dim: (TENSOR_THREADS, 1, 1),
            shared_mem_bytes: SHARED_BYTES,
        };
        let (table, beta) = (self.table.device_ptr(stream).0, self.beta.device_ptr(stream).0);
        let kernel = match Tests::of(screen) {
            Tests::Any => &self.any,
            Tests::Ends => &self.ends,
            Tests::Runs => &self.runs,
        };
        let mut launch = stream.launch_builder(kernel);
        launch.arg(search).arg(whole).arg(screen).arg(&table).arg(&beta);
        // SAFETY: the arguments match the kernel, every buffer in `search` has the size that the
        // grid and the extent need, and the shared memory is that of `WholeShared`.
        unsafe { launch.launch(config)? };
        Ok(())
    }

    /// All buffers on the device.
    pub fn buffers(&self) -> Vec<Buffer<'_>> {
        let Screened { any: _, ends: _, runs: _, table, beta } = self;
        vec![Buffer::on_device("table for whole keys", table), Buffer::on_device("matrix of β", beta)]
    }
}
