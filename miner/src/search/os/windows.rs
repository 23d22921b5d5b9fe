//! Windows.

use libloading::Library;
use libloading::os::windows;
use windows_sys::Win32::System::Threading::{GetCurrentThread, SetThreadPriority, THREAD_PRIORITY_IDLE};

/// Gives this thread the lowest priority.
pub fn lower_priority() {
    // SAFETY: the handle stands for this thread.
    if unsafe { SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_IDLE) } == 0 {
        let error = std::io::Error::last_os_error();
        tracing::debug!(%error, "the search runs at ordinary priority");
    }
}

/// Does nothing: large pages need a right that users do not have (`SeLockMemoryPrivilege`).
///
/// # Safety
///
/// Safe to call.
pub unsafe fn advise_huge_pages(_: *mut u8, _: usize) {}

/// The name of the processor; `None` if the system does not say.
pub fn processor_name() -> Option<String> {
    std::env::var("PROCESSOR_IDENTIFIER").ok()
}

/// Loads NVIDIA's management library (NVML), which the driver puts beside the system's own
/// libraries. A file of that name in another folder is not loaded.
///
/// # Safety
///
/// The library's initialisers run.
pub unsafe fn load_nvml() -> Result<Library, libloading::Error> {
    // SAFETY: the caller agrees to the initialisers.
    unsafe { windows::Library::load_with_flags("nvml.dll", windows::LOAD_LIBRARY_SEARCH_SYSTEM32) }.map(Library::from)
}

/// Names under which NVRTC may be found, in the order in which they are tried.
pub const NVRTC_NAMES: &[&str] = &["nvrtc64_120_0.dll", "nvrtc64_130_0.dll", "nvrtc64_112_0.dll"];
