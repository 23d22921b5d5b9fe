//! The bot's identity file: how it is made and opened. Flags and prompts for passphrases, and the
//! process that holds the secrets.

use super::folders::{FolderFlags, IDENTITY_FILE, LEDGER_FILE};
use super::output::write_note;
use crate::bot;
use crate::os::{BYTE_ORDER_MARK, files, terminal};
use crate::vault::{self, IdentityFile, PassphraseSource, PublicSettings, Unlock, Vault};
use age::secrecy::SecretString;
use anyhow::Context;
use clap::Args;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;
use zeroize::Zeroizing;

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
    /// Makes a new identity in a folder, and the folder if it is missing. Starts the vault with the
    /// identity.
    ///
    /// Errors: the folder has an identity already.
    pub fn create(&self, data: &Path, settings: Option<PublicSettings>) -> anyhow::Result<Vault> {
        let means = self.unlock.means("Choose a passphrase for the bot's identity: ", true)?;
        // A new folder is for its owner only.
        files::create_folder(data).with_context(|| format!("the data folder {} cannot be made", data.display()))?;
        Ok(Vault::start(IdentityFile { file: identity_file(data), means, is_new: true }, settings)?)
    }

    /// Starts the vault with the identity. It signs the public events that `settings` allow. If
    /// there is no identity, asks on the terminal whether to make one.
    ///
    /// Errors: [`NoIdentity`] without a terminal, after "no", or beside the ledger of another bot.
    pub fn open(&self, data: &Path, settings: PublicSettings) -> anyhow::Result<Vault> {
        let file = identity_file(data);
        let path = file.display().to_string();
        match self.need(&file, data) {
            Ok(()) => {
                let means = self.unlock.means("Passphrase of the bot's identity: ", false)?;
                return Ok(Vault::start(IdentityFile { file, means, is_new: false }, Some(settings))?);
            }
            Err(NoIdentity::Missing { .. }) => {}
            Err(lost_or_hidden) => return Err(lost_or_hidden.into()),
        }
        if !std::io::stdin().is_terminal() || !wants_identity(&path)? {
            return Err(NoIdentity::Missing { path }.into());
        }
        self.create(data, Some(settings))
    }

    /// Starts another vault with the same identity and these settings; `None` if a person would have
    /// to type the passphrase again.
    ///
    /// Errors: the vault cannot be started.
    pub fn open_again(&self, data: &Path, settings: PublicSettings) -> anyhow::Result<Option<Vault>> {
        let means = self.unlock.means("", false)?;
        if let PassphraseSource::Person { .. } = means {
            return Ok(None);
        }
        let opening = IdentityFile { file: identity_file(data), means, is_new: false };
        Ok(Some(Vault::start(opening, Some(settings))?))
    }

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

