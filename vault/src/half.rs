//! An asker's half, the secret part of a split key: its text, its file, and the handle of the commands
//! of askers to the vault process that holds it.

use super::age_file::{self, FileKey};
use super::error::VaultError;
use super::identity::{HalfInit, PassphraseSource, Unlock, VaultInit};
use super::process::{Link, Process};
use super::random;
use super::request::{Answer, Form, HalfDescription, HalfRequest, Request, SecretOutput};
use super::secret::{DerivedKey, HalfKey, NHALF_LENGTH, SecretText};
use super::secrets::encode;
use super::spawner::DirectSpawner;
use crate::key::{HalfPoint, Npub, SplitTweak};
use crate::pattern::Pattern;
use serde::de::DeserializeOwned;
use std::fmt::{self, Write as _};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Start of the line that lists the prefixes in a half's file.
const PREFIXES: &str = "# prefixes:";
/// Longest typed or piped text that is read as a half, in bytes.
const ROOM_FOR_TYPING: usize = 1024;

/// The secret half of a future key, which must be used only once; the patterns in its file; and the
/// means that lock a new file.
pub(super) struct Half {
    key: HalfKey,
    point: HalfPoint,
    patterns: Vec<Pattern>,
    file: Option<(PathBuf, FileKey)>,
}

impl Half {
    /// Draws, opens or reads a half. Also reads all files that are needed, now or for later
    /// requests.
    pub(super) fn begin(
        init: HalfInit,
        unlock: impl FnOnce(&PassphraseSource) -> Result<Unlock, String>,
    ) -> Result<Half, VaultError> {
        let unlock = |means: &PassphraseSource| unlock(means).map_err(|reason| VaultError::Locked { reason });
        match init {
            HalfInit::New(file) => {
                let file = match file.map(|(file, means)| (PathBuf::from(file), means)) {
                    None => None,
                    Some((file, means)) => {
                        let key = FileKey::new(&file, &unlock(&means)?)?;
                        Some((file, key))
                    }
                };
                Ok(Half { file, ..Half::of(HalfKey::draw(random::system)?)? })
            }
            HalfInit::File(file, means) => {
                let text = age_file::open(&file, &unlock(&means)?)?;
                let text = text.as_str().ok_or(VaultError::NotAHalf)?;
                let named = text.lines().find_map(|line| line.strip_prefix(PREFIXES)).unwrap_or_default();
                let patterns = named.split_whitespace().filter_map(|word| word.parse().ok()).collect();
                Ok(Half { patterns, ..Half::read(text)? })
            }
            HalfInit::Text(text) => Half::read(&text.0),
        }
    }

    fn of(key: HalfKey) -> Result<Half, VaultError> {
        let point = key.point().ok_or(VaultError::NotAHalf)?;
        Ok(Half { key, point, patterns: Vec::new(), file: None })
    }

    /// Reads `nhalf1…`. Spaces, empty lines and `#` lines are skipped.
    fn read(text: &str) -> Result<Half, VaultError> {
        let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
        line.and_then(HalfKey::parse).ok_or(VaultError::NotAHalf).and_then(Half::of)
    }

    /// Answers a request.
    ///
    /// Errors: those of [`HalfVault::combine`]; [`VaultError::File`]; [`VaultError::NotAsked`] if the half
    /// is to be locked, but [`Half::begin`] was given no file.
    pub(super) fn answer(&self, request: HalfRequest) -> Answer {
        match request {
            HalfRequest::Describe => encode(&HalfDescription { point: self.point, patterns: self.patterns.clone() }),
            HalfRequest::Lock { patterns } => encode(&self.lock(&patterns)?),
            HalfRequest::Show => {
                let mut text = SecretText::with_capacity(NHALF_LENGTH);
                self.key.write_text(&mut text).map_err(|_| VaultError::NotAHalf)?;
                encode(&text.to_output()?)
            }
            HalfRequest::Combine { tweak, patterns, form } => {
                let (key, npub) = self.combine(&tweak, &patterns)?;
                match form {
                    None => encode(&npub),
                    Some(Form::Nsec) => encode(&key.nsec()?.to_output()?),
                    Some(Form::Locked(password)) => encode(&SecretOutput(key.ncryptsec(&password.0, random::system)?)),
                    Some(Form::Tweak) => Err(VaultError::NotAsked),
                }
            }
        }
    }

