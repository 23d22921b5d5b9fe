//! The bot's identity file: how it is made and opened. Flags and prompts for passphrases, and the
//! process that holds the secrets.

use super::PART_OF_SERVE;
use super::folders::{FolderFlags, IDENTITY_FILE};
use super::output::note;
use crate::bot;
use crate::os::{BYTE_ORDER_MARK, files, terminal};
use crate::service::need_identity;
use crate::vault::{self, IdentityFile, PassphraseSource, Unlock, Vault};
use age::secrecy::SecretString;
use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Flags that name a bot's folders and open its identity.
#[derive(Args, Clone, Debug)]
pub(super) struct IdentityFlags {
    #[command(flatten)]
    pub folders: FolderFlags,
    #[command(flatten)]
    pub unlock: UnlockFlags,
}

/// The question for the passphrase of an identity.
pub(super) const IDENTITY_PROMPT: &str = "Passphrase of the bot's identity: ";

/// Path of the identity file.
pub(super) fn identity_file(data: &Path) -> PathBuf {
    data.join(IDENTITY_FILE)
}

impl IdentityFlags {
    /// Makes a new identity in a folder, and the folder if it is missing. Starts the vault with the
    /// identity.
    ///
    /// Errors: the folder has an identity already.
    pub fn create(&self, data: &Path) -> anyhow::Result<Vault> {
        let means = self.unlock.means("Choose a passphrase for the bot's identity: ", true)?;
        // A new folder is for its owner only.
        files::create_folder(data).with_context(|| format!("the data folder {} cannot be made", data.display()))?;
        Ok(Vault::start(IdentityFile { file: identity_file(data), means, is_new: true }, None)?)
    }

    /// The identity with which the vault starts. None is made here, because askers know the bot by
    /// its npub.
    ///
    /// Errors: those of [`need_identity`].
    pub fn find(&self, data: &Path) -> anyhow::Result<IdentityFile> {
        let file = identity_file(data);
        need_identity(&file, data)?;
        let means = self.unlock.means(IDENTITY_PROMPT, false)?;
        Ok(IdentityFile { file, means, is_new: false })
    }
}

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
        read_unlock(&self.means(prompt, twice)?, false)
    }

    /// The source of the passphrase or key: the file named by the flags, else a person at the
    /// terminal, who is asked twice if `twice`. Reads nothing yet.
    ///
    /// Errors: no flag names a file, and there is no terminal.
    pub fn means(&self, prompt: &str, twice: bool) -> anyhow::Result<PassphraseSource> {
        Ok(match (&self.age_identity, &self.passphrase_file) {
            (Some(file), _) => PassphraseSource::AgeIdentityFile(file.clone()),
            (None, Some(file)) => PassphraseSource::PassphraseFile(file.clone()),
            (None, None) => {
                need_terminal("--passphrase-file FILE or --age-identity FILE")?;
                PassphraseSource::Person { prompt: prompt.to_owned(), twice }
            }
        })
    }
}

/// Reads a passphrase, or asks for it. `is_vault`: this is the vault process.
///
/// Errors: the passphrase is empty, its file cannot be read, or there is no terminal.
fn read_unlock(means: &PassphraseSource, is_vault: bool) -> anyhow::Result<Unlock> {
    let passphrase = match means {
        PassphraseSource::AgeIdentityFile(file) => return Ok(Unlock::AgeIdentityFile(file.clone())),
        PassphraseSource::PassphraseFile(file) => first_line(file)?,
        PassphraseSource::Person { prompt, twice } => ask_at_terminal(prompt, *twice, is_vault)?,
    };
    ensure!(!passphrase.is_empty(), "the passphrase is empty; it needs at least one character");
    Ok(Unlock::Passphrase(SecretString::from(passphrase.as_str().to_owned())))
}

/// The first line of a file that holds a passphrase.
fn first_line(file: &Path) -> anyhow::Result<Zeroizing<String>> {
    let text = std::fs::read_to_string(file)
        .map(Zeroizing::new)
        .map_err(|error| anyhow!("the passphrase file {} cannot be read: {error}", file.display()))?;
    Ok(Zeroizing::new(text.trim_start_matches(BYTE_ORDER_MARK).lines().next().unwrap_or_default().to_owned()))
}

