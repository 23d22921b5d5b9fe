//! An asker's half, the secret part of a split key: its text, its file, and the half that this
//! process holds for `split` and `combine`.

use super::age_file::{self, FileKey};
use super::error::VaultError;
use super::identity::{HalfInit, PassphraseSource, Unlock};
use super::random::{self, Source};
use super::request::{Answer, Form, HalfRequest, SecretOutput};
use super::secret::{DerivedKey, HalfKey, NHALF_LENGTH, NSEC_LENGTH, SecretText};
use crate::key::{HalfPoint, Npub, SplitTweak};
use crate::pattern::Pattern;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

/// Start of the line that lists the prefixes in a half's file.
const PREFIXES: &str = "# prefixes:";

/// The secret half of a future key. It must be used only once.
pub(super) struct Half {
    key: HalfKey,
    point: HalfPoint,
}

impl fmt::Debug for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Half")
    }
}

impl Half {
    /// Draws a new half: 256 bits from the operating system.
    ///
    /// Errors: [`VaultError::NoRandomness`].
    pub(super) fn draw() -> Result<Half, VaultError> {
        HalfKey::draw(random::system).and_then(Half::from_key)
    }

    fn from_key(key: HalfKey) -> Result<Half, VaultError> {
        let point = key.point().ok_or(VaultError::NotAHalf)?;
        Ok(Half { key, point })
    }

    /// Encrypts the half and its prefixes, and returns the bytes of an age file. Errors name
    /// `path`.
    ///
    /// Errors: [`VaultError::File`] if there are too many prefixes, or encryption fails.
    pub(super) fn locked(&self, path: &Path, locker: &FileKey, prefixes: &[Pattern]) -> Result<Vec<u8>, VaultError> {
        let mut text = SecretText::with_capacity(age_file::MAX_TEXT);
        let too_many = || age_file::unusable(path, "it has no room for so many prefixes; name fewer");
        self.write_lines(&mut text, prefixes).map_err(|_| too_many())?;
        locker.lock(path, &text)
    }

    fn write_lines(&self, text: &mut SecretText, prefixes: &[Pattern]) -> fmt::Result {
        self.key.write_text(text)?;
        text.write_str("\n")?;
        text.write_str(PREFIXES)?;
        for prefix in prefixes {
            text.write_str(" ")?;
            text.write_str(prefix.as_str())?;
        }
        text.write_str("\n")
    }

    /// Reads the half and its prefixes from a file.
    ///
    /// Errors: [`VaultError::File`], [`VaultError::WrongKey`], [`VaultError::NotAHalf`].
    pub(super) fn open(path: &Path, unlock: &Unlock) -> Result<(Half, Vec<Pattern>), VaultError> {
        let text = age_file::open(path, unlock)?;
        let text = text.as_str().ok_or(VaultError::NotAHalf)?;
        let named = text.lines().find_map(|line| line.strip_prefix(PREFIXES)).unwrap_or_default();
        let prefixes = named.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        Ok((read_half(text)?, prefixes))
    }

    /// Reads `nhalf1…`. Spaces, empty lines and `#` lines are skipped.
    ///
    /// Errors: [`VaultError::NotAHalf`].
    pub(super) fn read(text: &str) -> Result<Half, VaultError> {
        read_half(text)
    }

    /// The public half point, which is sent to the bot.
    pub(super) fn point(&self) -> HalfPoint {
        self.point
    }

    /// The half as text, `nhalf1…`.
    pub(super) fn text(&self) -> Result<SecretText, VaultError> {
        let mut text = SecretText::with_capacity(NHALF_LENGTH);
        self.key.write_text(&mut text).map_err(|_| VaultError::NotAHalf)?;
        Ok(text)
    }

    /// Combines the half with a tweak, and checks that the key matches one of `prefixes`. An empty
    /// list accepts any key.
    ///
    /// Errors: [`VaultError::OtherHalf`], [`VaultError::NoKey`], [`VaultError::OtherKey`].
    pub(super) fn combine(&self, split: &SplitTweak, prefixes: &[Pattern]) -> Result<CombinedKey, VaultError> {
        let opposite = HalfPoint::new(self.point.public_key().negate(secp256k1::SECP256K1));
        let is_opposite = split.fingerprint == opposite.fingerprint();
        if !is_opposite && split.fingerprint != self.point.fingerprint() {
            return Err(VaultError::OtherHalf);
        }
        let key = self.key.combine(&split.tweak, is_opposite).ok_or(VaultError::NoKey)?;
        let npub = key.npub().ok_or(VaultError::NoKey)?;
        if !prefixes.is_empty() && !prefixes.iter().any(|prefix| prefix.matches(&npub)) {
            return Err(VaultError::OtherKey(npub));
        }
        Ok(CombinedKey { key, npub, source: random::system })
    }
}

