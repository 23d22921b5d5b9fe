//! Why a fleet cannot be set up.

use crate::search::WorkerName;
use std::path::PathBuf;
use thiserror::Error;

/// Why a fleet cannot be set up or changed. Nothing was changed.
#[derive(Debug, Error)]
pub enum FleetError {
    /// A file cannot be read or written.
    #[error("{file}: {error}")]
    File {
        /// The file.
        file: PathBuf,
        /// Reason of the operating system.
        error: std::io::Error,
    },
    /// There is a fleet already.
    #[error("there is a fleet in {0}; `npubbot fleet add NAME` adds a worker to it")]
    Exists(PathBuf),
    /// There is none.
    #[error("there is no fleet in {0}; `npubbot fleet init --host HOST` makes one")]
    Missing(PathBuf),
    /// The fleet's own file was changed by hand, and wrongly.
    #[error("{file}: {reason}")]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The mistake.
        reason: String,
    },
    /// The host is none.
    #[error("`{0}` is no host; give the name or the address at which workers reach this machine")]
    Host(String),
    /// There is such a worker.
    #[error("there is a worker {0}; choose another name, or remove it first")]
    Taken(WorkerName),
    /// There is no such worker.
    #[error("there is no worker {0}")]
    Unknown(WorkerName),
    /// No key could be made.
    #[error("no key can be made: {0}")]
    Key(String),
}
