//! Errors of the ledger.

use rusqlite::ErrorCode;
use thiserror::Error;

/// Reason why the ledger refused or failed. Nothing was changed.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// Another process holds the folder's lock.
    #[error("another npubbot uses the folder {folder}; stop it, or give this one its own with --data")]
    InUse {
        /// The data folder.
        folder: String,
    },
    /// The file has a schema of a later version.
    #[error(
        "the ledger in {folder} was written by a newer npubbot (schema {found}, this one knows {known}); upgrade npubbot"
    )]
    TooNew {
        /// The data folder.
        folder: String,
        /// Schema of the file.
        found: i64,
        /// Latest schema of this program.
        known: i64,
    },
    /// The folder or its lock cannot be used.
    #[error("the data folder {folder} cannot be used: {reason}")]
    Folder {
        /// The data folder.
        folder: String,
        /// The problem, and what would work.
        reason: String,
    },
    /// The ledger belongs to another bot.
    #[error(
        "this ledger belongs to the bot {owner}, but the identity is {bot}; give each bot its own folder with --data"
    )]
    OtherBot {
        /// Owner of the ledger, as an npub.
        owner: String,
        /// The bot that was started, as an npub.
        bot: String,
    },
    /// SQLite failed.
    #[error("the ledger failed: {0}")]
    Database(rusqlite::Error),
    /// The file of used halves cannot be read or written, so no half may be used.
    #[error("the file of used halves cannot be used: {0}")]
    UsedHalves(std::io::Error),
    /// A wrap that is sealed to another key than the asker's.
    #[error("the message is sealed to somebody else than the asker; it was not queued")]
    Misaddressed,
    /// The file is damaged.
    #[error(
        "the ledger is damaged: {0}. Stop npubbot and restore a backup of ledger.sqlite, but leave the file \
         used-halves as it is"
    )]
    Corrupt(String),
}

impl From<rusqlite::Error> for LedgerError {
    fn from(error: rusqlite::Error) -> LedgerError {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => LedgerError::Corrupt(error.to_string()),
            _ => LedgerError::Database(error),
        }
    }
}

impl LedgerError {
    /// Whether the system refuses the file to this user.
    pub fn is_refused(&self) -> bool {
        use ErrorCode::{CannotOpen, PermissionDenied, ReadOnly};
        let LedgerError::Database(error) = self else { return false };
        matches!(error.sqlite_error_code(), Some(CannotOpen | PermissionDenied | ReadOnly))
    }

    /// Whether the same call can succeed later: the disk is full or read-only, or the file is busy.
    pub fn is_transient(&self) -> bool {
        use ErrorCode::{
            CannotOpen, DatabaseBusy, DatabaseLocked, DiskFull, OperationInterrupted, OutOfMemory, PermissionDenied,
            ReadOnly, SystemIoFailure,
        };
        match self {
            LedgerError::UsedHalves(_) => true,
            LedgerError::Database(error) => matches!(
                error.sqlite_error_code(),
                Some(
                    CannotOpen
                        | DatabaseBusy
                        | DatabaseLocked
                        | DiskFull
                        | OperationInterrupted
                        | OutOfMemory
                        | PermissionDenied
                        | ReadOnly
                        | SystemIoFailure
                )
            ),
            _ => false,
        }
    }
}
