//! The kernels of the search and how they are started: the variants for top words, which all find the
//! same hits and differ in their use of shared memory and tensor cores; the kernels for whole keys;
//! and the kernel that recomputes suspects in full, with its hits.

use super::abi::{DeviceChecks, DeviceScreen, Search, Suspect, WholeSearch};
use super::constants::{
    ACCEPTED_WORDS, CENTRE_CONSTANTS, CHECKSUM_WORDS, COARSE_BITS, CONFIRM_BLOCKS, CONFIRM_THREADS, DEFERRED_BYTES,
    FEW_BITS, FEWER_WARPS, GROUP, LARGE_BITS, LARGE_BLOCK, MAX_DEFERRED, MIDDLE_BLOCK, PARITY_GROUPS, SCRATCH_BYTES,
    SMALL_BLOCK, WARPS, WHOLE_FIELDS,
};
use super::driver::reason;
use super::geometry::{FIELD_BYTES, Geometry, STEP, WARP, stretch_start, threads_per_start};
use super::key_tests::ScreenForm;
use super::tables::SearchTables;
use crate::key::{Offset, Rotation, Tweak};
use crate::search::searcher::ClaimedHit;
use cudarc::driver::sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
use cudarc::driver::{CudaFunction, CudaModule, CudaStream, DevicePtr, DriverError, LaunchConfig, PushKernelArg};
use std::sync::Arc;

/// A variant of `kernels/search.cu`.
struct VariantPlan {
    name: &'static str,
    /// Bytes of shared memory that a block may have; none for the variant without tensor cores.
    block: u32,
    /// Warps of a block.
    warps: u32,
    /// Leading bits that index the coarse bitmap for many intervals.
    bits: u32,
}

/// The plain variant runs on every GPU. The others, those with the largest blocks first, are used
/// only if they find the same hits.
const PLANS: [VariantPlan; 5] = [
    VariantPlan { name: "plain", block: 0, warps: WARPS, bits: COARSE_BITS },
    VariantPlan { name: "tensor", block: LARGE_BLOCK, warps: WARPS, bits: LARGE_BITS },
    // Less energy and a little less speed; at a card's power cap perhaps more speed.
    VariantPlan { name: "saving", block: LARGE_BLOCK, warps: FEWER_WARPS, bits: LARGE_BITS },
    VariantPlan { name: "middle", block: MIDDLE_BLOCK, warps: WARPS, bits: COARSE_BITS },
    VariantPlan { name: "small", block: SMALL_BLOCK, warps: WARPS, bits: COARSE_BITS },
];

/// Bytes of shared memory for a filter of this form.
fn filter_bytes(form: FilterForm, bits: u32) -> u32 {
    match form {
        FilterForm::One => 0,
        FilterForm::Few => 1 << (bits - 3),
        FilterForm::Many => (1 << (bits - 3)) + WARPS * MAX_DEFERRED * DEFERRED_BYTES,
    }
}

/// Bytes of shared memory for the constants of the centres, as many as fit into a block beside the
/// filter, and for the scratch memory of its warps.
fn tensor_bytes(block: u32, warps: u32, filter: u32) -> u32 {
    let threads = WARP * warps;
    let fit = (block - filter - threads * SCRATCH_BYTES) / (threads * FIELD_BYTES as u32);
    threads * (fit.min(CENTRE_CONSTANTS) * FIELD_BYTES as u32 + SCRATCH_BYTES)
}

/// The forms of a kernel: for one interval of top words, a few, or many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FilterForm {
    One,
    Few,
    Many,
}

/// A kernel, ready to launch.
#[derive(Clone)]
pub struct SearchKernel {
    pub function: CudaFunction,
    pub config: LaunchConfig,
    /// Leading bits of a top word that index the coarse bitmap.
    pub bits: u32,
}

/// The kernels of one variant.
#[derive(Clone)]
pub struct Variant {
    pub name: &'static str,
    /// Warps of a block.
    pub warps: u32,
    /// Table entries per prefix product kept in memory.
    pub group: u32,
    /// For one interval, a few, and many.
    kernels: [SearchKernel; 3],
}

impl Variant {
    pub fn kernel(&self, form: FilterForm) -> &SearchKernel {
        &self.kernels[form as usize]
    }
}

