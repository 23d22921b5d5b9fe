//! The operating system, as far as the search needs it: priority of threads, large pages, name of
//! the processor, the library of NVIDIA's driver. The bot's own module for the system is `os`.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{NVRTC_NAMES, advise_huge_pages, load_nvml, lower_priority, processor_name};
#[cfg(windows)]
pub use windows::{NVRTC_NAMES, advise_huge_pages, load_nvml, lower_priority, processor_name};

use std::ffi::OsString;

/// Names or paths under which NVRTC may be found. The variable `NPUBBOT_NVRTC` names it alone.
pub fn nvrtc_names() -> Vec<OsString> {
    match std::env::var_os("NPUBBOT_NVRTC").filter(|name| !name.is_empty()) {
        Some(named) => vec![named],
        None => NVRTC_NAMES.iter().map(OsString::from).collect(),
    }
}
