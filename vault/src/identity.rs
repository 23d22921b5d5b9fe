//! The bot's identity at rest, an `age` file with the nsec on one line, and how it is opened.

use super::age_file::{self, unusable};
use super::error::VaultError;
use super::public::PublicSettings;
use super::random::{self, Source};
use super::secret::Signing;
use crate::os::MissingWall;
use age::secrecy::SecretString;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Bytes of an nsec.
const NSEC: usize = 63;

/// Makes a new identity in `path`.
pub(super) fn create(path: &Path, unlock: &Unlock, source: Source) -> Result<Signing, VaultError> {
    age_file::refuse_existing(path)?;
    let bot = Signing::draw(source)?;
    age_file::create(path, unlock, &bot.nsec_line(), source)?;
    Ok(bot)
}

/// Locks the identity in `path` with another passphrase or key. The file is replaced at once, or stays
/// as it is.
///
/// Errors: as [`age_file::open`] and [`age_file::create`].
pub fn relock(path: &Path, old: &Unlock, new: &Unlock) -> Result<(), VaultError> {
    open(path, old)?;
    age_file::replace(path, new, &age_file::open(path, old)?, random::system)
}

/// Checks an identity file without opening it.
///
/// Errors: [`VaultError::File`] if it is missing, unreadable, of another kind, or cut.
pub fn inspect(path: &Path) -> Result<(), VaultError> {
    age_file::inspect(path, NSEC)
}

/// Opens the identity in `path`.
///
/// Errors: as [`age_file::open`], and [`VaultError::File`] if the file holds no nsec.
pub(super) fn open(path: &Path, unlock: &Unlock) -> Result<Signing, VaultError> {
    let text = age_file::open(path, unlock)?;
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'))
        .and_then(Signing::from_nsec)
        .ok_or_else(|| unusable(path, "it opens but holds no nsec; name the right file or restore a copy"))
}

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

/// Why a vault does not start again, if its passphrase was typed.
pub const NEEDS_PERSON: &str = "its passphrase was typed, so it cannot be started again; stop the bot and start it";

/// The source of the passphrase or key, for the vault process. It contains neither of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum PassphraseSource {
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

/// What a new vault process says once it has opened its identity.
#[derive(Serialize, Deserialize)]
pub(super) struct Ready {
    /// The public key of the identity.
    pub(super) key: [u8; 32],
    /// The walls that could not be raised.
    pub(super) missing_walls: Vec<MissingWall>,
}

impl PassphraseSource {
    /// Whether a person must type the passphrase.
    pub fn is_person(&self) -> bool {
        matches!(self, PassphraseSource::Person { .. })
    }
}

/// The first item that a vault process reads: the identity of a bot, and the settings of the public
/// events that it signs, if any. `None`: a vault without an identity, which shows keys to the person
/// who started it.
pub(super) type VaultInit = Option<(IdentityFile, Option<PublicSettings>)>;

/// The identity with which the vault process of a bot begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IdentityFile {
    /// The identity file.
    #[serde(with = "any_path")]
    pub file: PathBuf,
    /// The means that unlock the identity.
    pub means: PassphraseSource,
    /// Whether to make the identity and its file.
    pub is_new: bool,
}
