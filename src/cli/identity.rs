//! The bot's identity file: how it is made and opened.

use super::folders::{FolderError, FolderFlags, Folders, IDENTITY_FILE, LEDGER_FILE};
use super::output::write_note;
use super::unlock::UnlockFlags;
use crate::os::files;
use crate::vault::{IdentityFile, PassphraseSource, Vault};
use anyhow::Context;
use clap::Args;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Flags that name a bot's folders and open its identity.
#[derive(Args, Clone, Debug)]
pub(super) struct IdentityFlags {
    #[command(flatten)]
    pub folders: FolderFlags,
    #[command(flatten)]
    unlock: UnlockFlags,
}

/// Path of the identity file.
pub(super) fn identity_file(data: &Path) -> PathBuf {
    data.join(IDENTITY_FILE)
}

impl IdentityFlags {
    /// The folders of the bot.
    ///
    /// Errors: [`FolderError`].
    pub fn find(&self) -> Result<Folders, FolderError> {
        self.folders.find()
    }

    /// Makes a new identity in a folder, and the folder if it is missing. Starts the vault with the
    /// identity.
    ///
    /// Errors: the folder has an identity already.
    pub fn create(&self, data: &Path) -> anyhow::Result<Vault> {
        let means = self.unlock.means("Choose a passphrase for the bot's identity: ", true)?;
        // A new folder is for its owner only.
        files::create_folder(data).with_context(|| format!("the data folder {} cannot be made", data.display()))?;
        Ok(Vault::start(IdentityFile { file: identity_file(data), means, is_new: true })?)
    }

    /// Starts the vault with the identity. If there is none, asks on the terminal whether to make
    /// one.
    ///
    /// Errors: [`NoIdentity`] without a terminal, after "no", or beside the ledger of another bot.
    pub fn open(&self, data: &Path) -> anyhow::Result<Vault> {
        let file = identity_file(data);
        let path = file.display().to_string();
        match self.need(&file, data) {
            Ok(()) => {
                let means = self.unlock.means("Passphrase of the bot's identity: ", false)?;
                return Ok(Vault::start(IdentityFile { file, means, is_new: false })?);
            }
            Err(NoIdentity::Missing { .. }) => {}
            Err(lost_or_hidden) => return Err(lost_or_hidden.into()),
        }
        if !std::io::stdin().is_terminal() || !wants_identity(&path)? {
            return Err(NoIdentity::Missing { path }.into());
        }
        self.create(data)
    }
}

impl IdentityFlags {
    /// Checks that a data folder has its identity file.
    ///
    /// Errors: [`NoIdentity`], if it has none.
    pub fn need(&self, file: &Path, data: &Path) -> Result<(), NoIdentity> {
        let (path, ledger) = (file.display().to_string(), data.join(LEDGER_FILE));
        Err(match (file.try_exists(), ledger.exists()) {
            (Ok(true), _) => return Ok(()),
            (Err(error), _) => NoIdentity::Hidden { path, error },
            (Ok(false), true) => NoIdentity::Lost { path, ledger: ledger.display().to_string() },
            (Ok(false), false) => NoIdentity::Missing { path },
        })
    }

    /// Writes the passphrase or key of the identity to a file, for a service that can ask nobody.
    ///
    /// Errors: those of [`UnlockFlags::keep`].
    pub fn keep_means(&self, file: &Path) -> anyhow::Result<PassphraseSource> {
        self.unlock.keep(file, "Passphrase of the bot's identity: ")
    }
}

/// Asks on the terminal whether to make a new identity.
fn wants_identity(path: &str) -> anyhow::Result<bool> {
    write_note(format_args!("There is no identity at {path}. Make a new one? [y/N] "));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Reason why there is no identity to serve with. A new one is made only on request, because askers
/// know the bot by its npub.
#[derive(Debug, Error)]
pub(super) enum NoIdentity {
    /// There is no identity file.
    #[error("there is no identity at {path}; make one with `npubbot init`, or name its folder with --data")]
    Missing {
        /// Path of the file.
        path: String,
    },
    /// The file may be there, but this user cannot see it.
    #[error("the identity {path} cannot be read ({error}); run npubbot as the user that runs the bot, or as root")]
    Hidden {
        /// Path of the file.
        path: String,
        /// The system's reason.
        error: std::io::Error,
    },
    /// There is a ledger but no identity file, so an identity was lost.
    #[error(
        "there is no identity at {path}, but there is the ledger {ledger}; restore the identity file from your copy, or \
         name another folder with --data"
    )]
    Lost {
        /// Path of the identity file.
        path: String,
        /// Path of the ledger.
        ledger: String,
    },
}
