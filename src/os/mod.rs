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
//! - [`tree`]: the supervisor and the network process of `serve`, on Linux
//! - [`walls`]: the walls of this process
//! - [`kernel`]: services of Linux that other systems lack

#[cfg(any(windows, test))]
mod bounded_file;
#[cfg(target_os = "linux")]
pub mod linux;
#[cfg(unix)]
mod unix;
pub mod walls;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux as kernel;
#[cfg(target_os = "linux")]
pub use linux::tree;
#[cfg(unix)]
pub use unix::{files, local_socket, manager, process, service, signals, terminal};
#[cfg(windows)]
pub use windows::{files, local_socket, manager, process, service, signals, terminal};

pub use npubbot_vault::os::BYTE_ORDER_MARK;

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;

/// Way to open an existing or new file. No way truncates the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Writing, from the beginning.
    Write,
    /// Reading and writing, from the beginning.
    ReadWrite,
    /// Writing at the end.
    Append,
    /// Reading from the beginning, and writing at the end.
    ReadAppend,
}

impl Access {
    /// Whether this way allows reading.
    pub fn reads(self) -> bool {
        matches!(self, Access::ReadWrite | Access::ReadAppend)
    }

    /// Whether everything is written at the end.
    pub fn appends(self) -> bool {
        matches!(self, Access::Append | Access::ReadAppend)
    }
}

/// The state that a service manager is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum BotState {
    /// The program serves.
    Ready,
    /// The program still answers.
    Alive,
    /// The program is about to end.
    Stopping,
    /// The program ends now, as requested.
    Stopped,
}

/// The end of a service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServiceEnd {
    /// The service's exit code.
    pub code: u8,
    /// Whether the service manager should start the service again.
    pub is_to_restart: bool,
}

/// A service to be installed.
pub struct Installation {
    /// The program's arguments.
    pub arguments: Vec<OsString>,
    /// The configuration file.
    pub config: PathBuf,
    /// The data folder.
    pub data: PathBuf,
}

/// Stand-ins for the processes of `serve` on Linux. Elsewhere it is one process, and its vault.
#[cfg(not(target_os = "linux"))]
pub mod tree {
    use npubbot_vault::MissingWall;
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use std::convert::Infallible;
    use std::ffi::OsStr;
    use std::io;
    use std::path::{Path, PathBuf};
    use std::process::Child;

    /// Whether `serve` is a supervisor with a network process.
    pub const IS_SUPERVISED: bool = false;

    /// A channel, which does not exist here.
    pub struct Channel(Infallible);

    impl Channel {
        /// No channel.
        ///
        /// Errors: always.
        pub fn own_end() -> io::Result<Channel> {
            Err(io::ErrorKind::Unsupported.into())
        }

        /// Sends nothing.
        ///
        /// Errors: always.
        pub fn send(&self, _: &impl Serialize) -> io::Result<()> {
            match self.0 {}
        }

        /// Receives nothing.
        ///
        /// Errors: always.
        pub fn receive<T: DeserializeOwned>(&self) -> io::Result<Option<Vec<T>>> {
            match self.0 {}
        }

        /// Sends nothing.
        ///
        /// Errors: always.
        pub fn send_process(&self, _: npubbot_vault::Spawned) -> io::Result<Box<dyn npubbot_vault::Process>> {
            match self.0 {}
        }

        /// Receives nothing.
        ///
        /// Errors: always.
        pub fn receive_process(&self, _: Box<dyn npubbot_vault::Process>) -> io::Result<npubbot_vault::Spawned> {
            match self.0 {}
        }
    }

    /// Starts nothing.
    ///
    /// Errors: always.
    pub fn start(_: &OsStr, _: &Path) -> io::Result<(Child, Channel)> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Does nothing.
    ///
    /// Errors: always.
    pub fn follow_supervisor() -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Does nothing.
    #[cfg(any(test, feature = "test-util"))]
    pub fn attack_if_asked(_: &Path, _: Option<u32>) {}

    /// Raises no walls. Returns that there are none.
    pub fn enclose_network(_: Vec<PathBuf>, _: Vec<PathBuf>, _: &[PathBuf]) -> Vec<MissingWall> {
        vec![MissingWall::sandbox("this system has no wall around the process that talks to strangers; Linux has")]
    }
}

/// Stand-ins for services of Linux, on systems that lack or do not need them.
#[cfg(not(target_os = "linux"))]
pub mod kernel {
    use std::io;
    use std::path::PathBuf;
    use tokio::net::TcpStream;

    /// A second handle to a TCP connection, which does not exist here.
    pub struct Tcp;

    impl Tcp {
        /// Always `None`.
        pub fn of(_: &TcpStream) -> Option<Tcp> {
            None
        }

        /// Does nothing.
        pub fn acknowledge_at_once(&self) {}
    }

    /// A file in memory, which does not exist here.
    pub struct MemoryFile;

    impl MemoryFile {
        /// No file.
        ///
        /// Errors: always.
        pub fn with(_: &str) -> io::Result<MemoryFile> {
            Err(io::ErrorKind::Unsupported.into())
        }

        /// No path.
        pub fn path(&self) -> PathBuf {
            PathBuf::new()
        }
    }

    /// Does nothing: only glibc's malloc needs it.
    pub fn tune_malloc() {}

    /// `false`: this is not Linux.
    pub fn is_wsl() -> bool {
        false
    }
}
