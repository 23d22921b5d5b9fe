//! Flags for the devices of a search.

use crate::config::{self, Config};
use crate::device_cache;
use crate::search::cpu::KernelChoice;
use crate::search::{DeviceChoice, Preference, SearchOptions};
use clap::Args;
use serde::{Deserialize, Serialize};

/// Flags that choose devices, threads and kernel.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SearchFlags {
    /// Where to search: `cpu`, `cuda` (every GPU), `cuda:N`, or `all` (every GPU; the CPU if there
    /// is none).
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceChoice>,
    /// CPU threads [default: one per core].
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// CPU kernel: `auto`, `ifma`, `avx2`, `neon` or `portable`.
    #[arg(long, value_name = "KERNEL")]
    cpu_kernel: Option<KernelChoice>,
    /// Memory that the search may take on each GPU, like `512MB` or `4GB` [default: half of what is
    /// free].
    #[arg(long, value_name = "SIZE", value_parser = config::gpu_memory_bytes)]
    gpu_memory: Option<u64>,
    /// By what the way to search on a GPU is chosen: `rate` or `energy`.
    #[arg(long, value_name = "WHAT")]
    prefer: Option<Preference>,
}

impl SearchFlags {
    /// Replaces the values of a configuration by the flags that were given.
    pub fn in_config(&self, config: Config) -> Config {
        Config { search: self.override_options(config.search.clone()), ..config }
    }

    /// Options of a search without a bot. Calibrations of devices are kept for this user.
    pub fn without_bot(&self) -> SearchOptions {
        self.override_options(SearchOptions {
            calibrations: device_cache::calibrations_of_user(),
            ..SearchOptions::default()
        })
    }

    /// Whether a device was named.
    pub fn names_a_device(&self) -> bool {
        self.device.is_some()
    }

    /// Replaces the values of `options` by the flags that were given. Kernels compiled for GPUs are
    /// kept for this user, unless they are kept elsewhere.
    pub fn override_options(&self, options: SearchOptions) -> SearchOptions {
        SearchOptions {
            devices: self.device.unwrap_or(options.devices),
            threads: self.threads.map(usize::from).or(options.threads),
            cpu_kernel: self.cpu_kernel.unwrap_or(options.cpu_kernel),
            gpu_memory: self.gpu_memory.or(options.gpu_memory),
            kernels: options.kernels.or_else(device_cache::kernels_of_user),
            prefer: self.prefer.unwrap_or(options.prefer),
            ..options
        }
    }
}
