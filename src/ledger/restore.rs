//! Copying a ledger for a backup, making the ledger of another machine from such a copy, and the
//! consequences of a restore. The owner of the ledger.
//!
//! The file of used halves, beside the ledger. It keeps what a restore of the ledger would lose.
//!
//! A restored backup does not know the halves that were used after it was made. Two keys of one
//! half, or of related halves, reveal each other, so the families of used halves are also in this
//! file. It is only ever appended to, and synced before the transaction (T2) that uses the half. It
//! must not be restored together with the ledger.
//!
//! ```text
//! npubbot used halves 1
//! 0 start              the file was made
//! 7 start              a start at generation 7
//! 8 used 64 hex digits a half of this family is used
//! 8 closed             a clean stop at generation 8
//! ```
//!
//! The ledger stores the generation too. [`judge`] compares both at the start.
//!
//! The file appears with its first record, so one without a record was emptied or cut: it counts as
//! missing. A file with another first line is damaged, and is never written to.

use super::jobs::Job;
use super::open;
use super::open::{LEDGER_FILE, Ledger};
use super::rows::{JOB_COLUMNS, LedgerError, execute, jobs, query_first, read_meta, unsigned};
use crate::job::JobId;
use crate::message::GiftWrap;
use crate::os::files;
use nostr::hashes::hex::{DisplayHex, FromHex};
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
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
    let from = open::open_to_read(&folder.join(LEDGER_FILE), folder)?;
    files::create_new(to).map_err(|error| LedgerError::folder(to, error))?;
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
    Err(LedgerError::folder(folder, "the ledger stays busy; try again"))
}

/// Whether `folder` has a ledger, or the used halves of one.
pub fn is_present(folder: &Path) -> bool {
    [LEDGER_FILE, USED_HALVES_FILE].iter().any(|name| folder.join(name).exists())
}

/// The content of the file of used halves in `folder`, as [`restore`] takes it. Empty if there is
/// no such file.
///
/// Read it after the ledger was copied: then it holds every half that the copy has.
///
/// Errors: the file cannot be read.
pub fn used_halves(folder: &Path) -> Result<Vec<u8>, LedgerError> {
    match std::fs::read(folder.join(USED_HALVES_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(LedgerError::UsedHalves),
    }
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
        return Err(LedgerError::folder(folder, "there is a ledger already; it is not overwritten"));
    }
    let copy = open::open_to_read(ledger, folder)?;
    check(&copy, ledger)?;
    let generation = read_meta(&copy, "generation")?.unwrap_or(0);
    drop(copy);
    let mut history = History { generation, ..History::default() };
    for text in halves {
        let mut one = History::default();
        read_lines(text, Path::new(USED_HALVES_FILE), &mut one)?;
        history.generation = history.generation.max(one.generation);
        history.families.extend(one.families);
    }
    // Two generations ahead of the copy, so that the first start sees a restore.
    let text = closed_text(&history.families, history.generation + 2);
    let (halves, target) = (folder.join(USED_HALVES_FILE), folder.join(LEDGER_FILE));
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
        LedgerError::folder(folder, error)
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

impl Ledger {
    /// Binds the ledger to a bot at the first call. Later calls check that it is the same bot.
    ///
    /// Errors: [`LedgerError::OtherBot`] if it belongs to another one.
    pub fn claim(&self, bot: &nostr::PublicKey) -> Result<(), LedgerError> {
        let bot = bot.to_bytes();
        let query = "SELECT bot FROM owner";
        let owner: Option<[u8; 32]> =
            self.reading(|connection| query_first(connection, query, [], |row| row.get(0)))?;
        match owner {
            Some(owner) if owner == bot => Ok(()),
            Some(owner) => Err(LedgerError::OtherBot {
                owner: crate::key::Npub(owner).to_string(),
                bot: crate::key::Npub(bot).to_string(),
            }),
            None => self.change(|transaction| {
                execute(transaction, "INSERT INTO owner (bot) VALUES (?1)", [bot])?;
                Ok(())
            }),
        }
    }

    /// Time at which a restore of an older ledger was noticed, Unix seconds. The lost ledger may
    /// have answered requests from before that time, so they are refused.
    pub fn restored_at(&self) -> Result<Option<u64>, LedgerError> {
        Ok(self.reading(|connection| read_meta(connection, "restored_at"))?.map(unsigned))
    }

    /// Split jobs that expired because of a restore, and whose askers were not told, oldest first.
    pub fn lost_jobs(&self) -> Result<Vec<Job>, LedgerError> {
        let query = format!("SELECT {JOB_COLUMNS} FROM job JOIN lost_job ON lost_job.job = job.id ORDER BY job.id");
        let now = self.now();
        self.reading(|connection| jobs(connection, &query, [], now))
    }

    /// Queues the one notice about a lost job. Returns `false` if it was queued before.
    pub fn tell_lost(&self, job: JobId, notice: &GiftWrap) -> Result<bool, LedgerError> {
        self.tell(job, notice, "DELETE FROM lost_job WHERE job = ?1")
    }
}

/// Name of the file in the data folder.
pub(super) const USED_HALVES_FILE: &str = "used-halves";
/// First line of the file.
const HEADER: &str = "npubbot used halves 1";

/// Identifier of related halves (`HalfPoint::family`).
pub(super) type Family = [u8; 32];

/// The open file, positioned at its end.
pub(super) struct UsedHalves {
    file: File,
    generation: i64,
    /// The last record, if it is a use.
    last_use: Option<Family>,
}

/// Content of the file at the start.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct History {
    /// Whether there is a file with a record.
    pub exists: bool,
    /// Length of the complete lines, bytes.
    pub length: u64,
    /// Generation of the last record; 0 if there is none.
    pub generation: i64,
    /// All used families, in order.
    pub families: Vec<Family>,
    /// The last record, if it is a use.
    pub last_use: Option<Family>,
}

