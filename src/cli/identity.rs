//! The bot's identity file: its place, making it, opening it.

use super::unlock::UnlockFlags;
use crate::vault::Vault;
use anyhow::Context;
use clap::Args;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// Name of the identity file in the data folder.
const IDENTITY_FILE: &str = "identity.age";

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

    /// Opens the identity, or makes one if there is none.
    pub fn open_or_create(&self) -> anyhow::Result<Vault> {
        if !self.file().exists() {
            return self.create();
        }
        let unlock = self.unlock.unlock("Passphrase of the bot's identity: ", false)?;
        Ok(Vault::open(&self.file(), &unlock)?)
    }
}
