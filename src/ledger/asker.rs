//! What an asker may want of us beside keys: to be left alone, and to be forgotten.

use super::clean::{read_note, write_note};
use super::{Ledger, LedgerError};
use crate::ids::Asker;
use rusqlite::{Connection, Transaction};

impl Ledger {
    /// Forgets an asker without an answer, as their vanish request (NIP-62) wants.
    pub fn forget(&self, asker: Asker) -> Result<(), LedgerError> {
        self.write(|transaction| forget(transaction, asker).map(Some))?;
        Ok(())
    }

    /// Askers of whom anything is kept.
    pub fn askers(&self) -> Result<Vec<Asker>, LedgerError> {
        let connection = self.read();
        let mut statement = connection.prepare_cached(
            "SELECT asker FROM job UNION SELECT asker FROM mail UNION SELECT asker FROM silent ORDER BY asker",
        )?;
        let askers = statement.query_map([], |row| row.get(0).map(Asker))?.collect::<rusqlite::Result<Vec<_>>>()?;
        Ok(askers)
    }
}

pub(super) fn is_silent(connection: &Connection, asker: Asker) -> Result<bool, LedgerError> {
    Ok(connection.prepare_cached("SELECT 1 FROM silent WHERE asker = ?1")?.exists([asker.0])?)
}

pub(super) fn silence(transaction: &Transaction<'_>, asker: Asker) -> Result<(), LedgerError> {
    transaction.execute("INSERT OR IGNORE INTO silent (asker) VALUES (?1)", [asker.0])?;
    transaction.execute("UPDATE job SET state = 'cancelled' WHERE asker = ?1 AND state = 'accepted'", [asker.0])?;
    Ok(())
}

pub(super) fn hear_again(transaction: &Transaction<'_>, asker: Asker) -> Result<(), LedgerError> {
    transaction.execute("DELETE FROM silent WHERE asker = ?1", [asker.0])?;
    Ok(())
}

/// Removes jobs and letters, but no number is given twice, and the ids of messages stay until no relay can replay them:
/// without those an old wish would come to life again.
pub(super) fn forget(transaction: &Transaction<'_>, asker: Asker) -> Result<(), LedgerError> {
    let last: Option<i64> = transaction.query_row("SELECT max(id) FROM job", [], |row| row.get(0))?;
    let noted = read_note(transaction, "last_job")?;
    if let Some(last) = last.max(noted) {
        write_note(transaction, "last_job", last)?;
    }
    transaction.execute("DELETE FROM mail WHERE asker = ?1", [asker.0])?;
    transaction.execute("DELETE FROM job WHERE asker = ?1", [asker.0])?;
    transaction.execute("DELETE FROM silent WHERE asker = ?1", [asker.0])?;
    Ok(())
}
