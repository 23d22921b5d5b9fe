//! Log lines on standard error.

use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Starts the log of npubbot at `level` (`info`, `warn`, …). Libraries are silent. `RUST_LOG`
/// overrides both.
pub(super) fn start(level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(format!("off,npubbot={level}")));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    // A second call, in a test, has no effect.
    let _ = log.with_ansi(std::io::stderr().is_terminal()).try_init();
}
