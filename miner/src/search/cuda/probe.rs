//! For `npubbot doctor`: the GPUs and kernels found. For tests: single field operations on a GPU.

use super::abi::{limbs, words_of};
use super::constants::MATRIX_BYTES;
pub use super::constants::{ROUGH_SLACK, SLACK};
use super::driver::{self, reason};
pub use super::module::compile_for;
use super::module::{BUILT_FOR, Kernels};
use crate::pattern::PatternSet;
use crate::search::device::DeviceId;
use crate::search::options::SearchOptions;
use crate::search::searcher::Searcher;
use cudarc::driver::{LaunchConfig, PushKernelArg};

/// The driver, GPUs and kernels available to this build on this machine.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The newest CUDA version that the driver serves, such as `13.0`; or why no GPU can be used.
    pub driver: Result<String, String>,
    /// The GPUs that the driver reports.
    pub gpus: Vec<GpuFinding>,
    /// The compute capabilities for which the build has code, and its compiler; `None` if it had no
    /// NVRTC.
    pub built_for: Option<&'static str>,
    /// The compilers that can make kernels at run time, such as `NVRTC 12.9`.
    pub compilers: Vec<String>,
}

/// A GPU, and whether it searches.
#[derive(Clone, Debug)]
pub struct GpuFinding {
    /// Its number, from 0.
    pub ordinal: usize,
    /// The maker's name for it, its compute capability and memory; empty if it does not open.
    pub name: String,
    /// The kernel that it runs, and the number of keys that it found as the CPU did; or why it
    /// cannot be used.
    pub check: Result<(String, usize), String>,
}

/// Threads of a launch whose hits the CPU computes too.
const CHECKED_THREADS: u32 = 64;

/// Queries the driver, opens each GPU, runs a launch on it, and compares the keys that it finds with
/// the CPU's.
pub fn findings(options: &SearchOptions) -> Findings {
    let count = super::device_count();
    let gpus = (0..*count.as_ref().unwrap_or(&0)).map(|ordinal| {
        let check = driver::guarded(DeviceId::Cuda(ordinal), || {
            let mut searcher = super::searcher(ordinal, options)?;
            let found = searcher.compare_with_cpu(CHECKED_THREADS)?;
            Ok((searcher.info().kernel.clone(), found))
        });
        let check = check.map_err(|error| error.to_string());
        GpuFinding { ordinal, name: description(ordinal).unwrap_or_default(), check }
    });
    Findings {
        gpus: gpus.collect(),
        driver: count.and_then(|_| driver::version()).map(driver::dotted),
        built_for: (BUILT_FOR != "none").then_some(BUILT_FOR),
        compilers: super::module::compilers(),
    }
}

fn description(ordinal: usize) -> Result<String, String> {
    let context = super::context(ordinal)?;
    let (major, minor) = context.compute_capability().map_err(reason)?;
    let gib = context.total_mem().map_err(reason)? as f64 / (1u64 << 30) as f64;
    Ok(format!("{} (compute capability {major}.{minor}, {gib:.0} GiB)", context.name().map_err(reason)?))
}

/// An operation of `kernels/field.cuh`, numbered as in `kernels/probe.cuh`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldOperation {
    /// a·b
    Mul,
    /// a²
    Sqr,
    /// a + b
    Add,
    /// a - b
    Sub,
    /// 1/a, and 0 for a = 0.
    Inverse,
    /// a reduced below p.
    Canonical,
    /// The top 32 bits of the product, in the lowest limb. Off by a few units.
    Top,
    /// `Mul` as the search computes it. Right for all but about one in 2^64 random inputs; chosen
    /// inputs can make it fail.
    MulQuick,
    /// `Sqr` as the search computes it, with the same rare errors.
    SqrQuick,
    /// `Sub` as the search computes it, with the same rare errors.
    SubQuick,
    /// `Top` with a prepared second factor, as the search with several intervals computes it.
    TopFine,
    /// `Top` as the search with one interval computes it: between 743 too low and 246 too high.
    TopRough,
}

/// An operation of `kernels/tensor.cuh`: a vector of values `a` times a constant `c`, on tensor
/// cores. Its errors are rare only if the values are random.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TensorOperation {
    /// a·c
    Times,
    /// a·c + a²·c
    Sum,
    /// The top 32 bits of a·c + a²·c² in the lowest limb, and of β times that sum in the next. Low
    /// by a few units.
    TopWords,
}