/// The variants for a GPU: the plain one, and those with the largest blocks that the module has and
/// the GPU can launch with this much shared memory per block. `None` means all that the GPU has.
pub fn available(
    module: &Arc<CudaModule>,
    multiprocessors: u32,
    shared_memory: Option<u32>,
) -> Result<Vec<Variant>, String> {
    let [plain, others @ ..] = &PLANS;
    let mut variants = vec![ready(module, plain, multiprocessors)?];
    let mut block = 0;
    for plan in others {
        if plan.block < block || shared_memory.is_some_and(|limit| limit < plan.block) {
            continue;
        }
        match ready(module, plan, multiprocessors) {
            Ok(variant) => {
                block = plan.block;
                variants.push(variant);
            }
            Err(reason) => tracing::debug!(variant = plan.name, reason, "not for this GPU"),
        }
    }
    Ok(variants)
}

/// The variant of this name; `None` if there is none, or the GPU cannot run it.
pub fn named(module: &Arc<CudaModule>, multiprocessors: u32, name: &str) -> Option<Variant> {
    let plan = PLANS.iter().find(|plan| plan.name == name)?;
    ready(module, plan, multiprocessors).ok()
}

fn ready(module: &Arc<CudaModule>, plan: &VariantPlan, multiprocessors: u32) -> Result<Variant, String> {
    let kernel = |form: FilterForm| {
        let (suffix, bits) = match form {
            FilterForm::One => ("one", 0),
            FilterForm::Few => ("few", FEW_BITS),
            FilterForm::Many => ("many", plan.bits),
        };
        let filter = filter_bytes(form, bits);
        let bytes = filter + if plan.block == 0 { 0 } else { tensor_bytes(plan.block, plan.warps, filter) };
        let name = format!("{}_{suffix}", plan.name);
        let function = load(module, &name, bytes).map_err(|error| format!("kernel {name}: {}", reason(error)))?;
        Ok::<_, String>(SearchKernel { function, config: launch_config(multiprocessors, plan.warps, bytes), bits })
    };
    Ok(Variant {
        name: plan.name,
        warps: plan.warps,
        group: if plan.block == 0 { 1 } else { GROUP },
        kernels: [kernel(FilterForm::One)?, kernel(FilterForm::Few)?, kernel(FilterForm::Many)?],
    })
}

/// The kernel of this name, with so many bytes of shared memory per block.
pub fn load(module: &Arc<CudaModule>, name: &str, bytes: u32) -> Result<CudaFunction, DriverError> {
    let function = module.load_function(name)?;
    function.set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes as i32)?;
    Ok(function)
}

/// A launch with one block per multiprocessor.
pub fn launch_config(multiprocessors: u32, warps: u32, bytes: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (multiprocessors, 1, 1), block_dim: (WARP * warps, 1, 1), shared_mem_bytes: bytes }
}

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

/// The kernels for whole keys.
pub struct WholeKeyKernels {
    any: SearchKernel,
    ends: SearchKernel,
    runs: SearchKernel,
    texts: SearchKernel,
}

impl WholeKeyKernels {
    /// The kernels with the largest blocks that the module has and the GPU can launch, with this
    /// much shared memory per block if possible.
    pub fn new(
        module: &Arc<CudaModule>,
        multiprocessors: u32,
        shared_memory: Option<u32>,
    ) -> Result<WholeKeyKernels, DriverError> {
        let fits = |(_, block): &&(&str, u32)| shared_memory.is_none_or(|limit| *block <= limit);
        let mut blocks = BLOCKS.iter().filter(fits).chain(BLOCKS.iter().rev());
        let prefix_of_all = |(prefix, _): &&(&str, u32)| module.load_function(&format!("{prefix}_any")).is_ok();
        let &(prefix, block) =
            blocks.find(prefix_of_all).ok_or(DriverError(cudarc::driver::sys::CUresult::CUDA_ERROR_NOT_FOUND))?;
        let kernel = |suffix: &str, tests: u32| {
            let bytes = shared_bytes(block, tests);
            let function = load(module, &format!("{prefix}_{suffix}"), bytes)?;
            let config = launch_config(multiprocessors, WARPS, bytes);
            Ok::<_, DriverError>(SearchKernel { function, config, bits: 0 })
        };
        Ok(WholeKeyKernels {
            any: kernel("any", QUICK_BYTES)?,
            ends: kernel("ends", QUICK_BYTES)?,
            runs: kernel("runs", QUICK_BYTES)?,
            texts: kernel("texts", TEXT_BYTES)?,
        })
    }

