//! The bot's identity at rest: an `age` file with the nsec on one line.

use super::age_file::{self, unusable};
use super::error::VaultError;
use super::opening::Unlock;
use super::random::Source;
use super::secret::Signing;
use std::path::Path;

/// Bytes of an nsec.
const NSEC: usize = 63;

/// Makes a new identity in `path`.
///
/// Errors: as [`age_file::create`], and [`VaultError::NoRandomness`].
pub(super) fn create(path: &Path, unlock: &Unlock, source: Source) -> Result<Signing, VaultError> {
    age_file::refuse_existing(path)?;
    let bot = Signing::draw(source)?;
    let line = bot.nsec_line().map_err(|error| unusable(path, error))?;
    age_file::create(path, unlock, &line, source)?;
    Ok(bot)
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
    let text = text.as_str().ok_or_else(|| unusable(path, "it holds no nsec; restore a copy"))?;
    text.lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'))
        .and_then(Signing::from_nsec)
        .ok_or_else(|| unusable(path, "it opens but holds no nsec; name the right file or restore a copy"))
}
