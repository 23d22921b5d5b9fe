//! The variants of the search kernel. All find the same hits. They differ in their use of shared
//! memory and tensor cores.

use super::constants::{
    DEFERRED_BYTES, FEW_SHARED, GROUP, LEAN_FEW_SHARED, LEAN_MANY_SHARED, LEAN_ONE_SHARED, MANY_SHARED, MOST_DEFERRED,
    ONE_SHARED, PLAIN_COARSE_BITS, PLAIN_THREADS, SCRATCH_BYTES, TENSOR_COARSE_BITS, TENSOR_FEW_BITS, TENSOR_THREADS,
};
use super::driver::reason;
use super::geometry::THREADS_PER_MULTIPROCESSOR;
use cudarc::driver::sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
use cudarc::driver::{CudaFunction, CudaModule, LaunchConfig};
use std::sync::Arc;

/// A variant of `kernels/search.cu`. Sizes are bytes of shared memory per block.
struct Plan {
    name: &'static str,
    block: u32,
    bytes_one: u32,
    bytes_few: u32,
    bytes_many: u32,
    few_bits: u32,
    coarse_bits: u32,
    group: u32,
}

const fn tensor_bytes(shared: u32) -> u32 {
    TENSOR_THREADS * (shared * 32 + SCRATCH_BYTES)
}

const fn bitmap_bytes(bits: u32) -> u32 {
    1 << (bits - 3)
}

/// Bytes of a coarse bitmap for many intervals, and of the top words that each warp collects for
/// the fine bitmap.
const fn many_bytes(bits: u32, threads: u32) -> u32 {
    bitmap_bytes(bits) + threads / 32 * MOST_DEFERRED * DEFERRED_BYTES
}

/// The first variant runs on every GPU. The others are used only if they find the same hits.
const PLANS: [Plan; 3] = [
    Plan {
        name: "plain",
        block: PLAIN_THREADS,
        bytes_one: 0,
        bytes_few: bitmap_bytes(PLAIN_COARSE_BITS),
        bytes_many: many_bytes(PLAIN_COARSE_BITS, PLAIN_THREADS),
        few_bits: PLAIN_COARSE_BITS,
        coarse_bits: PLAIN_COARSE_BITS,
        group: 1,
    },
    Plan {
        name: "tensor",
        block: TENSOR_THREADS,
        bytes_one: tensor_bytes(ONE_SHARED),
        bytes_few: tensor_bytes(FEW_SHARED) + bitmap_bytes(TENSOR_FEW_BITS),
        bytes_many: tensor_bytes(MANY_SHARED) + many_bytes(TENSOR_COARSE_BITS, TENSOR_THREADS),
        few_bits: TENSOR_FEW_BITS,
        coarse_bits: TENSOR_COARSE_BITS,
        group: GROUP,
    },
    Plan {
        name: "lean",
        block: TENSOR_THREADS,
        bytes_one: tensor_bytes(LEAN_ONE_SHARED),
        bytes_few: tensor_bytes(LEAN_FEW_SHARED) + bitmap_bytes(TENSOR_FEW_BITS),
        bytes_many: tensor_bytes(LEAN_MANY_SHARED) + many_bytes(PLAIN_COARSE_BITS, TENSOR_THREADS),
        few_bits: TENSOR_FEW_BITS,
        coarse_bits: PLAIN_COARSE_BITS,
        group: GROUP,
    },
];

/// The shared memory that a block may have on GPUs of compute capability 8.6, 8.9 and 12.0, the
/// smallest amount of all GPUs that have the tensor cores we use ("Technical Specifications per
/// Compute Capability" in NVIDIA's CUDA C++ Programming Guide).
const LEAST_SHARED_MEMORY: u32 = 99 * 1024;
const _: () = assert!(PLANS[2].shared_bytes() <= LEAST_SHARED_MEMORY);

impl Plan {
    /// The most shared memory that one of its kernels needs, in bytes per block.
    const fn shared_bytes(&self) -> u32 {
        let most = if self.bytes_few > self.bytes_many { self.bytes_few } else { self.bytes_many };
        if self.bytes_one > most { self.bytes_one } else { most }
    }
}

/// The forms of a kernel: for one interval of top words, a few, or many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    One,
    Few,
    Many,
}

/// The kernels of one variant, ready to launch.
#[derive(Clone)]
pub struct Variant {
    pub name: &'static str,
    /// Leading bits of a top word that index the coarse bitmap, if there are a few intervals.
    pub few_bits: u32,
    /// Leading bits of a top word that index the coarse bitmap, if there are many intervals.
    pub coarse_bits: u32,
    /// Table entries per prefix product kept in memory.
    pub group: u32,
    one: (CudaFunction, LaunchConfig),
    few: (CudaFunction, LaunchConfig),
    many: (CudaFunction, LaunchConfig),
}

impl Variant {
    /// The kernel of a form, with its launch configuration.
    pub fn kernel(&self, form: Form) -> &(CudaFunction, LaunchConfig) {
        match form {
            Form::One => &self.one,
            Form::Few => &self.few,
            Form::Many => &self.many,
        }
    }
}

/// The variants that the module contains and the GPU can run with this much shared memory per
/// block, the plain one first. `None` means all that the GPU has.
pub fn available(
    module: &Arc<CudaModule>,
    multiprocessors: u32,
    shared_memory: Option<u32>,
) -> Result<Vec<Variant>, String> {
    let mut variants = Vec::new();
    for plan in PLANS.iter().filter(|plan| shared_memory.is_none_or(|limit| plan.shared_bytes() <= limit)) {
        match ready(module, plan, multiprocessors) {
            Ok(variant) => variants.push(variant),
            Err(reason) if variants.is_empty() => return Err(reason),
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

fn ready(module: &Arc<CudaModule>, plan: &Plan, multiprocessors: u32) -> Result<Variant, String> {
    let kernel = |suffix: &str, bytes: u32| {
        let name = format!("{}_{suffix}", plan.name);
        let failed = |error: cudarc::driver::DriverError| format!("kernel {name}: {}", reason(error));
        let function = module.load_function(&name).map_err(failed)?;
        let room = i32::try_from(bytes).map_err(|error| error.to_string())?;
        function.set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, room).map_err(failed)?;
        let blocks = multiprocessors * THREADS_PER_MULTIPROCESSOR / plan.block;
        let config = LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (plan.block, 1, 1), shared_mem_bytes: bytes };
        Ok::<_, String>((function, config))
    };
    Ok(Variant {
        name: plan.name,
        few_bits: plan.few_bits,
        coarse_bits: plan.coarse_bits,
        group: plan.group,
        one: kernel("one", plan.bytes_one)?,
        few: kernel("few", plan.bytes_few)?,
        many: kernel("many", plan.bytes_many)?,
    })
}
