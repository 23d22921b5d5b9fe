//! The search on other machines: workers that are not trusted, over a NATS server.
//!
//! ```text
//! scheduler ──launch──▶ RemoteSearcher ──order──▶ stream of the worker ──pull──▶ worker ──▶ device
//!           ◀──report── Session ◀──────────────answer──────────────────────────┘
//! ```
//!
//! A worker learns only start points and patterns: no secret, no asker, no job. To the scheduler
//! its device is a `Searcher` like any other, except that its claims count only as far as its
//! canaries prove them. Everything that a worker can send or make us compute is bounded (`wire.rs`,
//! `session.rs`, `roll.rs`, `pace.rs`).
//!
//! A lost order is never sent again. The search has no memory, so the loss costs seconds, and no
//! start point is ever given to two workers.

mod credentials;
mod differences;
mod fleet;
mod hellos;
mod known;
mod orders;
mod pace;
mod pings;
mod roll;
mod searcher;
mod session;
mod sets;
mod subjects;
mod wire;
mod worker;

pub use credentials::{Credentials, CredentialsError};
pub use fleet::{Attach, Fleet, FleetView};
pub use pings::Echo;
pub use roll::RemoteView;
pub use subjects::{BOT, Permissions, Service, all_pings};
pub use wire::{LARGEST_ANSWER, LARGEST_TO_WORKER};
pub use worker::{WorkerError, open_devices, run_worker};
