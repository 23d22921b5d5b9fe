//! Errors of the ledger.

use crate::key::Npub;
use thiserror::Error;

/// Reason why the ledger did not do it. Nothing was changed.
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
        /// What is wrong and what would work.
        reason: String,
    },
    /// SQLite failed.
    #[error("the ledger failed: {0}")]
    Database(#[from] rusqlite::Error),
    /// A wrap that is sealed to another key than the asker's.
    #[error("the message is sealed to somebody else than the asker; it was not queued")]
    Misaddressed,
    /// The ledger of another bot.
    #[error(
        "the ledger belongs to another bot ({owner}), and the identity is {identity}; name the right folder with --data, \
         or put the right identity back"
    )]
    OtherBot {
        /// The bot the ledger belongs to.
        owner: Npub,
        /// The bot of the identity.
        identity: Npub,
    },
    /// A file or a row that cannot be read, with its place.
    #[error("the ledger holds something unreadable: {0}")]
    Corrupt(String),
}
