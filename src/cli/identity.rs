//! Where the bot's identity is kept, and opening it.

use super::unlock::UnlockFlags;
use crate::vault::Vault;
use anyhow::Context;
use clap::Args;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// The name of the identity file in the data folder.
const IDENTITY_FILE: &str = "identity.age";

#[derive(Args, Clone, Debug)]
pub(super) struct IdentityFlags {
    /// Folder of the identity and the ledger.
    #[arg(long, value_name = "DIR", default_value = ".npubbot")]
    pub data: PathBuf,
    #[command(flatten)]
    unlock: UnlockFlags,
}

impl IdentityFlags {
    pub fn file(&self) -> PathBuf {
        self.data.join(IDENTITY_FILE)
    }

    /// Makes a new identity, which must not be there yet.
    pub fn create(&self) -> anyhow::Result<Vault> {
        // Nobody else's business, should it be new.
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.data)
            .with_context(|| format!("the data folder {} cannot be made", self.data.display()))?;
        let unlock = self.unlock.unlock("Choose a passphrase for the bot's identity: ", true)?;
        Ok(Vault::create(&self.file(), &unlock)?)
    }

    /// Opens the identity that is there, or makes one.
    pub fn open_or_create(&self) -> anyhow::Result<Vault> {
        if !self.file().exists() {
            return self.create();
        }
        let unlock = self.unlock.unlock("Passphrase of the bot's identity: ", false)?;
        Ok(Vault::open(&self.file(), &unlock)?)
    }
}
