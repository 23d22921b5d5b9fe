//! Starts kernels, and reads their hits.

use super::abi::{Checks, Search, Suspect, WholeSearch};
use super::constants::{CONFIRM_BLOCKS, CONFIRM_THREADS, WARPS};
use super::geometry::{Geometry, STEP, WARP, stretch_start, threads_per_start};
use super::variant::Kernel;
use crate::key::{Offset, Rotation, StartPoint, Tweak};
use crate::search::searcher::ClaimedHit;
use cudarc::driver::{CudaFunction, CudaStream, DriverError, LaunchConfig, PushKernelArg};
use std::sync::Arc;

/// The most suspects that a thread of the kernel `confirm` inverts together.
const CONFIRM_BATCH: u32 = 128;

/// Queues a kernel that filters by top words.
pub fn search_top_words(stream: &Arc<CudaStream>, kernel: &Kernel, search: &Search) -> Result<(), DriverError> {
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
    (checks, whole): (&Checks, &WholeSearch),
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

/// A grid of blocks of 128 threads, at least `threads` of them.
pub fn groups_of_128(threads: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (threads.div_ceil(128), 1, 1), block_dim: (128, 1, 1), shared_mem_bytes: 0 }
}

/// `k·G`.
pub fn multiple_point(k: u64) -> StartPoint {
    super::geometry::multiple_of_generator(k)
}
