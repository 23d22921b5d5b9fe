//! What the vault needs of the operating system: files of one user, the channel between the bot and
//! its vault process, and the walls around that process. The program has the rest, in its room `os`.

use serde::{Deserialize, Serialize};

pub mod channel;
#[cfg(target_os = "linux")]
pub mod linux;
#[cfg(target_os = "linux")]
pub mod walls;
#[cfg(windows)]
pub mod windows;

#[cfg(target_os = "linux")]
pub use linux::{self as program, files, is_forbidden_call, leave_terminal};
#[cfg(windows)]
pub use windows::{self as program, files, is_forbidden_call, leave_terminal, walls};

use program::{own_pipes, prepare};

/// A wall around a process that could not be raised.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MissingWall {
    /// The consequence, for the operator.
    pub loss: String,
    /// Whether it is a part of the sandbox, rather than a precaution such as locked memory.
    pub is_sandbox: bool,
}

impl MissingWall {
    /// A missing part of a sandbox.
    pub fn sandbox(loss: impl Into<String>) -> MissingWall {
        MissingWall { loss: loss.into(), is_sandbox: true }
    }

    /// A missing precaution.
    pub fn precaution(loss: impl Into<String>) -> MissingWall {
        MissingWall { loss: loss.into(), is_sandbox: false }
    }
}

/// The byte order mark that editors of Windows may put before a text.
pub const BYTE_ORDER_MARK: char = '\u{feff}';
