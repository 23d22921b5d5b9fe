//! The multiply ceiling: the rate of a search that consisted of its multiply instructions only.

use super::dispatch::{Kernel, KernelChoice};
use crate::search::error::SearchError;
use std::hint::black_box;
use std::thread;
use std::time::Instant;

/// The multiply instructions of a kernel for a table entry, forward and backward, and all its centres
/// side by side. `docs/developers/cpu-kernels.md` has the sum for IFMA.
#[derive(Clone, Copy, Debug)]
pub struct Multiplies {
    /// Instructions.
    count: f64,
    /// Candidates that they give.
    candidates: f64,
    /// Measures the instructions a second, with this number in each chain. Only on a processor with
    /// the kernel.
    a_second: fn(u64) -> f64,
}

/// With eight centres.
#[cfg(target_arch = "x86_64")]
pub const IFMA: Multiplies = Multiplies {
    count: 669.0,
    candidates: 144.0,
    // SAFETY: the processor has the kernel.
    a_second: |times| unsafe { super::ifma::multiplies_a_second(times) },
};
/// With four centres: four products of 92, four by prepared factors of 82, two squares of 56, twelve
/// top words of 18 and 9 to prepare them.
#[cfg(target_arch = "x86_64")]
pub const AVX2: Multiplies = Multiplies {
    count: 1033.0,
    candidates: 72.0,
    // SAFETY: the processor has the kernel.
    a_second: |times| unsafe { super::avx2::multiplies_a_second(times) },
};
/// With one centre: ten products of 21 instructions, and twelve top words of 12.
pub const PORTABLE: Multiplies = Multiplies { count: 354.0, candidates: 18.0, a_second: multiplies_a_second };
/// The same without the top words, which other units multiply.
#[cfg(target_arch = "aarch64")]
pub const NEON: Multiplies = Multiplies { count: 210.0, ..PORTABLE };
/// Number of measurements. The highest rate counts, because other programs may run at the same
/// time.
const TURNS: usize = 16;
/// Instructions of a chain in a measurement. They take some milliseconds.
const TIMES: u64 = 1 << 20;
/// Independent chains of the portable measurement.
const CHAINS: usize = 8;

/// Candidates per second of `threads` threads at once if a kernel had nothing to do but multiply.
/// Takes a tenth of a second.
///
/// Errors: this processor lacks the kernel.
pub fn multiply_ceiling(kernel: KernelChoice, threads: usize) -> Result<f64, SearchError> {
    let kernel = Kernel::choose(kernel)?;
    let measured = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(move || of_thread(kernel.multiplies))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_default()).sum()
    });
    Ok(measured)
}

fn of_thread(Multiplies { count, candidates, a_second }: Multiplies) -> f64 {
    (0..TURNS).map(|_| a_second(TIMES)).fold(0.0, f64::max) / count * candidates
}

/// Products of two numbers of 64 bits per second.
fn multiplies_a_second(times: u64) -> f64 {
    let factor = black_box(0x9e37_79b9_7f4a_7c15_u64);
    let mut values: [u64; CHAINS] = black_box([3, 5, 7, 11, 13, 17, 19, 23]);
    let began = Instant::now();
    for _ in 0..times {
        for value in &mut values {
            let product = u128::from(*value) * u128::from(factor);
            *value = (product >> 64) as u64 ^ product as u64;
        }
    }
    black_box(values);
    (CHAINS as u64 * times) as f64 / began.elapsed().as_secs_f64()
}
