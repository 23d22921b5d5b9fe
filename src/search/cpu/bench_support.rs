//! The field operations of a kernel by themselves, for `benches/`. Not part of the search.

use super::dispatch::{Kernel, KernelChoice};
use super::field::Fe;
use super::formula::{Centre, Products, cube, factor};
use super::simd::Lanes;
use super::table::{Affine, Table, multiple_of_generator};
use crate::search::SearchError;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Independent chains of an operation: enough that what is measured is how often it can be begun, not how long one takes.
pub const CHAINS: usize = 4;

/// What to repeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    Multiply,
    Square,
    /// A product with a factor made ready, as the table's are.
    MultiplyByConstant,
    /// The 18 top_words of a table entry, from its q on.
    Entry,
    Invert,
}

impl Operation {
    pub const ALL: [Operation; 5] =
        [Operation::Multiply, Operation::Square, Operation::MultiplyByConstant, Operation::Entry, Operation::Invert];
}

/// A measurement: how long it took, and how many numbers each of the operations worked on.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub time: Duration,
    pub lanes: usize,
}

/// Repeats an operation `times` times in each of [`CHAINS`] chains, on all lanes of a kernel.
///
/// Errors: the kernel asked for is not one of this processor.
pub fn repeat(kernel: KernelChoice, operation: Operation, times: u64) -> Result<Measured, SearchError> {
    Ok(match Kernel::choose(kernel)? {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Kernel::Ifma` exists only where `is_supported` said yes.
        Kernel::Ifma => unsafe { repeat_ifma(operation, times) },
        Kernel::Portable => repeat_on::<Fe>(operation, times),
    })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512ifma,avx512vpopcntdq,popcnt,bmi1,bmi2,lzcnt")]
fn repeat_ifma(operation: Operation, times: u64) -> Measured {
    repeat_on::<super::ifma::Fe8>(operation, times)
}

#[inline(always)]
fn repeat_on<F: Lanes>(operation: Operation, times: u64) -> Measured {
    let table = Table::<F>::new(1);
    let (entry, start) = (&table.entries.0[1], Affine::of(&multiple_of_generator(u64::MAX)));
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
                    for one in products.top_words(&centre, entry) {
                        *top = F::add_tops(*top, one);
                    }
                }
                Operation::Invert => *chain = chain.invert(),
            }
        }
    }
    black_box((chains, top_words));
    Measured { time: began.elapsed(), lanes: F::LANES }
}
