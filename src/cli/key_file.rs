//! The file that keys are appended to.

use crate::os::{Access, files};
use anyhow::{Context, bail};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

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
        let file = files::open(path, Access::Append).with_context(named)?;
        if !file.metadata().with_context(named)?.is_file() {
            bail!("{} is no regular file, and keys are kept in one; name another", path.display());
        }
        if files::is_file_open_to_others(&file).with_context(named)? {
            bail!("others may read {}; say `{}` first", path.display(), files::closing_command(path));
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
