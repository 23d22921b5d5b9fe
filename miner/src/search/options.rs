//! The choice of devices, from flags and configuration.

use super::calibration::Calibrations;
use super::cpu::KernelChoice;
use super::restraints::Restraints;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::str::FromStr;
use std::sync::Arc;

/// The devices to use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum DeviceChoice {
    /// Every GPU, or the CPU if no GPU works.
    #[default]
    All,
    /// The CPU.
    Cpu,
    /// Every GPU. An error if none works.
    Cuda,
    /// The GPU of this number.
    CudaOrdinal(usize),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<DeviceChoice, String> {
        let unknown = || format!("`{text}` is not a device; say `cpu`, `cuda`, `cuda:N` or `all`");
        match text {
            "all" => Ok(DeviceChoice::All),
            "cpu" => Ok(DeviceChoice::Cpu),
            "cuda" => Ok(DeviceChoice::Cuda),
            _ => {
                let ordinal = text.strip_prefix("cuda:").ok_or_else(unknown)?;
                ordinal.parse().map(DeviceChoice::CudaOrdinal).map_err(|_| unknown())
            }
        }
    }
}

/// Keeps compiled kernels from one start to the next.
pub trait KernelStore: Debug + Send + Sync {
    /// What was kept under this name.
    fn get(&self, name: &str) -> Option<Vec<u8>>;

    /// Keeps the content under this name: letters, digits and `-`.
    fn put(&self, name: &str, content: &[u8]);
}

/// By what a GPU's way to search is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Preference {
    /// Candidates per second.
    #[default]
    Rate,
    /// Candidates per joule.
    Energy,
}

impl FromStr for Preference {
    type Err = String;

    fn from_str(text: &str) -> Result<Preference, String> {
        match text {
            "rate" => Ok(Preference::Rate),
            "energy" => Ok(Preference::Energy),
            _ => Err(format!("`{text}` is not a preference; say `rate` or `energy`")),
        }
    }
}

/// Options of the search. Those that are skipped do not go to a device process as they are.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SearchOptions {
    /// The devices.
    #[serde(skip)]
    pub devices: DeviceChoice,
    /// CPU threads; `None` for one per core.
    pub threads: Option<usize>,
    /// The CPU kernel.
    pub cpu_kernel: KernelChoice,
    /// Whether a launch on a GPU takes at most 30 ms, so that people can work at its screen.
    pub polite: bool,
    /// By what the way to search on a GPU is chosen.
    pub prefer: Preference,
    /// The device memory that the search may take on each GPU, in bytes; `None` for half of the
    /// free memory. The tables and buffers that every search needs are taken in any case.
    pub gpu_memory: Option<u64>,
    /// The most shared memory that a block of threads may have, in bytes; `None` for all that the
    /// GPU has. A smaller value selects the kernels for GPUs that have only so much, for tests and
    /// measurements.
    pub shared_memory: Option<u32>,
    /// When devices rest, and limits on their use.
    #[serde(skip)]
    pub restraints: Restraints,
    /// Figures of devices, measured by earlier starts.
    #[serde(skip)]
    pub calibrations: Calibrations,
    /// Kernels that earlier starts compiled for GPUs.
    #[serde(skip)]
    pub kernels: Option<Arc<dyn KernelStore>>,
}
