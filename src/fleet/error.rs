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
    /// There is no fleet.
    #[error("there is no fleet in {0}; `npubbot fleet init --host HOST` makes one")]
    Missing(PathBuf),
    /// The fleet's own file cannot be read; it was changed by hand.
    #[error("{file}: {reason}")]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The mistake.
        reason: String,
    },
    /// The text is not a host name or address.
    #[error("`{0}` is no host; give the name or the address at which workers reach this machine")]
    Host(String),
    /// A worker of this name exists.
    #[error("there is a worker {0}; choose another name, or remove it first")]
    Taken(WorkerName),
    /// No worker of this name exists.
    #[error("there is no worker {0}")]
    Unknown(WorkerName),
    /// No key could be made.
    #[error("no key can be made: {0}")]
    Key(String),
}
