//! The folder that keeps kernels compiled for GPUs from one start to the next. A file that is
//! missing or another user's is ignored, and the kernels are compiled again.

use crate::os::files;
use crate::search::KernelStore;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Name of the folder, in the data folder or in the user's folder for caches.
const FOLDER: &str = "kernels";
/// The most files that are kept: a machine with GPUs of several generations needs one for each.
const MAX_FILES: usize = 8;
/// The largest file that is read or written, in bytes. The kernels of a GPU take 2 to 6 MiB.
const MAX_FILE_BYTES: u64 = 32 << 20;

#[derive(Debug)]
struct KernelFolder(PathBuf);

/// The kernels kept in a folder. Keeping the first one makes the folder.
pub fn in_folder(folder: &Path) -> Option<Arc<dyn KernelStore>> {
    Some(Arc::new(KernelFolder(folder.join(FOLDER))))
}

/// The kernels of this user, for commands without a bot. Without a home folder none are kept.
pub fn of_user() -> Option<Arc<dyn KernelStore>> {
    in_folder(&files::cache_folder()?)
}

impl KernelFolder {
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let path = self.0.join(name);
        let file = File::open(&path)?;
        if files::is_file_open_to_others(&file)? || !files::is_own(&path) {
            return Err(io::Error::other("it is not this user's alone"));
        }
        let mut content = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut content)?;
        Ok(content)
    }

    fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let above = self.0.parent().filter(|above| above.exists());
        if content.len() as u64 > MAX_FILE_BYTES || above.is_some_and(|above| !files::is_own(above)) {
            return Err(io::Error::other("the file is too large, or the folder is another user's"));
        }
        files::create_folder(&self.0)?;
        let mut new = tempfile::Builder::new().prefix("new-").make_in(&self.0, files::create_new)?;
        new.write_all(content)?;
        new.persist(self.0.join(name))?;
        self.delete_oldest()
    }

    fn delete_oldest(&self) -> io::Result<()> {
        let mut files = fs::read_dir(&self.0)?.collect::<io::Result<Vec<_>>>()?;
        let age =
            |file: &fs::DirEntry| file.metadata().and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        files.sort_by_key(|file| std::cmp::Reverse(age(file)));
        files.iter().skip(MAX_FILES).try_for_each(|file| fs::remove_file(file.path()))
    }
}

impl KernelStore for KernelFolder {
    fn get(&self, name: &str) -> Option<Vec<u8>> {
        let read = self.read(name);
        read.inspect_err(|error| tracing::debug!(name, %error, "no kernels are kept")).ok()
    }

    fn put(&self, name: &str, content: &[u8]) {
        if let Err(error) = self.write(name, content) {
            tracing::warn!(folder = %self.0.display(), %error, "the compiled kernels are not kept; the next start compiles them again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_kept_for_the_next_start_and_their_number_is_bounded() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("cache");
        let store = || in_folder(&folder).unwrap();
        assert_eq!(store().get("kernels-1"), None);
        assert!(!folder.exists(), "reading makes nothing");
        store().put("kernels-1", b"code");
        assert_eq!(store().get("kernels-1").unwrap(), b"code");
        assert!(!files::is_open_to_others(&folder.join(FOLDER).join("kernels-1")).unwrap());
        let count = || fs::read_dir(folder.join(FOLDER)).unwrap().count();
        for number in 0..2 * MAX_FILES {
            store().put(&format!("kernels-{number}"), &[number as u8]);
            assert!(count() <= MAX_FILES && store().get(&format!("kernels-{number}")).is_some());
        }
        store().put("kernels-large", &vec![0; MAX_FILE_BYTES as usize + 1]);
        assert_eq!(store().get("kernels-large"), None);
    }
}
