//! Ways to open a file that contains a secret.

use super::error::VaultError;
use super::request::Shown;
use age::secrecy::SecretString;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::PathBuf;

/// The passphrase or key that opens a file with a secret.
pub enum Unlock {
    /// A passphrase, stretched with scrypt as `age -p` does.
    Passphrase(SecretString),
    /// Path of a file with an `AGE-SECRET-KEY-1…` line, as `age-keygen` writes it.
    AgeIdentityFile(PathBuf),
}

/// Paths as the system has them. serde's own form refuses those that are not UTF-8.
mod any_path {
    use super::{Deserialize, OsString, PathBuf, Serialize};
    use serde::{Deserializer, Serializer};
    use std::path::Path;

    pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        OsString::deserialize(from).map(PathBuf::from)
    }
}

/// The source of the passphrase or key, for the vault process. It contains neither of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Means {
    /// The first line of this file is the passphrase.
    PassphraseFile(#[serde(with = "any_path")] PathBuf),
    /// This file has an `AGE-SECRET-KEY-1…` line.
    AgeIdentityFile(#[serde(with = "any_path")] PathBuf),
    /// A person types the passphrase at the terminal.
    Person {
        /// The question.
        prompt: String,
        /// Whether to ask twice, for a new passphrase.
        twice: bool,
    },
}

/// What a new vault process says before it answers requests.
#[derive(Serialize, Deserialize)]
pub(super) enum Greeting {
    /// The next thing that it does, which a system call filter may forbid.
    Step(Step),
    /// It answers requests now, or it cannot.
    Over(Result<Ready, VaultError>),
}

/// A step of a new vault process, with the system calls that only this step makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Step {
    /// Keeps its memory from other programs and from swap.
    HideMemory,
    /// Opens the identity or half, and starts threads.
    Open,
    /// Closes files and sockets to itself.
    Landlock,
    /// Forbids itself the system calls that it does not need.
    Seccomp,
}

impl Step {
    /// The system calls of this step and their group in systemd, for the operator.
    pub(super) fn calls(self) -> &'static str {
        match self {
            Step::HideMemory => "mlockall, of the group @memlock",
            Step::Open => "one of the calls of the group @system-service",
            Step::Landlock => {
                "landlock_create_ruleset or landlock_restrict_self, of the group @sandbox (where systemd knows no such \
                 group, name the calls)"
            }
            Step::Seccomp => "seccomp, of the group @sandbox (where systemd knows no such group, name the call)",
        }
    }
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
    New(Option<(OsString, Means)>),
    /// The half in a file, and the means that open it.
    File(#[serde(with = "any_path")] PathBuf, Means),
    /// A half that was typed or piped to the command.
    Text(Shown),
}

/// The identity with which the vault process of a bot begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Opening {
    /// The identity file.
    #[serde(with = "any_path")]
    pub file: PathBuf,
    /// The means that unlock the identity.
    pub means: Means,
    /// Whether to make the identity and its file.
    pub is_new: bool,
}