    /// Queues the search of whole keys: by the tests of the screen, or by the texts of all keys.
    pub fn search(
        &self,
        stream: &Arc<CudaStream>,
        tables: &SearchTables,
        search: &Search,
        screen: Option<&DeviceScreen>,
        whole: &WholeSearch,
    ) -> Result<(), DriverError> {
        let kernel = match screen.map(ScreenForm::of) {
            Some(ScreenForm::Any) => &self.any,
            Some(ScreenForm::Ends) => &self.ends,
            Some(ScreenForm::Runs) => &self.runs,
            None => &self.texts,
        };
        let (table, beta) = (tables.whole.device_ptr(stream).0, tables.beta.device_ptr(stream).0);
        let mut launch = stream.launch_builder(&kernel.function);
        launch.arg(search);
        match screen {
            Some(screen) => launch.arg(screen),
            None => launch.arg(whole),
        };
        launch.arg(&table).arg(&beta);
        // SAFETY: the arguments match the kernel, every buffer in `search` has the size that the
        // grid and the extent need, and the shared memory is that of `search_whole_keys`.
        unsafe { launch.launch(kernel.config)? };
        Ok(())
    }
}

/// The most suspects that a thread of the kernel `confirm` inverts together.
const CONFIRM_BATCH: u32 = 128;

/// Queues a kernel that filters by top words.
pub fn search_top_words(stream: &Arc<CudaStream>, kernel: &SearchKernel, search: &Search) -> Result<(), DriverError> {
    let mut launch = stream.launch_builder(&kernel.function);
    launch.arg(search);
    // SAFETY: the argument matches the kernel, and every buffer in `search` has the size that the
    // grid and the extent need.
    unsafe { launch.launch(kernel.config)? };
    Ok(())
}

/// Queues the kernel that recomputes suspects in full, after a search whose blocks have so many
/// `warps`. `kept` is the number of prefix products that the search keeps for each of its threads.
pub fn confirm(
    stream: &Arc<CudaStream>,
    kernel: &CudaFunction,
    search: &Search,
    geometry: &Geometry,
    warps: u32,
    kept: u32,
    (checks, whole): (&DeviceChecks, &WholeSearch),
) -> Result<(), DriverError> {
    let config = LaunchConfig {
        grid_dim: (geometry.multiprocessors * CONFIRM_BLOCKS, 1, 1),
        block_dim: (CONFIRM_THREADS, 1, 1),
        shared_mem_bytes: 0,
    };
    let threads = geometry.threads(warps);
    let batch = (kept * WARP * WARPS / (2 * CONFIRM_THREADS * CONFIRM_BLOCKS)).clamp(1, CONFIRM_BATCH);
    let mut launch = stream.launch_builder(kernel);
    launch.arg(search).arg(&threads).arg(&batch).arg(checks).arg(whole);
    // SAFETY: the arguments match `confirm`, which checks the number of suspects. Its threads keep
    // two numbers a suspect, for which the prefix products of the most threads of a search have room:
    // `kept` is at least `GROUP`.
    unsafe { launch.launch(config)? };
    Ok(())
}

/// The claimed hit for a candidate that the device reports from a launch whose blocks have so many
/// warps.
pub fn claim(hit: &Suspect, warps: u32) -> ClaimedHit {
    let per_start = threads_per_start(warps);
    let step = i64::from(hit.entry) + 1;
    let centre = stretch_start(hit.thread % per_start) + u64::from(hit.step) * STEP;
    let rotation = |power| Rotation::new(power as u8).expect("three turns");
    let minus = hit.which / 3 % 2 == 1;
    let offset = Offset::of_point(centre, if minus { -step } else { step }, rotation(hit.which / 6 % 3));
    ClaimedHit { start: (hit.thread / per_start) as usize, tweak: Tweak { offset, rotation: rotation(hit.which % 3) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_has_room_for_its_filter_and_no_more_than_it_may_have() {
        for plan in &PLANS[1..] {
            for (form, bits) in [(FilterForm::One, 0), (FilterForm::Few, FEW_BITS), (FilterForm::Many, plan.bits)] {
                let (filter, warps) = (filter_bytes(form, bits), plan.warps);
                let bytes = filter + tensor_bytes(plan.block, warps, filter);
                println!("{} {form:?}: {bytes} bytes of {}", plan.name, plan.block);
                assert!(bytes <= plan.block && bytes + WARP * warps * FIELD_BYTES as u32 > plan.block, "{bytes}");
            }
        }
    }
}
