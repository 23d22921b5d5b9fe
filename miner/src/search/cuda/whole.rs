//! The kernels for whole keys.

use super::abi::{Point, Screen, Search, WholeSearch};
use super::buffers::Buffer;
use super::constants::{
    ACCEPTED_WORDS, CHECKSUM_WORDS, MATRIX_BYTES, MIDDLE_BLOCK, PARITY_GROUPS, SCRATCH_BYTES, SMALL_BLOCK, WARPS,
    WHOLE_ENTRY_BYTES, WHOLE_FIELDS,
};
use super::geometry::{FIELD_BYTES, Geometry, TABLE, WARP};
use super::launch::groups_of_128;
use super::screen::Tests;
use super::variant::{launch_config, load};
use cudarc::driver::{
    CudaFunction, CudaModule, CudaSlice, CudaStream, DevicePtr, DeviceRepr, DriverError, LaunchConfig, PushKernelArg,
};
use std::sync::Arc;

/// Prefixes of the kernels' names, and bytes of shared memory that their blocks may have.
/// More is no faster: an H200 and an H100 do 71 G/s with `*cafe7` in either, as with 227 KB.
const BLOCKS: [(&str, u32); 2] = [("middle", MIDDLE_BLOCK), ("small", SMALL_BLOCK)];
/// Bytes of shared memory for the quick tests, and for the tests of texts.
const QUICK_BYTES: u32 = PARITY_GROUPS * 512;
const TEXT_BYTES: u32 = ((CHECKSUM_WORDS + ACCEPTED_WORDS) * 4).next_multiple_of(16);

/// Bytes of shared memory of a block that may have `block` bytes: for tests, scratch memory, and the
/// fields that fit.
fn shared_bytes(block: u32, tests: u32) -> u32 {
    let threads = WARP * WARPS;
    let fit = (block - threads * SCRATCH_BYTES - tests) / (threads * FIELD_BYTES as u32);
    threads * (fit.min(WHOLE_FIELDS) * FIELD_BYTES as u32 + SCRATCH_BYTES) + tests
}

/// A kernel, and its bytes of shared memory.
type Kernel = (CudaFunction, u32);

/// The kernels and their tables.
pub struct WholeKeys {
    any: Kernel,
    ends: Kernel,
    runs: Kernel,
    texts: Kernel,
    table: CudaSlice<u8>,
    /// The matrix of β for the tensor cores.
    beta: CudaSlice<u8>,
}

impl WholeKeys {
    /// Builds the tables from the points i·G. The kernels are those with the largest blocks that the
    /// module has and the GPU can launch, with this much shared memory per block if possible.
    pub fn new(
        stream: &Arc<CudaStream>,
        module: &Arc<CudaModule>,
        points: &CudaSlice<Point>,
        shared_memory: Option<u32>,
    ) -> Result<WholeKeys, DriverError> {
        let fits = |(_, block): &&(&str, u32)| shared_memory.is_none_or(|limit| *block <= limit);
        let mut blocks = BLOCKS.iter().filter(fits).chain(BLOCKS.iter().rev());
        let prefix_of_all = |(prefix, _): &&(&str, u32)| module.load_function(&format!("{prefix}_any")).is_ok();
        let &(prefix, block) =
            blocks.find(prefix_of_all).ok_or(DriverError(cudarc::driver::sys::CUresult::CUDA_ERROR_NOT_FOUND))?;
        let kernel = |suffix: &str, tests: u32| {
            let bytes = shared_bytes(block, tests);
            load(module, &format!("{prefix}_{suffix}"), bytes).map(|function| (function, bytes))
        };
        let (any, ends, runs) =
            (kernel("any", QUICK_BYTES)?, kernel("ends", QUICK_BYTES)?, kernel("runs", QUICK_BYTES)?);
        let texts = kernel("texts", TEXT_BYTES)?;
        let build = module.load_function("build_whole_table")?;
        let mut table = stream.alloc_zeros::<u8>((TABLE * WHOLE_ENTRY_BYTES) as usize)?;
        let mut beta = stream.alloc_zeros::<u8>(MATRIX_BYTES as usize)?;
        let mut launch = stream.launch_builder(&build);
        launch.arg(points).arg(&mut table).arg(&TABLE).arg(&mut beta);
        // SAFETY: the arguments match `build_whole_table`. The grid covers the table, and the
        // kernel checks its end.
        unsafe { launch.launch(groups_of_128(TABLE))? };
        Ok(WholeKeys { any, ends, runs, texts, table, beta })
    }

    /// Queues the kernel that makes the tests of the screen.
    pub fn search_by_screen(
        &self,
        stream: &Arc<CudaStream>,
        search: &Search,
        screen: &Screen,
        geometry: &Geometry,
    ) -> Result<(), DriverError> {
        let kernel = match Tests::of(screen) {
            Tests::Any => &self.any,
            Tests::Ends => &self.ends,
            Tests::Runs => &self.runs,
        };
        self.launch(stream, kernel, search, screen, geometry)
    }

    /// Queues the kernel that tests the texts of all keys.
    pub fn search_by_texts(
        &self,
        stream: &Arc<CudaStream>,
        search: &Search,
        whole: &WholeSearch,
        geometry: &Geometry,
    ) -> Result<(), DriverError> {
        self.launch(stream, &self.texts, search, whole, geometry)
    }

    fn launch<Tests: DeviceRepr>(
        &self,
        stream: &Arc<CudaStream>,
        (kernel, bytes): &Kernel,
        search: &Search,
        tests: &Tests,
        geometry: &Geometry,
    ) -> Result<(), DriverError> {
        let config: LaunchConfig = launch_config(geometry.multiprocessors, WARPS, *bytes);
        let (table, beta) = (self.table.device_ptr(stream).0, self.beta.device_ptr(stream).0);
        let mut launch = stream.launch_builder(kernel);
        launch.arg(search).arg(tests).arg(&table).arg(&beta);
        // SAFETY: the arguments match the kernel, every buffer in `search` has the size that the
        // grid and the extent need, and the shared memory is that of `search_whole_keys`.
        unsafe { launch.launch(config)? };
        Ok(())
    }

    /// All buffers on the device.
    pub fn buffers(&self) -> Vec<Buffer<'_>> {
        let WholeKeys { any: _, ends: _, runs: _, texts: _, table, beta } = self;
        vec![Buffer::on_device("table for whole keys", table), Buffer::on_device("matrix of β", beta)]
    }
}
