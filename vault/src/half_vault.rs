//! The interface of the vault to the commands of askers, who hold a half of their key themselves.

use super::error::VaultError;
use super::identity::{HalfInit, PassphraseSource, VaultInit};
use super::link::Link;
use super::process::Process;
use super::request::{Answer, Form, HalfRequest, Request, SecretOutput};
use super::secret::SecretText;
use super::spawner::DirectSpawner;
use super::{age_file, random};
use crate::key::{HalfPoint, Npub, SplitTweak};
use crate::pattern::Pattern;
use std::fmt;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longest typed or piped text that is read as a half, in bytes.
const ROOM_FOR_TYPING: usize = 1024;

/// A handle to a vault process that holds one secret half. The process ends with the handle. The
/// half is nowhere else, so if the process ends early, every call fails with
/// [`VaultError::HalfGone`].
pub struct HalfVault {
    link: Link,
    point: HalfPoint,
    patterns: Vec<Pattern>,
}

impl fmt::Debug for HalfVault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HalfVault")
    }
}

impl HalfVault {
    /// Draws a new half: 256 bits from the operating system. `file` is the path where
    /// [`HalfVault::keep`] will store the half, and the means that lock the file. The vault process
    /// obtains the passphrase now.
    ///
    /// Errors: [`VaultError::FileExists`], [`VaultError::Locked`], [`VaultError::WrongKey`],
    /// [`VaultError::NoRandomness`], [`VaultError::Process`].
    pub fn draw(file: Option<(PathBuf, PassphraseSource)>) -> Result<HalfVault, VaultError> {
        if let Some((path, _)) = &file {
            age_file::refuse_existing(path)?;
        }
        HalfVault::start(HalfInit::New(file.map(|(path, means)| (path.into_os_string(), means))))
    }

    /// Opens the half in a file.
    ///
    /// Errors: [`VaultError::File`], [`VaultError::Locked`], [`VaultError::WrongKey`],
    /// [`VaultError::NotAHalf`], [`VaultError::Process`].
    pub fn open(file: PathBuf, means: PassphraseSource) -> Result<HalfVault, VaultError> {
        HalfVault::start(HalfInit::File(file, means))
    }

    /// Reads `nhalf1…` from a pipe or a terminal. Spaces, empty lines and `#` lines are skipped.
    /// This process clears the text once the vault process has it.
    ///
    /// Errors: [`VaultError::NotAHalf`], [`VaultError::Process`].
    pub fn read(input: impl Read) -> Result<HalfVault, VaultError> {
        let mut text = SecretText::with_capacity(ROOM_FOR_TYPING);
        text.fill_from(input).map_err(|_| VaultError::NotAHalf)?;
        let text = SecretOutput(text.as_str().ok_or(VaultError::NotAHalf)?.to_owned());
        HalfVault::start(HalfInit::Text(text))
    }

    fn start(opening: HalfInit) -> Result<HalfVault, VaultError> {
        let process = Process::start(DirectSpawner::of_vault(VaultInit::Half(opening))?)?;
        HalfVault::of(Link::Process(Arc::new(process)))
    }

    /// The handle to the half that the vault behind `link` holds.
    pub(super) fn of(link: Link) -> Result<HalfVault, VaultError> {
        match link.ask(Request::Half(HalfRequest::Describe))? {
            Answer::Half { point, patterns } => Ok(HalfVault { link, point, patterns }),
            _ => Err(VaultError::Failed),
        }
    }

    /// The public half point, which is sent to the bot.
    pub fn point(&self) -> HalfPoint {
        self.point
    }

    /// The patterns in the half's file.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// Writes the half and `patterns`, the ones asked for, to a new file at `path` (permissions
    /// 0600). `path` is the one that [`HalfVault::draw`] was given. The half is encrypted inside
    /// the vault process.
    ///
    /// Errors: [`VaultError::FileExists`], [`VaultError::File`], [`VaultError::HalfGone`].
    pub fn keep(&self, path: &Path, patterns: &[Pattern]) -> Result<(), VaultError> {
        match self.ask(HalfRequest::Lock { patterns: patterns.to_vec() })? {
            Answer::Locked(bytes) => age_file::write(path, &bytes, random::system),
            _ => Err(VaultError::Failed),
        }
    }

    /// Writes `nhalf1…`, without a line break, for askers who store it elsewhere.
    ///
    /// Errors: [`VaultError::HalfGone`], [`VaultError::Output`].
    pub fn write_to(&self, output: &mut dyn Write) -> Result<(), VaultError> {
        write(&self.show(HalfRequest::Show)?, output)
    }

    /// The npub of the key that half and tweak give, if it matches one of `patterns`. An empty list
    /// accepts any key.
    ///
    /// Errors: [`VaultError::OtherHalf`], [`VaultError::NoKey`], [`VaultError::OtherKey`],
    /// [`VaultError::HalfGone`].
    pub fn combine(&self, tweak: &SplitTweak, patterns: &[Pattern]) -> Result<Npub, VaultError> {
        match self.ask(combine(tweak, patterns, None))? {
            Answer::Combined(npub) => Ok(npub),
            _ => Err(VaultError::Failed),
        }
    }

    /// Writes the nsec of the combined key, without a line break.
    ///
    /// Errors: as [`HalfVault::combine`], and [`VaultError::Output`].
    pub fn write_nsec(
        &self,
        tweak: &SplitTweak,
        patterns: &[Pattern],
        output: &mut dyn Write,
    ) -> Result<(), VaultError> {
        write(&self.show(combine(tweak, patterns, Some(Form::Nsec)))?, output)
    }

    /// The combined key, locked with a password (NIP-49).
    ///
    /// Errors: as [`HalfVault::combine`], and [`VaultError::NoRandomness`].
    pub fn ncryptsec(&self, tweak: &SplitTweak, patterns: &[Pattern], password: &str) -> Result<String, VaultError> {
        let form = Form::Locked(SecretOutput(password.to_owned()));
        Ok(self.show(combine(tweak, patterns, Some(form)))?.0.clone())
    }

    fn show(&self, request: HalfRequest) -> Result<SecretOutput, VaultError> {
        match self.ask(request)? {
            Answer::SecretOutput(shown) => Ok(shown),
            _ => Err(VaultError::Failed),
        }
    }

    fn ask(&self, request: HalfRequest) -> Result<Answer, VaultError> {
        self.link.ask(Request::Half(request))
    }
}

fn combine(tweak: &SplitTweak, patterns: &[Pattern], form: Option<Form>) -> HalfRequest {
    HalfRequest::Combine { tweak: *tweak, patterns: patterns.to_vec(), form }
}

fn write(text: &SecretOutput, output: &mut dyn Write) -> Result<(), VaultError> {
    output.write_all(text.0.as_bytes()).and_then(|()| output.flush()).map_err(VaultError::Output)
}
