//! The bot's identity file: where it is, and how it is made and opened.

use super::unlock::UnlockFlags;
use crate::vault::Vault;
use anyhow::Context;
use clap::Args;
use std::io::IsTerminal;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use thiserror::Error;

/// Name of the identity file in the data folder.
const IDENTITY_FILE: &str = "identity.age";
/// Name of the ledger in the data folder.
const LEDGER_FILE: &str = "ledger.sqlite";

/// Flags that name and open the identity.
#[derive(Args, Clone, Debug)]
pub(super) struct IdentityFlags {
    /// Folder with the identity and the ledger.
    #[arg(long, value_name = "DIR", default_value = ".npubbot")]
    pub data: PathBuf,
    #[command(flatten)]
    unlock: UnlockFlags,
}

impl IdentityFlags {
    /// Path of the identity file.
    pub fn file(&self) -> PathBuf {
        self.data.join(IDENTITY_FILE)
    }

    /// Makes a new identity. Errors: there is one already.
    pub fn create(&self) -> anyhow::Result<Vault> {
        // A new folder is for its owner only.
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.data)
            .with_context(|| format!("the data folder {} cannot be made", self.data.display()))?;
        let unlock = self.unlock.unlock("Choose a passphrase for the bot's identity: ", true)?;
        Ok(Vault::create(&self.file(), &unlock)?)
    }

    /// Opens the identity. If there is none, asks on the terminal whether to make one.
    ///
    /// Errors: [`NoIdentity`] without a terminal, after "no", or beside the ledger of another bot.
    pub fn open(&self) -> anyhow::Result<Vault> {
        if self.file().exists() {
            let unlock = self.unlock.unlock("Passphrase of the bot's identity: ", false)?;
            return Ok(Vault::open(&self.file(), &unlock)?);
        }
        let path = self.file().display().to_string();
        if self.data.join(LEDGER_FILE).exists() {
            return Err(NoIdentity::Lost { path, ledger: self.data.join(LEDGER_FILE).display().to_string() }.into());
        }
        if !std::io::stdin().is_terminal() || !wants_identity(&path)? {
            return Err(NoIdentity::Missing { path }.into());
        }
        self.create()
    }
}

/// Asks on the terminal whether to make a new identity.
fn wants_identity(path: &str) -> anyhow::Result<bool> {
    eprint!("There is no identity at {path}. Make a new one? [y/N] ");
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
