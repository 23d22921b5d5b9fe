//! The bot's identity file: its place, making it, opening it.

use super::unlock::UnlockFlags;
use crate::vault::Vault;
use anyhow::Context;
use clap::Args;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use thiserror::Error;

/// Name of the identity file in the data folder.
const IDENTITY_FILE: &str = "identity.age";

/// Error: the data folder has no identity.
#[derive(Debug, Error)]
#[error("there is no identity in the folder {0}; make one with `npubbot init`, or name the right folder with --data")]
pub(super) struct NoIdentity(String);

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

    /// Opens the identity. Without one, makes it if somebody at a terminal says so.
    ///
    /// Errors: [`NoIdentity`] if there is none and nobody wants one made: a lost folder must not
    /// become another bot.
    pub fn open_or_ask(&self) -> anyhow::Result<Vault> {
        if !self.file().exists() {
            let is_wanted = std::io::stdin().is_terminal() && self.ask_to_create()?;
            return if is_wanted { self.create() } else { Err(NoIdentity(self.data.display().to_string()).into()) };
        }
        let unlock = self.unlock.unlock("Passphrase of the bot's identity: ", false)?;
        Ok(Vault::open(&self.file(), &unlock)?)
    }

    fn ask_to_create(&self) -> anyhow::Result<bool> {
        eprint!("There is no identity in {}. Make a new bot? [y/N] ", self.data.display());
        std::io::stderr().flush()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }
}
