//! Unix systems. On Linux niceness belongs to a thread, on the others to the process.

use libloading::Library;

/// The lowest priority there is.
const NICENESS: i32 = 19;

/// Gives this thread or process the lowest priority.
pub fn lower_priority() {
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::debug!(%error, "the search runs at ordinary priority");
    }
}

/// Asks Linux for huge pages. Without them the search is sometimes slower.
///
/// # Safety
///
/// The memory belongs to the caller, and begins and ends at a page.
#[cfg_attr(not(target_os = "linux"), allow(unused_variables))]
pub unsafe fn advise_huge_pages(memory: *mut u8, size: usize) {
    #[cfg(target_os = "linux")]
    // SAFETY: this advice affects the size of the pages, not their contents.
    if let Err(error) = unsafe { rustix::mm::madvise(memory.cast(), size, rustix::mm::Advice::LinuxHugepage) } {
        tracing::debug!(%error, "the search has no huge pages");
    }
}

/// The name of the processor; `None` if the system does not say, as all but Linux.
pub fn processor_name() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Loads NVIDIA's management library (NVML), which is part of the driver.
///
/// # Safety
///
/// The library's initialisers run.
pub unsafe fn load_nvml() -> Result<Library, libloading::Error> {
    // SAFETY: the caller agrees to the initialisers.
    unsafe { Library::new("libnvidia-ml.so.1") }
}

/// Names under which NVRTC may be found, in the order in which they are tried.
pub const NVRTC_NAMES: &[&str] = &["libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so", "libnvrtc.so.11.2"];
