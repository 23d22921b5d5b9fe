//! The table of open start points. A start point is removed before it is used, and never put back.

use super::error::VaultError;
use super::lock;
use super::random::Source;
use super::secret::{SplitStart, Start};
use crate::key::{HalfPoint, StartPoint};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Number of an open start point. It says nothing about the secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct StartId(pub u64);

/// The most open start points, some 200 bytes each. Beyond it the oldest are spent without a key, and
/// their patterns are searched again. A GPU has some thousands open, a worker ten thousand.
const MOST_OPEN: usize = 1 << 18;

/// The open start points and their secrets.
pub(super) struct StartPoints {
    open: Mutex<Open>,
    /// The most that are open.
    most: usize,
}

struct Open {
    /// The last number given to a start point.
    last: u64,
    /// In the order in which they were opened.
    starts: BTreeMap<StartId, Kind>,
}

/// The secret of a start point.
enum Kind {
    /// Our own start secret, which yields a key.
    Own(Start),
    /// A blinding of an asker's half point, which yields a tweak.
    Split(SplitStart),
}

impl StartPoints {
    /// An empty table. The first number is random, so that the numbers differ from those of an
    /// earlier vault process.
    pub(super) fn new(source: Source) -> Result<StartPoints, VaultError> {
        StartPoints::with_room(MOST_OPEN, source)
    }

    pub(super) fn with_room(most: usize, source: Source) -> Result<StartPoints, VaultError> {
        let mut first = [0; 8];
        source(&mut first)?;
        // Half of the numbers are left to count up to.
        let last = u64::from_le_bytes(first) >> 1;
        Ok(StartPoints { open: Mutex::new(Open { last, starts: BTreeMap::new() }), most })
    }

    /// Draws a start secret and adds it to the table.
    pub(super) fn open(&self, source: Source) -> Result<(StartId, StartPoint), VaultError> {
        let start = Start::draw(source)?;
        let point = start.point().ok_or(VaultError::NoRandomness)?;
        Ok((self.keep(Kind::Own(start)), point))
    }

    /// Draws a blinding of an asker's half point and adds it to the table.
    pub(super) fn open_split(&self, half: &HalfPoint, source: Source) -> Result<(StartId, StartPoint), VaultError> {
        let start = SplitStart::draw(*half, source)?;
        // The probability that the sum is infinity equals that of guessing a key.
        let point = start.point().ok_or(VaultError::NoRandomness)?;
        Ok((self.keep(Kind::Split(start)), point))
    }

    fn keep(&self, start: Kind) -> StartId {
        let mut open = lock(&self.open);
        open.last += 1;
        let id = StartId(open.last);
        open.starts.insert(id, start);
        if open.starts.len() > self.most {
            open.starts.pop_first();
        }
        id
    }

    /// Removes one of our own start points. A split start point with this number is removed too,
    /// but refused.
    pub(super) fn spend(&self, id: StartId) -> Result<Start, VaultError> {
        match lock(&self.open).starts.remove(&id) {
            Some(Kind::Own(start)) => Ok(start),
            Some(Kind::Split(_)) | None => Err(VaultError::StartSpent),
        }
    }

    /// Removes a split start point. One of our own with this number is removed too, but refused.
    pub(super) fn spend_split(&self, id: StartId) -> Result<SplitStart, VaultError> {
        match lock(&self.open).starts.remove(&id) {
            Some(Kind::Split(start)) => Ok(start),
            Some(Kind::Own(_)) | None => Err(VaultError::StartSpent),
        }
    }

    /// Removes start points. Unknown numbers are ignored.
    pub(super) fn discard(&self, ids: &[StartId]) {
        let mut open = lock(&self.open);
        for id in ids {
            open.starts.remove(id);
        }
    }
}
