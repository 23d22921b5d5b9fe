//! The multiply ceiling: the rate of a search that consisted of its multiply instructions only.

use super::dispatch::{Kernel, KernelChoice};
use crate::search::error::SearchError;
use std::hint::black_box;
use std::thread;
use std::time::Instant;

/// Multiply instructions of the IFMA kernel for a table entry and eight centres, forward and
/// backward, and the candidates that they give. `docs/developers/cpu-kernels.md` has the sum.
#[cfg(target_arch = "x86_64")]
const IFMA: (f64, f64) = (669.0, 144.0);
/// Multiply instructions of the kernel `avx2` for a table entry and four centres: four products of 92,
/// four by prepared factors of 82, two squares of 56, twelve top words of 18 and 9 to prepare them.
#[cfg(target_arch = "x86_64")]
const AVX2: (f64, f64) = (1033.0, 72.0);
/// Multiply instructions of the portable kernel for a table entry and one centre, and the
/// candidates: ten products of 21 instructions, and twelve top words of 12.
const PORTABLE: (f64, f64) = (354.0, 18.0);
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
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(move || of_thread(kernel))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_default()).sum()
    });
    Ok(measured)
}

fn of_thread(kernel: Kernel) -> f64 {
    let best = |measure: &dyn Fn() -> f64| (0..TURNS).map(|_| measure()).fold(0.0, f64::max);
    match kernel {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Kernel::Ifma` is made only where `is_supported` is true.
        Kernel::Ifma => best(&|| unsafe { super::ifma::multiplies_a_second(TIMES) }) / IFMA.0 * IFMA.1,
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Kernel::Avx2` is made only where `is_supported` is true.
        Kernel::Avx2 => best(&|| unsafe { super::avx2::multiplies_a_second(TIMES) }) / AVX2.0 * AVX2.1,
        Kernel::Portable => best(&multiplies_a_second) / PORTABLE.0 * PORTABLE.1,
    }
}

/// Products of two numbers of 64 bits per second.
fn multiplies_a_second() -> f64 {
    let factor = black_box(0x9e37_79b9_7f4a_7c15_u64);
    let mut values: [u64; CHAINS] = black_box([3, 5, 7, 11, 13, 17, 19, 23]);
    let began = Instant::now();
    for _ in 0..TIMES {
        for value in &mut values {
            let product = u128::from(*value) * u128::from(factor);
            *value = (product >> 64) as u64 ^ product as u64;
        }
    }
    black_box(values);
    (CHAINS as u64 * TIMES) as f64 / began.elapsed().as_secs_f64()
}
