//! The open bases. A base is taken out of here before anything is made of it, and never comes back.

use super::random::Source;
use super::secret::{Base, SplitBase};
use super::{BaseId, VaultError};
use crate::key::{BasePoint, HalfPoint};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(super) struct Bases {
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// The number given last.
    last: u64,
    bases: HashMap<BaseId, Kind>,
}

/// Whose secret the base is.
enum Kind {
    /// Ours: it gives a key.
    Own(Base),
    /// The asker's, blinded by us: it gives a tweak.
    Split(SplitBase),
}

impl Bases {
    /// Draws a base and keeps it.
    pub(super) fn open(&self, source: Source) -> Result<(BaseId, BasePoint), VaultError> {
        let base = Base::draw(source)?;
        let point = base.point().ok_or(VaultError::NoRandomness)?;
        Ok((self.keep(Kind::Own(base)), point))
    }

    /// Draws a base on an asker's point and keeps it.
    pub(super) fn open_split(&self, half: &HalfPoint, source: Source) -> Result<(BaseId, BasePoint), VaultError> {
        let base = SplitBase::draw(*half, source)?;
        // Infinity, the opposite of the asker's point, has the chance of guessing a key.
        let point = base.point().ok_or(VaultError::NoRandomness)?;
        Ok((self.keep(Kind::Split(base)), point))
    }

    fn keep(&self, base: Kind) -> BaseId {
        let mut open = self.lock();
        open.last += 1;
        let id = BaseId(open.last);
        open.bases.insert(id, base);
        id
    }

    /// Takes a base out, for good. One of the other kind is gone as well.
    pub(super) fn spend(&self, id: BaseId) -> Result<Base, VaultError> {
        match self.lock().bases.remove(&id) {
            Some(Kind::Own(base)) => Ok(base),
            Some(Kind::Split(_)) | None => Err(VaultError::BaseSpent),
        }
    }

    /// As [`Bases::spend`], for a base on an asker's point.
    pub(super) fn spend_split(&self, id: BaseId) -> Result<SplitBase, VaultError> {
        match self.lock().bases.remove(&id) {
            Some(Kind::Split(base)) => Ok(base),
            Some(Kind::Own(_)) | None => Err(VaultError::BaseSpent),
        }
    }

    /// Clears bases. Unknown ones are ignored.
    pub(super) fn discard(&self, ids: &[BaseId]) {
        let mut open = self.lock();
        for id in ids {
            open.bases.remove(id);
        }
    }

    /// A panic between two lines here leaves the table whole.
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
