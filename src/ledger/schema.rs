//! The schema of the ledger file, and later its migrations. A released step is never changed; a
//! new step follows it.

use super::error::LedgerError;
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

/// The schema, then the migrations. Step n brings a file from schema n-1 to n (`PRAGMA user_version`).
const STEPS: [&str; 1] = [include_str!("schema.sql")];

/// Schema that this program writes.
pub(super) const KNOWN: i64 = STEPS.len() as i64;

/// Schema of the file; 0 for an empty one.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Refuses a file with a later schema, before anything in it is changed.
pub(super) fn refuse_newer(connection: &Connection, folder: &Path) -> Result<(), LedgerError> {
    let found = version(connection)?;
    if found > KNOWN {
        return Err(LedgerError::TooNew { folder: folder.display().to_string(), found, known: KNOWN });
    }
    if found < 0 {
        return Err(LedgerError::Corrupt(format!("{}: schema number {found}", folder.display())));
    }
    Ok(())
}

/// Runs the missing steps, each in one transaction.
pub(super) fn upgrade(connection: &mut Connection) -> Result<(), LedgerError> {
    for (number, step) in (1i64..).zip(STEPS) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if version(&transaction)? < number {
            transaction.execute_batch(step)?;
            transaction.pragma_update(None, "user_version", number)?;
            transaction.commit()?;
        }
    }
    Ok(())
}
