//! What there is to search with, for `npubbot doctor`; and single field operations on the GPU, for the tests.

use super::abi::limbs;
use super::constants::MATRIX_BYTES;
use super::module::{BUILT_FOR, Kernels, nvrtc_is_present, ptx_for};
use cudarc::driver::{LaunchConfig, PushKernelArg};

/// What this machine and this build bring for the search on GPUs.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The newest CUDA version that the driver serves, such as `13.0`; or why there is none.
    pub driver: Result<String, String>,
    pub gpus: Vec<Gpu>,
    /// Compute capabilities the build has machine code for, such as `80 90`; `None` where it had no nvcc.
    pub built_for: Option<&'static str>,
    /// Whether kernels can be compiled here.
    pub nvrtc: bool,
}

#[derive(Clone, Debug)]
pub struct Gpu {
    pub ordinal: usize,
    pub name: String,
    pub compute_capability: (i32, i32),
    pub memory_bytes: usize,
}

/// Looks; opens nothing for longer than it takes to ask.
pub fn findings() -> Findings {
    let count = super::device_count();
    let driver = count.clone().and_then(|_| {
        let mut version = 0;
        // SAFETY: the library is there, as `device_count` found, and the pointer is valid.
        let code = unsafe { cudarc::driver::sys::cuDriverGetVersion(&mut version) };
        code.result().map_err(|error| error.to_string())?;
        Ok(format!("{}.{}", version / 1000, version % 1000 / 10))
    });
    let gpus = (0..count.unwrap_or(0)).filter_map(|ordinal| {
        let context = super::context(ordinal).ok()?;
        Some(Gpu {
            ordinal,
            name: context.name().ok()?,
            compute_capability: context.compute_capability().ok()?,
            memory_bytes: context.total_mem().ok()?,
        })
    });
    Findings {
        driver,
        gpus: gpus.collect(),
        built_for: (BUILT_FOR != "none").then_some(BUILT_FOR),
        nvrtc: nvrtc_is_present(),
    }
}

/// One operation of `kernels/field.cuh`, as `kernels/probe.cuh` numbers them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    Mul,
    Sqr,
    Add,
    Sub,
    Inverse,
    Canonical,
    /// The top 32 bits of the product, in the lowest limb; off by a few.
    Top,
    /// As the search does it: right for all but about one in 2^64 random inputs, not for every chosen one.
    MulQuick,
    SqrQuick,
    SubQuick,
    /// `Top` with the second factor made ready, as the search with several intervals does it.
    TopFine,
    /// The same as the search with one interval does it: between 735 low and 246 high.
    TopRough,
}

/// One operation of `kernels/tensor.cuh`: values a with a constant c, on the tensor cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TensorOperation {
    /// a·c
    Times,
    /// The same as the search does it: for values as good as random.
    TimesQuick,
    /// a·c + a²·c
    Sum,
    /// The top 32 bits of a·c + a²·c² in the lowest limb, of β times that in the next; low by a few.
    TopWords,
}

/// 32 bytes, big-endian.
pub type Number = [u8; 32];

/// Runs `operation` on every pair, on GPU `ordinal`. Numbers are 32 bytes, big-endian; results are below p.
pub fn operate(ordinal: usize, operation: Operation, pairs: &[(Number, Number)]) -> Result<Vec<Number>, String> {
    let context = super::context(ordinal)?;
    let kernels = Kernels::load(&context)?;
    let stream = context.default_stream();
    let a = stream.clone_htod(&flat(pairs.iter().map(|pair| &pair.0))).map_err(text)?;
    let b = stream.clone_htod(&flat(pairs.iter().map(|pair| &pair.1))).map_err(text)?;
    let mut out = stream.alloc_zeros::<u32>(8 * pairs.len()).map_err(text)?;
    let (what, count) = (operation as u32, pairs.len() as u32);
    let mut launch = stream.launch_builder(&kernels.probe);
    launch.arg(&what).arg(&a).arg(&b).arg(&mut out).arg(&count);
    // SAFETY: the arguments are those of `probe`; the kernel checks the end.
    unsafe { launch.launch(grid(count.div_ceil(128), 128)) }.map_err(text)?;
    Ok(numbers(&stream.clone_dtoh(&out).map_err(text)?))
}

/// Whether the kernels compile at run time for this compute capability; `None` where the library for it is not there.
pub fn compiles_at_run_time(capability: (i32, i32)) -> Option<Result<(), String>> {
    nvrtc_is_present().then(|| ptx_for(capability).map(|_| ()))
}

/// Runs `operation` on each constant with its 32 values, on GPU `ordinal`; `None` where it has no such tensor cores.
pub fn operate_on_constants(
    ordinal: usize,
    operation: TensorOperation,
    groups: &[(Number, [Number; 32])],
) -> Result<Option<Vec<Number>>, String> {
    let context = super::context(ordinal)?;
    if context.compute_capability().map_err(text)? < (8, 0) {
        return Ok(None);
    }
    let kernels = Kernels::load(&context)?;
    let probe = kernels.module.load_function("probe_tensor").map_err(text)?;
    let build = kernels.module.load_function("probe_matrices").map_err(text)?;
    let stream = context.default_stream();
    let constants = stream.clone_htod(&flat(groups.iter().map(|group| &group.0))).map_err(text)?;
    let values = stream.clone_htod(&flat(groups.iter().flat_map(|group| &group.1))).map_err(text)?;
    let mut matrices = stream.alloc_zeros::<u8>(groups.len() * 2 * MATRIX_BYTES as usize).map_err(text)?;
    let mut out = stream.alloc_zeros::<u32>(8 * 32 * groups.len()).map_err(text)?;
    let (what, warps) = (operation as u32, groups.len() as u32);
    let mut launch = stream.launch_builder(&build);
    launch.arg(&constants).arg(&mut matrices);
    // SAFETY: the arguments are those of `probe_matrices`; a block a constant, as it expects.
    unsafe { launch.launch(grid(warps, 32)) }.map_err(text)?;
    let mut launch = stream.launch_builder(&probe);
    launch.arg(&what).arg(&values).arg(&matrices).arg(&mut out);
    // SAFETY: the arguments are those of `probe_tensor`; a block a constant, as it expects.
    unsafe { launch.launch(grid(warps, 32)) }.map_err(text)?;
    Ok(Some(numbers(&stream.clone_dtoh(&out).map_err(text)?)))
}

fn text(error: cudarc::driver::DriverError) -> String {
    error.to_string()
}

fn grid(blocks: u32, threads: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 }
}

fn flat<'a>(numbers: impl Iterator<Item = &'a Number>) -> Vec<u32> {
    numbers.flat_map(limbs).collect()
}

fn numbers(words: &[u32]) -> Vec<Number> {
    words.chunks(8).map(|limbs| std::array::from_fn(|i| limbs[7 - i / 4].to_be_bytes()[i % 4])).collect()
}
