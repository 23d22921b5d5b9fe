//! One process, one ledger: an advisory lock that the operating system drops when its holder dies, however it dies.

use super::LedgerError;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Held as long as it lives. The file stays behind; it is the lock on it that counts.
pub(super) struct FolderLock {
    _file: File,
}

impl FolderLock {
    /// Locks `ledger.lock` in `folder` at once, or says who is in the way.
    ///
    /// Errors: [`LedgerError::InUse`] if another opening (of this process or another) holds it; [`LedgerError::Folder`]
    /// if the file cannot be made or the file system knows no locks.
    pub(super) fn take(folder: &Path) -> Result<FolderLock, LedgerError> {
        let name = || folder.display().to_string();
        let unusable = |reason: std::io::Error| LedgerError::Folder {
            folder: name(),
            reason: format!(
                "ledger.lock cannot be locked ({reason}); choose a folder on a local disk that you can write"
            ),
        };
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(folder.join("ledger.lock"))
            .map_err(unusable)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(FolderLock { _file: file }),
            Err(Errno::WOULDBLOCK) => Err(LedgerError::InUse { folder: name() }),
            Err(other) => Err(unusable(other.into())),
        }
    }
}
