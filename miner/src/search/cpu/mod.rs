//! The search on the processor, with the formula of `docs/developers/search.md`: one thread per
//! core, at the lowest priority.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "the kernels of x86-64 read all of it"))]
mod cells;
mod dispatch;
mod field;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "the kernels of x86-64 read all of it"))]
mod filter;
mod formula;
#[cfg(target_arch = "x86_64")]
mod ifma;
#[cfg(target_arch = "x86_64")]
mod lookup;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "the kernels of x86-64 read all of it"))]
mod quick;
mod scratch;
mod screen;
mod searcher;
mod simd;
mod table;
#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests;
mod text;
mod threads;
mod walk;
mod whole;

pub use dispatch::KernelChoice;
pub use searcher::{CpuSearcher, describe_kernel};
