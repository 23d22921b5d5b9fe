//! The owner of the ledger, and the consequences of a restore.

use super::error::LedgerError;
use super::job::Job;
use super::meta::{read_meta, unsigned};
use super::open::Ledger;
use super::outbox::queue;
use super::rows::{JOB_COLUMNS, jobs};
use crate::job::JobId;
use crate::message::GiftWrap;
use rusqlite::{OptionalExtension, params};

impl Ledger {
    /// Binds the ledger to a bot at the first call. Later calls check that it is the same bot.
    ///
    /// Errors: [`LedgerError::OtherBot`] if it belongs to another one.
    pub fn claim(&self, bot: &nostr::PublicKey) -> Result<(), LedgerError> {
        let bot = bot.to_bytes();
        let owner = self.reading(|connection| {
            let owner: Option<[u8; 32]> =
                connection.query_row("SELECT bot FROM owner", [], |row| row.get(0)).optional()?;
            Ok(owner)
        })?;
        match owner {
            Some(owner) if owner == bot => Ok(()),
            Some(owner) => Err(LedgerError::OtherBot {
                owner: crate::key::Npub(owner).to_string(),
                bot: crate::key::Npub(bot).to_string(),
            }),
            None => {
                self.write(|transaction| {
                    transaction.execute("INSERT INTO owner (bot) VALUES (?1)", [bot])?;
                    Ok(Some(()))
                })?;
                Ok(())
            }
        }
    }

    /// Time at which a restore of an older ledger was noticed, Unix seconds. The lost ledger may
    /// have answered requests from before that time, so they are refused.
    ///
    /// Errors: [`LedgerError`].
    pub fn restored_at(&self) -> Result<Option<u64>, LedgerError> {
        self.reading(|connection| Ok(read_meta(connection, "restored_at")?.map(unsigned)))
    }

    /// Split jobs that expired because of a restore, and whose askers were not told, oldest first.
    ///
    /// Errors: [`LedgerError`].
    pub fn lost_jobs(&self) -> Result<Vec<Job>, LedgerError> {
        let query = format!("SELECT {JOB_COLUMNS} FROM job JOIN lost_job ON lost_job.job = job.id ORDER BY job.id");
        let now = self.now();
        self.reading(|connection| jobs(connection, &query, [], now))
    }

    /// Queues the one notice about a lost job. Returns `false` if it was queued before.
    ///
    /// Errors: [`LedgerError::Misaddressed`] if the notice is sealed to somebody other than the
    /// job's asker.
    pub fn tell_lost(&self, job: JobId, notice: &GiftWrap) -> Result<bool, LedgerError> {
        let now = self.now();
        let told = self.write(|transaction| {
            if transaction.execute("DELETE FROM lost_job WHERE job = ?1", params![job.0])? == 0 {
                return Ok(None);
            }
            let (asker, seen_on): ([u8; 32], String) =
                transaction.query_row("SELECT asker, seen_on FROM job WHERE id = ?1", [job.0], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
            if notice.to.0 != asker {
                return Err(LedgerError::Misaddressed);
            }
            queue(transaction, self.bounds(), notice, None, &seen_on, now)?;
            Ok(Some(()))
        })?;
        Ok(told.is_some())
    }
}