/// A reason why there is no passphrase. Exit code 2.
#[derive(Debug, Error)]
pub(super) enum NoPassphrase {
    /// Nobody can be asked.
    #[error("there is no terminal to ask for a passphrase; use {0}")]
    NoTerminal(&'static str),
    /// Asking failed.
    #[error("the terminal cannot be asked for a passphrase ({0}); name a file with it, as `--help` says")]
    Terminal(std::io::Error),
    /// The file of the passphrase is missing or cannot be read.
    #[error("the passphrase file {file} cannot be read: {error}")]
    File {
        /// Path of the file.
        file: String,
        /// The problem.
        error: std::io::Error,
    },
    /// The file is empty, or only Enter was typed.
    #[error("the passphrase is empty; it needs at least one character")]
    Empty,
    /// The two passphrases typed are not equal.
    #[error("the two passphrases differ; nothing was made, start again")]
    Differ,
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
    pub fn unlock(&self, prompt: &str, twice: bool) -> Result<Unlock, NoPassphrase> {
        obtain(&self.means(prompt, twice)?, false)
    }

    /// The source of the passphrase or key: the file named by the flags, else a person at the
    /// terminal, who is asked twice if `twice`. Reads nothing yet.
    ///
    /// Errors: no flag names a file, and there is no terminal.
    pub fn means(&self, prompt: &str, twice: bool) -> Result<PassphraseSource, NoPassphrase> {
        Ok(match (&self.age_identity, &self.passphrase_file) {
            (Some(file), _) => PassphraseSource::AgeIdentityFile(file.clone()),
            (None, Some(file)) => PassphraseSource::PassphraseFile(file.clone()),
            (None, None) => {
                need_terminal("--passphrase-file FILE or --age-identity FILE")?;
                PassphraseSource::Person { prompt: prompt.to_owned(), twice }
            }
        })
    }

    /// Writes the passphrase or key (from the flags, else from the terminal) to a file that only
    /// this user can read. Replaces an earlier file. Returns the way to open the secret with it.
    ///
    /// Errors: the passphrase or key is empty or cannot be obtained, or the file cannot be written.
    pub fn keep(&self, file: &Path, prompt: &str) -> anyhow::Result<PassphraseSource> {
        let named = self.means(prompt, false)?;
        let text = match &named {
            PassphraseSource::AgeIdentityFile(key) => std::fs::read_to_string(key)
                .map(Zeroizing::new)
                .with_context(|| format!("the key file {} cannot be read", key.display()))?,
            PassphraseSource::PassphraseFile(from) => first_line(from)?,
            PassphraseSource::Person { prompt, twice } => ask_at_terminal(prompt, *twice, false)?,
        };
        if text.is_empty() {
            return Err(NoPassphrase::Empty.into());
        }
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let written = files::create_new(file).and_then(|mut new| new.write_all(text.as_bytes()));
        written.with_context(|| format!("{} cannot be written", file.display()))?;
        Ok(match named {
            PassphraseSource::AgeIdentityFile(_) => PassphraseSource::AgeIdentityFile(file.to_owned()),
            _ => PassphraseSource::PassphraseFile(file.to_owned()),
        })
    }
}

/// Reads a passphrase, or asks for it. `is_vault`: this is the vault process.
///
/// Errors: the passphrase is empty, its file cannot be read, or there is no terminal.
pub(super) fn obtain(means: &PassphraseSource, is_vault: bool) -> Result<Unlock, NoPassphrase> {
    let passphrase = match means {
        PassphraseSource::AgeIdentityFile(file) => return Ok(Unlock::AgeIdentityFile(file.clone())),
        PassphraseSource::PassphraseFile(file) => first_line(file)?,
        PassphraseSource::Person { prompt, twice } => ask_at_terminal(prompt, *twice, is_vault)?,
    };
    if passphrase.is_empty() {
        return Err(NoPassphrase::Empty);
    }
    Ok(Unlock::Passphrase(SecretString::from(passphrase.as_str().to_owned())))
}

/// The first line of a file that holds a passphrase.
pub(super) fn first_line(file: &Path) -> Result<Zeroizing<String>, NoPassphrase> {
    let text = std::fs::read_to_string(file)
        .map(Zeroizing::new)
        .map_err(|error| NoPassphrase::File { file: file.display().to_string(), error })?;
    Ok(Zeroizing::new(text.trim_start_matches(BYTE_ORDER_MARK).lines().next().unwrap_or_default().to_owned()))
}

/// Asks for a secret on the terminal, twice if `twice`, without showing it. `flag` is the option
/// that names a file instead.
///
/// Errors: no terminal, or two different answers.
pub(super) fn ask(prompt: &str, twice: bool, flag: &'static str) -> Result<Zeroizing<String>, NoPassphrase> {
    need_terminal(flag)?;
    ask_at_terminal(prompt, twice, false)
}

fn need_terminal(flags: &'static str) -> Result<(), NoPassphrase> {
    if std::io::stdin().is_terminal() { Ok(()) } else { Err(NoPassphrase::NoTerminal(flags)) }
}

/// Like [`ask`], but at the terminal of this process, even if standard input is something else.
fn ask_at_terminal(prompt: &str, twice: bool, is_vault: bool) -> Result<Zeroizing<String>, NoPassphrase> {
    let asked =
        |prompt: &str| terminal::ask_hidden(prompt, is_vault).map(Zeroizing::new).map_err(NoPassphrase::Terminal);
    let first = asked(prompt)?;
    if twice && *first != *asked("The same again: ")? {
        return Err(NoPassphrase::Differ);
    }
    Ok(first)
}

/// `npubbot vault`. It has no flags: the socket brings everything it opens.
#[derive(Args, Debug)]
pub(super) struct VaultProcess {}

impl VaultProcess {
    /// Answers the bot at the other end of standard input, until the bot closes it.
    ///
    /// Errors: standard input is not a socket, or brings something other than requests.
    pub fn run(self) -> anyhow::Result<()> {
        let unlock = |means: &vault::PassphraseSource| obtain(means, true).map_err(|error| format!("{error:#}"));
        vault::answer(unlock, bot::asked).context("this command is a part of `npubbot serve`, which starts it")
    }
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
