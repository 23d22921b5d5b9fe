//! The open bases. A base is taken out of here before anything is made of it, and never comes back.

use super::random::Source;
use super::secret::Base;
use super::{BaseId, VaultError};
use crate::key::BasePoint;
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
    bases: HashMap<BaseId, Base>,
}

impl Bases {
    /// Draws a base and keeps it.
    pub(super) fn open(&self, source: Source) -> Result<(BaseId, BasePoint), VaultError> {
        let base = Base::draw(source)?;
        let point = base.point().ok_or(VaultError::NoRandomness)?;
        let mut open = self.lock();
        open.last += 1;
        let id = BaseId(open.last);
        open.bases.insert(id, base);
        Ok((id, point))
    }

    /// Takes a base out, for good.
    pub(super) fn spend(&self, id: BaseId) -> Result<Base, VaultError> {
        self.lock().bases.remove(&id).ok_or(VaultError::BaseSpent)
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
