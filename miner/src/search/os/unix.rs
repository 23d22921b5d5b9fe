//! Unix systems except Linux.

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

/// `None`.
pub fn processor_name() -> Option<String> {
    None
}
