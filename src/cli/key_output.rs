//! The keys that `npubbot mine` finds: their text, and the file that they are appended to.

use super::output::stdout;
use crate::key::Npub;
use crate::os::files;
use crate::scheduler::Find;
use crate::vault::{Vault, VaultError};
use anyhow::{Context, bail};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;
use zeroize::Zeroizing;

/// Whether a key is lost because its vault process has ended: another one was started, and the
/// search goes on.
pub(super) fn is_lost(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(VaultError::StartSpent | VaultError::Gone))
}

/// The form in which keys are written, and the place where they go.
pub(super) struct KeyOutput {
    /// The vault that derives the keys.
    pub vault: Vault,
    /// Whether each key is a JSON object.
    pub json: bool,
    /// Whether tweaks are written in place of keys.
    pub is_split: bool,
    /// File that the keys are appended to, in place of standard output.
    pub file: Option<KeyFile>,
    /// The password that the keys are encrypted with (NIP-49), if any.
    pub password: Option<Zeroizing<String>>,
    /// Time at which the search began.
    pub began: Instant,
}

impl KeyOutput {
    /// Writes the lines of a key.
    pub fn write_lines(&mut self, npub: &Npub, lines: &[u8]) -> anyhow::Result<()> {
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
    /// spends the start point. `one_in`: the rarity of a key found without a target.
    pub fn lines(&self, find: &Find, one_in: Option<f64>) -> anyhow::Result<Zeroizing<Vec<u8>>> {
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
        match &self.password {
            _ if self.is_split => write!(lines, "{}", self.vault.redeem_tweak(find.start, &find.hit)?)?,
            Some(password) => lines.extend(self.vault.redeem_locked(find.start, &find.hit, password)?.bytes()),
            None => self.vault.redeem_to(find.start, &find.hit, &mut *lines)?,
        }
        if !self.json {
            writeln!(lines)?;
            return Ok(lines);
        }
        write!(lines, "\"")?;
        if let Some(one_in) = one_in {
            write!(lines, ",\"one_in\":{one_in:.0}")?;
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
