//! Flags and prompts that open the identity file.

use crate::vault::{Unlock, Vault};
use age::secrecy::SecretString;
use anyhow::{Context, bail};
use clap::Args;
use std::io::IsTerminal;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The name of the identity file in the data folder.
const IDENTITY_FILE: &str = "identity.age";

#[derive(Args, Clone, Debug)]
pub(super) struct IdentityFlags {
    /// Folder of the identity and the ledger.
    #[arg(long, value_name = "DIR", default_value = ".npubbot")]
    pub data: PathBuf,
    /// A file whose first line is the passphrase of the identity.
    #[arg(long, value_name = "FILE", conflicts_with = "age_identity")]
    passphrase_file: Option<PathBuf>,
    /// An age identity file (`age-keygen`) that opens the identity instead of a passphrase.
    #[arg(long, value_name = "FILE")]
    age_identity: Option<PathBuf>,
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
        let unlock = self.unlock("Choose a passphrase for the bot's identity: ", true)?;
        Ok(Vault::create(&self.file(), &unlock)?)
    }

    /// Opens the identity that is there, or makes one.
    pub fn open_or_create(&self) -> anyhow::Result<Vault> {
        if !self.file().exists() {
            return self.create();
        }
        let unlock = self.unlock("Passphrase of the bot's identity: ", false)?;
        Ok(Vault::open(&self.file(), &unlock)?)
    }

    fn unlock(&self, prompt: &str, twice: bool) -> anyhow::Result<Unlock> {
        if let Some(file) = &self.age_identity {
            return Ok(Unlock::AgeIdentityFile(file.clone()));
        }
        let passphrase = match &self.passphrase_file {
            Some(file) => first_line(file)?,
            None => ask(prompt, twice)?,
        };
        if passphrase.is_empty() {
            bail!("the passphrase is empty; an identity needs one of at least one character");
        }
        Ok(Unlock::Passphrase(SecretString::from(passphrase.as_str().to_owned())))
    }
}

fn first_line(file: &Path) -> anyhow::Result<Zeroizing<String>> {
    let text = std::fs::read_to_string(file)
        .map(Zeroizing::new)
        .with_context(|| format!("the passphrase file {} cannot be read", file.display()))?;
    Ok(Zeroizing::new(text.lines().next().unwrap_or_default().to_owned()))
}

fn ask(prompt: &str, twice: bool) -> anyhow::Result<Zeroizing<String>> {
    if !std::io::stdin().is_terminal() {
        bail!("there is no terminal to ask for a passphrase; use --passphrase-file FILE or --age-identity FILE");
    }
    let first = Zeroizing::new(rpassword::prompt_password(prompt)?);
    if twice {
        let second = Zeroizing::new(rpassword::prompt_password("The same again: ")?);
        if *first != *second {
            bail!("the two passphrases differ; nothing was made, start again");
        }
    }
    Ok(first)
}
