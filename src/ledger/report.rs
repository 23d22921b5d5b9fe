//! The condition of an open ledger, for the log and for operators.

use super::budget::{self, Sizes};
use super::error::LedgerError;
use super::open::Ledger;
use super::quarantine::{self, Quarantined};

impl Ledger {
    /// Sizes of the ledger.
    ///
    /// Errors: [`LedgerError`].
    pub fn sizes(&self) -> Result<Sizes, LedgerError> {
        self.reading(budget::sizes)
    }

    /// Rows that were set aside, oldest first, at most 100.
    ///
    /// Errors: [`LedgerError`].
    pub fn quarantined(&self) -> Result<Vec<Quarantined>, LedgerError> {
        self.reading(quarantine::list)
    }
}
