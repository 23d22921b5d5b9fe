//! The tokio runtime of commands with sockets.

/// Builds the multi-threaded runtime.
pub(super) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}
