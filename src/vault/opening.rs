//! Ways to open a file that contains a secret.

use super::request::Shown;
use age::secrecy::SecretString;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The passphrase or key that opens a file with a secret.
pub enum Unlock {
    /// A passphrase, stretched with scrypt as `age -p` does.
    Passphrase(SecretString),
    /// Path of a file with an `AGE-SECRET-KEY-1…` line, as `age-keygen` writes it.
    AgeIdentityFile(PathBuf),
}

/// The source of the passphrase or key, for the vault process. It contains neither of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Means {
    /// The first line of this file is the passphrase.
    PassphraseFile(PathBuf),
    /// This file has an `AGE-SECRET-KEY-1…` line.
    AgeIdentityFile(PathBuf),
    /// A person types the passphrase at the terminal.
    Person {
        /// The question.
        prompt: String,
        /// Whether to ask twice, for a new passphrase.
        twice: bool,
    },
}

/// The greeting of a vault process that has opened its identity.
#[derive(Serialize, Deserialize)]
pub(super) struct Ready {
    /// The public key of the identity.
    pub(super) key: [u8; 32],
    /// The walls that could not be raised, each with its consequence.
    pub(super) missing_walls: Vec<String>,
}

impl Means {
    /// The means for another start of the vault process, with the same identity.
    pub(super) fn again(self) -> Means {
        match self {
            Means::Person { .. } => Means::Person {
                prompt: "The vault process has ended. Passphrase of the bot's identity, to start it again: ".to_owned(),
                twice: false,
            },
            file => file,
        }
    }
}

/// The first item that a vault process reads.
#[derive(Serialize, Deserialize)]
pub(super) enum Beginning {
    /// The vault of a bot.
    Bot(Opening),
    /// A vault without an identity. It shows keys to the person who started it.
    Local,
    /// The vault of an asker's command, with that asker's half.
    Half(HalfOpening),
}

impl Beginning {
    /// The first item for another start of the vault process, when the identity exists already.
    pub(super) fn again(self) -> Beginning {
        match self {
            Beginning::Bot(opening) => {
                Beginning::Bot(Opening { is_new: false, means: opening.means.again(), ..opening })
            }
            // A new half cannot replace a lost one, and nobody is asked to type a half a second
            // time. The next process has no half, so the command fails, and the person can run it
            // again.
            Beginning::Local | Beginning::Half(_) => Beginning::Local,
        }
    }

    /// The action that a person must take before the process can start again, for the bot's
    /// terminal and `doctor`.
    pub(super) fn need(&self) -> Option<&'static str> {
        match self {
            Beginning::Bot(Opening { means: Means::Person { .. }, .. }) => {
                Some("the passphrase of the identity must be typed at the terminal where the bot was started")
            }
            _ => None,
        }
    }

    /// The error text for a later process that has another key; `None` if another key is no error,
    /// because the key is a temporary one.
    pub(super) fn other_identity(&self) -> Option<String> {
        match self {
            Beginning::Bot(opening) => Some(format!("{} holds another identity now", opening.file.display())),
            Beginning::Local | Beginning::Half(_) => None,
        }
    }
}

/// The half with which the vault process of an asker's command begins.
#[derive(Serialize, Deserialize)]
pub(super) enum HalfOpening {
    /// A new half. If it will be stored, its file and the means that will lock the file.
    New(Option<(PathBuf, Means)>),
    /// The half in a file, and the means that open it.
    File(PathBuf, Means),
    /// A half that was typed or piped to the command.
    Text(Shown),
}

/// The identity with which the vault process of a bot begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Opening {
    /// The identity file.
    pub file: PathBuf,
    /// The means that unlock the identity.
    pub means: Means,
    /// Whether to make the identity and its file.
    pub is_new: bool,
}