/// Result of comparing the generations of file and ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HistoryVerdict {
    /// File and ledger belong together.
    Same,
    /// The file has one used half more: the process died between writing the file and T2, or a
    /// backup from that moment was restored.
    OneUse(Family),
    /// The ledger is older than the file: a backup was restored.
    Restored,
}

/// Compares the file with `ledger`, the generation in the ledger; `None` if the ledger never had
/// one. `lacks_some`: whether the ledger has used halves that the file lacks.
///
/// A ledger that is ahead of a whole file has every used half, so it is no risk. The file is
/// written first, so one that lacks a half of the ledger was cut, or replaced by an older one.
pub(super) fn judge(history: &History, ledger: Option<i64>, lacks_some: bool) -> HistoryVerdict {
    match (ledger, history.last_use) {
        // Such files count as a restore too, unless the ledger never had one.
        (Some(generation), _) if (!history.exists || lacks_some) && generation > 0 => HistoryVerdict::Restored,
        (Some(generation), Some(family)) if history.generation == generation + 1 => HistoryVerdict::OneUse(family),
        (generation, _) if history.generation > generation.unwrap_or(0) => HistoryVerdict::Restored,
        _ => HistoryVerdict::Same,
    }
}

impl UsedHalves {
    /// Opens the file that `history` was read from, or makes a missing one. A last line that is
    /// incomplete or torn is cut off: its record was not synced, so its half was not used.
    ///
    /// Errors: [`LedgerError::Folder`].
    pub fn open(folder: &Path, history: &History) -> Result<UsedHalves, LedgerError> {
        let open = || {
            let path = folder.join(USED_HALVES_FILE);
            if !history.exists {
                // The whole file appears at once.
                let new = tempfile::Builder::new().prefix(".used-halves-").make_in(folder, files::create_new)?;
                write!(new.as_file(), "{HEADER}\n0 start\n")?;
                new.as_file().sync_all()?;
                new.persist(&path).map_err(|error| error.error)?;
                files::sync_folder(folder)?;
            }
            let mut file = files::open(&path)?;
            if history.exists {
                file.set_len(history.length)?;
            }
            file.seek(SeekFrom::End(0))?;
            Ok(UsedHalves { file, generation: history.generation, last_use: history.last_use })
        };
        let unusable =
            |error: io::Error| LedgerError::folder(folder, format!("{USED_HALVES_FILE} cannot be used: {error}"));
        open().map_err(unusable)
    }

    /// Records a start at `generation`, and families that the file lacks.
    ///
    /// Errors: [`LedgerError::UsedHalves`].
    pub fn start(&mut self, generation: i64, missing: &[Family]) -> Result<(), LedgerError> {
        // Each line is synced by itself, so that a power loss tears only the last one.
        for family in missing {
            let mut line = String::new();
            write_use(&mut line, generation, family);
            self.append(&line)?;
        }
        self.append(&format!("{generation} start\n"))?;
        (self.generation, self.last_use) = (generation, None);
        Ok(())
    }

