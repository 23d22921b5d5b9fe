//! The keys that `npubbot mine` finds: their text, and the file that they are appended to.

use super::output::stdout;
use crate::job::JobId;
use crate::key::Npub;
use crate::os::files;
use crate::pattern::Pattern;
use crate::progress::SearchBar;
use crate::scheduler::{Find, FindHandler, FindOutcome};
use crate::vault::{Vault, VaultError};
use anyhow::{Context, bail};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::Instant;
use zeroize::Zeroizing;

/// A message of the search to the command.
pub(super) enum Event {
    /// A key is the best so far.
    Kept(Pattern),
    /// A key was written, or something failed; and whether the search is over.
    Written(anyhow::Result<()>, bool),
}

/// Writes each key that is found. Of a search without a target, keeps the best one so far in memory
/// and writes it when the search is over.
pub(super) struct FoundKeys {
    /// The vault that derives the keys.
    pub vault: Vault,
    /// Whether each key is a JSON object.
    pub json: bool,
    /// Whether tweaks are written in place of keys.
    pub is_split: bool,
    /// Whether the search has no target.
    pub is_best: bool,
    /// File that the keys are appended to, in place of standard output.
    pub file: Option<KeyFile>,
    /// The password that the keys are encrypted with (NIP-49), if any.
    pub password: Option<Zeroizing<String>>,
    /// Time at which the search began.
    pub began: Instant,
    pub kept: Option<(Npub, Zeroizing<Vec<u8>>)>,
    /// The number of keys after which the search is over; 0 for no end.
    pub wanted: u32,
    pub written: u32,
    pub bar: SearchBar,
    pub events: Sender<Event>,
}

impl FindHandler for FoundKeys {
    fn found(&mut self, find: Find) -> FindOutcome {
        match self.lines(&find) {
            Ok(lines) if self.is_best => {
                self.kept = Some((find.hit.npub(), lines));
                // The receiver lives as long as the scheduler, so this cannot fail.
                let _ = self.events.send(Event::Kept(find.pattern));
                FindOutcome::Kept
            }
            Ok(lines) => self.write(&find.hit.npub(), &lines),
            // Another vault process was started, and the search goes on.
            Err(error) if matches!(error.downcast_ref(), Some(VaultError::StartSpent | VaultError::Gone)) => {
                FindOutcome::GoesOn
            }
            Err(error) => self.tell(Err(error)),
        }
    }

    fn finish_search(&mut self, _: JobId) -> FindOutcome {
        let Some((npub, lines)) = self.kept.take() else { return FindOutcome::GoesOn };
        self.write(&npub, &lines)
    }
}

impl FoundKeys {
    fn write(&mut self, npub: &Npub, lines: &[u8]) -> FindOutcome {
        let bar = self.bar.clone();
        let written = bar.suspend(|| self.write_lines(npub, lines));
        self.written = self.written.saturating_add(u32::from(written.is_ok()));
        self.tell(written)
    }

    fn tell(&self, written: anyhow::Result<()>) -> FindOutcome {
        let is_over = written.is_err() || self.is_best || (self.wanted > 0 && self.written >= self.wanted);
        let _ = self.events.send(Event::Written(written, is_over));
        if is_over { FindOutcome::Done } else { FindOutcome::GoesOn }
    }

    /// Writes the lines of a key.
    fn write_lines(&mut self, npub: &Npub, lines: &[u8]) -> anyhow::Result<()> {
        let mut out = stdout();
        match &mut self.file {
            Some(file) => {
                file.append(lines)?;
                if self.json { writeln!(out, r#"{{"npub":"{npub}"}}"#)? } else { writeln!(out, "{npub}")? }
            }
            None => out.write_all(lines)?,
        }
        out.flush()?;
        Ok(())
    }

    /// The lines of a key, or of a tweak, cleared when they are dropped because they hold the secret. Making them
    /// spends the start point.
    fn lines(&self, find: &Find) -> anyhow::Result<Zeroizing<Vec<u8>>> {
        let mut lines = Zeroizing::new(Vec::with_capacity(1024));
        let (npub, pattern) = (find.hit.npub(), &find.pattern);
        let name = match (self.is_split, &self.password) {
            (true, _) => "tweak",
            (false, Some(_)) => "ncryptsec",
            (false, None) => "nsec",
        };
        if self.json {
            // Neither patterns nor keys have characters that JSON escapes.
            write!(lines, r#"{{"pattern":"{pattern}","#)?;
            match (pattern.prefix(), pattern.met_by(&npub)) {
                (Some(prefix), _) => write!(lines, r#""prefix":"{prefix}","#)?,
                (None, met) => write!(lines, r#""found":"{}","#, met.unwrap_or_default())?,
            }
            write!(lines, r#""npub":"{npub}","{name}":""#)?;
        } else {
            writeln!(lines, "{npub}")?;
        }
        let password = self.password.as_ref().map(|password| password.as_str());
        lines.extend(self.vault.show(find.start, &find.hit, password)?.bytes());
        if !self.json {
            writeln!(lines)?;
            return Ok(lines);
        }
        write!(lines, "\"")?;
        if self.is_best {
            write!(lines, ",\"one_in\":{:.0}", pattern.difficulty().candidates())?;
        }
        if !self.is_split {
            write!(lines, ",\"seconds\":{:.3}", self.began.elapsed().as_secs_f64())?;
        }
        writeln!(lines, "}}")?;
        Ok(lines)
    }
}

/// A file of keys. Only its owner may read it, and each key is on the disk before the search for
/// the next begins.
#[derive(Debug)]
pub(super) struct KeyFile {
    path: PathBuf,
    file: File,
}

impl KeyFile {
    /// Opens the file, or makes it so that only its owner can read it.
    ///
    /// Errors: it cannot be written, or others may read it.
    pub fn open(path: &Path) -> anyhow::Result<KeyFile> {
        let named = || format!("{} cannot be written", path.display());
        let file = files::open_to_append(path).with_context(named)?;
        if !file.metadata().with_context(named)?.is_file() {
            bail!("{} is not a regular file; name one for the keys", path.display());
        }
        if files::is_file_open_to_others(&file).with_context(named)? {
            bail!("others may read {}; run `{}` first", path.display(), files::closing_command(path));
        }
        Ok(KeyFile { path: path.to_owned(), file })
    }

    /// Appends a key and waits until it is on the disk.
    pub fn append(&mut self, lines: &[u8]) -> anyhow::Result<()> {
        let written = self.file.write_all(lines).and_then(|()| self.file.sync_all());
        written.with_context(|| format!("{} cannot be written", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_appended_to_a_file_that_nobody_else_reads() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        KeyFile::open(&path).unwrap().append(b"one\n").unwrap();
        KeyFile::open(&path).unwrap().append(b"two\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
        assert!(!files::is_open_to_others(&path).unwrap());
        files::open_to_others(&path).unwrap();
        let error = KeyFile::open(&path).unwrap_err().to_string();
        assert!(error.contains(&files::closing_command(&path)), "{error}");
    }
}
