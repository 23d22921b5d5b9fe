//! Windows.

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
