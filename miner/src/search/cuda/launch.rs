//! Starts kernels, and reads their hits.

use super::abi::{Checks, Search, Suspect, WholeSearch};
use super::constants::{ACCEPTED_WORDS, CHECKSUM_WORDS, PLAIN_THREADS};
use super::geometry::{Geometry, STEP, THREADS_PER_MULTIPROCESSOR, stretch_start};
use crate::key::{Offset, Rotation, StartPoint, Tweak};
use crate::search::searcher::ClaimedHit;
use cudarc::driver::{CudaFunction, CudaStream, DriverError, LaunchConfig, PushKernelArg};
use std::sync::Arc;

/// Threads of a block of the kernel that recomputes suspects in full. Each multiprocessor has one
/// block, which makes half as many threads as the search has.
const CONFIRM_THREADS: u32 = THREADS_PER_MULTIPROCESSOR / 2;
/// The most suspects that a thread of this kernel inverts together.
const CONFIRM_BATCH: u32 = 32;

/// Queues a kernel that filters by top words.
pub fn search_top_words(
    stream: &Arc<CudaStream>,
    kernel: &CudaFunction,
    search: &Search,
    config: LaunchConfig,
) -> Result<(), DriverError> {
    let mut launch = stream.launch_builder(kernel);
    launch.arg(search);
    // SAFETY: the argument matches the kernel, and every buffer in `search` has the size that the
    // grid and the extent need.
    unsafe { launch.launch(config)? };
    Ok(())
}

/// Queues the kernel that compares whole keys.
pub fn search_whole_keys(
    stream: &Arc<CudaStream>,
    kernel: &CudaFunction,
    search: &Search,
    whole: &WholeSearch,
    geometry: &Geometry,
) -> Result<(), DriverError> {
    let config = LaunchConfig {
        grid_dim: (geometry.threads() / PLAIN_THREADS, 1, 1),
        block_dim: (PLAIN_THREADS, 1, 1),
        shared_mem_bytes: (CHECKSUM_WORDS + ACCEPTED_WORDS) * 4,
    };
    let mut launch = stream.launch_builder(kernel);
    launch.arg(search).arg(whole);
    // SAFETY: as above; the shared memory holds the tables of the checksum and the accepted bits.
    unsafe { launch.launch(config)? };
    Ok(())
}

/// Queues the kernel that recomputes suspects in full. `kept` is the number of prefix products that
/// the search keeps for each of its threads.
pub fn confirm(
    stream: &Arc<CudaStream>,
    kernel: &CudaFunction,
    search: &Search,
    geometry: &Geometry,
    kept: u32,
    checks: &Checks,
) -> Result<(), DriverError> {
    let config = LaunchConfig {
        grid_dim: (geometry.multiprocessors, 1, 1),
        block_dim: (CONFIRM_THREADS, 1, 1),
        shared_mem_bytes: 0,
    };
    let (threads, batch) = (geometry.threads(), kept.min(CONFIRM_BATCH));
    let mut launch = stream.launch_builder(kernel);
    launch.arg(search).arg(&threads).arg(&batch).arg(checks);
    // SAFETY: the arguments match `confirm`, which checks the number of suspects. Its threads are
    // half of the search's and keep two numbers a suspect, so the prefix products have room for
    // `kept` suspects a thread.
    unsafe { launch.launch(config)? };
    Ok(())
}

/// The claimed hit for a candidate that the device reports.
pub fn claim(hit: &Suspect, geometry: &Geometry) -> ClaimedHit {
    let per_start = geometry.threads_per_start();
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
