//! Which halves were used: two keys of one half, or of related halves, would betray each other.

use super::{HalfUse, Ledger, LedgerError};
use crate::key::HalfPoint;
use rusqlite::Transaction;

impl Ledger {
    /// What this half, or one related to it, was used for; `None` if it is fresh.
    pub fn half_use(&self, half: &HalfPoint) -> Result<Option<HalfUse>, LedgerError> {
        let family = half.family();
        let connection = self.read();
        if connection.prepare_cached("SELECT 1 FROM used_half WHERE family = ?1")?.exists([family])? {
            return Ok(Some(HalfUse::Spent));
        }
        let open = connection
            .prepare_cached("SELECT 1 FROM job WHERE half_family = ?1 AND state = 'accepted'")?
            .exists([family])?;
        Ok(open.then_some(HalfUse::Open))
    }
}

/// A key was found for this family.
pub(super) fn spend(transaction: &Transaction<'_>, family: &[u8; 32]) -> Result<(), LedgerError> {
    transaction.execute("INSERT OR IGNORE INTO used_half (family) VALUES (?1)", [family])?;
    Ok(())
}
