//! Which devices there are, and opening the ones that were asked for.

use super::{SearchError, Searcher, cpu, cuda};
use std::fmt;
use std::str::FromStr;

/// The name of a device: `cpu`, `cuda:0`, …
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum DeviceId {
    Cpu,
    Cuda(usize),
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceId::Cpu => f.write_str("cpu"),
            DeviceId::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

/// What a device is.
#[derive(Clone, Debug)]
pub struct DeviceInfo {
    pub id: DeviceId,
    /// As the maker names it: `NVIDIA H200`, `AMD EPYC 9R14`.
    pub name: String,
    /// Which search runs on it: `portable`, `ifma`, `cuda sm_90`, …
    pub kernel: String,
    /// Threads that search; 1 for a GPU, which needs one to wait for it.
    pub threads: usize,
}

/// Which devices to use, as flags and configuration say it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DeviceChoice {
    /// Every GPU there is, else the CPU.
    #[default]
    All,
    Cpu,
    /// Every GPU there is; none is an error.
    Cuda,
    CudaOrdinal(usize),
}

impl FromStr for DeviceChoice {
    type Err = SearchError;

    fn from_str(text: &str) -> Result<DeviceChoice, SearchError> {
        let unknown = || SearchError::UnknownDevice { asked: text.to_owned() };
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

/// How to search on the devices.
#[derive(Clone, Debug, Default)]
pub struct SearchOptions {
    pub devices: DeviceChoice,
    /// CPU threads; `None` for one a core.
    pub threads: Option<usize>,
    pub cpu_kernel: cpu::KernelChoice,
}

/// Opens every device that `options` asks for: at least one, or an error that says why there is none.
pub fn open(options: &SearchOptions) -> Result<Vec<Box<dyn Searcher>>, SearchError> {
    let open_cpu = || -> Result<Vec<Box<dyn Searcher>>, SearchError> {
        Ok(vec![Box::new(cpu::CpuSearcher::open(options.threads, options.cpu_kernel)?)])
    };
    match options.devices {
        DeviceChoice::Cpu => open_cpu(),
        DeviceChoice::CudaOrdinal(ordinal) => Ok(vec![cuda::open(ordinal)?]),
        DeviceChoice::Cuda => {
            let count = cuda::device_count()
                .map_err(|reason| SearchError::NoSuchDevice { asked: "cuda".to_owned(), reason })?;
            (0..count).map(cuda::open).collect()
        }
        DeviceChoice::All => match cuda::device_count() {
            Ok(count) => {
                let opened: Vec<_> = (0..count)
                    .filter_map(|ordinal| {
                        cuda::open(ordinal).inspect_err(|error| tracing::warn!(%error, "a GPU is left out")).ok()
                    })
                    .collect();
                if opened.is_empty() { open_cpu() } else { Ok(opened) }
            }
            Err(reason) => {
                tracing::info!(%reason, "no GPU is used");
                open_cpu()
            }
        },
    }
}
