//! The search on other machines: workers that are not trusted, over a NATS server.
//!
//! ```text
//! scheduler ──launch──▶ RemoteSearcher ──order──▶ stream of the worker ──pull──▶ worker ──▶ device
//!           ◀──report── proof ◀── Session ◀─────answer──────────────────────────┘
//! ```
//!
//! A worker learns only start points and patterns: no secret, no asker, no job. Its device is a
//! [`npubbot_miner::search::Searcher`] like any other: its reports have only hits that were
//! recomputed, and only as many candidates as these hits prove (`searcher.rs`). A worker is invited by
//! credentials; what it keeps back costs time, never a key. Everything that a worker can send or
//! make us compute is bounded (`wire.rs`, `session.rs`, `roll.rs`).
//!
//! A lost order is never sent again. The search has no memory, so the loss costs seconds, and no
//! start point is ever given to two workers.

mod credentials;
mod fleet;
mod roll;
mod searcher;
mod server;
mod session;
mod subjects;
mod wire;
mod worker;

pub use credentials::Credentials;
pub use fleet::Fleet;
pub use roll::{FleetStatus, ProvenFigures, WorkerDeviceStatus, WorkerFigures, WorkerStatus};
pub use server::{BOT_CREDENTIALS, FOLDER, Setup};
pub use subjects::BOT;
pub use wire::LARGEST_ANSWER;
pub use worker::run_worker;

use std::path::PathBuf;
use thiserror::Error;

/// Why a fleet cannot be set up, or a worker cannot work.
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
    /// Something that a person must change, and how.
    #[error("{0}")]
    Refused(String),
    /// Something that may work at the next start.
    #[error("{0}")]
    Failed(String),
}