    /// Records that a half of this family is used, and returns the new generation. A repeated
    /// attempt of the same T2 adds no record.
    ///
    /// Errors: [`LedgerError::UsedHalves`]; the half must not be used then.
    pub fn spend(&mut self, family: &Family) -> Result<i64, LedgerError> {
        if self.last_use != Some(*family) {
            let mut line = String::new();
            write_use(&mut line, self.generation + 1, family);
            self.append(&line)?;
            self.generation += 1;
            self.last_use = Some(*family);
        }
        Ok(self.generation)
    }

    /// Generation of the last record.
    pub fn generation(&self) -> i64 {
        self.generation
    }

    /// Records a clean stop. After it, any older ledger counts as restored.
    pub fn close(&mut self) {
        let generation = self.generation;
        // If this fails, the next start may take a restored backup for a failed T2
        // (`HistoryVerdict::OneUse`).
        let _ = self.append(&format!("{generation} closed\n"));
        self.last_use = None;
    }

    /// Appends and syncs a line. After an error the file is cut back to its earlier length.
    fn append(&mut self, line: &str) -> Result<(), LedgerError> {
        let before = self.file.stream_position();
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|error| {
            if let Ok(before) = before {
                let _ = self.file.set_len(before).and_then(|()| self.file.seek(SeekFrom::Start(before)));
            }
            LedgerError::UsedHalves(error)
        })
    }
}

/// The records of the file in `folder`, without making or changing it.
///
/// Errors: as [`used_halves`] and [`read_lines`].
pub(super) fn read_history(folder: &Path) -> Result<History, LedgerError> {
    let mut history = History::default();
    read_lines(&used_halves(folder)?, &folder.join(USED_HALVES_FILE), &mut history)?;
    Ok(history)
}

/// Reads all records into the history. A last line that has no end, or that a power loss filled
/// with zeros, is passed over.
///
/// Errors: [`LedgerError::Corrupt`] if the first line is not the header, or any other line is not a
/// record.
pub(super) fn read_lines(text: &[u8], path: &Path, history: &mut History) -> Result<(), LedgerError> {
    let corrupt = |number: usize| {
        let place = format!("{}, line {number}", path.display());
        LedgerError::Corrupt(format!(
            "{place}; if another file named {USED_HALVES_FILE} is not newer, move this one away"
        ))
    };
    for (number, line) in (1..).zip(text.split_inclusive(|&byte| byte == b'\n')) {
        let is_last = history.length as usize + line.len() == text.len();
        match line.strip_suffix(b"\n") {
            Some(line) if number == 1 && line == HEADER.as_bytes() => {}
            _ if number == 1 => return Err(corrupt(number)),
            Some(line) if line.is_empty() || read_line(line, history) => {}
            // After a power loss a sector that was not synced reads as zeros.
            Some(line) if is_last && line.contains(&0) => break,
            None => break,
            Some(_) => return Err(corrupt(number)),
        }
        history.length += line.len() as u64;
    }
    Ok(())
}

/// The text of a file that was closed at `generation`, with these used families.
pub(super) fn closed_text(families: &[Family], generation: i64) -> String {
    let mut text = format!("{HEADER}\n");
    for family in families {
        write_use(&mut text, generation, family);
    }
    let _ = writeln!(text, "{generation} closed");
    text
}

/// Writes the record of a use.
fn write_use(lines: &mut String, generation: i64, family: &Family) {
    let _ = writeln!(lines, "{generation} used {}", family.as_hex());
}

/// Reads a record into the history; `false` if the line is none.
fn read_line(line: &[u8], history: &mut History) -> bool {
    let Ok(line) = std::str::from_utf8(line) else { return false };
    let words: Vec<&str> = line.split(' ').collect();
    let Some(generation) = words.first().and_then(|word| word.parse().ok()) else { return false };
    let family = match words[1..] {
        ["start" | "closed"] => None,
        ["used", digits] => match Family::from_hex(digits) {
            Ok(family) => Some(family),
            Err(_) => return false,
        },
        _ => return false,
    };
    history.exists = true;
    history.generation = generation;
    history.families.extend(family);
    history.last_use = family;
    true
}
