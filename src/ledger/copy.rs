//! Copying a ledger for a backup, and making the ledger of another machine from such a copy.

use super::error::LedgerError;
use super::open::FILE;
use super::schema;
use super::used_halves::{self, History};
use crate::os::files;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
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
    schema::refuse_newer(&from, folder)?;
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
    schema::refuse_newer(&copy, folder)?;
    check(&copy, ledger)?;
    let generation = super::meta::read_meta(&copy, "generation")?.unwrap_or(0);
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
fn check(connection: &Connection, path: &Path) -> Result<(), LedgerError> {
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    match verdict.as_str() {
        "ok" => Ok(()),
        _ => Err(LedgerError::Corrupt(format!("{}: {verdict}", path.display()))),
    }
}

fn unusable(path: &Path, error: &io::Error) -> LedgerError {
    LedgerError::Folder { folder: path.display().to_string(), reason: error.to_string() }
}
