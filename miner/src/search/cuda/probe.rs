//! For `npubbot doctor`: the GPUs and kernels found. For tests: the device's form of tests of keys.

use super::abi::words_of;
use super::driver::{self, reason};
use super::module::BUILT_FOR;
use crate::pattern::PatternSet;
use crate::search::device::DeviceId;
use crate::search::options::SearchOptions;
use crate::search::searcher::Searcher;

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
