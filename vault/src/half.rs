//! An asker's half, the secret part of a split key: its text and its file.

use super::age_file;
use super::error::VaultError;
use super::identity::Unlock;
use super::random;
use super::secret::{Secret, clear_stack_below, read_text};
use crate::key::{HalfPoint, Npub, SplitTweak};
use crate::pattern::Pattern;
use std::fmt;
use std::io::Read;
use std::path::Path;
use zeroize::Zeroizing;

/// Start of the line that lists the prefixes in a half's file.
const PREFIXES: &str = "# prefixes:";
/// Longest typed or piped text that is read as a half, in bytes.
const ROOM_FOR_TYPING: usize = 1024;

/// The secret half of a future key, which must be used only once, and the patterns in its file. It
/// leaves only as text for the person at this machine, or encrypted.
pub struct Half {
    secret: Secret,
    patterns: Vec<Pattern>,
}

impl fmt::Debug for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Half")
    }
}

impl Half {
    /// Draws a new half: 256 bits from the operating system. `file` is where it will be stored.
    ///
    /// Errors: [`VaultError::FileExists`], [`VaultError::NoRandomness`].
    pub fn draw(file: Option<&Path>) -> Result<Half, VaultError> {
        file.map_or(Ok(()), age_file::refuse_existing)?;
        Ok(Half { secret: Secret::draw(random::system)?, patterns: Vec::new() })
    }

    /// Opens the half in a file.
    ///
    /// Errors: [`VaultError::File`], [`VaultError::WrongKey`], [`VaultError::NotAHalf`].
    pub fn open(file: &Path, unlock: &Unlock) -> Result<Half, VaultError> {
        let text = age_file::open(file, unlock)?;
        let named = text.lines().find_map(|line| line.strip_prefix(PREFIXES)).unwrap_or_default();
        let patterns = named.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        Ok(Half { patterns, ..Half::parse(&text)? })
    }

    /// Reads `nhalf1…` from a pipe or a terminal. Spaces, empty lines and `#` lines are skipped.
    ///
    /// Errors: [`VaultError::NotAHalf`].
    pub fn read(input: impl Read) -> Result<Half, VaultError> {
        Half::parse(&read_text(input, ROOM_FOR_TYPING).map_err(|_| VaultError::NotAHalf)?)
    }

    fn parse(text: &str) -> Result<Half, VaultError> {
        let line = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
        let secret = line.and_then(Secret::read_half).ok_or(VaultError::NotAHalf)?;
        Ok(Half { secret, patterns: Vec::new() })
    }

    /// The public half point, which is sent to the bot.
    pub fn point(&self) -> HalfPoint {
        HalfPoint::new(self.secret.public_key())
    }

    /// The patterns in the half's file.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// The half as text, `nhalf1…`, for askers who store it elsewhere.
    pub fn text(&self) -> Zeroizing<String> {
        self.secret.nhalf()
    }

    /// Writes the half and `patterns`, the ones asked for, to a new file at `path` (permissions
    /// 0600), locked with `unlock`.
    ///
    /// Errors: [`VaultError::FileExists`], [`VaultError::File`], [`VaultError::WrongKey`].
    pub fn keep(&self, path: &Path, unlock: &Unlock, patterns: &[Pattern]) -> Result<(), VaultError> {
        let mut text = Zeroizing::new(String::with_capacity(2 * age_file::MAX_TEXT));
        text.extend([self.text().as_str(), "\n", PREFIXES]);
        let size: usize = patterns.iter().map(|pattern| 1 + pattern.as_str().len()).sum();
        if text.len() + size + 1 > age_file::MAX_TEXT {
            return Err(age_file::unusable(path, "it has no room for so many prefixes; name fewer"));
        }
        text.extend(patterns.iter().flat_map(|pattern| [" ", pattern.as_str()]).chain(["\n"]));
        age_file::create(path, unlock, &text, random::system)
    }

    /// The npub and the nsec of the key that half and tweak give, if it matches one of `patterns`; with
    /// a password the key locked by it (NIP-49). An empty list accepts any key.
    ///
    /// Errors: [`VaultError::OtherHalf`], [`VaultError::NoKey`], [`VaultError::OtherKey`],
    /// [`VaultError::NoRandomness`].
    pub fn combine(
        &self,
        split: &SplitTweak,
        patterns: &[Pattern],
        password: Option<&str>,
    ) -> Result<(Npub, Zeroizing<String>), VaultError> {
        let combined = self.try_combine(split, patterns, password);
        clear_stack_below();
        combined
    }

    fn try_combine(
        &self,
        split: &SplitTweak,
        patterns: &[Pattern],
        password: Option<&str>,
    ) -> Result<(Npub, Zeroizing<String>), VaultError> {
        let point = self.point();
        let opposite = HalfPoint::new(point.public_key().negate(secp256k1::SECP256K1));
        let is_opposite = split.fingerprint == opposite.fingerprint();
        if !is_opposite && split.fingerprint != point.fingerprint() {
            return Err(VaultError::OtherHalf);
        }
        let key = self.secret.derive(&split.tweak, is_opposite).ok_or(VaultError::NoKey)?;
        let npub = key.npub();
        if !patterns.is_empty() && !patterns.iter().any(|pattern| pattern.matches(&npub)) {
            return Err(VaultError::OtherKey(npub));
        }
        let text = match password {
            Some(password) => key.ncryptsec(password, random::system).map(Zeroizing::new)?,
            None => key.nsec(),
        };
        Ok((npub, text))
    }
}
