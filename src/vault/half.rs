//! The asker's side of a split key: draws a half, stores it, and combines it with a tweak. It runs
//! in the vault process of `npubbot split` and `npubbot combine`; [`super::HalfVault`] is the
//! handle.

use super::age_file::{self, Locker};
use super::error::{CombineError, VaultError};
use super::opening::Unlock;
use super::random::{self, Source};
use super::secret::{DerivedKey, HalfKey, NHALF_LENGTH, NSEC_LENGTH, SecretText};
use crate::key::{HalfPoint, Npub, SplitTweak};
use crate::pattern::Pattern;
use std::fmt::{self, Write as _};
use std::path::Path;

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
    pub(super) fn locked(&self, path: &Path, locker: &Locker, prefixes: &[Pattern]) -> Result<Vec<u8>, VaultError> {
        let mut text = SecretText::with_capacity(age_file::LONGEST_TEXT);
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
    /// Errors: [`CombineError`].
    pub(super) fn combine(&self, split: &SplitTweak, prefixes: &[Pattern]) -> Result<CombinedKey, CombineError> {
        let opposite = HalfPoint::new(self.point.public_key().negate(secp256k1::SECP256K1));
        let is_opposite = split.fingerprint == opposite.fingerprint();
        if !is_opposite && split.fingerprint != self.point.fingerprint() {
            return Err(CombineError::OtherHalf);
        }
        let key = self.key.combine(&split.tweak, is_opposite).ok_or(CombineError::NoKey)?;
        let npub = key.npub().ok_or(CombineError::NoKey)?;
        if !prefixes.is_empty() && !prefixes.iter().any(|prefix| prefix.matches(&npub)) {
            return Err(CombineError::NotAsked(npub));
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
