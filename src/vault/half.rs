//! The asker's side of a split key: draws a half, stores it, and combines it with a tweak.

use super::age_file;
use super::error::VaultError;
use super::opening::Unlock;
use super::random::{self, Source};
use super::secret::{DerivedKey, HalfKey, NHALF_LENGTH, NSEC_LENGTH, SecretText};
use crate::key::{HalfPoint, Npub, SplitTweak};
use crate::pattern::Pattern;
use std::fmt::{self, Write as _};
use std::io::{self, Read, Write};
use std::path::Path;
use thiserror::Error;

/// Start of the line that lists the prefixes in a half's file.
const PREFIXES: &str = "# prefixes:";
/// Longest typed or piped text that is read as a half, in bytes.
const ROOM_FOR_TYPING: usize = 1024;

/// The secret half of a future key. It must be used only once.
pub struct Half {
    key: HalfKey,
    point: HalfPoint,
}

impl fmt::Debug for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Half")
    }
}

/// Reason why a half and a tweak do not give the requested key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum CombineError {
    /// The tweak's fingerprint belongs to another half.
    #[error("this tweak was made for another half; use the half whose point you sent, or ask again with this one's")]
    OtherHalf,
    /// The sum is zero, which is not a key.
    #[error("this tweak leads to no key; it is not from a search, so ask the operator")]
    NoKey,
    /// The key matches none of the prefixes.
    #[error("the key is not one you asked for: its npub is {0}. Do not use it; ask the operator")]
    NotAsked(Npub),
}

impl Half {
    /// Draws a new half: 256 bits from the operating system.
    ///
    /// Errors: [`VaultError::NoRandomness`].
    pub fn draw() -> Result<Half, VaultError> {
        HalfKey::draw(random::system).and_then(Half::from_key)
    }

    fn from_key(key: HalfKey) -> Result<Half, VaultError> {
        let point = key.point().ok_or(VaultError::NotAHalf)?;
        Ok(Half { key, point })
    }

    /// Writes the half and its prefixes to a new age file (permissions 0600).
    ///
    /// Errors: [`VaultError::FileExists`], [`VaultError::File`], [`VaultError::WrongKey`],
    /// [`VaultError::NoRandomness`].
    pub fn keep(&self, path: &Path, unlock: &Unlock, prefixes: &[Pattern]) -> Result<(), VaultError> {
        let mut text = SecretText::with_capacity(age_file::LONGEST_TEXT);
        let too_many = || age_file::unusable(path, "it has no room for so many prefixes; name fewer");
        self.write_lines(&mut text, prefixes).map_err(|_| too_many())?;
        age_file::create(path, unlock, &text, random::system)
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
    pub fn open(path: &Path, unlock: &Unlock) -> Result<(Half, Vec<Pattern>), VaultError> {
        let text = age_file::open(path, unlock)?;
        let text = text.as_str().ok_or(VaultError::NotAHalf)?;
        let named = text.lines().find_map(|line| line.strip_prefix(PREFIXES)).unwrap_or_default();
        let prefixes = named.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        Ok((read_half(text)?, prefixes))
    }

    /// Reads `nhalf1…` from a pipe or a terminal. Spaces, empty lines and `#` lines are skipped.
    ///
    /// Errors: [`VaultError::NotAHalf`].
    pub fn read(input: impl Read) -> Result<Half, VaultError> {
        let mut text = SecretText::with_capacity(ROOM_FOR_TYPING);
        text.fill_from(input).map_err(|_| VaultError::NotAHalf)?;
        read_half(text.as_str().ok_or(VaultError::NotAHalf)?)
    }

    /// The public half point, which is sent to the bot.
    pub fn point(&self) -> HalfPoint {
        self.point
    }

    /// Writes `nhalf1…`, without a line break, for askers who store it elsewhere.
    ///
    /// Errors: [`VaultError::Output`].
    pub fn write_to(&self, output: &mut dyn Write) -> Result<(), VaultError> {
        let mut text = SecretText::with_capacity(NHALF_LENGTH);
        self.key.write_text(&mut text).map_err(|_| VaultError::NotAHalf)?;
        output.write_all(text.as_bytes()).and_then(|()| output.flush()).map_err(VaultError::Output)
    }

    /// Combines the half with a tweak, and checks that the key matches one of `prefixes`. An empty
    /// list accepts any key.
    ///
    /// Errors: [`CombineError`].
    pub fn combine(&self, split: &SplitTweak, prefixes: &[Pattern]) -> Result<CombinedKey, CombineError> {
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
pub struct CombinedKey {
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
    pub fn npub(&self) -> Npub {
        self.npub
    }

    /// Writes the nsec, without a line break.
    ///
    /// Errors: [`VaultError::Output`].
    pub fn write_nsec(&self, output: &mut dyn Write) -> Result<(), VaultError> {
        let mut text = SecretText::with_capacity(NSEC_LENGTH);
        self.key.write_nsec(&mut text).map_err(|_| VaultError::Output(io::ErrorKind::OutOfMemory.into()))?;
        output.write_all(text.as_bytes()).and_then(|()| output.flush()).map_err(VaultError::Output)
    }

    /// The key locked with a password (NIP-49).
    ///
    /// Errors: [`VaultError::NoRandomness`], [`VaultError::Unsealable`].
    pub fn ncryptsec(&self, password: &str) -> Result<String, VaultError> {
        self.key.ncryptsec(password, self.source)
    }
}
