//! The operating system: everything that differs between Linux, other Unix systems and Windows.
//!
//! There is one interface, and one folder for each system. No other room asks which system it runs
//! on, or calls the system (`tests/it/architecture`). The miner has such a module of its own,
//! `search::os`.
//!
//! - [`files`]: files and folders of one user, room on a disk, the usual places
//! - [`process`]: rights, crashes, other processes, the terminal
//! - [`signals`]: requests to stop and to reload
//! - [`manager`]: the service manager that started the bot
//! - [`service`]: the bot among the services of Windows
//! - [`local_socket`]: the socket between a running bot and its operator
//! - [`vault_channel`]: the channel between the bot and its vault process
//! - [`terminal`]: hidden input
//! - [`walls`]: restrictions on the vault process
//! - [`kernel`]: services of Linux that other systems lack

mod access;
#[cfg(any(windows, test))]
mod bounded_file;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;
mod state;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

pub use access::Access;
#[cfg(not(target_os = "linux"))]
pub use elsewhere::kernel;
#[cfg(all(unix, not(target_os = "linux")))]
pub use elsewhere::walls;
#[cfg(target_os = "linux")]
pub use linux::{kernel, walls};
#[cfg(unix)]
pub use unix::{files, local_socket, manager, process, service, signals, terminal, vault_channel};
#[cfg(windows)]
pub use windows::{files, local_socket, manager, process, service, signals, terminal, vault_channel, walls};

/// The byte order mark that editors of Windows may put before a text.
pub const BYTE_ORDER_MARK: char = '\u{feff}';
