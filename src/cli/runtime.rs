//! The tokio runtime of commands with sockets.

/// The most threads that run tasks. Tasks only wait for relays and pass work on: the vault opens
/// messages, and the ledger and the search have their own threads. Each further thread costs
/// memory: on 16 cores a flood took 66 MiB with 16 threads and 58 MiB with 4.
const MOST_WORKERS: usize = 4;

/// Builds the multi-threaded runtime.
pub(super) fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.worker_threads(cores.min(MOST_WORKERS)).enable_all().build()?)
}
