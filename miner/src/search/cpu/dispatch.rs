//! Chooses the kernel at run time.

use super::field::Fe;
use super::filter::Filter;
use super::scratch::Scratch;
use super::simd::SimdField;
use super::table::Table;
use super::walk::{WalkResult, WalkTarget, walk};
use crate::key::StartPoint;
use crate::pattern::PatternSet;
use crate::search::error::SearchError;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use super::{
    avx2::{self, Fe4},
    ifma::{self, Fe8, VECTORS, walk_ifma},
};

/// The CPU kernel asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum KernelChoice {
    /// The fastest kernel that this processor can run.
    #[default]
    Auto,
    /// AVX-512 IFMA: eight numbers side by side.
    Ifma,
    /// AVX2: four numbers side by side.
    Avx2,
    /// Four limbs of 64 bits, no special instructions.
    Portable,
}

impl FromStr for KernelChoice {
    type Err = UnknownKernel;

    fn from_str(text: &str) -> Result<KernelChoice, UnknownKernel> {
        match text {
            "auto" => Ok(KernelChoice::Auto),
            "ifma" => Ok(KernelChoice::Ifma),
            "avx2" => Ok(KernelChoice::Avx2),
            "portable" => Ok(KernelChoice::Portable),
            _ => Err(UnknownKernel(text.to_owned())),
        }
    }
}

/// The error for a text that names no CPU kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownKernel(String);

impl fmt::Display for UnknownKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a CPU kernel; use `auto`, `ifma`, `avx2` or `portable`", self.0)
    }
}

impl std::error::Error for UnknownKernel {}

/// A kernel that this processor can run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kernel {
    /// AVX-512 IFMA. Made only where [`ifma::is_supported`] is true.
    #[cfg(target_arch = "x86_64")]
    Ifma,
    /// AVX2. Made only where [`avx2::is_supported`] is true.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Four limbs of 64 bits.
    Portable,
}

impl Kernel {
    /// The kernel for a choice. Errors: this processor lacks the kernel.
    pub fn choose(choice: KernelChoice) -> Result<Kernel, SearchError> {
        match choice {
            KernelChoice::Portable => Ok(Kernel::Portable),
            #[cfg(target_arch = "x86_64")]
            KernelChoice::Auto | KernelChoice::Ifma if ifma::is_supported() => Ok(Kernel::Ifma),
            #[cfg(target_arch = "x86_64")]
            KernelChoice::Auto | KernelChoice::Avx2 if avx2::is_supported() => Ok(Kernel::Avx2),
            KernelChoice::Auto => Ok(Kernel::Portable),
            KernelChoice::Ifma => Err(SearchError::UnsupportedCpuKernel { asked: "AVX-512 IFMA" }),
            KernelChoice::Avx2 => Err(SearchError::UnsupportedCpuKernel { asked: "AVX2" }),
        }
    }

    /// The kernel's name in flags and logs.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma => "ifma",
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => "avx2",
            Kernel::Portable => "portable",
        }
    }

    /// The filter of a pattern set.
    pub fn filter(self, patterns: &PatternSet) -> Filter {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma => Filter::new(patterns, Fe8::SLACK),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => Filter::new(patterns, Fe4::SLACK),
            Kernel::Portable => Filter::new(patterns, <Fe>::SLACK),
        }
    }

    /// Centres per round.
    #[cfg(test)]
    pub fn centres(self) -> u64 {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma => (VECTORS * Fe8::LANES) as u64,
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => (avx2::VECTORS * Fe4::LANES) as u64,
            Kernel::Portable => PORTABLE_CENTRES as u64,
        }
    }

    /// A walker with its working memory, for one thread.
    pub fn walker(self) -> Walker {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma => Walker(State::Ifma(ifma_scratch())),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => Walker(State::Avx2(Scratch::new())),
            Kernel::Portable => Walker(State::Portable(Scratch::new())),
        }
    }
}

/// Centres per round of the portable kernel. The processor overlaps their multiplications.
const PORTABLE_CENTRES: usize = 4;

/// The table of the portable kernel. Computed at its first use, which takes some 10 ms.
fn portable_table() -> &'static Table<Fe> {
    static TABLE: OnceLock<Table<Fe>> = OnceLock::new();
    TABLE.get_or_init(|| Table::new(PORTABLE_CENTRES))
}

#[cfg(target_arch = "x86_64")]
fn ifma_table() -> &'static Table<Fe8> {
    static TABLE: OnceLock<Table<Fe8>> = OnceLock::new();
    TABLE.get_or_init(|| Table::new(VECTORS * Fe8::LANES))
}

#[cfg(target_arch = "x86_64")]
fn avx2_table() -> &'static Table<Fe4> {
    static TABLE: OnceLock<Table<Fe4>> = OnceLock::new();
    TABLE.get_or_init(|| Table::new(avx2::VECTORS * Fe4::LANES))
}

#[cfg(target_arch = "x86_64")]
fn ifma_scratch() -> Scratch<Fe8, VECTORS> {
    Scratch::new()
}

/// A kernel with the working memory of one thread.
pub struct Walker(State);

enum State {
    #[cfg(target_arch = "x86_64")]
    Ifma(Scratch<Fe8, VECTORS>),
    #[cfg(target_arch = "x86_64")]
    Avx2(Scratch<Fe4, { avx2::VECTORS }>),
    Portable(Scratch<Fe, PORTABLE_CENTRES>),
}

impl Walker {
    /// [`walk`] with this kernel.
    pub fn walk(&mut self, start: &StartPoint, rounds: u64, target: &WalkTarget) -> WalkResult {
        match &mut self.0 {
            State::Portable(scratch) => walk(portable_table(), start, rounds, target, scratch),
            #[cfg(target_arch = "x86_64")]
            State::Avx2(scratch) => walk(avx2_table(), start, rounds, target, scratch),
            #[cfg(target_arch = "x86_64")]
            State::Ifma(scratch) => {
                // SAFETY: `Kernel::Ifma` is made only where `is_supported` is true.
                unsafe { walk_ifma(ifma_table(), start, rounds, target, scratch) }
            }
        }
    }
}
