//! Used halves of split keys. Two keys of one half, or of related halves, reveal each other.

use super::error::LedgerError;
use super::open::Ledger;
use crate::key::HalfPoint;
use rusqlite::Transaction;

/// Earlier use of a half.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HalfUse {
    /// An open job searches for this half, or for a related one.
    Open,
    /// A key was found for this half, or for a related half.
    Spent,
}

impl Ledger {
    /// Earlier use of this half or a related one; `None` if it is fresh.
    pub fn half_use(&self, half: &HalfPoint) -> Result<Option<HalfUse>, LedgerError> {
        let family = half.family();
        self.reading(|connection| {
            if connection.prepare_cached("SELECT 1 FROM used_half WHERE family = ?1")?.exists([family])? {
                return Ok(Some(HalfUse::Spent));
            }
            let open = connection
                .prepare_cached("SELECT 1 FROM job WHERE half_family = ?1 AND state = 'accepted'")?
                .exists([family])?;
            Ok(open.then_some(HalfUse::Open))
        })
    }
}

/// Records that a key was found for a half of this family of related halves.
pub(super) fn spend(transaction: &Transaction<'_>, family: &[u8; 32]) -> Result<(), LedgerError> {
    transaction.execute("INSERT OR IGNORE INTO used_half (family) VALUES (?1)", [family])?;
    Ok(())
}
