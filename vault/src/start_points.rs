//! The table of open start points. A start point is removed before it is used, and never put back.

use super::error::VaultError;
use super::lock;
use super::random::Source;
use super::secret::Start;
use crate::key::{HalfPoint, StartPoint};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Number of an open start point. It says nothing about the secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct StartId(pub u64);

/// The most open start points, some 200 bytes each. Beyond it the oldest are spent without a key, and
/// their patterns are searched again. A GPU has some thousands open, a worker ten thousand.
const MAX_OPEN: usize = 1 << 18;

/// The open start points and their secrets.
pub(super) struct StartPoints {
    /// The last number given, and the secrets in the order in which they were drawn.
    open: Mutex<(u64, BTreeMap<StartId, Start>)>,
    /// The most that are open.
    most: usize,
}

impl StartPoints {
    /// An empty table. The first number is random, so that the numbers differ from those of an
    /// earlier vault process.
    pub(super) fn new(source: Source) -> Result<StartPoints, VaultError> {
        StartPoints::with_room(MAX_OPEN, source)
    }

    pub(super) fn with_room(most: usize, source: Source) -> Result<StartPoints, VaultError> {
        let mut first = [0; 8];
        source(&mut first)?;
        // Half of the numbers are left to count up to.
        let last = u64::from_le_bytes(first) >> 1;
        Ok(StartPoints { open: Mutex::new((last, BTreeMap::new())), most })
    }

    /// Draws a start secret, or a blinding of an asker's half point, and adds it to the table.
    pub(super) fn open(&self, half: Option<HalfPoint>, source: Source) -> Result<(StartId, StartPoint), VaultError> {
        let start = Start::draw(half, source)?;
        let point = start.point().ok_or(VaultError::NoRandomness)?;
        let (last, starts) = &mut *lock(&self.open);
        *last += 1;
        let id = StartId(*last);
        starts.insert(id, start);
        if starts.len() > self.most {
            starts.pop_first();
        }
        Ok((id, point))
    }

    /// Removes a start point.
    pub(super) fn spend(&self, id: StartId) -> Result<Start, VaultError> {
        lock(&self.open).1.remove(&id).ok_or(VaultError::StartSpent)
    }

    /// Removes start points. Unknown numbers are ignored.
    pub(super) fn discard(&self, ids: &[StartId]) {
        let mut open = lock(&self.open);
        for id in ids {
            open.1.remove(id);
        }
    }
}
