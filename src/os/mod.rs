//! The operating system: everything that differs between Linux, other Unix systems and Windows.
//!
//! There is one interface, and one folder for each system. No other room asks which system it runs
//! on, or calls the system (`tests/it/architecture`). The miner and the vault have such modules of
//! their own, `search::os` and `vault::os`.
//!
//! - [`files`]: files and folders of one user, room on a disk, the usual places
//! - [`process`]: rights, crashes, other processes, the terminal
//! - [`signals`]: requests to stop and to reload
//! - [`manager`]: the service manager that started the bot
//! - [`service`]: the bot among the services of Windows
//! - [`local_socket`]: the socket between a running bot and its operator
//! - [`terminal`]: hidden input
//! - [`kernel`]: services of Linux that other systems lack

mod access;
#[cfg(any(windows, test))]
mod bounded_file;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
pub mod linux;
mod state;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

pub use access::Access;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::kernel;
#[cfg(target_os = "linux")]
pub use linux as kernel;
#[cfg(unix)]
pub use unix::{files, local_socket, manager, process, service, signals, terminal};
#[cfg(windows)]
pub use windows::{files, local_socket, manager, process, service, signals, terminal};

pub use npubbot_vault::os::BYTE_ORDER_MARK;