    /// Encrypts the half and these patterns, and returns the bytes of an age file.
    fn lock(&self, patterns: &[Pattern]) -> Result<Vec<u8>, VaultError> {
        let (path, key) = self.file.as_ref().ok_or(VaultError::NotAsked)?;
        let mut text = SecretText::with_capacity(age_file::MAX_TEXT);
        let mut write = || {
            self.key.write_text(&mut text)?;
            let named = patterns.iter().flat_map(|pattern| [" ", pattern.as_str()]);
            ["\n", PREFIXES].into_iter().chain(named).chain(["\n"]).try_for_each(|part| text.write_str(part))
        };
        write().map_err(|_| age_file::unusable(path, "it has no room for so many prefixes; name fewer"))?;
        key.lock(path, &text)
    }

    /// The key of half and tweak, if it matches one of `patterns`.
    fn combine(&self, split: &SplitTweak, patterns: &[Pattern]) -> Result<(DerivedKey, Npub), VaultError> {
        let opposite = HalfPoint::new(self.point.public_key().negate(secp256k1::SECP256K1));
        let is_opposite = split.fingerprint == opposite.fingerprint();
        if !is_opposite && split.fingerprint != self.point.fingerprint() {
            return Err(VaultError::OtherHalf);
        }
        let key = self.key.combine(&split.tweak, is_opposite).ok_or(VaultError::NoKey)?;
        let npub = key.npub().ok_or(VaultError::NoKey)?;
        if !patterns.is_empty() && !patterns.iter().any(|pattern| pattern.matches(&npub)) {
            return Err(VaultError::OtherKey(npub));
        }
        Ok((key, npub))
    }
}

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

    fn start(init: HalfInit) -> Result<HalfVault, VaultError> {
        let process = Process::start(DirectSpawner::of_vault(VaultInit::Half(init))?)?;
        HalfVault::of(Link::Process(Arc::new(process)))
    }

    /// The handle to the half that the vault behind `link` holds.
    pub(super) fn of(link: Link) -> Result<HalfVault, VaultError> {
        let HalfDescription { point, patterns } = link.ask(Request::Half(HalfRequest::Describe))?;
        Ok(HalfVault { link, point, patterns })
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
        let locked: Vec<u8> = self.ask(HalfRequest::Lock { patterns: patterns.to_vec() })?;
        age_file::write(path, &locked, random::system)
    }

    /// Writes `nhalf1…`, without a line break, for askers who store it elsewhere.
    ///
    /// Errors: [`VaultError::HalfGone`], [`VaultError::Output`].
    pub fn write_to(&self, output: &mut dyn Write) -> Result<(), VaultError> {
        write(&self.ask(HalfRequest::Show)?, output)
    }

    /// The npub of the key that half and tweak give, if it matches one of `patterns`. An empty list
    /// accepts any key.
    ///
    /// Errors: [`VaultError::OtherHalf`], [`VaultError::NoKey`], [`VaultError::OtherKey`],
    /// [`VaultError::HalfGone`].
    pub fn combine(&self, tweak: &SplitTweak, patterns: &[Pattern]) -> Result<Npub, VaultError> {
        self.ask(combine(tweak, patterns, None))
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
        write(&self.ask(combine(tweak, patterns, Some(Form::Nsec)))?, output)
    }

    /// The combined key, locked with a password (NIP-49).
    ///
    /// Errors: as [`HalfVault::combine`], and [`VaultError::NoRandomness`].
    pub fn ncryptsec(&self, tweak: &SplitTweak, patterns: &[Pattern], password: &str) -> Result<String, VaultError> {
        let form = Form::Locked(SecretOutput(password.to_owned()));
        self.ask::<SecretOutput>(combine(tweak, patterns, Some(form))).map(|shown| shown.0.clone())
    }

    fn ask<T: DeserializeOwned>(&self, request: HalfRequest) -> Result<T, VaultError> {
        self.link.ask(Request::Half(request))
    }
}

fn combine(tweak: &SplitTweak, patterns: &[Pattern], form: Option<Form>) -> HalfRequest {
    HalfRequest::Combine { tweak: *tweak, patterns: patterns.to_vec(), form }
}

fn write(text: &SecretOutput, output: &mut dyn Write) -> Result<(), VaultError> {
    output.write_all(text.0.as_bytes()).and_then(|()| output.flush()).map_err(VaultError::Output)
}
