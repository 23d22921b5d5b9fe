//! The operating system, as far as the search needs it: priority of threads, large pages, name of
//! the processor, the library of NVIDIA's driver. The bot's own module for the system is `os`.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(all(unix, not(target_os = "linux")))]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::{advise_huge_pages, load_nvml, lower_priority, processor_name};
#[cfg(all(unix, not(target_os = "linux")))]
pub use unix::{advise_huge_pages, load_nvml, lower_priority, processor_name};
#[cfg(windows)]
pub use windows::{advise_huge_pages, load_nvml, lower_priority, processor_name};
