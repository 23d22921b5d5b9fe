//! Runs the field operations of a kernel alone, for `benches/`. The search does not use it.

use super::dispatch::{Kernel, KernelChoice};
use super::field::Fe;
use super::formula::{Centre, Products, Rotated, cube, factor};
use super::simd::SimdField;
use super::table::{Affine, Table, multiple_of_generator};
use crate::search::error::SearchError;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Number of independent chains of an operation. Several chains measure its throughput, not its
/// latency.
pub const CHAINS: usize = 4;

/// The operation to repeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// A product.
    Multiply,
    /// A square.
    Square,
    /// A product with a prepared factor, like those of the table.
    MultiplyByConstant,
    /// The 18 top words of a table entry, given its q.
    Entry,
    /// An inversion.
    Invert,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Operation; 5] =
        [Operation::Multiply, Operation::Square, Operation::MultiplyByConstant, Operation::Entry, Operation::Invert];
}

/// A measurement.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// The duration.
    pub time: Duration,
    /// Numbers processed by each operation.
    pub lanes: usize,
}

/// Repeats an operation `times` times in each of [`CHAINS`] chains, on all lanes of a kernel.
///
/// Errors: this processor lacks the kernel.
pub fn repeat(kernel: KernelChoice, operation: Operation, times: u64) -> Result<Measured, SearchError> {
    Ok(match Kernel::choose(kernel)? {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Kernel::Ifma` is made only where `is_supported` is true.
        Kernel::Ifma => unsafe { repeat_ifma(operation, times) },
        Kernel::Portable => repeat_on::<Fe>(operation, times),
    })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(
    enable = "avx512f,avx512dq,avx512bw,avx512ifma,avx512vbmi,avx512vbmi2,avx512vpopcntdq,gfni,popcnt,bmi1,bmi2,lzcnt"
)]
fn repeat_ifma(operation: Operation, times: u64) -> Measured {
    repeat_on::<super::ifma::Fe8>(operation, times)
}

#[inline(always)]
fn repeat_on<F: SimdField>(operation: Operation, times: u64) -> Measured {
    let table = Table::<F>::new(1);
    let (entry, start) = (&table.entries.0[1], Affine::from_point(&multiple_of_generator(u64::MAX)));
    let point = Affine { x: F::from_lanes(&[start.x; 8]), y: F::from_lanes(&[start.y; 8]) };
    let z = cube(point.x);
    let centre = Centre::new(point, z, point.x.invert());
    let mut chains = [factor(z, entry); CHAINS];
    let mut top_words = [F::top_words(0); CHAINS];
    let began = Instant::now();
    for _ in 0..times {
        for (chain, top) in chains.iter_mut().zip(&mut top_words) {
            match operation {
                Operation::Multiply => *chain = chain.mul(point.x),
                Operation::Square => *chain = chain.square(),
                Operation::MultiplyByConstant => *chain = chain.times_constant(&entry.y_2),
                Operation::Entry => {
                    let products = Products::new(&centre, entry, *chain);
                    *chain = products.any();
                    for one in products.top_words(&Rotated::new(&centre, entry), &centre, entry) {
                        *top = F::add_top_words(*top, one);
                    }
                }
                Operation::Invert => *chain = chain.invert(),
            }
        }
    }
    black_box((chains, top_words));
    Measured { time: began.elapsed(), lanes: F::LANES }
}
