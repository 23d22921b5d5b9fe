//! The format of a backup.

use crate::ledger::LedgerError;
use crate::vault::VaultError;
use serde::{Deserialize, Serialize};
use std::io;
use thiserror::Error;

/// The version of this format. A later one is refused.
pub(super) const FORMAT: u32 = 1;

/// Names of the entries.
pub(super) const MANIFEST: &str = "manifest.json";
pub(super) const IDENTITY: &str = "identity.age";
pub(super) const CONFIG: &str = "relays.toml";
pub(super) const LEDGER: &str = "ledger.sqlite";
pub(super) const HALVES: &str = "used-halves";

/// The first entry, which describes the others.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this format.
    pub format: u32,
    /// Version of the program that made the backup.
    pub version: String,
    /// When the backup was made, Unix seconds.
    pub made_at: u64,
}

/// Reason why a backup was not made or restored. Nothing was left behind.
#[derive(Debug, Error)]
pub enum BackupError {
    /// The encryption failed: a wrong passphrase, a file of another kind, or a `to` that exists.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The ledger in the backup or in the data folder cannot be used.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The backup was made by a later npubbot.
    #[error(
        "the backup is of npubbot {version} and has format {format}; this program reads up to {FORMAT}: use a newer one"
    )]
    TooNew {
        /// Version of the program that made the backup.
        version: String,
        /// Version of its format.
        format: u32,
    },
    /// The file is a cut or damaged backup, or no backup.
    #[error("the backup is damaged or cut ({reason}); nothing was restored, take another copy")]
    Damaged {
        /// The damage.
        reason: String,
    },
    /// A file is in the way of the restore.
    #[error("there is {path} already; a bot is restored to an empty place only, so that no half serves twice")]
    Occupied {
        /// The path.
        path: String,
    },
    /// There is no bot to back up.
    #[error("there is no {path}; name the bot's folder with --data")]
    NoBot {
        /// The missing file.
        path: String,
    },
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// The path.
        path: String,
        /// The system's reason.
        error: io::Error,
    },
}

/// Names the path in an error of the system.
pub(super) fn at(path: &std::path::Path) -> impl Fn(io::Error) -> BackupError + '_ {
    move |error| BackupError::File { path: path.display().to_string(), error }
}
