//! The operating system: everything that differs between Linux and Windows.
//!
//! There is one interface, and one folder for each system. No other room asks which system it runs
//! on, or calls the system (`tests/it/architecture`). The miner and the vault have such modules of
//! their own, `search::os` and `vault::os`.
//!
//! - [`files`]: files and folders of one user, room on a disk, the usual places
//! - [`process`]: rights, crashes, other processes, the terminal
//! - [`signals`]: requests to stop and to reload
//! - [`manager`]: the service manager that started the bot
//! - [`local_socket`]: the socket between a running bot and its operator
//! - [`terminal`]: hidden input
//! - [`tree`]: the supervisor and the network process of `serve`, on Linux
//! - [`walls`]: the walls of this process
//! - [`kernel`]: services of Linux that other systems lack

#[cfg(target_os = "linux")]
pub mod linux;
pub mod walls;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::{self as kernel, files, local_socket, manager, process, signals, terminal, tree};
#[cfg(windows)]
pub use windows::{files, kernel, local_socket, manager, process, signals, terminal};

pub use npubbot_vault::os::BYTE_ORDER_MARK;

use serde::{Deserialize, Serialize};

/// The state that a service manager is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum BotState {
    /// The program serves.
    Ready,
    /// The program still answers.
    Alive,
    /// The program is about to end.
    Stopping,
}
