//! Chooses the kernel at run time.

#[cfg(target_arch = "x86_64")]
use super::avx2::{self, Fe4};
use super::field::Fe;
use super::filter::Filter;
#[cfg(target_arch = "x86_64")]
use super::ifma::{self, Fe8};
#[cfg(target_arch = "aarch64")]
use super::neon::Fe2;
use super::scratch::Scratch;
use super::simd::SimdField;
use super::table::Table;
use super::walk::{WalkResult, WalkTarget, walk};
use crate::key::StartPoint;
use crate::pattern::PatternSet;
use crate::search::error::SearchError;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

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
    /// NEON: two numbers side by side, with products in scalar registers.
    Neon,
    /// Four limbs of 64 bits, no special instructions.
    Portable,
}

impl FromStr for KernelChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<KernelChoice, String> {
        match text {
            "auto" => Ok(KernelChoice::Auto),
            "ifma" => Ok(KernelChoice::Ifma),
            "avx2" => Ok(KernelChoice::Avx2),
            "neon" => Ok(KernelChoice::Neon),
            "portable" => Ok(KernelChoice::Portable),
            _ => Err(format!("`{text}` is not a CPU kernel; use `auto`, `ifma`, `avx2`, `neon` or `portable`")),
        }
    }
}

/// A kernel that this processor can run.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Its name in flags and logs.
    pub name: &'static str,
    /// Centres per round.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests walk whole rounds"))]
    pub centres: u64,
    /// Largest error of a top word.
    slack: u64,
    walker: fn() -> Walker,
}

/// [`walk`] with a kernel and the working memory of one thread.
pub type Walker = Box<dyn FnMut(&StartPoint, u64, &WalkTarget) -> WalkResult + Send>;

/// The kernel of a field type with `$vectors` vectors of centres a round. Its table is computed at its
/// first use, which takes some 10 ms.
macro_rules! kernel {
    ($name:literal, $field:ty, $vectors:expr) => {
        Kernel {
            name: $name,
            centres: ($vectors * <$field>::LANES) as u64,
            slack: <$field as SimdField>::SLACK,
            walker: || {
                static TABLE: OnceLock<Table<$field>> = OnceLock::new();
                let mut scratch = Scratch::<$field, { $vectors }>::new();
                Box::new(move |start, rounds, target| {
                    let table = TABLE.get_or_init(|| Table::new($vectors * <$field>::LANES));
                    walk(table, start, rounds, target, &mut scratch)
                })
            },
        }
    };
}

/// AVX-512 IFMA. Used only where [`ifma::is_supported`] is true.
#[cfg(target_arch = "x86_64")]
const IFMA: Kernel = kernel!("ifma", Fe8, ifma::VECTORS);
/// AVX2. Used only where [`avx2::is_supported`] is true.
#[cfg(target_arch = "x86_64")]
const AVX2: Kernel = kernel!("avx2", Fe4, 2);
#[cfg(target_arch = "aarch64")]
const NEON: Kernel = kernel!("neon", Fe2, 2);
/// Four limbs of 64 bits. The processor overlaps the multiplications of four centres.
const PORTABLE: Kernel = kernel!("portable", Fe, 4);

impl Kernel {
    /// The kernel for a choice. Errors: this processor lacks the kernel.
    pub fn choose(choice: KernelChoice) -> Result<Kernel, SearchError> {
        let lacking = match choice {
            KernelChoice::Portable => return Ok(PORTABLE),
            #[cfg(target_arch = "x86_64")]
            KernelChoice::Auto | KernelChoice::Ifma if ifma::is_supported() => return Ok(IFMA),
            #[cfg(target_arch = "x86_64")]
            KernelChoice::Auto | KernelChoice::Avx2 if avx2::is_supported() => return Ok(AVX2),
            #[cfg(target_arch = "aarch64")]
            KernelChoice::Auto | KernelChoice::Neon => return Ok(NEON),
            #[cfg(not(target_arch = "aarch64"))]
            KernelChoice::Auto => return Ok(PORTABLE),
            KernelChoice::Ifma => "AVX-512 IFMA",
            KernelChoice::Avx2 => "AVX2",
            #[cfg(not(target_arch = "aarch64"))]
            KernelChoice::Neon => "NEON",
        };
        Err(SearchError::UnsupportedCpuKernel { asked: lacking })
    }

    /// The filter of a pattern set.
    pub fn filter(self, patterns: &Arc<PatternSet>) -> Filter {
        Filter::new(patterns, self.slack)
    }

    /// A walker with its working memory, for one thread.
    pub fn walker(self) -> Walker {
        (self.walker)()
    }
}
