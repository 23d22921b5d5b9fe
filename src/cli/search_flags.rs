//! The flags that say where and how to search.

use crate::search::cpu::KernelChoice;
use crate::search::{DeviceChoice, SearchOptions};
use clap::Args;

#[derive(Args, Clone, Debug, Default)]
pub(super) struct SearchFlags {
    /// Where to search: `cpu`, `cuda` (every GPU), `cuda:N`, or `all` (every GPU there is, else the CPU).
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceChoice>,
    /// CPU threads [default: one a core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// CPU kernel: `auto`, `ifma` or `portable`.
    #[arg(long, value_name = "KERNEL")]
    cpu_kernel: Option<KernelChoice>,
}

impl SearchFlags {
    /// These flags over what `options` says.
    pub fn over(&self, options: SearchOptions) -> SearchOptions {
        SearchOptions {
            devices: self.device.unwrap_or(options.devices),
            threads: self.threads.map(usize::from).or(options.threads),
            cpu_kernel: self.cpu_kernel.unwrap_or(options.cpu_kernel),
        }
    }
}
