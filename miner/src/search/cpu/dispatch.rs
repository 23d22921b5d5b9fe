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
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use super::ifma::{Fe8, VECTORS, is_supported, walk_ifma};

/// The CPU kernel asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KernelChoice {
    /// The fastest kernel that this processor can run.
    #[default]
    Auto,
    /// AVX-512 IFMA: eight numbers side by side.
    Ifma,
    /// Four limbs of 64 bits, no special instructions.
    Portable,
}

impl FromStr for KernelChoice {
    type Err = UnknownKernel;

    fn from_str(text: &str) -> Result<KernelChoice, UnknownKernel> {
        match text {
            "auto" => Ok(KernelChoice::Auto),
            "ifma" => Ok(KernelChoice::Ifma),
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
        if self.0 == "avx2" {
            // `docs/performance.md` has the figures.
            write!(f, "there is no kernel for AVX2: where it was tried, the portable one was faster; ")?;
        } else {
            write!(f, "`{}` is no CPU kernel; ", self.0)?;
        }
        write!(f, "say `auto`, `ifma` or `portable`")
    }
}

impl std::error::Error for UnknownKernel {}

/// A kernel that this processor can run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kernel {
    /// AVX-512 IFMA. Made only where [`is_supported`] is true.
    #[cfg(target_arch = "x86_64")]
    Ifma,
    /// Four limbs of 64 bits.
    Portable,
}

impl Kernel {
    /// The kernel for a choice. Errors: this processor lacks the kernel.
    pub fn choose(choice: KernelChoice) -> Result<Kernel, SearchError> {
        match choice {
            KernelChoice::Portable => Ok(Kernel::Portable),
            #[cfg(target_arch = "x86_64")]
            KernelChoice::Auto | KernelChoice::Ifma if is_supported() => Ok(Kernel::Ifma),
            KernelChoice::Auto => Ok(Kernel::Portable),
            KernelChoice::Ifma => Err(SearchError::UnsupportedCpuKernel { asked: "AVX-512 IFMA" }),
        }
    }

    /// The kernel's name in flags and logs.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma => "ifma",
            Kernel::Portable => "portable",
        }
    }

    /// Whether the kernel has several methods of looking up top words.
    pub fn has_lookups(self) -> bool {
        self != Kernel::Portable
    }

    /// The filter of a pattern set.
    pub fn filter(self, patterns: &PatternSet) -> Filter {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma => Filter::new(patterns, Fe8::SLACK),
            Kernel::Portable => Filter::new(patterns, Fe::SLACK),
        }
    }

    /// Centres per round.
    #[cfg(test)]
    pub fn centres(self) -> u64 {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma => (VECTORS * Fe8::LANES) as u64,
            Kernel::Portable => PORTABLE_CENTRES as u64,
        }
    }

    /// A walker with its working memory, for one thread.
    pub fn walker(self) -> Walker {
        match self {
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma => Walker(State::Ifma(ifma_scratch())),
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
fn ifma_scratch() -> Scratch<Fe8, VECTORS> {
    Scratch::new()
}

/// A kernel with the working memory of one thread.
pub struct Walker(State);

enum State {
    #[cfg(target_arch = "x86_64")]
    Ifma(Scratch<Fe8, VECTORS>),
    Portable(Scratch<Fe, PORTABLE_CENTRES>),
}

impl Walker {
    /// [`walk`] with this kernel.
    pub fn walk(&mut self, start: &StartPoint, rounds: u64, target: &WalkTarget) -> WalkResult {
        match &mut self.0 {
            State::Portable(scratch) => walk(portable_table(), start, rounds, target, scratch),
            #[cfg(target_arch = "x86_64")]
            State::Ifma(scratch) => {
                // SAFETY: `Kernel::Ifma` is made only where `is_supported` is true.
                unsafe { walk_ifma(ifma_table(), start, rounds, target, scratch) }
            }
        }
    }
}
