//! Flags for the devices of a search.

use crate::calibration_file;
use crate::config::Config;
use crate::search::cpu::KernelChoice;
use crate::search::{DeviceChoice, SearchOptions};
use clap::Args;

/// Flags that choose devices, threads and kernel.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct SearchFlags {
    /// Where to search: `cpu`, `cuda` (every GPU), `cuda:N`, or `all` (every GPU; the CPU if there
    /// is none).
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceChoice>,
    /// CPU threads [default: one per core].
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// CPU kernel: `auto`, `ifma` or `portable`.
    #[arg(long, value_name = "KERNEL")]
    cpu_kernel: Option<KernelChoice>,
}

impl SearchFlags {
    /// Replaces the values of a configuration by the flags that were given.
    pub fn in_config(&self, config: Config) -> Config {
        Config { search: self.over(config.search.clone()), ..config }
    }

    /// Options of a search without a bot. What devices were measured to do best is kept for this user.
    pub fn without_bot(&self) -> SearchOptions {
        self.over(SearchOptions { calibrations: calibration_file::of_user(), ..SearchOptions::default() })
    }

    /// Whether a device was named.
    pub fn name_a_device(&self) -> bool {
        self.device.is_some()
    }

    /// Replaces the values of `options` by the flags that were given.
    pub fn over(&self, options: SearchOptions) -> SearchOptions {
        SearchOptions {
            devices: self.device.unwrap_or(options.devices),
            threads: self.threads.map(usize::from).or(options.threads),
            cpu_kernel: self.cpu_kernel.unwrap_or(options.cpu_kernel),
            ..options
        }
    }
}
