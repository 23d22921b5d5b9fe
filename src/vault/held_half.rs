//! The half in the vault process of `npubbot split` and `npubbot combine`, and its requests.

use super::age_file::Locker;
use super::error::VaultError;
use super::half::{CombinedKey, Half};
use super::opening::{HalfOpening, Means, Unlock};
use super::request::{Answer, Form, HalfRequest, Shown};
use super::secret::SecretText;
use crate::pattern::Pattern;
use std::path::PathBuf;

/// A half, the patterns in its file, and the means that lock a new file.
pub(super) struct HeldHalf {
    half: Half,
    patterns: Vec<Pattern>,
    file: Option<(PathBuf, Locker)>,
}

impl HeldHalf {
    /// Draws, opens or reads a half. Also reads all files that are needed, now or for later
    /// requests.
    ///
    /// Errors: [`VaultError::Locked`], [`VaultError::File`], [`VaultError::WrongKey`],
    /// [`VaultError::NotAHalf`], [`VaultError::NoRandomness`].
    pub(super) fn begin(
        opening: HalfOpening,
        unlock: impl FnOnce(&Means) -> Result<Unlock, String>,
    ) -> Result<HeldHalf, VaultError> {
        let unlock = |means| unlock(means).map_err(|reason| VaultError::Locked { reason });
        let (half, patterns, file) = match opening {
            HalfOpening::New(None) => (Half::draw()?, Vec::new(), None),
            HalfOpening::New(Some((file, means))) => {
                let file = PathBuf::from(file);
                let locker = Locker::new(&file, &unlock(&means)?)?;
                (Half::draw()?, Vec::new(), Some((file, locker)))
            }
            HalfOpening::File(file, means) => {
                let (half, patterns) = Half::open(&file, &unlock(&means)?)?;
                (half, patterns, None)
            }
            HalfOpening::Text(text) => (Half::read(&text.0)?, Vec::new(), None),
        };
        Ok(HeldHalf { half, patterns, file })
    }

    /// Answers a request.
    ///
    /// Errors: [`VaultError::Combine`], [`VaultError::File`]; [`VaultError::NotAsked`] if the half
    /// is to be locked, but [`HeldHalf::begin`] was given no file.
    pub(super) fn answer(&self, request: HalfRequest) -> Result<Answer, VaultError> {
        Ok(match request {
            HalfRequest::Describe => Answer::Half { point: self.half.point(), patterns: self.patterns.clone() },
            HalfRequest::Lock { patterns } => {
                let (path, locker) = self.file.as_ref().ok_or(VaultError::NotAsked)?;
                Answer::Locked(self.half.locked(path, locker, &patterns)?)
            }
            HalfRequest::Show => Answer::Shown(shown(&self.half.text()?)?),
            HalfRequest::Combine { tweak, patterns, form } => {
                let key = self.half.combine(&tweak, &patterns)?;
                form.map_or(Ok(Answer::Combined(key.npub())), |form| show(&key, form).map(Answer::Shown))?
            }
        })
    }
}

fn show(key: &CombinedKey, form: Form) -> Result<Shown, VaultError> {
    match form {
        Form::Nsec => shown(&key.nsec()?),
        Form::Locked(password) => key.ncryptsec(&password.0).map(Shown),
        Form::Tweak => Err(VaultError::NotAsked),
    }
}

fn shown(text: &SecretText) -> Result<Shown, VaultError> {
    text.as_str().map(|text| Shown(text.to_owned())).ok_or(VaultError::Failed)
}
