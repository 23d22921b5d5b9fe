//! What the vault needs of the operating system: files of one user, the channel between the bot and
//! its vault process, and the walls around that process. The program has the rest, in its room `os`.

use serde::{Deserialize, Serialize};

pub mod channel;
#[cfg(target_os = "linux")]
pub mod linux;
#[cfg(unix)]
mod unix;
#[cfg(target_os = "linux")]
pub mod walls;
#[cfg(windows)]
pub mod windows;

#[cfg(not(target_os = "linux"))]
mod elsewhere;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::program;
#[cfg(all(unix, not(target_os = "linux")))]
pub use elsewhere::walls;
#[cfg(target_os = "linux")]
pub use linux as program;
#[cfg(unix)]
pub use unix::{files, is_forbidden_call, leave_terminal};
#[cfg(unix)]
use unix::{own_pipes, prepare};
#[cfg(windows)]
pub use windows::{files, is_forbidden_call, leave_terminal, walls};
#[cfg(windows)]
use windows::{own_pipes, prepare};

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
