//! The open start points. A start point is taken out of here before anything is made of it, and never comes back.

use super::random::Source;
use super::secret::{SplitStart, Start};
use super::{StartId, VaultError};
use crate::key::{HalfPoint, StartPoint};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(super) struct StartPoints {
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// The number given last.
    last: u64,
    starts: HashMap<StartId, Kind>,
}

/// Whose secret the start point is.
enum Kind {
    /// Ours: it gives a key.
    Own(Start),
    /// The asker's, blinded by us: it gives a tweak.
    Split(SplitStart),
}

impl StartPoints {
    /// Draws a start point and keeps it.
    pub(super) fn open(&self, source: Source) -> Result<(StartId, StartPoint), VaultError> {
        let start = Start::draw(source)?;
        let point = start.point().ok_or(VaultError::NoRandomness)?;
        Ok((self.keep(Kind::Own(start)), point))
    }

    /// Draws a start point on an asker's point and keeps it.
    pub(super) fn open_split(&self, half: &HalfPoint, source: Source) -> Result<(StartId, StartPoint), VaultError> {
        let start = SplitStart::draw(*half, source)?;
        // Infinity, the opposite of the asker's point, has the chance of guessing a key.
        let point = start.point().ok_or(VaultError::NoRandomness)?;
        Ok((self.keep(Kind::Split(start)), point))
    }

    fn keep(&self, start: Kind) -> StartId {
        let mut open = self.lock();
        open.last += 1;
        let id = StartId(open.last);
        open.starts.insert(id, start);
        id
    }

    /// Takes a start point out, for good. One of the other kind is gone as well.
    pub(super) fn spend(&self, id: StartId) -> Result<Start, VaultError> {
        match self.lock().starts.remove(&id) {
            Some(Kind::Own(start)) => Ok(start),
            Some(Kind::Split(_)) | None => Err(VaultError::StartSpent),
        }
    }

    /// As [`Start points::spend`], for a start point on an asker's point.
    pub(super) fn spend_split(&self, id: StartId) -> Result<SplitStart, VaultError> {
        match self.lock().starts.remove(&id) {
            Some(Kind::Split(start)) => Ok(start),
            Some(Kind::Own(_)) | None => Err(VaultError::StartSpent),
        }
    }

    /// Clears start points. Unknown ones are ignored.
    pub(super) fn discard(&self, ids: &[StartId]) {
        let mut open = self.lock();
        for id in ids {
            open.starts.remove(id);
        }
    }

    /// A panic between two lines here leaves the table whole.
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
