//! Decides at the start whether this ledger is the latest one or a restored backup.

use super::error::LedgerError;
use super::meta::{read_meta, write_meta};
use super::used_halves::{Family, History, Verdict, judge};
use rusqlite::{Connection, TransactionBehavior};
use std::collections::HashSet;

/// Compares the ledger with the file of used halves, and updates the ledger. Returns the generation
/// of this start, and the used families that the file lacks.
pub(super) fn align(
    connection: &mut Connection,
    history: &History,
    now: i64,
) -> Result<(i64, Vec<Family>), LedgerError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let known = read_meta(&transaction, "generation")?;
    let missing = missing_families(&transaction, history)?;
    let verdict = judge(history, known, !missing.is_empty());
    if verdict != Verdict::Same {
        let mut insert = transaction.prepare("INSERT OR IGNORE INTO used_half (family) VALUES (?1)")?;
        for family in &history.families {
            insert.execute([family])?;
        }
    }
    let only = match verdict {
        Verdict::Same => None,
        Verdict::OneUse(family) => Some(Some(family)),
        Verdict::Restored => Some(None),
    };
    if let Some(only) = only {
        let lost = transaction.execute(
            "INSERT OR IGNORE INTO lost_job (job) SELECT id FROM job
             WHERE state = 'accepted' AND half_family IS NOT NULL AND (?1 IS NULL OR half_family = ?1)",
            [only],
        )?;
        transaction.execute("UPDATE job SET state = 'expired' WHERE id IN (SELECT job FROM lost_job)", [])?;
        if verdict == Verdict::Restored {
            write_meta(&transaction, "restored_at", now)?;
            tracing::warn!(
                split_jobs = lost,
                "the ledger is older than its file of used halves, or the file was lost or cut, as after a restored \
                 backup; open split jobs are given up, and requests from before this start are refused"
            );
        }
    }
    let generation = known.unwrap_or(0).max(history.generation) + 1;
    write_meta(&transaction, "generation", generation)?;
    transaction.commit()?;
    Ok((generation, missing))
}

/// The used families of the ledger that the file lacks.
pub(super) fn missing_families(connection: &Connection, history: &History) -> Result<Vec<Family>, LedgerError> {
    let in_file: HashSet<&Family> = history.families.iter().collect();
    let mut used = connection.prepare("SELECT family FROM used_half")?;
    let used = used.query_map([], |row| row.get::<_, Family>(0))?;
    Ok(used
        .filter(|family| !family.as_ref().is_ok_and(|family| in_file.contains(family)))
        .collect::<rusqlite::Result<_>>()?)
}
