//! A service: its installation, states and end.

use std::ffi::OsString;
use std::path::PathBuf;

/// The state that a service manager is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
pub struct End {
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
