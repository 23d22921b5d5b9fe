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

use super::error::LedgerError;
use crate::os::{Access, files};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write as _};
use std::path::Path;

/// Name of the file in the data folder.
pub(super) const FILE: &str = "used-halves";
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
pub(super) enum Verdict {
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
pub(super) fn judge(history: &History, ledger: Option<i64>, lacks_some: bool) -> Verdict {
    match (ledger, history.last_use) {
        // Such files count as a restore too, unless the ledger never had one.
        (Some(generation), _) if (!history.exists || lacks_some) && generation > 0 => Verdict::Restored,
        (Some(generation), Some(family)) if history.generation == generation + 1 => Verdict::OneUse(family),
        (generation, _) if history.generation > generation.unwrap_or(0) => Verdict::Restored,
        _ => Verdict::Same,
    }
}

impl UsedHalves {
    /// Opens the file that `history` was read from, or makes a missing one. A last line that is
    /// incomplete or torn is cut off: its record was not synced, so its half was not used.
    ///
    /// Errors: [`LedgerError::Folder`].
    pub fn open(folder: &Path, history: &History) -> Result<UsedHalves, LedgerError> {
        let open = || {
            let path = folder.join(FILE);
            if !history.exists {
                // The whole file appears at once.
                let new = tempfile::Builder::new().prefix(".used-halves-").make_in(folder, files::create_new)?;
                write!(new.as_file(), "{HEADER}\n0 start\n")?;
                new.as_file().sync_all()?;
                new.persist(&path).map_err(|error| error.error)?;
                files::sync_folder(folder)?;
            }
            let mut file = files::open(&path, Access::ReadWrite)?;
            if history.exists {
                file.set_len(history.length)?;
            }
            file.seek(SeekFrom::End(0))?;
            Ok(UsedHalves { file, generation: history.generation, last_use: history.last_use })
        };
        open().map_err(|error: io::Error| LedgerError::Folder {
            folder: folder.display().to_string(),
            reason: format!("{FILE} cannot be used: {error}"),
        })
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
        // (`Verdict::OneUse`).
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

/// Content of the file in `folder`; empty if there is none.
///
/// Errors: the file cannot be read.
pub(super) fn read(folder: &Path) -> Result<Vec<u8>, LedgerError> {
    match std::fs::read(folder.join(FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(LedgerError::UsedHalves),
    }
}

/// The records of the file in `folder`, without making or changing it.
///
/// Errors: as [`read`] and [`read_lines`].
pub(super) fn read_history(folder: &Path) -> Result<History, LedgerError> {
    let mut history = History::default();
    read_lines(&read(folder)?, &folder.join(FILE), &mut history)?;
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
        LedgerError::Corrupt(format!("{place}; if another file named {FILE} is not newer, move this one away"))
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
    let _ = write!(lines, "{generation} used ");
    for byte in family {
        let _ = write!(lines, "{byte:02x}");
    }
    lines.push('\n');
}

/// Reads a record into the history; `false` if the line is none.
fn read_line(line: &[u8], history: &mut History) -> bool {
    let Ok(line) = std::str::from_utf8(line) else { return false };
    let words: Vec<&str> = line.split(' ').collect();
    let Some(generation) = words.first().and_then(|word| word.parse().ok()) else { return false };
    let family = match words[1..] {
        ["start" | "closed"] => None,
        ["used", digits] => match family(digits) {
            Some(family) => Some(family),
            None => return false,
        },
        _ => return false,
    };
    history.exists = true;
    history.generation = generation;
    history.families.extend(family);
    history.last_use = family;
    true
}

/// Reads 64 hexadecimal digits.
fn family(digits: &str) -> Option<Family> {
    let mut family = Family::default();
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    for (place, at) in family.iter_mut().zip((0..64).step_by(2)) {
        *place = u8::from_str_radix(&digits[at..at + 2], 16).ok()?;
    }
    Some(family)
}
