//! Copying a ledger for a backup, making the ledger of another machine from such a copy, and the
//! consequences of a restore. The owner of the ledger.

use super::error::LedgerError;
use super::jobs::Job;
use super::open;
use super::open::{FILE, Ledger};
use super::outbox::queue;
use super::rows::{JOB_COLUMNS, jobs, read_meta, unsigned};
use super::used_halves::{self, History};
use crate::job::JobId;
use crate::message::GiftWrap;
use crate::os::files;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// Pause before another attempt to copy a busy file. [`BUSY_PAUSES`] limits the attempts.
const BUSY_PAUSE: Duration = Duration::from_millis(50);
const BUSY_PAUSES: u32 = 200;

/// Copies the ledger in `folder` to the new file `to`, as one snapshot by SQLite's own backup. A
/// bot may be using the ledger.
///
/// Errors: there is no ledger, it is damaged, or the copy cannot be written.
pub fn copy(folder: &Path, to: &Path) -> Result<(), LedgerError> {
    let from = Connection::open_with_flags(folder.join(FILE), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    open::refuse_newer(&from, folder)?;
    files::create_new(to).map_err(|error| unusable(to, &error))?;
    let mut copy = Connection::open(to)?;
    let backup = Backup::new(&from, &mut copy)?;
    // All pages in one step. In several steps, a busy writer could restart the copy for ever.
    for _ in 0..BUSY_PAUSES {
        match backup.step(-1)? {
            StepResult::Done => {
                drop(backup);
                return check(&copy, to);
            }
            _ => std::thread::sleep(BUSY_PAUSE),
        }
    }
    Err(unusable(folder, &io::Error::other("the ledger stays busy; try again")))
}

/// Whether `folder` has a ledger, or the used halves of one.
pub fn is_present(folder: &Path) -> bool {
    [FILE, used_halves::FILE].iter().any(|name| folder.join(name).exists())
}

/// The content of the file of used halves in `folder`, as [`restore`] takes it. Empty if there is
/// no such file.
///
/// Read it after the ledger was copied: then it holds every half that the copy has.
///
/// Errors: the file cannot be read.
pub fn used_halves(folder: &Path) -> Result<Vec<u8>, LedgerError> {
    used_halves::read(folder)
}

/// Makes the ledger of `folder` from a copy and from files of used halves.
///
/// The first start treats the ledger as a restored backup. It gives open split jobs up, because
/// their halves may have been used since, and refuses requests from before that start. Halves in
/// any of the files are never used again.
///
/// Errors: there is a ledger already, the copy is of a later version or damaged, or a file of used
/// halves cannot be read. After an error no file is left.
pub fn restore(folder: &Path, ledger: &Path, halves: &[Vec<u8>]) -> Result<(), LedgerError> {
    if is_present(folder) {
        return Err(unusable(folder, &io::Error::other("there is a ledger already; it is not overwritten")));
    }
    let copy = Connection::open_with_flags(ledger, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    open::refuse_newer(&copy, folder)?;
    check(&copy, ledger)?;
    let generation = super::rows::read_meta(&copy, "generation")?.unwrap_or(0);
    drop(copy);
    let mut history = History { generation, ..History::default() };
    for text in halves {
        let mut one = History::default();
        used_halves::read_lines(text, Path::new(used_halves::FILE), &mut one)?;
        history.generation = history.generation.max(one.generation);
        history.families.extend(one.families);
    }
    // Two generations ahead of the copy, so that the first start sees a restore.
    let text = used_halves::closed_text(&history.families, history.generation + 2);
    let (halves, target) = (folder.join(used_halves::FILE), folder.join(FILE));
    let write = || {
        let mut file = files::create_new(&halves)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        // The ledger comes last: without it, the folder has no bot that could start.
        let mut from = File::open(ledger)?;
        let mut file = files::create_new(&target)?;
        io::copy(&mut from, &mut file)?;
        file.sync_all()?;
        files::sync_folder(folder)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&target);
        let _ = fs::remove_file(&halves);
        unusable(folder, &error)
    })
}

/// Fails if SQLite finds the file damaged.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(), LedgerError> {
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    match verdict.as_str() {
        "ok" => Ok(()),
        _ => Err(LedgerError::Corrupt(format!("{}: {verdict}", path.display()))),
    }
}

fn unusable(path: &Path, error: &io::Error) -> LedgerError {
    LedgerError::Folder { folder: path.display().to_string(), reason: error.to_string() }
}

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
