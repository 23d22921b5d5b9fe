//! The file that keys are appended to.

use anyhow::{Context, bail};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A file of keys: nobody else may read it, and every key is on the disk before the next is
/// searched for.
#[derive(Debug)]
pub(super) struct KeyFile {
    path: PathBuf,
    file: File,
}

impl KeyFile {
    /// Opens or makes the file, with mode 0600.
    ///
    /// Errors: it cannot be written, or others may read it.
    pub fn open(path: &Path) -> anyhow::Result<KeyFile> {
        let named = || format!("{} cannot be written", path.display());
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path).with_context(named)?;
        if file.metadata().with_context(named)?.permissions().mode() & 0o077 != 0 {
            bail!("others may read {0}; say `chmod 600 {0}` first", path.display());
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
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let error = KeyFile::open(&path).unwrap_err().to_string();
        assert!(error.contains("chmod 600"), "{error}");
    }
}
