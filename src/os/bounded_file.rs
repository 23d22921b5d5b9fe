//! A log file of bounded size.

use super::{Access, files};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that is only appended to. When it is full, it is renamed, and replaces the file that was
/// renamed before. Then a new file begins.
pub struct BoundedFile {
    path: PathBuf,
    file: File,
    size: u64,
    largest: u64,
}

impl BoundedFile {
    /// Opens a file, or makes it for this user only. This file and the earlier one have at most
    /// `largest` bytes each. A single text that is longer has a file for itself.
    ///
    /// Errors: those of the file system.
    pub fn open(path: &Path, largest: u64) -> io::Result<BoundedFile> {
        let file = files::open(path, Access::Append)?;
        let size = file.metadata()?.len();
        Ok(BoundedFile { path: path.to_owned(), file, size, largest })
    }

    /// Appends a text.
    ///
    /// Errors: those of the file system.
    pub fn append(&mut self, text: &[u8]) -> io::Result<()> {
        if self.size > 0 && self.size + text.len() as u64 > self.largest {
            fs::rename(&self.path, earlier(&self.path))?;
            *self = BoundedFile::open(&self.path, self.largest)?;
        }
        self.file.write_all(text)?;
        self.size += text.len() as u64;
        Ok(())
    }
}

/// The path of the earlier file, which was renamed.
fn earlier(path: &Path) -> PathBuf {
    path.with_extension("old.log")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_lines_are_kept_and_no_file_outgrows_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service.log");
        for start in 0..3 {
            let mut log = BoundedFile::open(&path, 100).unwrap();
            for line in 0..50 {
                log.append(format!("{start} {line:>7}\n").as_bytes()).unwrap();
                for file in [&path, &earlier(&path)] {
                    assert!(fs::metadata(file).map_or(0, |meta| meta.len()) <= 100, "{}", file.display());
                }
            }
        }
        let kept = fs::read_to_string(earlier(&path)).unwrap() + &fs::read_to_string(&path).unwrap();
        assert!(kept.len() > 100 && kept.ends_with("2      48\n2      49\n"), "{kept}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        assert!(!files::is_open_to_others(&path).unwrap());
    }

    #[test]
    fn a_text_longer_than_the_bound_has_the_file_for_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("service.log");
        let mut log = BoundedFile::open(&path, 10).unwrap();
        for text in ["0123456789", "0123456789a", "b"] {
            log.append(text.as_bytes()).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "b");
        assert_eq!(fs::read_to_string(earlier(&path)).unwrap(), "0123456789a");
    }
}