/// A number of 32 bytes, big-endian.
pub type Number = [u8; 32];

/// The tests of the texts of whole keys in the device's layout, empty if there are none. Then the
/// argument of the kernel that makes these tests, without its addresses.
pub fn text_tests(patterns: &PatternSet) -> [Vec<u32>; 2] {
    let (tests, search) = super::key_tests::for_device(patterns);
    // The first two fields are addresses.
    [tests.iter().flat_map(words_of).collect(), words_of(&search).split_off(4)]
}

/// The words of the quick tests of whole keys in the device's layout, and the number of the
/// kernel's form (`screen.cuh`); both empty if there are none.
pub fn screen(patterns: &PatternSet) -> [Vec<u32>; 2] {
    let screen = patterns.text_tests().as_ref().and_then(super::key_tests::screen_of);
    screen.map_or_else(Default::default, |screen| {
        [words_of(&screen), vec![super::key_tests::ScreenForm::of(&screen) as u32]]
    })
}

/// Runs `operation` on every pair, on GPU `ordinal`. The results are below p.
pub fn operate(ordinal: usize, operation: FieldOperation, pairs: &[(Number, Number)]) -> Result<Vec<Number>, String> {
    let context = super::context(ordinal)?;
    let kernels = Kernels::load(&context, None)?;
    let stream = context.default_stream();
    let a = stream.clone_htod(&flat(pairs.iter().map(|pair| &pair.0))).map_err(reason)?;
    let b = stream.clone_htod(&flat(pairs.iter().map(|pair| &pair.1))).map_err(reason)?;
    let mut out = stream.alloc_zeros::<u32>(8 * pairs.len()).map_err(reason)?;
    let (what, count) = (operation as u32, pairs.len() as u32);
    let mut launch = stream.launch_builder(&kernels.probe);
    launch.arg(&what).arg(&a).arg(&b).arg(&mut out).arg(&count);
    // SAFETY: the arguments match `probe`. The kernel checks the array's end.
    unsafe { launch.launch(grid(count.div_ceil(128), 128)) }.map_err(reason)?;
    Ok(numbers(&stream.clone_dtoh(&out).map_err(reason)?))
}

/// Runs `operation` on each constant with its 32 values, on GPU `ordinal`. `None` if the GPU lacks
/// the tensor cores that the search uses.
pub fn operate_on_constants(
    ordinal: usize,
    operation: TensorOperation,
    groups: &[(Number, [Number; 32])],
) -> Result<Option<Vec<Number>>, String> {
    let context = super::context(ordinal)?;
    if context.compute_capability().map_err(reason)? < (7, 5) {
        return Ok(None);
    }
    let kernels = Kernels::load(&context, None)?;
    let probe = kernels.module.load_function("probe_tensor").map_err(reason)?;
    let build = kernels.module.load_function("probe_matrices").map_err(reason)?;
    let stream = context.default_stream();
    let constants = stream.clone_htod(&flat(groups.iter().map(|group| &group.0))).map_err(reason)?;
    let values = stream.clone_htod(&flat(groups.iter().flat_map(|group| &group.1))).map_err(reason)?;
    let mut matrices = stream.alloc_zeros::<u8>(groups.len() * 2 * MATRIX_BYTES as usize).map_err(reason)?;
    let mut out = stream.alloc_zeros::<u32>(8 * 32 * groups.len()).map_err(reason)?;
    let (what, warps) = (operation as u32, groups.len() as u32);
    let mut launch = stream.launch_builder(&build);
    launch.arg(&constants).arg(&mut matrices);
    // SAFETY: the arguments match `probe_matrices`, which expects one block per constant.
    unsafe { launch.launch(grid(warps, 32)) }.map_err(reason)?;
    let mut launch = stream.launch_builder(&probe);
    launch.arg(&what).arg(&values).arg(&matrices).arg(&mut out);
    // SAFETY: the arguments match `probe_tensor`, which expects one block per constant.
    unsafe { launch.launch(grid(warps, 32)) }.map_err(reason)?;
    Ok(Some(numbers(&stream.clone_dtoh(&out).map_err(reason)?)))
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
