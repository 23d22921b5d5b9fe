//! Flags and prompts for passphrases.

use crate::vault::{Means, Unlock};
use age::secrecy::SecretString;
use anyhow::{Context, bail};
use clap::Args;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Flags that open a file with a secret in it.
#[derive(Args, Clone, Debug)]
pub(super) struct UnlockFlags {
    /// File whose first line is the passphrase.
    #[arg(long, value_name = "FILE", conflicts_with = "age_identity")]
    passphrase_file: Option<PathBuf>,
    /// Use an age identity file (from `age-keygen`) instead of a passphrase.
    #[arg(long, value_name = "FILE")]
    age_identity: Option<PathBuf>,
}

impl UnlockFlags {
    /// The passphrase or key named by the flags. Without flags, asks for a passphrase on the
    /// terminal, twice if `twice`.
    pub fn unlock(&self, prompt: &str, twice: bool) -> anyhow::Result<Unlock> {
        obtain(&self.means(prompt, twice)?)
    }

    /// Where the passphrase or key named by the flags is. Without flags, a person at the terminal is
    /// asked, twice if `twice`. Reads nothing yet.
    ///
    /// Errors: a person would be asked, and there is no terminal.
    pub fn means(&self, prompt: &str, twice: bool) -> anyhow::Result<Means> {
        Ok(match (&self.age_identity, &self.passphrase_file) {
            (Some(file), _) => Means::AgeIdentityFile(file.clone()),
            (None, Some(file)) => Means::PassphraseFile(file.clone()),
            (None, None) => {
                need_terminal()?;
                Means::Person { prompt: prompt.to_owned(), twice }
            }
        })
    }
}

/// Reads a passphrase, or asks for it.
///
/// Errors: the passphrase is empty, its file cannot be read, or there is no terminal.
pub(super) fn obtain(means: &Means) -> anyhow::Result<Unlock> {
    let passphrase = match means {
        Means::AgeIdentityFile(file) => return Ok(Unlock::AgeIdentityFile(file.clone())),
        Means::PassphraseFile(file) => first_line(file)?,
        Means::Person { prompt, twice } => ask_at_terminal(prompt, *twice)?,
    };
    if passphrase.is_empty() {
        bail!("the passphrase is empty; it needs at least one character");
    }
    Ok(Unlock::Passphrase(SecretString::from(passphrase.as_str().to_owned())))
}

/// The first line of a file that holds a passphrase.
pub(super) fn first_line(file: &Path) -> anyhow::Result<Zeroizing<String>> {
    let text = std::fs::read_to_string(file)
        .map(Zeroizing::new)
        .with_context(|| format!("the passphrase file {} cannot be read", file.display()))?;
    Ok(Zeroizing::new(text.lines().next().unwrap_or_default().to_owned()))
}

/// Asks for a secret on the terminal, twice if `twice`, without showing it.
///
/// Errors: no terminal, or two different answers.
pub(super) fn ask(prompt: &str, twice: bool) -> anyhow::Result<Zeroizing<String>> {
    need_terminal()?;
    ask_at_terminal(prompt, twice)
}

fn need_terminal() -> anyhow::Result<()> {
    if !std::io::stdin().is_terminal() {
        bail!("there is no terminal to ask for a passphrase; use --passphrase-file FILE or --age-identity FILE");
    }
    Ok(())
}

/// [`ask`] at the terminal of this process, whatever standard input is.
fn ask_at_terminal(prompt: &str, twice: bool) -> anyhow::Result<Zeroizing<String>> {
    let first = rpassword::prompt_password(prompt)
        .map(Zeroizing::new)
        .context("the terminal cannot be asked for a passphrase; use --passphrase-file FILE or --age-identity FILE")?;
    if twice {
        let second = Zeroizing::new(rpassword::prompt_password("The same again: ")?);
        if *first != *second {
            bail!("the two passphrases differ; nothing was made, start again");
        }
    }
    Ok(first)
}