fn read_half(text: &str) -> Result<Half, VaultError> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    line.and_then(HalfKey::parse).ok_or(VaultError::NotAHalf).and_then(Half::from_key)
}

/// The key made from a half and a tweak.
pub(super) struct CombinedKey {
    key: DerivedKey,
    npub: Npub,
    source: Source,
}

impl fmt::Debug for CombinedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CombinedKey")
    }
}

impl CombinedKey {
    /// The public key.
    pub(super) fn npub(&self) -> Npub {
        self.npub
    }

    /// The nsec.
    pub(super) fn nsec(&self) -> Result<SecretText, VaultError> {
        let mut text = SecretText::with_capacity(NSEC_LENGTH);
        self.key.write_nsec(&mut text).map_err(|_| VaultError::Unsealable)?;
        Ok(text)
    }

    /// The key locked with a password (NIP-49).
    ///
    /// Errors: [`VaultError::NoRandomness`], [`VaultError::Unsealable`].
    pub(super) fn ncryptsec(&self, password: &str) -> Result<String, VaultError> {
        self.key.ncryptsec(password, self.source)
    }
}

/// A half, the patterns in its file, and the means that lock a new file.
pub(super) struct HeldHalf {
    half: Half,
    patterns: Vec<Pattern>,
    file: Option<(PathBuf, FileKey)>,
}

impl HeldHalf {
    /// Draws, opens or reads a half. Also reads all files that are needed, now or for later
    /// requests.
    ///
    /// Errors: [`VaultError::Locked`], [`VaultError::File`], [`VaultError::WrongKey`],
    /// [`VaultError::NotAHalf`], [`VaultError::NoRandomness`].
    pub(super) fn begin(
        opening: HalfInit,
        unlock: impl FnOnce(&PassphraseSource) -> Result<Unlock, String>,
    ) -> Result<HeldHalf, VaultError> {
        let unlock = |means| unlock(means).map_err(|reason| VaultError::Locked { reason });
        let (half, patterns, file) = match opening {
            HalfInit::New(None) => (Half::draw()?, Vec::new(), None),
            HalfInit::New(Some((file, means))) => {
                let file = PathBuf::from(file);
                let locker = FileKey::new(&file, &unlock(&means)?)?;
                (Half::draw()?, Vec::new(), Some((file, locker)))
            }
            HalfInit::File(file, means) => {
                let (half, patterns) = Half::open(&file, &unlock(&means)?)?;
                (half, patterns, None)
            }
            HalfInit::Text(text) => (Half::read(&text.0)?, Vec::new(), None),
        };
        Ok(HeldHalf { half, patterns, file })
    }

    /// Answers a request.
    ///
    /// Errors: those of [`Half::combine`], [`VaultError::File`]; [`VaultError::NotAsked`] if the
    /// half is to be locked, but [`HeldHalf::begin`] was given no file.
    pub(super) fn answer(&self, request: HalfRequest) -> Result<Answer, VaultError> {
        Ok(match request {
            HalfRequest::Describe => Answer::Half { point: self.half.point(), patterns: self.patterns.clone() },
            HalfRequest::Lock { patterns } => {
                let (path, locker) = self.file.as_ref().ok_or(VaultError::NotAsked)?;
                Answer::Locked(self.half.locked(path, locker, &patterns)?)
            }
            HalfRequest::Show => Answer::SecretOutput(shown(&self.half.text()?)?),
            HalfRequest::Combine { tweak, patterns, form } => {
                let key = self.half.combine(&tweak, &patterns)?;
                form.map_or(Ok(Answer::Combined(key.npub())), |form| show(&key, form).map(Answer::SecretOutput))?
            }
        })
    }
}

fn show(key: &CombinedKey, form: Form) -> Result<SecretOutput, VaultError> {
    match form {
        Form::Nsec => shown(&key.nsec()?),
        Form::Locked(password) => key.ncryptsec(&password.0).map(SecretOutput),
        Form::Tweak => Err(VaultError::NotAsked),
    }
}

fn shown(text: &SecretText) -> Result<SecretOutput, VaultError> {
    text.as_str().map(|text| SecretOutput(text.to_owned())).ok_or(VaultError::Failed)
}
