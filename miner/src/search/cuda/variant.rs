//! The variants of the search kernel. All find the same hits. They differ in their use of shared
//! memory and tensor cores.

use super::constants::{
    CENTRE_CONSTANTS, COARSE_BITS, DEFERRED_BYTES, FEW_BITS, FEWER_WARPS, GROUP, LARGE_BITS, LARGE_BLOCK, MIDDLE_BLOCK,
    MOST_DEFERRED, SCRATCH_BYTES, SMALL_BLOCK, WARPS,
};
use super::driver::reason;
use super::geometry::{FIELD_BYTES, WARP};
use cudarc::driver::sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
use cudarc::driver::{CudaFunction, CudaModule, DriverError, LaunchConfig};
use std::sync::Arc;

/// A variant of `kernels/search.cu`.
struct Plan {
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
const PLANS: [Plan; 5] = [
    Plan { name: "plain", block: 0, warps: WARPS, bits: COARSE_BITS },
    Plan { name: "tensor", block: LARGE_BLOCK, warps: WARPS, bits: LARGE_BITS },
    // Less energy and a little less speed; at a card's power cap perhaps more speed.
    Plan { name: "saving", block: LARGE_BLOCK, warps: FEWER_WARPS, bits: LARGE_BITS },
    Plan { name: "middle", block: MIDDLE_BLOCK, warps: WARPS, bits: COARSE_BITS },
    Plan { name: "small", block: SMALL_BLOCK, warps: WARPS, bits: COARSE_BITS },
];

/// Bytes of shared memory for a filter of this form.
fn filter_bytes(form: Form, bits: u32) -> u32 {
    match form {
        Form::One => 0,
        Form::Few => 1 << (bits - 3),
        Form::Many => (1 << (bits - 3)) + WARPS * MOST_DEFERRED * DEFERRED_BYTES,
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
pub enum Form {
    One,
    Few,
    Many,
}

/// A kernel, ready to launch.
#[derive(Clone)]
pub struct Kernel {
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
    kernels: [Kernel; 3],
}

impl Variant {
    pub fn kernel(&self, form: Form) -> &Kernel {
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

fn ready(module: &Arc<CudaModule>, plan: &Plan, multiprocessors: u32) -> Result<Variant, String> {
    let kernel = |form: Form| {
        let (suffix, bits) = match form {
            Form::One => ("one", 0),
            Form::Few => ("few", FEW_BITS),
            Form::Many => ("many", plan.bits),
        };
        let filter = filter_bytes(form, bits);
        let bytes = filter + if plan.block == 0 { 0 } else { tensor_bytes(plan.block, plan.warps, filter) };
        let name = format!("{}_{suffix}", plan.name);
        let function = load(module, &name, bytes).map_err(|error| format!("kernel {name}: {}", reason(error)))?;
        Ok::<_, String>(Kernel { function, config: launch_config(multiprocessors, plan.warps, bytes), bits })
    };
    Ok(Variant {
        name: plan.name,
        warps: plan.warps,
        group: if plan.block == 0 { 1 } else { GROUP },
        kernels: [kernel(Form::One)?, kernel(Form::Few)?, kernel(Form::Many)?],
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_has_room_for_its_filter_and_no_more_than_it_may_have() {
        for plan in &PLANS[1..] {
            for (form, bits) in [(Form::One, 0), (Form::Few, FEW_BITS), (Form::Many, plan.bits)] {
                let (filter, warps) = (filter_bytes(form, bits), plan.warps);
                let bytes = filter + tensor_bytes(plan.block, warps, filter);
                println!("{} {form:?}: {bytes} bytes of {}", plan.name, plan.block);
                assert!(bytes <= plan.block && bytes + WARP * warps * FIELD_BYTES as u32 > plan.block, "{bytes}");
            }
        }
    }
}
