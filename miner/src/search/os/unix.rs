//! Unix systems except Linux.

use libloading::Library;

/// The lowest priority there is.
const NICENESS: i32 = 19;

/// Gives this process the lowest priority.
pub fn lower_priority() {
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::debug!(%error, "the search runs at ordinary priority");
    }
}

/// Does nothing.
///
/// # Safety
///
/// Safe to call.
pub unsafe fn advise_huge_pages(_: *mut u8, _: usize) {}

/// Returns `None`: on these systems the name is not read.
pub fn processor_name() -> Option<String> {
    None
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
pub const NVRTC_NAMES: &[&str] = &["libnvrtc.so"];