/// Asks for a secret on the terminal, twice if `twice`, without showing it. `flag` is the option
/// that names a file instead.
///
/// Errors: no terminal, or two different answers.
pub(super) fn ask(prompt: &str, twice: bool, flag: &'static str) -> anyhow::Result<Zeroizing<String>> {
    need_terminal(flag)?;
    ask_at_terminal(prompt, twice, false)
}

/// The password for a key: the first line of a file, or the answer to a prompt.
///
/// Errors: it is empty or cannot be obtained.
pub(super) fn new_password(file: Option<&Path>, prompt: &str) -> anyhow::Result<Zeroizing<String>> {
    let password = match file {
        Some(file) => first_line(file)?,
        None => ask(prompt, true, "--password-file FILE")?,
    };
    ensure!(!password.is_empty(), "an empty password protects nothing; give one");
    Ok(password)
}

fn need_terminal(flags: &'static str) -> anyhow::Result<()> {
    ensure!(std::io::stdin().is_terminal(), "there is no terminal to ask for a passphrase; use {flags}");
    Ok(())
}

/// Like [`ask`], but at the terminal of this process, even if standard input is something else.
fn ask_at_terminal(prompt: &str, twice: bool, is_vault: bool) -> anyhow::Result<Zeroizing<String>> {
    let failed = |error| {
        anyhow!("the terminal cannot be asked for a passphrase ({error}); name a file with it, as `--help` says")
    };
    let asked = |prompt: &str| terminal::ask_hidden(prompt, is_vault).map(Zeroizing::new).map_err(failed);
    let first = asked(prompt)?;
    if twice && *first != *asked("The same again: ")? {
        bail!("the two passphrases differ; nothing was made, start again");
    }
    Ok(first)
}

#[derive(Args, Debug)]
pub(super) struct Passphrase {
    #[command(flatten)]
    identity: IdentityFlags,
    /// File whose first line is the new passphrase.
    #[arg(long, value_name = "FILE", conflicts_with = "new_age_identity")]
    new_passphrase_file: Option<PathBuf>,
    /// Lock the identity with this age identity file in place of a passphrase.
    #[arg(long, value_name = "FILE")]
    new_age_identity: Option<PathBuf>,
}

impl Passphrase {
    pub fn run(self) -> anyhow::Result<()> {
        let data = self.identity.folders.find()?.data;
        let file = identity_file(&data);
        need_identity(&file, &data)?;
        let new = UnlockFlags { passphrase_file: self.new_passphrase_file, age_identity: self.new_age_identity };
        let old = self.identity.unlock.unlock(IDENTITY_PROMPT, false)?;
        vault::relock(&file, &old, &new.unlock("Choose a new passphrase: ", true)?)?;
        note!("{} is locked anew. Copies and backups made before keep the old passphrase.", file.display());
        if let Some(command) = files::SERVICE_CREDENTIAL.filter(|_| data == files::service_folders().1) {
            note!("The service has the old one; give it the new one:\n  {command}");
        }
        Ok(())
    }
}

/// Answers the bot at the other end of standard input, until the bot closes it. The socket brings
/// everything that the vault opens.
///
/// Errors: standard input is not a socket, or brings something other than requests.
pub(super) fn serve_vault() -> anyhow::Result<()> {
    let unlock = |means: &vault::PassphraseSource| read_unlock(means, true).map_err(|error| format!("{error:#}"));
    vault::answer(unlock, bot::asked).context(PART_OF_SERVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passphrase_is_the_line_that_an_editor_of_windows_shows() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for text in ["a b\r\nnext\r\n", "\u{feff}a b\r\n", "\u{feff}a b", "a b"] {
            std::fs::write(file.path(), text).unwrap();
            assert_eq!(first_line(file.path()).unwrap().as_str(), "a b", "{text:?}");
        }
    }
}
