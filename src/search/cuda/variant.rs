//! The forms of the search: kernels that find the same, and differ in what they ask of a GPU.

use super::geometry::THREADS_PER_MULTIPROCESSOR;
use cudarc::driver::sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
use cudarc::driver::{CudaFunction, CudaModule, LaunchConfig};
use std::sync::Arc;

/// What `kernels/abi.h` and `kernels/search.cu` say of a form; bytes are shared memory of a block.
struct Plan {
    name: &'static str,
    block: u32,
    bytes_one: u32,
    bytes_many: u32,
    coarse_bits: u32,
}

const PLAIN_BITS: u32 = 18;
const TENSOR_BITS: u32 = 19;
/// Bytes of the largest first bitmap.
pub const COARSE_BYTES: usize = 1 << (TENSOR_BITS - 3);

/// The first runs on every GPU, and the others have to agree with it.
const PLANS: [Plan; 3] = [
    Plan { name: "plain", block: 256, bytes_one: 0, bytes_many: 1 << (PLAIN_BITS - 3), coarse_bits: PLAIN_BITS },
    Plan {
        name: "tensor",
        block: 512,
        bytes_one: 155_648,
        bytes_many: 155_648 + (1 << (TENSOR_BITS - 3)),
        coarse_bits: TENSOR_BITS,
    },
    Plan {
        name: "lean",
        block: 512,
        bytes_one: 24_576,
        bytes_many: 24_576 + (1 << (PLAIN_BITS - 3)),
        coarse_bits: PLAIN_BITS,
    },
];

/// The kernels of one form, ready to launch.
#[derive(Clone)]
pub struct Form {
    pub name: &'static str,
    pub coarse_bits: u32,
    one: (CudaFunction, LaunchConfig),
    many: (CudaFunction, LaunchConfig),
}

impl Form {
    /// The kernel for one interval of top_words or for many, and how to launch it.
    pub fn kernel(&self, single: bool) -> &(CudaFunction, LaunchConfig) {
        if single { &self.one } else { &self.many }
    }
}

/// The forms that `module` has and the GPU can hold, the plain one first.
pub fn available(module: &Arc<CudaModule>, multiprocessors: u32) -> Result<Vec<Form>, String> {
    let mut forms = Vec::new();
    for plan in &PLANS {
        match ready(module, plan, multiprocessors) {
            Ok(form) => forms.push(form),
            Err(reason) if forms.is_empty() => return Err(reason),
            Err(reason) => tracing::debug!(form = plan.name, reason, "not for this GPU"),
        }
    }
    Ok(forms)
}

fn ready(module: &Arc<CudaModule>, plan: &Plan, multiprocessors: u32) -> Result<Form, String> {
    let kernel = |suffix: &str, bytes: u32| {
        let name = format!("{}_{suffix}", plan.name);
        let failed = |error: cudarc::driver::DriverError| format!("kernel {name}: {error}");
        let function = module.load_function(&name).map_err(failed)?;
        let room = i32::try_from(bytes).map_err(|error| error.to_string())?;
        function.set_attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, room).map_err(failed)?;
        let blocks = multiprocessors * THREADS_PER_MULTIPROCESSOR / plan.block;
        let config = LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (plan.block, 1, 1), shared_mem_bytes: bytes };
        Ok::<_, String>((function, config))
    };
    Ok(Form {
        name: plan.name,
        coarse_bits: plan.coarse_bits,
        one: kernel("one", plan.bytes_one)?,
        many: kernel("many", plan.bytes_many)?,
    })
}
